//! How fast this machine burns CPU time.

use overspin_guest_abi::burn;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Iterations of a piece, some 1 ms: long enough to have its share of the short interruptions that every machine has.
const ITERATIONS: u64 = 1_000_000;
/// Pieces, of which the median counts.
const PIECES: usize = 11;
/// How long a rate is used. The speed of a machine changes with its clock and with what its neighbours do.
const VALID: Duration = Duration::from_secs(1);

/// Iterations of [`burn`] in 2^20 ns of CPU time.
pub(crate) fn per_2_20_ns() -> u64 {
    static LAST: Mutex<Option<(Instant, u64)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, rate)) = *last
        && at.elapsed() < VALID
    {
        return rate;
    }
    let mut pieces: Vec<u64> = (0..PIECES)
        .map(|_| {
            let began = cpu_time();
            burn(ITERATIONS);
            cpu_time().saturating_sub(began).max(1)
        })
        .collect();
    pieces.sort_unstable();
    let rate = (u128::from(ITERATIONS) << 20) / u128::from(pieces[PIECES / 2]);
    // A piece takes at least 1 ns.
    let rate = rate as u64;
    *last = Some((Instant::now(), rate));
    rate
}

/// CPU time of the calling thread in nanoseconds: time in which other threads had its CPU is not in it.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write. The call cannot fail: every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    // Neither is negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
