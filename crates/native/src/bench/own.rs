//! Locks from outside the registry, measured beside those of the registry.

use overspin_locks::{LockInfo, RawLock, Tuning};

use super::contestants::{Locking, Maker};
use crate::Threads;
use crate::raw::capacity;

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

/// A lock with records of its own, which guards nothing, so its safety needs no promise. With `NOPVSPIN` no thread sleeps
/// on it.
pub(super) struct Bare<L: RawLock<Threads>, const NOPVSPIN: bool = false> {
    lock: L,
    shared: L::Shared,
}

impl<L, const NOPVSPIN: bool> Locking for Bare<L, NOPVSPIN>
where
    L: RawLock<Threads> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    fn boxed() -> Box<Self> {
        let tuning = Tuning { nopvspin: NOPVSPIN, ..Tuning::DEFAULT };
        let shared = L::shared(capacity::<Threads, L>(), tuning).unwrap_or_else(|e| {
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
