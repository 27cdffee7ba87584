//! Locks from outside the registry, to be measured beside those that are in it.

use overspin_locks::{LockInfo, RawLock, Tuning};

use super::contestants::{Contestant, Visitor};
use super::{Run, RunResult};
use crate::{MAX_THREADS, Threads};

/// A lock from outside the registry.
#[derive(Clone, Copy, Debug)]
pub struct OwnLock {
    /// What it says of itself.
    pub info: LockInfo,
    run: fn(Run<'_>) -> RunResult,
}

impl OwnLock {
    /// Of this type.
    #[must_use]
    pub fn of<L>() -> Self
    where
        L: RawLock<Threads> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        Self { info: L::INFO, run: |run| run.visit::<Bare<L>>() }
    }

    pub(super) fn run(&self, run: Run<'_>) -> RunResult {
        (self.run)(run)
    }
}

/// A lock that guards nothing: nobody has to vouch for it.
struct Bare<L: RawLock<Threads>> {
    lock: L,
    shared: L::Shared,
}

impl<L> Contestant for Bare<L>
where
    L: RawLock<Threads> + Send + Sync,
    L::Shared: Send + Sync,
{
    fn boxed() -> Box<Self> {
        let cpus = MAX_THREADS.min(L::INFO.max_cpus as usize);
        let shared = L::shared(cpus, Tuning::DEFAULT)
            .unwrap_or_else(|e| panic!("{} refuses what it says it serves: {e}", L::INFO.name));
        Box::new(Self { lock: L::new(), shared })
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let token = self.lock.lock(&self.shared);
        section();
        self.lock.unlock(&self.shared, token);
    }
}
