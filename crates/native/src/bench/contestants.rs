//! The locks that are compared: every lock of the registry, this crate's own mutexes, and those that others
//! use.

use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError};

use overspin_locks::RawLock;

use crate::{Mutexee, RawMutex, Threads};

/// A lock to measure.
pub(super) trait Contestant: Sync {
    /// Creates an unlocked one. It is boxed, because some must not move.
    fn boxed() -> Box<Self>
    where
        Self: Sized;
    /// Runs `section` with the lock held.
    fn with(&self, section: impl FnOnce());
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
    "mutexee": Mutexee<()>, "Spins, sleeps, and hands over in user space where it can.";
    "std": Mutex<()>, "The Rust standard library.";
    "parking_lot": parking_lot::Mutex<()>, "parking_lot 0.13.";
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

/// Calls `visitor` with the contestant of this canonical name.
pub(super) fn with_contestant<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    if MUTEXES.iter().any(|mutex| mutex.0 == name) {
        with_mutex(name, visitor)
    } else {
        with_registered(name, visitor)
    }
}
