//! What the checks must know about a lock beyond its [`LockInfo`].

use overspin_locks::LockInfo;

/// The properties of a lock that decide how it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Preemption bounds of the three models: 2 CPUs with 2 pairs, 3 CPUs with 1, 3 CPUs with 2. They are
    /// as large as some seconds allow.
    pub preemptions: [usize; 3],
    /// Its unlock accesses the lock after the release. This is a known flaw, which the checks must then
    /// find.
    pub touches_after_release: bool,
    /// It can tell whether a CPU waits.
    pub records_waiters: bool,
    /// It asks how long its CPU may still run. Its `try_lock` may decline a free lock, and the number of
    /// accesses of an acquisition depends on the clock.
    pub asks_for_time: bool,
    /// Its last user may leave a mark in it that costs the next user some accesses. The next user clears
    /// the mark.
    pub leaves_hints: bool,
    /// The most acquisitions of each other CPU while a CPU wants the lock, where CPUs are scheduled fairly and at random. With an
    /// order, a CPU is overtaken on its way to the queue only, at most 4 times as far as was seen. Without one, it finds the lock
    /// free as often as others do: it loses 100 times to each of several others by bad luck once in 10^20.
    pub overtaken: usize,
    /// There are fair schedules by which the others keep a CPU away for ever.
    pub starves: bool,
    /// Its longest nap, in nanoseconds. Nothing ends a nap early.
    pub longest_nap: u64,
}

impl Default for Profile {
    /// The profile of a lock without known flaws. The bounds suit most locks.
    fn default() -> Self {
        Self {
            preemptions: [6, 3, 1],
            touches_after_release: false,
            records_waiters: true,
            asks_for_time: false,
            leaves_hints: false,
            overtaken: 100,
            starves: true,
            longest_nap: 1_000_000,
        }
    }
}

/// Locks that need other preemption bounds, because their queues take more steps.
const PREEMPTIONS: &[(&str, [usize; 3])] = &[
    ("pv-ticket-2012-small", [3, 2, 1]),
    ("pv-ticket-2012", [3, 2, 1]),
    ("pv-ticket", [4, 3, 1]),
    ("pv-qspinlock-4.2", [3, 2, 1]),
    ("pv-qspinlock-4.5", [4, 3, 1]),
    ("pv-qspinlock", [4, 3, 1]),
    ("tas", [6, 2, 1]),
    ("qspinlock-unfair", [6, 1, 1]),
    ("mcs-tp", [3, 1, 1]),
    ("malthusian", [4, 3, 1]),
    ("shfllock", [3, 3, 1]),
    ("mutexee", [6, 3, 2]),
    ("mutex", [5, 3, 2]),
];

/// Locks whose release is not their last access.
const TOUCHES_AFTER_RELEASE: &[&str] =
    &["xen-pv", "pv-ticket-2012-small", "pv-ticket-2012", "mutexee", "mutex"];

/// Locks that keep no record of waiters.
const KEEPS_NO_RECORD: &[&str] = &["tas", "ttas", "s-lock", "qspinlock-tas"];

/// Locks that ask how long they may still run before they try.
const ASKS_FOR_TIME: &[&str] = &["i-spinlock"];

/// Locks whose release may leave a flag set although no CPU waits.
const LEAVES_HINTS: &[&str] = &["pv-ticket", "pv-ticket-2012", "pv-ticket-2012-small"];

/// Locks with long naps, which end no sooner if the lock becomes free: it is how they are.
const LONG_NAPS: &[(&str, u64)] = &[("s-lock", overspin_locks::s_lock::LONGEST_NAP)];

/// Locks that promise no order, but in which a waiter's turn comes.
const LETS_EACH_IN: &[&str] = &[
    "qspinlock-unfair",
    "rqspinlock",
    "pv-qspinlock-4.5",
    "pv-qspinlock",
    "i-spinlock",
    "malthusian",
    "cna",
];

impl Profile {
    /// The profile of a lock of the registry. Any other lock has the default, and starves nobody if it promises an order.
    pub fn of(lock: &LockInfo) -> Self {
        let usual = Self::default();
        let preemptions = PREEMPTIONS.iter().find(|(name, _)| *name == lock.name);
        Self {
            preemptions: preemptions.map_or(usual.preemptions, |(_, preemptions)| *preemptions),
            touches_after_release: TOUCHES_AFTER_RELEASE.contains(&lock.name),
            records_waiters: !KEEPS_NO_RECORD.contains(&lock.name),
            asks_for_time: ASKS_FOR_TIME.contains(&lock.name),
            leaves_hints: LEAVES_HINTS.contains(&lock.name),
            overtaken: if lock.fair { 10 } else { usual.overtaken },
            longest_nap: LONG_NAPS
                .iter()
                .find(|(name, _)| *name == lock.name)
                .map_or(usual.longest_nap, |(_, nanos)| *nanos),
            starves: !lock.fair && !LETS_EACH_IN.contains(&lock.name),
        }
    }
}

/// Names of the locks in the tables of this crate.
pub fn named_in_tables() -> impl Iterator<Item = &'static str> {
    let flagged =
        [TOUCHES_AFTER_RELEASE, KEEPS_NO_RECORD, ASKS_FOR_TIME, LEAVES_HINTS, LETS_EACH_IN];
    let flagged = flagged.into_iter().flatten().copied();
    PREEMPTIONS
        .iter()
        .map(|(name, _)| *name)
        .chain(LONG_NAPS.iter().map(|(name, _)| *name))
        .chain(flagged)
        .chain(crate::seeded::locks())
        .chain(crate::special::locks())
}
