//! The locks that are compared: every lock of the registry, this crate's own mutexes, and those that others
//! use.

use std::cell::UnsafeCell;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

use overspin_locks::RawLock;

use crate::{Kind, Mutexee, NamedLock, RawMutex, Threads};

/// A lock to measure.
pub(super) trait Contestant: Sync {
    /// Creates an unlocked one. It is boxed, because some must not move.
    fn boxed() -> Box<Self>
    where
        Self: Sized;
    /// Runs `section` with the lock held.
    fn with(&self, section: impl FnOnce());
    /// Creates a condition variable for it; `None` if it has none.
    fn condition() -> Option<Box<dyn Condition<Self>>> {
        None
    }
}

/// A condition variable for a lock of type `C`.
pub(super) trait Condition<C: ?Sized>: Sync {
    /// Acquires `lock`, waits until `ready` holds, and runs `section` with the lock held.
    fn wait_until(&self, lock: &C, ready: &dyn Fn() -> bool, section: &mut dyn FnMut());
    /// Wakes one waiter, if there is one.
    fn notify_one(&self);
    /// Wakes all waiters.
    fn notify_all(&self);
}

impl<R: lock_api::RawMutex + Sync> Contestant for lock_api::Mutex<R, ()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

impl Contestant for Mutex<()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock().unwrap_or_else(PoisonError::into_inner);
        section();
    }

    fn condition() -> Option<Box<dyn Condition<Self>>> {
        Some(Box::new(Condvar::new()))
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

/// The mutex of parking_lot. It has a type of its own here because it has a condition variable.
struct ParkingLot(parking_lot::Mutex<()>);

impl Contestant for ParkingLot {
    fn boxed() -> Box<Self> {
        Box::new(Self(parking_lot::Mutex::new(())))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.0.lock();
        section();
    }

    fn condition() -> Option<Box<dyn Condition<Self>>> {
        Some(Box::new(parking_lot::Condvar::new()))
    }
}

impl Condition<ParkingLot> for parking_lot::Condvar {
    fn wait_until(&self, lock: &ParkingLot, ready: &dyn Fn() -> bool, section: &mut dyn FnMut()) {
        let mut guard = lock.0.lock();
        self.wait_while(&mut guard, |()| !ready());
        section();
    }

    fn notify_one(&self) {
        parking_lot::Condvar::notify_one(self);
    }

    fn notify_all(&self) {
        parking_lot::Condvar::notify_all(self);
    }
}

/// The mutex as `overspin exec` and programs in C get it: a lock whose kind is known at run time only, called through
/// a table of functions.
struct Dynamic(Box<dyn NamedLock>);

impl Contestant for Dynamic {
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

// usync and spin use other versions of `lock_api` than this crate.
impl Contestant for usync::Mutex<()> {
    fn boxed() -> Box<Self> {
        Box::new(Self::new(()))
    }

    #[inline]
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

impl Contestant for spin::Mutex<()> {
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

impl<const KIND: i32> Contestant for Pthread<KIND> {
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

    fn condition() -> Option<Box<dyn Condition<Self>>> {
        Some(Box::new(PthreadCondition(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))))
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

impl Contestant for PthreadSpin {
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

/// An operation on a contestant that is chosen by name.
pub(super) trait Visitor {
    type Output;
    fn visit<C: Contestant>(self) -> Self::Output;
}

macro_rules! contestants {
    ($($name:literal: $contestant:ty, $brief:literal;)+) => {
        /// The measured locks beside the registry, with names and descriptions, this crate's first. They
        /// include two locks of the registry as programs use them, without thread numbers.
        pub const MUTEXES: &[(&str, &str)] = &[$(($name, $brief)),+];

        fn with_mutex<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($name => Some(visitor.visit::<$contestant>()),)+
                _ => None,
            }
        }
    };
}

contestants! {
    "mutex": lock_api::Mutex<RawMutex, ()>, "This crate's mutex.";
    "mutex-dynamic": Dynamic, "The same as `exec` and C use it, called through a table.";
    "mutexee": Mutexee<()>, "Spins, sleeps, and hands over in user space where it can.";
    "std": Mutex<()>, "The Rust standard library.";
    "parking_lot": ParkingLot, "parking_lot 0.13.";
    "usync": usync::Mutex<()>, "usync 0.2.";
    "spin": spin::Mutex<()>, "spin 0.12: test and set.";
    "pthread": Pthread<{ libc::PTHREAD_MUTEX_NORMAL }>, "The C library's mutex.";
    "pthread-adaptive": Pthread<{ libc::PTHREAD_MUTEX_ADAPTIVE_NP }>, "The C library's adaptive mutex.";
    "pthread-spin": PthreadSpin, "The C library's spinlock.";
}

macro_rules! registry {
    ($($lock:ident)+) => {
        fn with_registered<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(
                if name == <overspin_locks::$lock<Threads> as RawLock<Threads>>::INFO.name {
                    return Some(visitor.visit::<crate::locks::$lock<()>>());
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

/// Whether the contestant of this canonical name has a condition variable.
pub(super) fn has_condition(name: &str) -> bool {
    struct Has;
    impl Visitor for Has {
        type Output = bool;

        fn visit<C: Contestant>(self) -> bool {
            C::condition().is_some()
        }
    }
    with_contestant(name, Has) == Some(true)
}

/// Calls `visitor` with the contestant of this canonical name.
pub(super) fn with_contestant<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    if MUTEXES.iter().any(|mutex| mutex.0 == name) {
        with_mutex(name, visitor)
    } else {
        with_registered(name, visitor)
    }
}
