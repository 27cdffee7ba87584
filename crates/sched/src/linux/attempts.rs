//! When a pCPU balances: intervals that grow while all is even, and the count of failures.
//!
//! The interval of an idle pCPU is 1 ms for each pCPU of the domain, and twice that where the last attempt found all
//! even. That of a busy pCPU is 16 times as long, and no longer than 100 ms for each pCPU of the machine.

use super::groups::Level;
use crate::time::Nanos;

/// By how much longer than an idle one the interval of a busy pCPU is.
const BUSY_FACTOR: i64 = 16;
/// The longest interval, for each pCPU of the machine.
const LONGEST: Nanos = Nanos::ms(100);

/// When a pCPU last balanced one of its domains, and how that went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    /// In ticks.
    pub last: i64,
    /// The interval of an idle pCPU, in ms; 0 before the first attempt.
    interval: i64,
    pub failed: u32,
}

impl Attempts {
    /// The interval of a busy pCPU, in ticks. It is a tick shorter than computed, so that the intervals of domains are
    /// not multiples of each other.
    pub fn busy_interval(&self, level: &Level, tick: Nanos, pcpus: u32) -> i64 {
        let least = level.pcpus.len() as i64;
        let interval = Nanos::ms(self.interval.max(least) * BUSY_FACTOR);
        let ticks = (interval.0 + tick.0 - 1) / tick.0 - 1;
        ticks.min(LONGEST.0 * i64::from(pcpus) / tick.0).max(1)
    }

    /// Notes that there was nothing to do.
    pub fn even(&mut self, level: &Level) {
        let least = level.pcpus.len() as i64;
        self.failed = 0;
        self.interval = (self.interval.max(least) * 2).min(2 * least);
    }

    /// Notes whether an attempt moved something.
    pub fn tried(&mut self, level: &Level, moved: bool) {
        self.failed = if moved { 0 } else { self.failed + 1 };
        self.interval = level.pcpus.len() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PcpuId;
    use crate::topology::Topology;

    /// Two pCPUs at 250 Hz: 2 ms × 16 are 8 ticks, less one; where all is even 4 ms × 16 are 16, less one. On 64 pCPUs
    /// 64 ms × 16 are 256 ticks, less one; at 1000 Hz 1024, less one.
    #[test]
    fn intervals_grow_with_the_domain() {
        let level = |n| Level::of(&Topology::flat(n), PcpuId(0)).next().unwrap();
        let mut attempts = Attempts::default();
        assert_eq!(attempts.busy_interval(&level(2), Nanos::ms(4), 2), 7);
        attempts.even(&level(2));
        assert_eq!((attempts.interval, attempts.failed), (4, 0));
        assert_eq!(attempts.busy_interval(&level(2), Nanos::ms(4), 2), 15);
        attempts.even(&level(2));
        assert_eq!(attempts.interval, 4, "no longer than twice the domain's");
        attempts.tried(&level(2), false);
        assert_eq!((attempts.interval, attempts.failed), (2, 1));
        attempts.tried(&level(2), true);
        assert_eq!((attempts.interval, attempts.failed), (2, 0));
        let wide = Attempts::default();
        assert_eq!(wide.busy_interval(&level(64), Nanos::ms(4), 64), 255);
        assert_eq!(wide.busy_interval(&level(64), Nanos::MS, 64), 1023);
    }
}
