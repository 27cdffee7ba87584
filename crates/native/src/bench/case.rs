//! What the threads of a run do with the lock: the cases of `overspin bench locks`.

use std::time::Duration;

use super::PlanError;
use super::work::{Lots, steps};

/// A pattern of use. Every case repeats: work outside, an acquisition, a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// All threads alike.
    Plain,
    /// The first thread works for the long time in each of its sections.
    LongHolder,
    /// The first thread sleeps for the long time in each of its sections, as one that waits for a disk does.
    Sleeping,
    /// Each thread acquires [`BURST`] times without work outside, and then does the outside work of all of them.
    Bursts,
    /// An acquisition is of two locks, always in the same order. The wait is the sum of both.
    Nested,
    /// There are [`ZIPF_LOCKS`] locks. The k-th most popular one is chosen with a probability in proportion to 1/k.
    Zipf,
    /// Beside the threads there is one for each CPU that computes without a pause and never locks.
    Hogs,
    /// Each section also adds 1 in each of [`SHARED_LINES`] cache lines. On another CPU than before they have to come from
    /// there, so a section takes longer.
    Shared,
    /// Half of the threads put items into a queue of 16, the others take them out, and wait for room or for an item
    /// with condition variables. An acquisition puts or takes an item. Its wait includes the wait for the condition. The
    /// notifier has released the lock.
    Condvar,
    /// As `Condvar`, but the notifier still holds the lock.
    CondvarHeld,
    /// The threads acquire one after another, in a ring. Each waits for its turn with a condition variable of its own.
    Ring,
    /// All threads use one reader-writer lock. One of so many acquisitions is of a writer. Waits are those of the writers.
    WriteIn(u32),
    /// Each thread has a lock of its own and only locks and unlocks. There is no section and no outside work, and
    /// waits are not measured.
    Uncontended,
}

/// Acquisitions of a burst.
pub const BURST: u32 = 64;
/// Cache lines of 64 bytes that sections of the case `shared` use: 64 KiB.
pub const SHARED_LINES: usize = 1024;
/// Locks of the case `zipf`.
pub const ZIPF_LOCKS: usize = 64;

impl Case {
    /// All cases, by name, with what the threads do.
    pub const ALL: &[(Self, &str, &str)] = &[
        (Self::Plain, "plain", "all threads alike"),
        (Self::LongHolder, "long-holder", "the first thread works for --long in its sections"),
        (Self::Sleeping, "sleeping", "the first thread sleeps for --long in its sections"),
        (Self::Bursts, "bursts", "64 acquisitions back to back, then the outside work of all"),
        (Self::Nested, "nested", "two locks, always in the same order"),
        (Self::Zipf, "zipf", "64 locks; the k-th is chosen in proportion to 1/k"),
        (Self::Hogs, "hogs", "beside one computing thread for each CPU"),
        (Self::Shared, "shared", "sections also use 64 KiB that all threads share"),
        (Self::Condvar, "condvar", "half of the threads fill a queue of 16, the others empty it"),
        (Self::CondvarHeld, "condvar-held", "the same, and the notifier holds the lock"),
        (Self::Ring, "ring", "one after another, each with a condition variable of its own"),
        (
            Self::WriteIn(10),
            "write-in-10",
            "readers and writers; 1 of 10 writes, waits are of writes",
        ),
        (Self::WriteIn(100), "write-in-100", "the same, 1 of 100 writes"),
        (Self::WriteIn(1000), "write-in-1000", "the same, 1 of 1000 writes"),
        (Self::Uncontended, "uncontended", "a lock for each thread; lock and unlock, nothing else"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|case| case.0 == self).map_or("", |case| case.1)
    }

    /// The case of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|case| case.1 == name).map(|case| case.0)
    }

    /// Whether some section lasts for the plan's long time.
    #[must_use]
    pub fn has_long_sections(self) -> bool {
        matches!(self, Self::LongHolder | Self::Sleeping)
    }

    /// Whether the threads need condition variables, and meet in a queue or ring.
    pub(super) fn has_conditions(self) -> bool {
        matches!(self, Self::Condvar | Self::CondvarHeld | Self::Ring)
    }

    /// Locks of a run.
    pub(super) fn locks(self, threads: usize) -> usize {
        match self {
            Self::Nested => 2,
            Self::Zipf => ZIPF_LOCKS,
            Self::Uncontended => threads,
            _ => 1,
        }
    }
}

/// Lengths of sections and of the work outside, in steps of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub section: u32,
    /// Mean of the outside work.
    pub outside: u32,
    /// Mean of the outside work after a burst.
    pub burst: u32,
    /// Sections of the long holder.
    pub long: u32,
    /// How long the sleeping holder sleeps.
    pub sleep: Duration,
}

impl Lengths {
    pub(super) fn new(
        section: Duration,
        outside: Duration,
        long: Duration,
        steps_per_ns: f64,
    ) -> Result<Self, PlanError> {
        Ok(Self {
            section: steps(section, steps_per_ns)?,
            outside: steps(outside, steps_per_ns)?,
            burst: steps(outside * BURST, steps_per_ns)?,
            long: steps(long, steps_per_ns)?,
            sleep: long,
        })
    }
}

/// Draws locks by Zipf's law.
#[derive(Debug)]
pub(super) struct Zipf {
    /// For each lock the end of its part of the numbers below 2^32.
    ends: Vec<u32>,
}

impl Zipf {
    pub(super) fn new() -> Self {
        let weights = (1..=ZIPF_LOCKS).map(|k| 1.0 / k as f64);
        let all: f64 = weights.clone().sum();
        let mut sum = 0.0;
        let mut end = |weight: f64| {
            sum += weight;
            (sum / all * f64::from(u32::MAX)) as u32
        };
        Self { ends: weights.map(&mut end).collect() }
    }

    pub(super) fn draw(&self, lots: &mut Lots) -> usize {
        let drawn = lots.up_to(u32::MAX);
        // Rounding may leave the last end below the largest number.
        self.ends.partition_point(|end| *end < drawn).min(ZIPF_LOCKS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        for &(case, name, _) in Case::ALL {
            assert_eq!((case.name(), Case::of(name)), (name, Some(case)));
        }
        assert_eq!(Case::of("long holder"), None);
    }

    /// The sum of 1/k up to 64 is 4.744, so the first lock has 21.1 % of the draws, and the second half of that.
    #[test]
    fn popularity_falls_with_the_rank() {
        let (zipf, mut lots) = (Zipf::new(), Lots::new(1));
        let mut drawn = [0; ZIPF_LOCKS];
        for _ in 0..100_000 {
            drawn[zipf.draw(&mut lots)] += 1;
        }
        assert!((20_500..21_700).contains(&drawn[0]), "{drawn:?}");
        assert!((10_100..11_000).contains(&drawn[1]), "{drawn:?}");
        assert!((250..420).contains(&drawn[ZIPF_LOCKS - 1]), "{drawn:?}");
    }

    #[test]
    fn too_long_a_burst_is_refused() {
        let (ns, s) = (Duration::from_nanos, Duration::from_secs);
        assert!(Lengths::new(ns(1), ns(1), ns(1), 1.0).is_ok());
        // 64 s are more than 2^31 steps of a nanosecond.
        assert!(matches!(Lengths::new(ns(1), s(1), ns(1), 1.0), Err(PlanError::TooLong(_))));
    }
}
