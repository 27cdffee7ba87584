//! What every world asks of `try_lock`, and of a lock when all is over.

use std::cell::Cell;

use overspin_locks::{Platform, RawLock};

/// What every message about a `try_lock` that waits contains.
pub const TRY_WAITS_MESSAGE: &str = "try_lock waits";

/// The contexts of a CPU that are in `try_lock`, one bit for each: a handler that interrupts one may wait.
#[derive(Debug, Default)]
pub(crate) struct Tries(Cell<u32>);

impl Tries {
    /// `try_lock`, in the context `level`.
    pub(crate) fn during<R>(&self, level: usize, try_lock: impl FnOnce() -> R) -> R {
        self.0.set(self.0.get() | 1 << level);
        let result = try_lock();
        self.0.set(self.0.get() & !(1 << level));
        result
    }

    /// A wait without a bound begins in the context `level`.
    pub(crate) fn assert_may_wait(&self, level: usize) {
        assert!(self.0.get() >> level & 1 == 0, "{TRY_WAITS_MESSAGE}");
    }
}

/// Nobody holds `lock` or waits for it. It can be had at once by `take`, and then not `again`.
pub(crate) fn assert_idle<P: Platform, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
    take: impl FnOnce() -> Option<L::Token>,
    again: impl FnOnce() -> Option<L::Token>,
) {
    assert_looks_idle(lock, shared);
    let token = take().expect("nobody holds it, but try_lock fails");
    // One that waits for the holder, in whatever way, waits for ever here.
    assert!(again().is_none(), "try_lock takes a lock that is held");
    lock.unlock(shared, token);
    assert_looks_idle(lock, shared);
}

/// Nobody holds `lock` or waits for it.
pub(crate) fn assert_looks_idle<P: Platform, L: RawLock<P>>(lock: &L, shared: &L::Shared) {
    assert!(!lock.is_locked(shared), "nobody holds it, but it is locked");
    assert!(!lock.is_contended(shared), "nobody waits, but it is contended");
}
