//! Test-and-set: a byte; a waiter tries to take it at every turn of its loop, and never only looks.
//!
//! | `locked` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | 1 | held |
//!
//! **Properties.** Unfair. Each try takes the cache line away from all others, the holder too: the release waits
//! behind the tries of all waiters, so that a section costs as many transfers as CPUs wait. For the same reason no
//! CPU takes the lock twice in a row, as happens where waiters only look. While the holder is descheduled, all
//! waiters burn; a descheduled waiter does no harm. Uncontended: one read-modify-write and a store, which is the last access
//! to the lock. The lock keeps no record of waiters: `is_contended` is always false.
//!
//! **Interrupts.** [`RawLock::lock_irqsave`] keeps them off while it waits, as `lock-byte` does.
//!
//! **Source.** Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors", 1990: "spin
//! on test-and-set". Programs still have it, such as benchmarks of time-slice extensions
//! (`while (!trylock()) pause();`).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::deadline::attempt_until;
use crate::{
    AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile, Platform, RawLock, Tuning,
};

const FREE: u8 = 0;
const HELD: u8 = 1;

/// Properties of [`Tas`].
pub const INFO: LockInfo = LockInfo {
    name: "tas",
    brief: "Test-and-set byte whose waiters try all the time.",
    source: "Anderson 1990",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: false,
    // More CPUs than any machine has.
    max_cpus: u16::MAX as u32,
    size: 1,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Tas<P: Platform> {
    locked: P::U8,
}

impl<P: Platform> Tas<P> {
    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`; a failed try learns nothing that needs an order. Processors
        // take the line for it all the same.
        self.locked.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// One turn of the loop: a pause, and a try, whatever the byte is then.
    fn acquire_after_pause(&self) -> bool {
        // The pause is between two looks.
        let _ = self.locked.spin_until(|locked| locked == FREE, Budget::Iterations(2));
        self.acquire_at_once()
    }

    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, (): &(), deadline_ns: u64) -> Option<()> {
        if self.acquire_at_once() {
            return Some(());
        }
        attempt_until::<P>(deadline_ns, |_| self.acquire_after_pause()).then_some(())
    }
}

impl<P: Platform> RawLock<P> for Tas<P> {
    const INFO: LockInfo = INFO;
    type Shared = ();
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { locked: P::U8::new(FREE) }
    }

    #[inline(always)]
    fn lock(&self, (): &()) {
        if !self.acquire_at_once() {
            while !self.acquire_after_pause() {}
        }
    }

    #[inline]
    fn try_lock(&self, (): &()) -> Option<()> {
        self.acquire_at_once().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, (): &(), (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.locked.store(FREE, Release);
    }

    fn is_locked(&self, (): &()) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    fn is_contended(&self, (): &()) -> bool {
        false
    }
}
