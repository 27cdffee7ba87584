//! The lock of this library's own data: a spinlock that yields.
//!
//! It cannot be a mutex of the C library, which this library replaces. It cannot be the standard library's
//! mutex, because it must stay closed during a fork. Its sections are short and rare: the first
//! contention of a mutex, its end, a fork.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

const OPEN: u8 = 0;
/// A thread is inside.
const USED: u8 = 1;
/// Closed during a fork.
const CLOSED: u8 = 2;

pub(crate) struct ForkLock<T> {
    state: AtomicU8,
    data: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the data.
unsafe impl<T: Send> Sync for ForkLock<T> {}

impl<T> ForkLock<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self { state: AtomicU8::new(OPEN), data: UnsafeCell::new(data) }
    }

    /// Goes from `OPEN` to `to` and waits for any thread inside. Returns false if it is closed and `wait` is
    /// not set.
    fn leave_open(&self, to: u8, wait: bool) -> bool {
        // Acquire: pairs with `open`.
        while let Err(state) = self.state.compare_exchange_weak(OPEN, to, Acquire, Relaxed) {
            if state == CLOSED && !wait {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    /// Runs `f` with the data. `f` must not use this lock again.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.leave_open(USED, true);
        // SAFETY: this thread is inside.
        let result = f(unsafe { &mut *self.data.get() });
        self.open();
        result
    }

    /// As [`ForkLock::with`], but `None` while a thread forks. A thread that holds a mutex must not wait for a
    /// fork: the forking thread may be about to acquire the mutex in a fork handler.
    pub(crate) fn with_unless_closed<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.leave_open(USED, false) {
            return None;
        }
        // SAFETY: this thread is inside.
        let result = f(unsafe { &mut *self.data.get() });
        self.open();
        Some(result)
    }

    /// Keeps others out until [`ForkLock::open`].
    pub(crate) fn close(&self) {
        self.leave_open(CLOSED, true);
    }

    /// Ends [`ForkLock::close`].
    pub(crate) fn open(&self) {
        self.state.store(OPEN, Release);
    }
}
