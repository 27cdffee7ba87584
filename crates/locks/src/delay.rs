//! Pauses that do not touch the lock.

use crate::lottery::Generator;
use crate::{AtomicCell, Budget, Platform};

/// Pauses for the CPUs of a system.
#[derive(Debug)]
pub(crate) struct Delay<P: Platform>(Generator<P>);

impl<P: Platform> Delay<P> {
    /// For `cpus` CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        Self(Generator::new(cpus))
    }

    /// Pauses for `iterations` of a wait loop.
    pub(crate) fn pause(&self, iterations: u32) {
        // A spin on a cell that no other CPU writes: it causes no miss and ends with its budget.
        let _ = self.0.own().spin_until(|_| false, Budget::Iterations(iterations));
    }

    /// A random number of iterations, from `shortest` to less than twice as many.
    pub(crate) fn between(&self, shortest: u32) -> u32 {
        // The high half of the product is uniform from 0 to `shortest - 1`.
        let extra = (u64::from(self.0.draw()) * u64::from(shortest)) >> 32;
        shortest + extra as u32
    }

    /// Pauses for a random number of iterations between `longest / 2` and `longest`, so that CPUs
    /// that failed together do not come back together.
    pub(crate) fn pause_up_to(&self, longest: u32) {
        let half = longest / 2;
        // The high half of the product is uniform from 0 to `half`.
        let extra = (u64::from(self.0.draw()) * (u64::from(half) + 1)) >> 32;
        self.pause(longest - half + extra as u32);
    }
}
