//! The system calls that sleep on a word and wake its sleepers.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `value`; may return spuriously. The kernel's look and falling asleep are one
/// step with respect to [`wake`].
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let _ = sleep(word, value, ptr::null());
}

/// As [`wait`], but for at most `limit`. Returns true if the limit ended the sleep.
pub(crate) fn wait_for(word: &AtomicU32, value: u32, limit: Duration) -> bool {
    let seconds = libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX);
    // The value is below a thousand million, which all integers of C hold.
    let limit = libc::timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos() as _ };
    sleep(word, value, &raw const limit) != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

fn sleep(word: &AtomicU32, value: u32, limit: *const libc::timespec) -> libc::c_long {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: `word` is borrowed, thus readable throughout. The limit is a null pointer, which means no
    // limit, or points to a value of the caller. The errors are "another value", "a signal came" and "time
    // is up"; the caller returns on all of them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit) }
}

/// Wakes up to `count` threads that sleep at `address`, among equal priorities the longest sleeper first.
/// Returns the number of threads woken.
pub(crate) fn wake(address: *const AtomicU32, count: i32) -> usize {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel hashes the address of a private futex and never reads the memory there, which may
    // even be gone.
    let woken = unsafe { libc::syscall(libc::SYS_futex, address, operation, count) };
    usize::try_from(woken).unwrap_or(0)
}

/// Moves the thread that has slept longest at `from` to the sleepers at `to`. Where the kernel refuses that, wakes it.
pub(crate) fn requeue(from: *const AtomicU32, to: *const AtomicU32) {
    let operation = libc::FUTEX_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
    // To wake: none. To move: one.
    let (wake, requeue) = (0, ptr::without_provenance::<libc::timespec>(1));
    // SAFETY: as in `wake`, for both addresses. The kernel reads the fourth argument as a number here.
    let moved = unsafe { libc::syscall(libc::SYS_futex, from, operation, wake, requeue, to) };
    if moved < 0 {
        // Some sandboxes and emulators do not know the operation. The thread then wakes up too early, and not never.
        self::wake(from, 1);
    }
}
