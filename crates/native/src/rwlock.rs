//! A reader-writer lock as a [`lock_api`] lock. The algorithm is [`overspin_locks::rwlock`] over
//! [`overspin_locks::mutex`].

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use overspin_locks::{Pace, RwLock as Algorithm, WakeAll, mutex, rwlock};

use crate::mutex::after;
use crate::{Guard, Threads, futex};

impl WakeAll for Threads {
    fn wake_all(address: *const AtomicU32) {
        futex::wake(address, i32::MAX);
    }
}

/// For general use where most threads only read: readers and writers take turns, and neither starves. 36 bytes and the
/// data, no limit on threads that wait, no poisoning.
///
/// A thread that has a read guard must not take another one of the same lock: a writer may wait between the two.
/// An upgradable guard reads beside readers, and can become a write guard.
///
/// # Panics
/// `read` and `upgradable_read` panic if 32,767 read guards of the lock exist already, whether threads hold them or have
/// forgotten them. `try_read` fails then, and a read with a time limit waits until that. The lock stays usable.
///
/// # Examples
/// ```
/// use overspin_native::RwLock;
///
/// static LIMITS: RwLock<(u32, u32)> = RwLock::new((1, 9));
/// assert_eq!(LIMITS.read().0, 1);
/// LIMITS.write().1 = 10;
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// A guard of [`RwLock::read`](lock_api::RwLock::read).
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// A guard of [`RwLock::write`](lock_api::RwLock::write).
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// A guard of [`RwLock::upgradable_read`](lock_api::RwLock::upgradable_read).
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

type Token = rwlock::Token<mutex::Token>;

/// [`rwlock::RwLock`] as [`lock_api::RawRwLock`].
#[derive(Debug)]
pub struct RawRwLock(Algorithm<Threads, mutex::Mutex<Threads>>);

const fn zero() -> AtomicU32 {
    AtomicU32::new(0)
}

/// The patience of the mutex, also for readers and for the first writer.
const SHARED: rwlock::Shared<mutex::Shared> = rwlock::Shared {
    writers: mutex::Shared::ON_THREADS,
    spin_budget: mutex::DEFAULT_SPIN_BUDGET,
    // Of readers. While they sleep, a woken writer finds a CPU.
    patience: 8,
    pace: Pace::SELDOM,
};

/// What a reader got. Panics as `std::sync::RwLock` does if it found too many others; the lock is untouched then.
#[inline]
fn admitted<T>(got: Result<T, rwlock::TooManyReaders>) -> T {
    got.unwrap_or_else(|too_many| refuse(too_many))
}

#[cold]
fn refuse(too_many: rwlock::TooManyReaders) -> ! {
    panic!("{too_many}");
}

// SAFETY: the model checker checks that a writer is alone, and that what it did is seen. Nothing unwinds, but for readers that
// have not entered. The guards have no
// destructors. No other code refers to the words, so they can be moved or dropped while no thread can use them.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self(Algorithm::of(
        zero(),
        zero(),
        zero(),
        zero(),
        mutex::Mutex::of(zero(), zero(), zero(), zero(), zero()),
    ));
    type SharedGuard = Guard<()>;
    type ExclusiveGuard = Guard<Token>;

    #[inline]
    fn lock_shared(&self) -> Guard<()> {
        admitted(self.0.lock_shared(&SHARED));
        Guard::new(())
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Guard<()>> {
        self.0.try_lock_shared().then(|| Guard::new(()))
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: Guard<()>) {
        self.0.unlock_shared();
    }

    #[inline]
    fn lock_exclusive(&self) -> Guard<Token> {
        Guard::new(self.0.lock_exclusive(&SHARED))
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<Guard<Token>> {
        self.0.try_lock_exclusive().map(Guard::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Guard<Token>) {
        self.0.unlock_exclusive(&SHARED, guard.into_token());
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: as above. A writer becomes a reader in one step.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: Guard<Token>) -> Guard<()> {
        self.0.downgrade(&SHARED, guard.into_token());
        Guard::new(())
    }
}

// SAFETY: as above. The upgradable reader holds the mutex of the writers, so there is only one.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = Guard<mutex::Token>;

    fn lock_upgradable(&self) -> Self::UpgradableGuard {
        Guard::new(admitted(self.0.lock_upgradable(&SHARED)))
    }

    fn try_lock_upgradable(&self) -> Option<Self::UpgradableGuard> {
        self.0.try_lock_upgradable(&SHARED).map(Guard::new)
    }

    unsafe fn unlock_upgradable(&self, guard: Self::UpgradableGuard) {
        self.0.unlock_upgradable(&SHARED, guard.into_token());
    }

    unsafe fn upgrade(&self, guard: Self::UpgradableGuard) -> Guard<Token> {
        Guard::new(self.0.upgrade(&SHARED, guard.into_token()))
    }

    unsafe fn try_upgrade(
        &self,
        guard: Self::UpgradableGuard,
    ) -> Result<Guard<Token>, Self::UpgradableGuard> {
        self.0.try_upgrade(guard.into_token()).map(Guard::new).map_err(Guard::new)
    }
}

// SAFETY: as above; the checker checks giving up too.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Guard<()>> {
        self.0.lock_shared_until(&SHARED, after(timeout)).then(|| Guard::new(()))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<Guard<()>> {
        self.try_lock_shared_for(timeout.saturating_duration_since(Instant::now()))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Guard<Token>> {
        self.0.lock_exclusive_until(&SHARED, after(timeout)).map(Guard::new)
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<Guard<Token>> {
        self.try_lock_exclusive_for(timeout.saturating_duration_since(Instant::now()))
    }
}
