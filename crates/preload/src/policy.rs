//! Policy: which mutexes are served, and which acquisitions go through the lock.
//!
//! | Mutex and thread | Way |
//! |---|---|
//! | the mutex is robust, shared between processes, or inherits or protects priority | straight |
//! | this library is not active; or the mutex has no lock and a thread forks | straight |
//! | the mutex has no lock, and is free, or the thread only tries or has a time limit (but see [`shards::come_late`]) | straight |
//! | this thread holds the mutex, with its lock or without | straight: the type of the mutex decides |
//! | this thread has no number, or the locks have no records for that number | past the lock |
//! | the mutex has been released past this library ([`bypass`]) | past the lock |
//! | the lock's holder has ended, and this thread now has its number | past the lock |
//! | all others | through the lock |
//!
//! *Straight*: only the C library's function. *Past the lock*: the mutex is acquired without the lock, and signs of a
//! bypass are recorded. *Through the lock*: the lock first, then the mutex.
//!
//! **Invariant.** These are choices, not promises. The mutex alone provides mutual exclusion, so a stale choice only
//! costs a place in the queue.

use libc::pthread_mutex_t;
use overspin_native::kernel_thread_id;

use crate::bypass::{self, Seat};
use crate::mutex::Mutex;
use crate::shadow::{self, Holder, Shadow, served_number};
use crate::shards;

/// Returns the mutex at `mutex` if this library handles it.
///
/// # Safety
/// `mutex` points to a mutex that was initialised, and at most destroyed since.
#[inline]
pub(crate) unsafe fn ours<'a>(mutex: *mut pthread_mutex_t) -> Option<&'a Mutex> {
    // SAFETY: it is valid as the caller says, `Mutex` has its layout, and all of its fields are atomic.
    let mutex = unsafe { &*mutex.cast::<Mutex>() };
    mutex.is_ours().then_some(mutex)
}

/// A mutex that this library handles, as a thread finds it.
pub(crate) struct HandledMutex<'a> {
    mutex: &'a Mutex,
    shadow: Option<&'static Shadow>,
}

impl<'a> HandledMutex<'a> {
    /// # Safety
    /// As [`ours`].
    #[inline]
    pub(crate) unsafe fn at(mutex: *mut pthread_mutex_t) -> Option<Self> {
        // SAFETY: as the caller promises.
        let mutex = unsafe { ours(mutex) }?;
        Some(Self { mutex, shadow: shadow::attached(mutex) })
    }

    /// Whether the mutex has no lock, and needs none unless this thread must wait for it.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.shadow.is_none() && shards::come_late()
    }

    /// Returns this library's record of the mutex, unless this thread should go straight to the mutex. `caller` is the
    /// place where the program acquires it.
    #[inline]
    pub(crate) fn not_straight(self, caller: usize) -> Option<&'static Shadow> {
        let shadow = self.shadow.or_else(|| shards::of(self.mutex, caller))?;
        (!is_mine(self.mutex, shadow)).then_some(shadow)
    }
}

/// Whether this thread holds the mutex, with its lock or without. Then the C library decides what happens.
#[inline]
fn is_mine(mutex: &Mutex, shadow: &Shadow) -> bool {
    let tid = kernel_thread_id();
    if mutex.is_held_by(tid) {
        return true;
    }
    match shadow.holder() {
        Some(holder) if holder.tid() == tid => !bypass::come_back(shadow, holder),
        _ => false,
    }
}

/// Returns this thread's seat, and its record as a holder; `None` if the thread goes past the lock.
#[inline]
pub(crate) fn seat_of_mine(shadow: &Shadow) -> Option<(&'static Seat, Holder)> {
    let number = served_number()?;
    // The holder has ended and left the lock behind, and this thread now has its number. In the queue it would find
    // itself as the holder.
    let is_heir = shadow.holder().is_some_and(|holder| holder.number() == number);
    if is_heir || shadow.is_bypassed() {
        return None;
    }
    Some((bypass::seat(number)?, Holder::new(kernel_thread_id(), number)?))
}
