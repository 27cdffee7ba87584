//! Turns: when a waiter that spins gives its CPU away.
//!
//! With more threads than CPUs and sections shorter than a spin budget, hardly any waiter sleeps. The threads that are
//! left out are runnable, and wait until the operating system ends a slice, for milliseconds. A waiter has no other use
//! for its CPU than to let one of them run, and the lock stays as busy as the other CPUs keep it. So where a lock has
//! been wanted all the time, one of its waiters yields now and then.

use crate::coarse_clock::CoarseClock;
use crate::{AtomicCell, Platform};

/// A thread that gets a lock within these looks has not waited.
pub(crate) const FIRST_LOOKS: u32 = 2;

/// How often waiters take turns.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Maximum number of waits between two readings of the clock; the minimum is half of it.
    waits_per_look: u32,
    /// Minimum time from one turn to the next.
    turn_us: u32,
}

impl Pace {
    /// A turn takes a microsecond of a waiting thread. With sections of 0.1 us, a turn every 4 us has 0 to 3 % less throughput
    /// than one every 8 us, and the 99.9th percentile of the waits is 0.6 times as long. Every 2 us it is 0.4 times as long, but the throughput
    /// is 3 to 6 % less.
    pub const DEFAULT: Self = Self { waits_per_look: 8, turn_us: 4 };

    /// For locks that several threads hold at a time, and whose writers back off: a turn costs them more. Every 8 us,
    /// writers of sections of 1 us lose up to 5 % more of their throughput.
    pub const SELDOM: Self = Self { turn_us: 30, ..Self::DEFAULT };

    /// A turn at each wait, for tests.
    pub const ALWAYS: Self = Self { waits_per_look: 1, turn_us: 0 };
}

/// If so many waits as are between two readings of the clock take longer than this, the lock is not wanted all the time.
/// Then a turn would help no thread, and a thread that yields may lose its CPU for milliseconds to a thread that computes.
const SATURATED_US: u32 = 100;

/// Counts the waits for a lock; every waiter updates it.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Turns<C>(CoarseClock<C>);

impl<C: AtomicCell<Value = u32>> Turns<C> {
    /// Makes one from a cell that is 0.
    pub const fn of(cell: C) -> Self {
        Self(CoarseClock::of(cell))
    }

    /// Counts a wait, and yields if it is time for a turn.
    pub fn wait<P: Platform>(&self, pace: Pace) {
        if self.is_due(pace, P::now) {
            P::yield_now();
        }
    }

    /// There is no turn for `us` microseconds from `now_ns` on, but 65 ms at most.
    pub fn put_off(&self, now_ns: u64, us: u32) {
        self.0.will_happen(now_ns, us);
    }

    fn is_due(&self, pace: Pace, clock: impl FnOnce() -> u64) -> bool {
        let Some(reading) = self.0.look(pace.waits_per_look, clock) else { return false };
        if reading.since < pace.turn_us {
            return false;
        }
        // A turn, or the finding that none was needed.
        self.0.happens(&reading);
        reading.since <= SATURATED_US
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    /// The turns of a thousand waits, one every `pace_ns`.
    fn turns(pace_ns: u64) -> usize {
        let turns = Turns::of(AtomicU32::new(0));
        (1..=1000).filter(|wait| turns.is_due(Pace::DEFAULT, || wait * pace_ns)).count()
    }

    #[test]
    fn a_lock_that_is_always_wanted_has_a_turn_every_few_waits_or_microseconds() {
        // A look every 4 to 8 waits, each long enough for a turn.
        assert!((125..=250).contains(&turns(2_000)), "{}", turns(2_000));
        // 100 us in all, so at most one turn in 4 of them, and one more look of 0.8 us between two.
        assert!((20..=25).contains(&turns(100)), "{}", turns(100));
    }

    #[test]
    fn turns_that_are_put_off_come_later() {
        let turns = Turns::of(AtomicU32::new(0));
        turns.put_off(0, 500);
        let is_due = |wait: u64| turns.is_due(Pace::DEFAULT, || wait * 1_000);
        assert!((1..=503).all(|wait| !is_due(wait)));
        assert!((504..=520).any(is_due));
    }

    #[test]
    fn a_lock_that_is_seldom_wanted_has_none() {
        // Four waits take more than 100 us.
        assert_eq!(turns(26_000), 0);
    }
}
