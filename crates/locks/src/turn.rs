//! Turns: when a waiter that spins gives its CPU away.
//!
//! With more threads than CPUs and sections shorter than a spin budget, hardly any waiter sleeps. The threads that are
//! left out are runnable, and wait until the operating system ends a slice, for milliseconds. A waiter has no other use for
//! its CPU than to let one of them run, and the lock stays as busy as the other CPUs keep it. So where a lock has been wanted all
//! the time, one of its waiters yields now and then.

use crate::coarse_clock::CoarseClock;
use crate::{AtomicCell, Platform};

/// How often waiters take turns.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Maximum number of waits between two readings of the clock; the minimum is half of it.
    waits_per_look: u32,
    /// Minimum time from one turn to the next.
    turn_us: u32,
}

impl Pace {
    /// A turn takes a microsecond of a waiting thread: with sections of 1 us, a turn every 9 us and a turn every 20 us
    /// have the same throughput.
    pub const DEFAULT: Self = Self { waits_per_look: 8, turn_us: 8 };

    /// For locks that several threads hold at a time, and whose writers back off: a turn costs them more. Every 8 us, writers of
    /// sections of 1 us lose 4 % more of their throughput.
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
        let Some(reading) = self.0.look(pace.waits_per_look, P::now) else { return };
        if reading.since < pace.turn_us {
            return;
        }
        // A turn, or the finding that none was needed.
        self.0.happens(&reading);
        if reading.since <= SATURATED_US {
            P::yield_now();
        }
    }
}
