//! The locks of the registry as [`lock_api`] mutexes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use overspin_locks::{Platform, RawLock, Tuning};

use crate::{MAX_THREADS, Threads, thread_id};

/// A `Mutex<T>` over the lock `L`.
///
/// ```
/// use overspin_native::{LockMutex, Threads};
///
/// static COUNT: LockMutex<overspin_locks::Ticket<Threads>, u32> = LockMutex::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub type LockMutex<L, T> = lock_api::Mutex<Raw<L>, T>;

/// A kind of lock with per-thread records that all threads of the process share. [`native_lock!`] implements it.
///
/// [`native_lock!`]: crate::native_lock
pub trait Records: RawLock<Threads> + Send + Sync + 'static
where
    Self::Shared: Send + Sync,
{
    /// Returns the process's records for this kind of lock. The first call creates them.
    ///
    /// # Safety
    /// All [`LockMutex`]es of the kind rely on these records. The caller must follow [the
    /// protocol](RawLock#protocol) with every lock that it uses them with. A token of another lock, or one that was
    /// used before, would give away another thread's queue node.
    unsafe fn system() -> &'static Self::Shared;
}

/// A lock that may guard data.
///
/// # Safety
/// [`LockMutex`] hands out `&mut T` because the lock says so. For each lock value and for callers that follow [the
/// protocol](RawLock#protocol), the implementer promises:
///
/// - **Mutual exclusion**: from the return of an acquisition (`lock`, or `try_lock` with a token) to the call of
///   `unlock` with its token, no other acquisition returns, on any thread.
/// - **Order**: everything before an `unlock` happens before everything after the next acquisition.
/// - **No unwinding**: no method of the lock unwinds once it has begun. A panic half-way would leave the lock
///   broken.
/// - **Tokens without owners**: a token that is forgotten or dropped releases nothing. A lock that is moved or
///   dropped without waiters leaves nothing behind on which another lock's correctness depends.
/// - **One set of records**: [`Records::system`] returns the same records at each call.
///
/// `overspin_check` looks for violations of the first two (`docs/locks.md`). The implementer vouches for everything
/// that it did not find.
pub unsafe trait NativeLock: Records
where
    Self::Shared: Send + Sync,
{
}

/// The number of times that a waiter of a paravirtual ticket lock yields before it sleeps: about a millisecond, as
/// long as the published budget spins.
const YIELDS: u32 = 2_000;

/// Settings of all locks on threads.
pub const TUNING: Tuning = Tuning { yields: YIELDS, ..Tuning::DEFAULT };

/// Creates records for all threads that the lock can serve.
///
/// # Panics
/// If the lock does not serve as many CPUs as it claims.
pub fn new_system<L: RawLock<Threads>>() -> L::Shared {
    L::shared(capacity::<Threads, L>(), TUNING).expect("no more CPUs than the lock's own limit")
}

/// The capacity of a lock: it serves threads with numbers below this.
pub(crate) const fn capacity<P: Platform, L: RawLock<P>>() -> usize {
    let max = L::INFO.max_cpus as usize;
    if max < MAX_THREADS { max } else { MAX_THREADS }
}

/// Gives a lock type its [`Records`] for the process: `native_lock!(MyLock<Threads>)`. An additional
/// `unsafe impl` of [`NativeLock`] makes it usable in a [`LockMutex`].
#[macro_export]
macro_rules! native_lock {
    ($lock:ty) => {
        impl $crate::Records for $lock {
            #[inline]
            unsafe fn system() -> &'static Self::Shared {
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
        $(
            native_lock!(overspin_locks::$lock<Threads>);
            // SAFETY: the model checker checks each lock of the registry (docs/model-checking.md says how far). None
            // panics once it has begun; tokens are numbers; `native_lock!` has one static.
            unsafe impl NativeLock for overspin_locks::$lock<Threads> {}
        )+

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
/// A `RawMutex` must have a constant for its unlocked state, so that a mutex can be a `static`, but a [`RawLock`] is
/// created by a function. So the first use creates the lock inside, and each acquisition pays a load and a branch.
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
    /// Returns the lock if it has records for this thread; panics otherwise.
    #[inline]
    fn admit(&self) -> &L {
        // The check is here and not in the lock: a panic half-way through an acquisition would leave the lock
        // broken.
        if thread_id() >= const { capacity::<Threads, L>() } {
            too_many(L::INFO.name, capacity::<Threads, L>());
        }
        self.0.get_or_init(L::new)
    }
}

#[cold]
fn too_many(lock: &str, capacity: usize) -> ! {
    panic!("{lock} serves {capacity} threads at a time, and this thread is not among them");
}

/// The token of an acquisition. It stays in its thread, because queue nodes must go back to the thread that took
/// them.
///
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<overspin_native::Guard<()>>();
/// ```
#[derive(Debug)]
#[must_use = "the lock stays held until `unlock` gets the guard"]
pub struct Guard<T> {
    token: T,
    not_send: PhantomData<*mut ()>,
}

// SAFETY: a shared reference to a guard gives access to nothing.
unsafe impl<T> Sync for Guard<T> {}

impl<T> Guard<T> {
    #[inline]
    pub(crate) fn new(token: T) -> Self {
        Self { token, not_send: PhantomData }
    }

    #[inline]
    pub(crate) fn into_token(self) -> T {
        self.token
    }
}

// SAFETY: `NativeLock` promises mutual exclusion, with acquire and release, to callers that follow the protocol.
// This caller does: a token comes from an acquisition of this lock, stays in its thread (`Guard` is not `Send`), and
// is consumed by the release. When the owner moves or drops the lock, no thread waits for it. The records of
// `system` may then hold its address, which is only compared, or a node that is never returned, without which the
// lock works. Neither `lock` nor `try_lock` unwinds once it has begun; see `admit`.
unsafe impl<L: NativeLock> lock_api::RawMutex for Raw<L>
where
    L::Shared: Send + Sync,
{
    const INIT: Self = Self(OnceLock::new());
    type Guard = Guard<L::Token>;

    #[inline]
    fn lock(&self) -> Self::Guard {
        // SAFETY: the token goes to `unlock` of this lock only, in this thread.
        let shared = unsafe { L::system() };
        Guard::new(self.admit().lock(shared))
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        // SAFETY: as in `lock`.
        let shared = unsafe { L::system() };
        self.admit().try_lock(shared).map(Guard::new)
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        let lock = self.0.get();
        debug_assert!(lock.is_some());
        // SAFETY: there is a guard, so a thread has locked, and has created the lock for that.
        let lock = unsafe { lock.unwrap_unchecked() };
        // SAFETY: the caller holds the lock, so `guard` belongs to its acquisition.
        lock.unlock(unsafe { L::system() }, guard.into_token());
    }

    fn is_locked(&self) -> bool {
        // SAFETY: this only looks and uses no token.
        self.0.get().is_some_and(|lock| lock.is_locked(unsafe { L::system() }))
    }
}
