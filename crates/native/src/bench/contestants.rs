//! The locks that are compared: every lock of the registry, this crate's own mutexes, and those that others
//! use.

use std::cell::UnsafeCell;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, RwLock};

use overspin_locks::RawLock;

use super::case::Case;
use super::queue::{self, Condition, Queue};
use crate::{Kind, Mutexee, NamedLock, Threads};

/// A lock to measure, behind a table of functions: the loops around it are compiled once, not once for each lock, and
/// run at one speed for all.
pub(super) trait Contestant: Sync {
    /// Runs `section` with the lock held.
    fn section(&self, section: &mut dyn FnMut());
    /// Locks and unlocks, as often as `pairs` says.
    fn pairs(&self, pairs: u64);
}

impl<L: Locking> Contestant for L {
    fn section(&self, section: &mut dyn FnMut()) {
        self.with(section);
    }

    fn pairs(&self, pairs: u64) {
        for _ in 0..pairs {
            self.with(|| ());
        }
    }
}

/// The type of a lock to measure.
pub(super) trait Locking: Sync + Sized + 'static {
    /// Creates an unlocked one. It is boxed, because some must not move.
    fn boxed() -> Box<Self>;
    /// Runs `section` with the lock held.
    fn with(&self, section: impl FnOnce());
    /// Creates the queue or ring of a case under a lock of its own; `None` if there is no condition variable for it.
    fn queue(_case: Case, _threads: usize) -> Option<Box<dyn Queue>> {
        None
    }
    /// Creates the reader-writer lock of the same library, if there is one.
    fn rwlock() -> Option<Box<dyn ReadWrite>> {
        None
    }
}

/// A reader-writer lock to measure, behind a table of functions.
pub(super) trait ReadWrite: Sync {
    /// Runs `section` with the lock held by a reader, or by a writer.
    fn section(&self, writes: bool, section: &mut dyn FnMut());
}

/// Reader-writer locks whose guards need no unwrapping, or that one.
macro_rules! read_write {
    ($($lock:ty $(, $unwrap:ident)?;)+) => {$(
        impl ReadWrite for $lock {
            fn section(&self, writes: bool, section: &mut dyn FnMut()) {
                if writes {
                    let _guard = self.write()$(.$unwrap(PoisonError::into_inner))?;
                    section();
                } else {
                    let _guard = self.read()$(.$unwrap(PoisonError::into_inner))?;
                    section();
                }
            }
        }
    )+};
}
read_write! {
    crate::RwLock<()>;
    parking_lot::RwLock<()>;
    usync::RwLock<()>;
    RwLock<()>, unwrap_or_else;
}

/// Makes contestants of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub lock: fn() -> Box<dyn Contestant>,
    pub queue: fn(Case, usize) -> Option<Box<dyn Queue>>,
    pub rwlock: fn() -> Option<Box<dyn ReadWrite>>,
}

impl Maker {
    pub(super) fn of<L: Locking>() -> Self {
        Self { lock: || L::boxed(), queue: L::queue, rwlock: L::rwlock }
    }
}

impl<R: lock_api::RawMutex + Sync + 'static> Locking for lock_api::Mutex<R, ()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

impl Locking for Mutex<()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock().unwrap_or_else(PoisonError::into_inner);
        section();
    }

    fn queue(case: Case, threads: usize) -> Option<Box<dyn Queue>> {
        Some(queue::of::<Self, _>(case, threads, Condvar::new))
    }

    fn rwlock() -> Option<Box<dyn ReadWrite>> {
        Some(Box::new(RwLock::new(())))
    }
}

impl Condition<Mutex<()>> for Condvar {
    fn wait_until(&self, lock: &Mutex<()>, ready: &dyn Fn() -> bool, section: &mut dyn FnMut()) {
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _guard = self.wait_while(guard, |()| !ready()).unwrap_or_else(PoisonError::into_inner);
        section();
    }

    fn notify_one(&self) {
        Condvar::notify_one(self);
    }

