//! Locks from outside the registry, measured beside those of the registry.

use overspin_locks::{LockInfo, RawLock, Tuning};

use super::contestants::{Locking, Maker};
use crate::{MAX_THREADS, Threads};

/// A lock from outside the registry.
#[derive(Clone, Copy, Debug)]
pub struct OwnLock {
    /// Its description of itself.
    pub info: LockInfo,
    pub(super) maker: Maker,
}

impl OwnLock {
    /// Wraps the lock type `L`.
    #[must_use]
    pub fn of<L>() -> Self
    where
        L: RawLock<Threads> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        Self { info: L::INFO, maker: Maker::of::<Bare<L>>() }
    }
}

/// A lock that guards nothing, so its safety needs no promise.
struct Bare<L: RawLock<Threads>> {
    lock: L,
    shared: L::Shared,
}

impl<L> Locking for Bare<L>
where
    L: RawLock<Threads> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    fn boxed() -> Box<Self> {
        let cpus = MAX_THREADS.min(L::INFO.max_cpus as usize);
        let shared = L::shared(cpus, Tuning::DEFAULT).unwrap_or_else(|e| {
            panic!("{} refuses the CPUs that it claims to serve: {e}", L::INFO.name)
        });
        Box::new(Self { lock: L::new(), shared })
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let token = self.lock.lock(&self.shared);
        section();
        self.lock.unlock(&self.shared, token);
    }
}
