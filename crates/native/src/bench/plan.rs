//! What is measured, and what is wrong with a plan.

use std::io;
use std::time::Duration;

use super::OwnLock;
use super::case::Case;
use super::contestants::{self, Maker};

/// A benchmark plan: all combinations are measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of locks: of the registry, of [`MUTEXES`](super::MUTEXES), or of `own`.
    pub locks: Vec<String>,
    /// Locks from outside. They take precedence over others of the same name.
    pub own: Vec<OwnLock>,
    /// What the threads do.
    pub cases: Vec<Case>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub sections: Vec<Duration>,
    /// Mean lengths of the work between two sections of a thread.
    pub outsides: Vec<Duration>,
    /// Length of the long holder's sections, where a case has one.
    pub long: Duration,
    /// CPUs to run on; empty for all that this process may use.
    pub cpus: Vec<usize>,
    /// Length of one run, after a warm-up of a tenth of it.
    pub time: Duration,
    /// Runs of each point.
    pub runs: usize,
    /// Seed for the order of the runs and the draws of the threads.
    pub seed: u64,
}

/// The reasons why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no lock of that name.
    #[error("there is no lock `{0}`")]
    UnknownLock(String),
    /// The plan measures nothing.
    #[error(
        "there must be at least one each of locks, cases, threads, sections, outsides and runs, and some time"
    )]
    Empty,
    /// The lock, or the crate, does not serve that many threads.
    #[error("`{lock}` serves at most {max} threads, not {threads}")]
    TooManyThreads {
        /// The lock.
        lock: &'static str,
        /// The number of threads that it serves.
        max: usize,
        /// The number of threads that were requested.
        threads: usize,
    },
    /// A queue needs a thread at each end.
    #[error("cases with condition variables need 2 threads or more")]
    OneThread,
    /// A section is longer than the work loop can count.
    #[error("{0:?} is too long for a section, or for the work between two sections")]
    TooLong(Duration),
    /// This process may not run on these CPUs.
    #[error("cannot run on CPUs {cpus:?}")]
    Cpus {
        /// The CPUs.
        cpus: Vec<usize>,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Plan {
    /// Checks the plan and returns the canonical names of the locks.
    pub(super) fn check(&self) -> Result<Vec<&'static str>, PlanError> {
        let empty = self.locks.is_empty()
            || self.cases.is_empty()
            || self.threads.is_empty()
            || self.threads.contains(&0)
            || self.sections.is_empty()
            || self.outsides.is_empty()
            || self.runs == 0
            || self.time.is_zero();
        if empty {
            return Err(PlanError::Empty);
        }
        if self.cases.iter().any(|case| case.has_conditions()) && self.threads.contains(&1) {
            return Err(PlanError::OneThread);
        }
        let name = |name: &String| {
            let own = self.own(name).map(|own| own.info.name);
            let lock = own.or_else(|| contestants::canonical(name));
            lock.ok_or_else(|| PlanError::UnknownLock(name.clone()))
        };
        let names = self.locks.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let threads = self.threads.iter().copied().max().unwrap_or(0);
        for &lock in &names {
            let registered = || overspin_locks::infos().iter().find(|info| info.name == lock);
            let info = self.own(lock).map(|own| &own.info).or_else(registered);
            let own = info.map_or(crate::MAX_THREADS, |info| info.max_cpus as usize);
            // One less, because the caller may have a thread number.
            let max = own.min(crate::MAX_THREADS - 1);
            if threads > max {
                return Err(PlanError::TooManyThreads { lock, max, threads });
            }
        }
        Ok(names)
    }

    /// Whether the lock of this canonical name can be measured in the case.
    pub(super) fn suits(&self, lock: &str, case: Case) -> bool {
        self.maker(lock).is_some_and(|maker| match case {
            Case::WriteIn(_) => (maker.rwlock)().is_some(),
            case if case.has_conditions() => (maker.queue)(case, 2).is_some(),
            _ => true,
        })
    }

    /// What makes the lock of this canonical name.
    pub(super) fn maker(&self, lock: &str) -> Option<Maker> {
        self.own(lock).map(|own| own.maker).or_else(|| contestants::contestant(lock))
    }

    fn own(&self, name: &str) -> Option<&OwnLock> {
        self.own.iter().find(|own| own.info.name == name)
    }
}
