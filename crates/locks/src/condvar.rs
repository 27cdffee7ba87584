//! A condition variable: threads sleep until another one says that something has changed.
//!
//! | Word | Meaning |
//! |---|---|
//! | `signals` | how many notifications there have been while threads waited; waiters sleep on it |
//! | `waiters` | threads between [`Condvar::prepare`] and the end of [`Condvar::sleep`] |
//!
//! A waiter counts itself and reads `signals` while it holds the mutex, releases the mutex, sleeps unless `signals` has
//! changed, and acquires the mutex again. A sleep may end for no reason, so its caller looks again, in a loop, whether
//! what it waits for has come. A time limit is such a reason.
//!
//! **No wake-up is lost.** A thread acquires the mutex, changes what a waiter waits for, and notifies, before or after it
//! releases the mutex. If the waiter looked before, it also counted itself and read `signals` before: all that comes
//! before its release of the mutex. So the notifier finds it counted, and changes `signals` after the waiter has read it.
//! Then the waiter does not fall asleep, or it already sleeps and is woken, because a sleep begins in one step with the
//! look at the word. (2^32 notifications between the reading and the sleep would defeat this.)
//!
//! **Who is woken.** [`Condvar::notify_one`] wakes one sleeper, and perhaps one that began to wait meanwhile: such a
//! thread looked after the change. Threads that have read `signals` and do not sleep yet return as well.
//!
//! **Order.** All accesses are relaxed: the mutex orders them, as said above, and the platform's sleep sees the newest
//! value of its word.
//!
//! **Uncontended**: a notification without waiters is one load.
//!
//! **Source.** The condition variable of Rust's standard library on futexes, with a count of waiters that saves the
//! system call where there are none.

use core::fmt::Debug;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use crate::bug::right;
use crate::{AtomicCell, Platform};

/// Platforms that can wake all sleepers of a word.
pub trait WakeAll: Platform {
    /// As [`Platform::wake_one`], for all CPUs that sleep there.
    fn wake_all(address: *const Self::U32);
}

/// The algorithm. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Condvar<P: Platform> {
    signals: P::U32,
    waiters: P::U32,
}

/// What a waiter knows when it releases the mutex.
#[derive(Debug)]
#[must_use = "a thread that has prepared to wait is counted until it has slept"]
pub struct Prepared {
    signals: u32,
}

impl<P: WakeAll> Condvar<P> {
    /// Without waiters. The cells are 0.
    pub const fn of(signals: P::U32, waiters: P::U32) -> Self {
        Self { signals, waiters }
    }

    /// The first half of a wait: for a thread that holds the mutex, and will release it and call [`Condvar::sleep`].
    pub fn prepare(&self) -> Prepared {
        right!(_ = self.waiters.fetch_add(1, Relaxed), P, D1CondvarCountsLate, ());
        Prepared { signals: self.signals.load(Relaxed) }
    }

    /// The second half, without the mutex. `sleep` sleeps while the cell holds the value, and may return at any time:
    /// [`Platform::wait`], or the same with a time limit. The caller then acquires the mutex.
    pub fn sleep<R>(&self, prepared: Prepared, sleep: impl FnOnce(&P::U32, u32) -> R) -> R {
        right!((), P, D1CondvarCountsLate, _ = self.waiters.fetch_add(1, Relaxed));
        let signals = right!(prepared.signals, P, D2CondvarReadsLate, self.signals.load(Relaxed));
        let result = sleep(&self.signals, signals);
        self.waiters.fetch_sub(1, Relaxed);
        result
    }

    /// Wakes a thread that waits, if there is one.
    #[inline]
    pub fn notify_one(&self) {
        self.notify(|| P::wake_one(ptr::from_ref(&self.signals)));
    }

    /// Wakes all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        let one = || P::wake_one(ptr::from_ref(&self.signals));
        let all = || P::wake_all(ptr::from_ref(&self.signals));
        self.notify(|| right!(all(), P, D4CondvarWakesOneOfAll, one()));
    }

    #[inline]
    fn notify(&self, wake: impl Fn()) {
        if self.waiters.load(Relaxed) > 0 {
            right!((), P, D3CondvarWakesBeforeItSignals, wake());
            self.signals.fetch_add(1, Relaxed);
            right!(wake(), P, D3CondvarWakesBeforeItSignals, ());
        }
    }
}
