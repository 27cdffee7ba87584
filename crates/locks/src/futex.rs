//! Futex mutex: a word with three states; a waiter that has spun too long sleeps on it.
//!
//! | `word` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | 1 | held, no sleepers |
//! | 2 | held, maybe with sleepers |
//!
//! **No wake-up is lost.** A CPU sleeps only while the word is 2; the platform checks this and puts it
//! to sleep in one step. A CPU that changes the word from 2 to 0 wakes one sleeper. A CPU that has
//! slept takes the lock with 2, so that other sleepers are not forgotten: it cannot know whether there
//! are any. At worst the last of them wakes no sleeper, at the price of one call.
//!
//! **Giving up.** A waiter gives up only after it has found the word 2, or has set it to 2, with the lock held. So a woken
//! waiter that gives up leaves the other sleepers to a holder that wakes one.
//!
//! **Properties.** Unfair: a newcomer may take the lock before the waiter that was woken for it. A
//! descheduled holder costs the others their spin budget; then they sleep. A descheduled waiter owns
//! nothing that others wait for. Uncontended: two read-modify-writes. After the release `unlock` uses
//! only the address of the lock.
//!
//! **Source.** Drepper, "Futexes are tricky", 2011, third mutex; the mutex of the Rust standard library
//! on Linux since 1.62. Waiters spin as in that one: only while there are no sleepers.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::deadline::{NEVER, has_passed, sleep};
use crate::{
    AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile, Platform, RawLock, Tuning,
};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// Wait-loop iterations before a waiter sleeps: the value of the Rust standard library.
pub const DEFAULT_SPIN_BUDGET: u32 = 100;

/// Properties of [`Futex`].
pub const INFO: LockInfo = LockInfo {
    name: "futex",
    brief: "Mutex of three states; waiters spin briefly, then sleep on the word.",
    source: "Drepper 2011; Rust standard library on Linux since 1.62",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: true,
    max_cpus: u32::MAX,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Futex<P: Platform> {
    word: P::U32,
}

/// What all locks of a system share: the wait-loop iterations before a waiter sleeps.
#[derive(Debug)]
pub struct Shared(u32);

impl Shared {
    pub(crate) const DEFAULT: Self = Self(DEFAULT_SPIN_BUDGET);
}

impl<P: Platform> Futex<P> {
    /// Makes an unlocked lock from a cell that is 0. For statics: [`RawLock::new`] is not const.
    pub const fn of(word: P::U32) -> Self {
        Self { word }
    }

    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// Spins while the lock is held without sleepers. To spin past sleepers would be to overtake them.
    fn spin(&self, shared: &Shared) -> u32 {
        match self.word.spin_until(|word| word != HELD, Budget::Iterations(shared.0)) {
            Ok(word) | Err(word) => word,
        }
    }

    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, shared: &Shared, deadline_ns: u64) -> Option<()> {
        (self.acquire_at_once() || self.lock_slow(shared, deadline_ns)).then_some(())
    }

    /// Returns false only after the deadline, which may be [`NEVER`].
    #[cold]
    fn lock_slow(&self, shared: &Shared, deadline_ns: u64) -> bool {
        let mut found = self.spin(shared);
        if found == FREE && self.acquire_at_once() {
            return true;
        }
        loop {
            // Acquire: pairs with the release in `unlock`. Takes the lock with 2 also after a sleep:
            // see "No wake-up is lost".
            if found != CONTENDED && self.word.swap(CONTENDED, Acquire) == FREE {
                return true;
            }
            if has_passed::<P>(deadline_ns) {
                return false;
            }
            // The value to compare with is the one that has a waker, not whatever is there now.
            let now = || self.word.load(Relaxed);
            let asleep_at = right!(CONTENDED, P, F2FutexWaitsWithoutComparing, now());
            sleep::<P>(&self.word, asleep_at, deadline_ns);
            found = self.spin(shared);
            // Not with 1, as if there were no other sleepers: see above.
            if right!(false, P, F1FutexForgetsOtherSleepers, self.acquire_at_once()) {
                return true;
            }
        }
    }
}

impl<P: Platform> RawLock<P> for Futex<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared;
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared(tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET)))
    }

    fn new() -> Self {
        Self { word: P::U32::new(FREE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared) {
        if !self.acquire_at_once() {
            self.lock_slow(shared, NEVER);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared) -> Option<()> {
        self.acquire_at_once().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared, (): ()) {
        let address = ptr::from_ref(&self.word);
        // Release: what the holder did happens before the next acquisition.
        if self.word.swap(FREE, Release) == CONTENDED {
            P::wake_one(address);
        }
    }

    fn is_locked(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) == CONTENDED
    }
}