    fn notify_all(&self) {
        Condvar::notify_all(self);
    }
}

/// Mutexes with a condition variable that has the interface of parking_lot's. They have types of their own here, because
/// the other mutexes of [`lock_api`] have none.
macro_rules! with_condition {
    ($name:ident, $mutex:ty, $condition:ty, $rwlock:ty, $doc:literal) => {
        #[doc = $doc]
        struct $name($mutex);

        impl Locking for $name {
            fn boxed() -> Box<Self> {
                Box::new(Self(<$mutex>::new(())))
            }

            #[inline]
            fn with(&self, section: impl FnOnce()) {
                let _guard = self.0.lock();
                section();
            }

            fn queue(case: Case, threads: usize) -> Option<Box<dyn Queue>> {
                Some(queue::of::<Self, _>(case, threads, <$condition>::new))
            }

            fn rwlock() -> Option<Box<dyn ReadWrite>> {
                Some(Box::new(<$rwlock>::new(())))
            }
        }

        impl Condition<$name> for $condition {
            fn wait_until(
                &self,
                lock: &$name,
                ready: &dyn Fn() -> bool,
                section: &mut dyn FnMut(),
            ) {
                let mut guard = lock.0.lock();
                while !ready() {
                    self.wait(&mut guard);
                }
                section();
            }

            fn notify_one(&self) {
                <$condition>::notify_one(self);
            }

            fn notify_all(&self) {
                <$condition>::notify_all(self);
            }
        }
    };
}
with_condition!(Ours, crate::Mutex<()>, crate::Condvar, crate::RwLock<()>, "This crate's mutex.");
with_condition!(
    ParkingLot,
    parking_lot::Mutex<()>,
    parking_lot::Condvar,
    parking_lot::RwLock<()>,
    "The mutex of parking_lot."
);
with_condition!(Usync, usync::Mutex<()>, usync::Condvar, usync::RwLock<()>, "The mutex of usync.");

/// The mutex as `overspin exec` and programs in C get it: a lock whose kind is known at run time only, called through
/// a table of functions.
struct Dynamic(Box<dyn NamedLock>);

