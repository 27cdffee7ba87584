//! How patient the locks of a kind are.

use super::{affinity, debt};
use crate::coarse_clock;
use crate::turn::{FIRST_LOOKS, Pace};

/// Looks at a held lock before a thread sleeps. With pauses of 35 to 45 ns this is 40 us, about the total cost of
/// going to sleep and being woken on a virtual machine; on a bare machine a third would do.
pub const DEFAULT_SPIN_BUDGET: u32 = 1000;

/// Looks of a thread whose turn it is at a held lock before it becomes the heir: some microseconds, in which the holder of a
/// short section has released several times. A fifteenth of it costs an eighth of the throughput.
const PATIENCE: u32 = 300;

/// Looks of a releaser for a thread that takes over: some 1.2 us, about what the call that wakes a sleeper takes. With 3, the
/// value of MUTEXEE, sections of 0.1 us on 8 CPUs and more have 0.65 to 0.9 of the throughput (simulated). On two CPUs it makes no difference.
const GRACE: u32 = 30;

/// Minimum time from one rotation to the next. It is a compromise: a rotation costs two system calls and two
/// switches, and sleepers wait in proportion to this time. With sections of 10 us, in which turns do not keep all
/// threads from sleeping, 150 us cost 2 to 4 % more of the throughput.
const ROTATION_NS: u64 = 250_000;

/// Releases with sleepers between two readings of the clock.
const RELEASES_PER_LOOK: u32 = coarse_clock::MOST;

/// Naps of a woken thread, each between two rounds of looks, before it becomes the heir where yields are dear: about
/// 4 ms in all, a slice of a process that computes.
const NAPS: u32 = 22;

/// What locks of a kind share: their patience.
#[derive(Debug)]
pub struct Shared {
    pub(crate) spin_budget: u32,
    pub(super) pace: Pace,
    pub(super) grace: u32,
    pub(super) patience: u32,
    pub(super) naps: u32,
    pub(super) releases_per_look: u32,
    pub(super) rotation_ns: u64,
    /// The least price of a move, in nanoseconds, for which the lock seldom moves; `u64::MAX`: it never learns one.
    pub(super) move_ns: u64,
    /// Holders pay for sections of this length and more; `u64::MAX`: for none.
    pub(super) long_ns: u64,
    /// What a holder pays for each nanosecond and each sleeper, in nanoseconds.
    pub(super) price: u32,
}

impl Shared {
    pub(super) fn learns(&self) -> bool {
        self.move_ns != u64::MAX
    }

    /// On threads: the default, and holders pay for long sections, and locks learn what a move costs.
    pub const ON_THREADS: Self =
        Self { long_ns: debt::LONG_NS, move_ns: affinity::PRICE_NS, ..Self::DEFAULT };

    /// With the default spin budget. Holders do not pay: a guest's kernel has no long sections. And a guest does not know on
    /// which processor it runs.
    pub const DEFAULT: Self = Self {
        spin_budget: DEFAULT_SPIN_BUDGET,
        pace: Pace::DEFAULT,
        grace: GRACE,
        patience: PATIENCE,
        naps: NAPS,
        releases_per_look: RELEASES_PER_LOOK,
        rotation_ns: ROTATION_NS,
        move_ns: u64::MAX,
        long_ns: u64::MAX,
        price: 1,
    };

    /// No patience at all: waiters sleep at once, and each release reads the clock, for a rotation at least
    /// `rotation_ns` after the last.
    pub const fn impatient(rotation_ns: u64) -> Self {
        Self {
            spin_budget: 0,
            grace: 0,
            patience: 0,
            naps: 0,
            releases_per_look: 1,
            rotation_ns,
            ..Self::DEFAULT
        }
    }

    /// Sets the number of naps of a woken thread where [yields are dear](crate::Platform::yield_is_dear).
    #[must_use]
    pub const fn with_naps(self, naps: u32) -> Self {
        Self { naps, ..self }
    }

    /// Sets the spin budget. Waiters of condition variables look twice as often before they sleep.
    #[must_use]
    pub const fn with_spin_budget(self, spin_budget: u32) -> Self {
        Self { spin_budget, ..self }
    }

    /// Makes locks that seldom move, whatever that costs. A woken thread is not due before a rotation, however often it
    /// has found the lock held.
    #[must_use]
    pub const fn staying(self) -> Self {
        Self { move_ns: 0, ..self }
    }

    /// Sets the number of releases with sleepers between two readings of the clock.
    #[must_use]
    pub const fn with_releases_per_look(self, releases_per_look: u32) -> Self {
        Self { releases_per_look, ..self }
    }

    /// The tuning of a thread that has just slept: it looks just the first times before it sleeps again. Another sleep is cheap
    /// for it, and the holder may wait for its CPU.
    pub(crate) const fn after_a_sleep(&self) -> Self {
        let spin_budget =
            if self.spin_budget < FIRST_LOOKS { self.spin_budget } else { FIRST_LOOKS };
        Self { spin_budget, ..*self }
    }

    /// No patience, and every section that a thread has waited for is a long one, and dear.
    pub const fn charging() -> Self {
        Self { long_ns: 0, price: 1000, ..Self::impatient(u64::MAX) }
    }

    /// Waiters take a turn after a few looks and sleep after a few more; there are no rotations.
    pub const fn restless() -> Self {
        Self { spin_budget: FIRST_LOOKS + 1, pace: Pace::ALWAYS, ..Self::impatient(u64::MAX) }
    }
}
