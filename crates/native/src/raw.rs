//! The locks of the registry as [`lock_api`] mutexes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use overspin_locks::{RawLock, Tuning};

use crate::{MAX_THREADS, Threads, thread_id};

/// `Mutex<T>` over the lock `L`.
///
/// ```
/// use overspin_native::{LockMutex, Threads};
///
/// static COUNT: LockMutex<overspin_locks::Ticket<Threads>, u32> = LockMutex::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub type LockMutex<L, T> = lock_api::Mutex<Raw<L>, T>;

/// A lock that all threads of the process share the per-thread records of. [`native_lock!`] implements
/// it.
///
/// [`native_lock!`]: crate::native_lock
pub trait NativeLock: RawLock<Threads> + Send + Sync + 'static
where
    Self::Shared: Send + Sync,
{
    /// The process's records for this kind of lock, made at the first call.
    fn system() -> &'static Self::Shared;
}

/// How often a waiter of a paravirtual ticket lock gives way before it sleeps: for about a millisecond,
/// as long as the published budget spins.
const YIELDS: u32 = 2_000;

/// Records for all threads that the lock can serve.
///
/// # Panics
/// If the lock does not serve as many CPUs as it says.
pub fn new_system<L: RawLock<Threads>>() -> L::Shared {
    let tuning = Tuning { yields: YIELDS, ..Tuning::DEFAULT };
    L::shared(capacity::<L>(), tuning).expect("no more CPUs than the lock's own limit")
}

const fn capacity<L: RawLock<Threads>>() -> usize {
    let max = L::INFO.max_cpus as usize;
    if max < MAX_THREADS { max } else { MAX_THREADS }
}

/// Makes a lock type usable with [`LockMutex`]: `native_lock!(MyLock<Threads>)`.
#[macro_export]
macro_rules! native_lock {
    ($lock:ty) => {
        impl $crate::NativeLock for $lock {
            #[inline]
            fn system() -> &'static Self::Shared {
                static SYSTEM: ::std::sync::OnceLock<
                    <$lock as $crate::overspin_locks::RawLock<$crate::Threads>>::Shared,
                > = ::std::sync::OnceLock::new();
                SYSTEM.get_or_init($crate::new_system::<$lock>)
            }
        }
    };
}

macro_rules! every_lock {
    ($($lock:ident)+) => {
        $(native_lock!(overspin_locks::$lock<Threads>);)+

        /// `Mutex<T>` for each lock of the registry, under the name of its type.
        pub mod locks {
            use super::{LockMutex, Threads};

            $(
                #[doc = concat!("`Mutex<T>` over [`overspin_locks::", stringify!($lock), "`].")]
                pub type $lock<T> = LockMutex<overspin_locks::$lock<Threads>, T>;
            )+
        }
    };
}
overspin_locks::for_each_lock!(every_lock);

/// The lock `L` as [`lock_api::RawMutex`].
///
/// A `RawMutex` must have a constant for its unlocked state, so that a mutex can be a `static`; a
/// [`RawLock`] makes its in a function. Hence the lock inside is made at the first use, at the price of
/// a load and a branch for each acquisition.
pub struct Raw<L>(OnceLock<L>);

impl<L> fmt::Debug for Raw<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

impl<L: NativeLock> Raw<L>
where
    L::Shared: Send + Sync,
{
    /// The lock, for a thread that it has records for.
    #[inline]
    fn admit(&self) -> &L {
        // Here and not in the lock: a panic half-way through an acquisition would leave the lock broken.
        if thread_id() >= const { capacity::<L>() } {
            too_many(L::INFO.name, capacity::<L>());
        }
        self.0.get_or_init(L::new)
    }
}

#[cold]
fn too_many(lock: &str, capacity: usize) -> ! {
    panic!("{lock} serves {capacity} threads at a time, and this one is not among them");
}

/// The token of an acquisition. It stays in its thread: queue nodes go back to the thread that took
/// them.
///
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<overspin_native::Guard<()>>();
/// ```
#[derive(Debug)]
pub struct Guard<T> {
    token: T,
    not_send: PhantomData<*mut ()>,
}

// SAFETY: a shared reference to a guard gives access to nothing.
unsafe impl<T> Sync for Guard<T> {}

impl<T> Guard<T> {
    #[inline]
    fn new(token: T) -> Self {
        Self { token, not_send: PhantomData }
    }
}

// SAFETY: mutual exclusion, with acquire and release, is what `RawLock` promises, and what the model
// checker checks of each lock; a token comes from an acquisition only and is consumed by the release. A
// token has no destructor that unlocks, thus may be forgotten. Nobody waits for a lock that its owner
// moves or drops; then the records of `system` may hold its address, which is compared only, or a node
// that is never returned, without which the lock works. Neither `lock` nor `try_lock` unwinds once it has
// begun, see `admit`.
unsafe impl<L: NativeLock> lock_api::RawMutex for Raw<L>
where
    L::Shared: Send + Sync,
{
    const INIT: Self = Self(OnceLock::new());
    type Guard = Guard<L::Token>;

    #[inline]
    fn lock(&self) -> Self::Guard {
        let shared = L::system();
        Guard::new(self.admit().lock(shared))
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        let shared = L::system();
        self.admit().try_lock(shared).map(Guard::new)
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        let lock = self.0.get();
        debug_assert!(lock.is_some());
        // SAFETY: there is a guard, so somebody has locked, and has made the lock for it.
        let lock = unsafe { lock.unwrap_unchecked() };
        lock.unlock(L::system(), guard.token);
    }

    fn is_locked(&self) -> bool {
        self.0.get().is_some_and(|lock| lock.is_locked(L::system()))
    }
}
