//! How much a vCPU has wanted to run of late: the kernel's per-entity load tracking.
//!
//! Time that lies 32 periods of 2^20 ns (33.6 ms) back counts half as much as the present. A vCPU that always wants to
//! run has [`ONE`], a vCPU that runs or waits for a third of the time about a third of it. Its load for the balancer is
//! its weight times this average, so a vCPU that sleeps a lot does not weigh as much as a hog.
//!
//! The kernel counts in whole periods; here the average is exact to about 1e-5 at any instant. The kernel keeps the
//! average of a pCPU beside those of its threads; here it is their sum, computed when a pCPU balances.

use crate::time::Nanos;

/// The average of a vCPU that always wants to run.
pub(super) const ONE: i64 = 1 << 16;

/// One period, as a shift of ns.
const PERIOD: u32 = 20;
/// Periods after which a time counts half.
const HALF: u64 = 32;

/// 2^(-i/32) for i from 0 to 32, times 2^32.
const DECAY: [u64; HALF as usize + 1] = {
    // 2^32 times 2^(-1/32), and 2^63 times the powers, so that 32 roundings do not show.
    const STEP: u128 = 4_202_935_003;
    let mut all = [1 << 32; HALF as usize + 1];
    let mut power: u128 = 1 << 63;
    let mut i = 1;
    while i <= HALF as usize {
        power = (power * STEP) >> 32;
        all[i] = ((power + (1 << 30)) >> 31) as u64;
        i += 1;
    }
    all
};

/// By how much a time that lies `elapsed` back counts, times 2^32.
fn decay(elapsed: Nanos) -> u64 {
    let elapsed = elapsed.0.max(0) as u64;
    let periods = elapsed >> PERIOD;
    if periods >= HALF * 32 {
        return 0;
    }
    let (whole, i) = (periods / HALF, (periods % HALF) as usize);
    let rest = elapsed & ((1 << PERIOD) - 1);
    // A straight line between two periods: they differ by 2 %, so the line is off by less than 1e-4 of that.
    let here = DECAY[i] - (((DECAY[i] - DECAY[i + 1]) * rest) >> PERIOD);
    here >> whole
}

/// The average of one vCPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    value: i64,
    at: Nanos,
    wants: bool,
}

impl Average {
    /// That of a new vCPU, which counts as a hog until it has slept.
    pub fn new() -> Self {
        Self { value: ONE, at: Nanos::ZERO, wants: true }
    }

    /// The average up to `now`.
    pub fn get(&self, now: Nanos) -> i64 {
        let toward = if self.wants { ONE } else { 0 };
        if self.value == toward {
            return toward;
        }
        // 16 bits times 32 bits; what is left of the difference rounds down, so that it ends.
        let left = ((self.value - toward).abs() * decay(now - self.at) as i64) >> 32;
        if self.wants { ONE - left } else { left }
    }

    /// Notes whether the vCPU wants to run from `now` on.
    pub fn set(&mut self, now: Nanos, wants: bool) {
        *self = Self { value: self.get(now), at: now, wants };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After 32 periods half is left, after 64 a quarter; after one, 2^(-1/32).
    #[test]
    fn half_is_forgotten_in_32_periods() {
        let period = Nanos(1 << PERIOD);
        assert_eq!(decay(Nanos::ZERO), 1 << 32);
        assert!(decay(32 * period).abs_diff(1 << 31) < 8, "{}", decay(32 * period));
        assert!(decay(64 * period).abs_diff(1 << 30) < 8);
        assert_eq!(decay(period), 4_202_935_003);
        assert!(decay(period / 2) < decay(Nanos::ZERO) && decay(period / 2) > decay(period));
        assert_eq!(decay(Nanos::ms(100_000)), 0);
    }

    /// A hog stays at one. A vCPU that runs 1 ms of each 4 ms settles at a quarter, ± the swing of one round.
    #[test]
    fn an_average_is_the_part_of_time_that_is_wanted() {
        let mut hog = Average::new();
        hog.set(Nanos::ms(7), true);
        assert_eq!(hog.get(Nanos::ms(1000)), ONE);
        let mut quarter = Average::new();
        for round in 0..200 {
            quarter.set(Nanos::ms(4 * round), true);
            quarter.set(Nanos::ms(4 * round + 1), false);
        }
        let left = quarter.get(Nanos::ms(799));
        assert!((left - ONE / 4).abs() < ONE / 25, "{left}");
    }
}
