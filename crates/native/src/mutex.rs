//! Mutexes that need no thread numbers, as [`lock_api`] mutexes. The algorithms are
//! [`overspin_locks::mutex`] and [`overspin_locks::mutexee`].
//!
//! They have no records of threads. So there is no limit on threads, and an acquisition needs no load and
//! branch to find the lock and its records, as [`LockMutex`](crate::LockMutex) does.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use overspin_locks::{Condvar, Platform, RawLock, mutex, mutexee};

use crate::waiters::Permit;
use crate::{Guard, Threads};

/// For general use: a mutex over [`mutex`]. No limit on threads, no poisoning.
///
/// ```
/// static COUNT: overspin_native::Mutex<u32> = overspin_native::Mutex::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// ```
///
/// With a time limit: [`try_lock_for`](lock_api::Mutex::try_lock_for) and
/// [`try_lock_until`](lock_api::Mutex::try_lock_until). A running thread gives up some 40 us late.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// A guard of [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// A mutex over [`mutexee`]. It is as fast, but a sleeper may starve. No limit on threads, no poisoning.
pub type Mutexee<T> = lock_api::Mutex<RawMutexee, T>;

const fn zero() -> AtomicU32 {
    AtomicU32::new(0)
}

/// The time of [`Threads::now`](Platform::now) after `limit`. Beyond 584 years it never comes.
pub(crate) fn after(limit: Duration) -> u64 {
    u64::try_from(limit.as_nanos()).map_or(u64::MAX, |limit| Threads::now().saturating_add(limit))
}

macro_rules! raw_mutex {
    ($raw:ident, $lock:ty, $token:ty, $free:expr, $shared:expr) => {
        #[doc = concat!("[`", stringify!($lock), "`] as [`lock_api::RawMutex`].")]
        #[derive(Debug)]
        pub struct $raw($lock);

        // SAFETY: `RawLock` promises mutual exclusion with acquire and release, and the model checker checks
        // it. Nothing unwinds. The guard has no destructor. Other code refers to the words only while a thread waits
        // with the mutex, which it borrows. So they can be moved or dropped while no thread can use them.
        unsafe impl lock_api::RawMutex for $raw {
            const INIT: Self = Self($free);
            type Guard = Guard<$token>;

            #[inline]
            fn lock(&self) -> Self::Guard {
                Guard::new(self.0.lock(&$shared))
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                self.0.try_lock(&$shared).map(Guard::new)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                self.0.unlock(&$shared, guard.into_token());
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked(&$shared)
            }
        }
    };
}

raw_mutex!(
    RawMutex,
    mutex::Mutex<Threads>,
    mutex::Token,
    mutex::Mutex::of(zero(), zero(), zero(), zero(), zero()),
    mutex::Shared::ON_THREADS
);
raw_mutex!(
    RawMutexee,
    mutexee::Mutexee<Threads>,
    (),
    mutexee::Mutexee::of(zero()),
    mutexee::Shared::DEFAULT
);

// SAFETY: as for `RawMutex`; the checker checks giving up too.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard> {
        self.0.lock_until(&mutex::Shared::ON_THREADS, after(timeout)).map(Guard::new)
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<Self::Guard> {
        self.try_lock_for(timeout.saturating_duration_since(Instant::now()))
    }
}

impl RawMutex {
    /// Waits on a condition variable with the mutex of `guard`, which is released meanwhile, until the deadline of
    /// [`Threads::now`](Platform::now) at the latest. Returns whether a notification came.
    pub(crate) fn wait<T: ?Sized>(
        condvar: &Condvar<Threads>,
        guard: &mut MutexGuard<'_, T>,
        deadline_ns: u64,
    ) -> bool {
        let mutex = MutexGuard::mutex(guard);
        // SAFETY: the caller's guard is overwritten below before anybody can use or drop it: nothing here unwinds but for
        // want of memory, and then the process ends.
        let held = unsafe { ptr::read(guard) };
        let shared = &mutex::Shared::ON_THREADS;
        // SAFETY: only the lock itself is used, and the token becomes the state of a guard.
        let raw = &unsafe { mutex.raw() }.0;
        // SAFETY: to drop a guard neither waits on a condition variable nor unwinds, and `guard` borrows the mutex.
        let permit = unsafe { Permit::new() };
        let (token, notified) = condvar.wait(permit, raw, shared, || drop(held), deadline_ns);
        // SAFETY: the token is of an acquisition by this thread.
        let again = unsafe { mutex.make_guard_unchecked(Guard::new(token)) };
        // SAFETY: what the caller's guard held has been dropped above.
        unsafe { ptr::write(guard, again) };
        notified
    }

    /// The lock with which a thread waits, from the address that the condition variable knows.
    ///
    /// # Safety
    /// The thread waits as long as the lock is used.
    pub(crate) unsafe fn waited_with<'a>(address: usize) -> &'a mutex::Mutex<Threads> {
        // SAFETY: the address was exposed in `Condvar::wait`. The thread borrows the lock until it has acquired it again, and the
        // caller says that it waits.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }
}
