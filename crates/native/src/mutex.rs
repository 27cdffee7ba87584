//! Mutexes that need no thread numbers, as [`lock_api`] mutexes. The algorithms are
//! [`overspin_locks::mutex`] and [`overspin_locks::mutexee`].
//!
//! They have no records of threads. So there is no limit on threads, and an acquisition needs no load and
//! branch to find the lock and its records, as [`LockMutex`](crate::LockMutex) does.

use std::sync::atomic::AtomicU32;

use lock_api::{GuardNoSend, MutexGuard};
use overspin_locks::{RawLock, Tuning, mutex, mutexee};

use crate::Threads;

/// For general use: a mutex over [`mutex`](overspin_locks::mutex). No limit on threads, no poisoning.
///
/// ```
/// static COUNT: overspin_native::Mutex<u32> = overspin_native::Mutex::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// A mutex over [`mutexee`]. It is as fast, but a sleeper may starve. No limit on threads, no poisoning.
pub type Mutexee<T> = lock_api::Mutex<RawMutexee, T>;

const fn zero() -> AtomicU32 {
    AtomicU32::new(0)
}

macro_rules! raw_mutex {
    ($raw:ident, $lock:ty, $free:expr, $shared:expr) => {
        #[doc = concat!("[`", stringify!($lock), "`] as [`lock_api::RawMutex`].")]
        #[derive(Debug)]
        pub struct $raw($lock);

        // SAFETY: `RawLock` promises mutual exclusion with acquire and release, and the model checker checks
        // it. Nothing unwinds. The guard has no destructor. No other code refers to the words, so they can be
        // moved or dropped while no thread can use them.
        unsafe impl lock_api::RawMutex for $raw {
            const INIT: Self = Self($free);
            type Guard = GuardNoSend;

            #[inline]
            fn lock(&self) -> GuardNoSend {
                let () = self.0.lock(&$shared);
                GuardNoSend::new()
            }

            #[inline]
            fn try_lock(&self) -> Option<GuardNoSend> {
                self.0.try_lock(&$shared).map(|()| GuardNoSend::new())
            }

            #[inline]
            unsafe fn unlock(&self, _guard: GuardNoSend) {
                self.0.unlock(&$shared, ());
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
    mutex::Mutex::of(zero(), zero(), zero(), zero()),
    mutex::Shared::DEFAULT
);
raw_mutex!(
    RawMutexee,
    mutexee::Mutexee<Threads>,
    mutexee::Mutexee::of(zero()),
    mutexee::Shared::DEFAULT
);

impl RawMutex {
    /// Looks at a held lock before a thread that comes back from a wait sleeps: just the first ones.
    const LOOKS_AFTER_A_WAIT: u32 = 2;

    /// Releases the mutex of `guard`, calls `f`, and acquires the mutex again, for a wait. It hardly spins: the thread
    /// has slept, so another sleep is cheap for it, and the holder may wait for its CPU.
    pub(crate) fn released<T: ?Sized, R>(
        guard: &mut MutexGuard<'_, Self, T>,
        f: impl FnOnce() -> R,
    ) -> R {
        // SAFETY: it is released and acquired by the same thread, which keeps the guard and cannot reach the data
        // meanwhile. `f` does not unwind: it is a sleep.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: the guard says that this thread holds it.
        unsafe { lock_api::RawMutex::unlock(raw, GuardNoSend::new()) };
        let result = f();
        let tuning = Tuning { spin_budget: Some(Self::LOOKS_AFTER_A_WAIT), ..Tuning::DEFAULT };
        match mutex::Mutex::<Threads>::shared(1, tuning) {
            Ok(shared) => raw.0.lock(&shared),
            // It has no records of CPUs that could be too few.
            Err(_) => raw.0.lock(&mutex::Shared::DEFAULT),
        }
        result
    }
}