impl Locking for Dynamic {
    fn boxed() -> Box<Self> {
        static KIND: LazyLock<Kind> =
            LazyLock::new(|| Kind::new("mutex").expect("the registry has it"));
        Box::new(Self(KIND.new_lock()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        self.0.lock();
        section();
        // SAFETY: this thread has locked it.
        unsafe { self.0.unlock() };
    }
}

// spin uses another version of `lock_api` than this crate.
impl Locking for spin::Mutex<()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

/// The C library's mutex of type `KIND`.
struct Pthread<const KIND: i32>(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library allows every thread to use it through its address.
unsafe impl<const KIND: i32> Sync for Pthread<KIND> {}

impl<const KIND: i32> Locking for Pthread<KIND> {
    fn boxed() -> Box<Self> {
        let mutex = Box::new(Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut attributes: libc::pthread_mutexattr_t = unsafe { std::mem::zeroed() };
        // SAFETY: `attributes` is ours, and is initialised, used and destroyed in this order. The mutex never
        // moves again, and no other code knows it.
        let failed = unsafe {
            libc::pthread_mutexattr_init(&raw mut attributes)
                | libc::pthread_mutexattr_settype(&raw mut attributes, KIND)
                | libc::pthread_mutex_init(mutex.0.get(), &raw const attributes)
                | libc::pthread_mutexattr_destroy(&raw mut attributes)
        };
        assert_eq!(failed, 0, "the C library has mutexes of type {KIND}");
        mutex
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        // SAFETY: `boxed` has initialised it. Only other mutex types return errors.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        section();
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }

    fn queue(case: Case, threads: usize) -> Option<Box<dyn Queue>> {
        let condition = || PthreadCondition(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        Some(queue::of::<Self, _>(case, threads, condition))
    }
}

/// The C library's condition variable.
struct PthreadCondition(UnsafeCell<libc::pthread_cond_t>);

// SAFETY: as `Pthread`.
unsafe impl Sync for PthreadCondition {}

impl<const KIND: i32> Condition<Pthread<KIND>> for PthreadCondition {
    fn wait_until(
        &self,
        lock: &Pthread<KIND>,
        ready: &dyn Fn() -> bool,
        section: &mut dyn FnMut(),
    ) {
        lock.with(|| {
            while !ready() {
                // SAFETY: both are initialised and stay where they are. This thread holds the lock.
                unsafe { libc::pthread_cond_wait(self.0.get(), lock.0.get()) };
            }
            section();
        });
    }

    fn notify_one(&self) {
        // SAFETY: it is initialised and stays where it is.
        unsafe { libc::pthread_cond_signal(self.0.get()) };
    }

    fn notify_all(&self) {
        // SAFETY: it is initialised and stays where it is.
        unsafe { libc::pthread_cond_broadcast(self.0.get()) };
    }
}

/// The C library's spinlock.
struct PthreadSpin(UnsafeCell<libc::pthread_spinlock_t>);

// SAFETY: as `Pthread`.
unsafe impl Sync for PthreadSpin {}

impl Locking for PthreadSpin {
    fn boxed() -> Box<Self> {
        let lock = Box::new(Self(UnsafeCell::new(0)));
        // SAFETY: it never moves again, and no other code knows it.
        let failed =
            unsafe { libc::pthread_spin_init(lock.0.get(), libc::PTHREAD_PROCESS_PRIVATE) };
        assert_eq!(failed, 0, "it cannot fail");
        lock
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        // SAFETY: `boxed` has initialised it.
        unsafe { libc::pthread_spin_lock(self.0.get()) };
        section();
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_spin_unlock(self.0.get()) };
    }
}

macro_rules! contestants {
    ($($name:literal: $contestant:ty, $brief:literal;)+) => {
        /// The measured locks beside the registry, with names and descriptions, this crate's first. They
        /// include two locks of the registry as programs use them, without thread numbers.
        pub const MUTEXES: &[(&str, &str)] = &[$(($name, $brief)),+];

        fn mutex(name: &str) -> Option<Maker> {
            match name {
                $($name => Some(Maker::of::<$contestant>()),)+
                _ => None,
            }
        }
    };
}

contestants! {
    "mutex": Ours, "This crate's mutex.";
    "mutex-dynamic": Dynamic, "The same as `exec` and C use it, called through a table.";
    "mutexee": Mutexee<()>, "Spins, sleeps, and hands over in user space where it can.";
    "std": Mutex<()>, "The Rust standard library.";
    "parking_lot": ParkingLot, "parking_lot 0.13.";
    "usync": Usync, "usync 0.2.";
    "spin": spin::Mutex<()>, "spin 0.12: test and set.";
    "pthread": Pthread<{ libc::PTHREAD_MUTEX_NORMAL }>, "The C library's mutex.";
    "pthread-adaptive": Pthread<{ libc::PTHREAD_MUTEX_ADAPTIVE_NP }>, "The C library's adaptive mutex.";
    "pthread-spin": PthreadSpin, "The C library's spinlock.";
}

macro_rules! registry {
    ($($lock:ident)+) => {
        fn registered(name: &str) -> Option<Maker> {
            $(
                if name == <overspin_locks::$lock<Threads> as RawLock<Threads>>::INFO.name {
                    return Some(Maker::of::<crate::locks::$lock<()>>());
                }
            )+
            None
        }
    };
}
overspin_locks::for_each_lock!(registry);

/// Resolves a name or alias to the canonical name; `None` if there is no such contestant.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let mutex = MUTEXES.iter().find(|mutex| mutex.0 == name).map(|mutex| mutex.0);
    mutex.or_else(|| overspin_locks::find(name).map(|info| info.name))
}

/// The contestant of this canonical name.
pub(super) fn contestant(name: &str) -> Option<Maker> {
    mutex(name).or_else(|| registered(name))
}
