//! How fast this machine burns CPU time.

use crate::clock::{Clock, counter};
use overspin_guest_abi::burn;
use std::sync::OnceLock;

/// Iterations of one measurement, some 100 us.
const ITERATIONS: u64 = 100_000;
/// Measurements. The fastest counts: everything that disturbs makes one slower.
const MEASUREMENTS: usize = 200;

/// Iterations of [`burn`] in 2^20 ns on an undisturbed CPU; measured once in a process.
pub(crate) fn per_2_20_ns() -> u64 {
    static RATE: OnceLock<u64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let clock = Clock::start(None);
        let one = || {
            let begin = counter();
            burn(ITERATIONS);
            counter() - begin
        };
        let fastest = (0..MEASUREMENTS).map(|_| one()).min().unwrap_or(1);
        let ns = (u128::from(fastest) * u128::from(clock.scale)) as f64 / (1_u64 << 32) as f64;
        ((ITERATIONS << 20) as f64 / ns) as u64
    })
}
