//! A condition variable for [`Mutex`](crate::Mutex), with the interface of parking_lot's. The algorithm is
//! [`overspin_locks::condvar`].

use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use overspin_locks::{Condvar as Algorithm, mutex};

use crate::mutex::after;
use crate::{MutexGuard, RawMutex, Threads};

/// Threads sleep until another one says that something has changed. For [`Mutex`](crate::Mutex); 8 bytes, no set-up, no
/// limit on threads.
///
/// A wait ends by a notification or by its time limit, and not for no reason. But another thread may have been faster: look
/// again in a loop, or use [`Condvar::wait_while`]. Notify with the mutex held or after its release, as you like. If the
/// mutex is held, and the waiter began to wait on the notifier's CPU, it is not woken before it can have the mutex.
///
/// The thread that is next looks for up to 80 us before it sleeps, unless its looks mostly fail.
///
/// A signal handler must neither wait nor notify. After a fork, a child may use condition variables that no thread of the parent
/// was waiting on or notifying.
///
/// ```
/// use overspin_native::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static MORE: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut queue = QUEUE.lock();
///         MORE.wait_while(&mut queue, |queue| queue.is_empty());
///         assert_eq!(queue.pop(), Some(7));
///     });
///     QUEUE.lock().push(7);
///     MORE.notify_one();
/// });
/// ```
#[derive(Debug)]
pub struct Condvar(Algorithm<Threads>);

/// How a wait with a time limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time limit ended it. What the thread waited for may have come at the same time.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition variable without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self(Algorithm::of(AtomicU32::new(0), AtomicU32::new(0)))
    }

    /// Ends the longest wait. Returns whether there was one. One load if there was none.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one(waited_with)
    }

    /// Ends all waits, with one system call or two for each. Returns how many there were. The threads return one after another, because each
    /// needs the mutex.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all(waited_with)
    }

    /// Releases the mutex, sleeps until a notification, and acquires the mutex again.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        RawMutex::wait(&self.0, guard, u64::MAX);
    }

    /// As [`Condvar::wait`], until `deadline` at the latest.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_for(guard, deadline.saturating_duration_since(Instant::now()))
    }

    /// As [`Condvar::wait`], for `limit` at most.
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: Duration,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult(!RawMutex::wait(&self.0, guard, after(limit)))
    }

    /// Waits while `condition` holds. It is called with the mutex held, at least once.
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// As [`Condvar::wait_while`], until `deadline` at the latest. If the result is timed out, `condition` still held.
    pub fn wait_while_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        let mut timed_out = false;
        while condition(&mut **guard) {
            if timed_out {
                return WaitTimeoutResult(true);
            }
            timed_out = self.wait_until(guard, deadline).timed_out();
        }
        WaitTimeoutResult(false)
    }

    /// As [`Condvar::wait_while`], for `limit` at most. A limit beyond what the clock can tell is none.
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        limit: Duration,
    ) -> WaitTimeoutResult {
        match Instant::now().checked_add(limit) {
            Some(deadline) => self.wait_while_until(guard, condition, deadline),
            None => {
                self.wait_while(guard, condition);
                WaitTimeoutResult(false)
            }
        }
    }
}

/// The mutex at an address that the algorithm has.
fn waited_with<'a>(address: usize) -> &'a mutex::Mutex<Threads> {
    // SAFETY: the algorithm calls this for a thread that waits, and lets it go only when it has used the mutex.
    unsafe { RawMutex::waited_with(address) }
}
