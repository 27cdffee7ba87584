//! The guest's clock. All guests of a host agree about it, because Xen gives it to them.

use rustix::time::{ClockId, clock_gettime};
use std::thread;
use std::time::Duration;

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    // Both are positive in a time after 1970.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Sleeps until then.
pub(crate) fn sleep_until(time: u64) {
    loop {
        let now = now();
        if now >= time {
            return;
        }
        thread::sleep(Duration::from_nanos(time - now));
    }
}
