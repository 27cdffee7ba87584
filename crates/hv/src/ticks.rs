//! Ticks of a vCPU: the event that comes at equal distances while the vCPU runs.

use overspin_guest_abi::SHORTEST_TICK;
use overspin_sched::Nanos;

/// The ticks that a guest wants on one of its vCPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    pub next: Nanos,
    pub period: Nanos,
}

impl Ticks {
    /// Those at `phase` and multiples of `period` from there; the next one comes after `now`.
    pub(crate) fn new(now: Nanos, phase: u64, period: u32) -> Self {
        let period = i64::from(period.max(SHORTEST_TICK));
        let phase = (phase % period.unsigned_abs()).cast_signed();
        Self {
            next: Nanos(now.0 + period - (now.0 - phase).rem_euclid(period)),
            period: Nanos(period),
        }
    }

    /// Whether one is due; the next one comes after `now`.
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        let due = self.next <= now;
        if due {
            *self = Self::new(now, self.next.0.unsigned_abs(), self.period.0 as u32);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every millisecond, 0.25 ms after a whole one. Those that were due while the vCPU did not run are one.
    #[test]
    fn ticks_keep_their_phase_and_do_not_pile_up() {
        let mut ticks = Ticks::new(Nanos(5_100_000), 250_000, 1_000_000);
        assert_eq!(ticks.next, Nanos(5_250_000));
        assert!(!ticks.take(Nanos(5_249_999)));
        assert!(ticks.take(Nanos(5_250_000)) && !ticks.take(Nanos(5_250_000)));
        assert!(ticks.take(Nanos(9_999_999)) && !ticks.take(Nanos(9_999_999)));
        assert_eq!(ticks.next, Nanos(10_250_000));
    }

    /// Whatever a guest asks for, ticks come no sooner than its work can go on between two of them.
    #[test]
    fn ticks_are_not_too_frequent() {
        for (phase, period) in [(0, 1), (u64::MAX, 1), (u64::MAX, u32::MAX), (7, SHORTEST_TICK)] {
            let mut ticks = Ticks::new(Nanos(42), phase, period);
            for _ in 0..3 {
                let now = ticks.next;
                assert!(now > Nanos(42) && ticks.take(now));
                assert!(ticks.next.0 - now.0 >= i64::from(SHORTEST_TICK), "{ticks:?}");
            }
        }
    }
}
