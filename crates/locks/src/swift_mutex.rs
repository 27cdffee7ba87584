//! Swift's mutex on Linux: a futex mutex with rare, long pauses between its looks; where four waiters are parked, newcomers
//! park at once.
//!
//! | `word` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | 1 | held, no waiter parked |
//! | 2 | held, maybe with parked waiters |
//!
//! `parked` counts the waiters from their first sleep until they have the lock or give up. It is a hint: at most, a newcomer
//! pauses or parks without need.
//!
//! A newcomer that finds the word 2 and [`MOST_PARKED`] waiters parked parks at once. Any other tries, and pauses for 64
//! to 127 iterations between its tries, by a number that it draws for the acquisition. It parks when it finds the word 2,
//! or after so many tries. A woken waiter that finds the lock taken parks again without a pause.
//!
//! **No wake-up is lost**, as in [`futex`](crate::futex): a waiter sleeps only while the word is 2, and the platform checks
//! this and puts it to sleep in one step. A CPU that changes the word from 2 to 0 wakes one sleeper. A CPU
//! that has slept takes the lock with 2, because it cannot know whether others sleep.
//!
//! **Giving up.** A waiter gives up only after it has set the word to 2, with the lock held. So a woken waiter that gives up
//! leaves the other sleepers to a holder that wakes one.
//!
//! **Properties.** Unfair: a newcomer may take the lock before the waiter that was woken for it. A descheduled holder
//! costs the others their tries; then they sleep. A descheduled waiter owns nothing that others wait for. Uncontended:
//! two read-modify-writes. After the release `unlock` uses only the address of the lock.
//!
//! **Source.** Swift's standard library for Linux, `Synchronization.Mutex`, changed in 2026 (swiftlang/swift, pull
//! request 88523; written from `docs/SynchronizationMutexLinux.md` there). Deviation: the published pause takes its
//! random part from the cycle counter.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::deadline::{NEVER, has_passed, sleep};
use crate::delay::Delay;
use crate::{AtomicCell, CapacityError, LockInfo, LockUntil, Meanwhile, Platform, RawLock, Tuning};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A newcomer parks at once if so many waiters are parked: the published value.
pub const MOST_PARKED: u32 = 4;

/// Tries of a newcomer before it parks: the published value.
pub const TRIES: u32 = 20;

/// The shortest pause between two tries, in wait-loop iterations; the longest is less than twice as long. The published
/// value.
pub const PAUSE: u32 = 64;

/// Wait-loop iterations before a newcomer parks: the mean of the published pauses.
pub const DEFAULT_SPIN_BUDGET: u32 = TRIES * PAUSE * 3 / 2;

/// Properties of [`SwiftMutex`].
pub const INFO: LockInfo = LockInfo {
    name: "swift-mutex",
    brief: "Mutex of three states; waiters pause, then sleep, at once where four sleep already.",
    source: "Swift's standard library on Linux, 2026",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: true,
    // More CPUs than any machine has; each costs a cache line.
    max_cpus: u16::MAX as u32,
    size: 8,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct SwiftMutex<P: Platform> {
    word: P::U32,
    parked: P::U32,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    delay: Delay<P>,
    tries: u32,
    /// The shortest pause.
    pause: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, with so many tries of a newcomer, and pauses from `pause` wait-loop iterations to nearly twice as
    /// many.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, tries: u32, pause: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self { delay: Delay::new(cpus), tries, pause })
    }
}

impl<P: Platform> SwiftMutex<P> {
    /// The value found, if that is not `FREE`.
    #[inline]
    fn acquire_at_once(&self) -> Result<u32, u32> {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed)
    }

    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, shared: &Shared<P>, deadline_ns: u64) -> Option<()> {
        let acquired = match self.acquire_at_once() {
            Ok(_) => true,
            Err(found) => self.lock_slow(shared, found, deadline_ns),
        };
        acquired.then_some(())
    }

    /// Returns false only after the deadline, which may be [`NEVER`].
    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, found: u32, deadline_ns: u64) -> bool {
        // Relaxed: a hint.
        let is_crowded = found == CONTENDED && self.parked.load(Relaxed) >= MOST_PARKED;
        (!is_crowded && self.acquire_between_pauses(shared)) || self.park(deadline_ns)
    }

    /// Tries until waiters are parked, or the tries are used up. Returns whether it has the lock.
    fn acquire_between_pauses(&self, shared: &Shared<P>) -> bool {
        let pause = shared.delay.between(shared.pause);
        for _ in 0..shared.tries {
            match self.acquire_at_once() {
                Ok(_) => return true,
                // To wait past sleepers would be to overtake them.
                Err(CONTENDED) => return false,
                Err(_) => shared.delay.pause(pause),
            }
        }
        false
    }

    /// Sleeps until it gets the lock. Returns false only after the deadline.
    fn park(&self, deadline_ns: u64) -> bool {
        let mut is_counted = false;
        let is_mine = loop {
            // Acquire: pairs with the release in `unlock`. Takes the lock with 2: see "No wake-up is lost".
            if self.word.swap(CONTENDED, Acquire) == FREE {
                break true;
            }
            if has_passed::<P>(deadline_ns) {
                break false;
            }
            if !is_counted {
                is_counted = true;
                // Relaxed: a hint.
                self.parked.fetch_add(1, Relaxed);
            }
            // The value to compare with is the one that has a waker, not whatever is there now.
            let now = || self.word.load(Relaxed);
            let asleep_at = right!(CONTENDED, P, J1SwiftMutexWaitsWithoutComparing, now());
            sleep::<P>(&self.word, asleep_at, deadline_ns);
            // Not with 1, as if there were no other sleepers.
            let takes_it_with_1 = || self.acquire_at_once().is_ok();
            if right!(false, P, J2SwiftMutexForgetsOtherSleepers, takes_it_with_1()) {
                break true;
            }
        };
        if right!(is_counted, P, J3SwiftMutexStaysCounted, false) {
            self.parked.fetch_sub(1, Relaxed);
        }
        is_mine
    }
}

impl<P: Platform> RawLock<P> for SwiftMutex<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        let budget = tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET);
        // A pause takes 1.5 times the shortest in the mean.
        Shared::new(cpus, budget.div_ceil(PAUSE * 3 / 2), PAUSE)
    }

    fn new() -> Self {
        Self { word: P::U32::new(FREE), parked: P::U32::new(0) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if let Err(found) = self.acquire_at_once() {
            self.lock_slow(shared, found, NEVER);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        self.acquire_at_once().ok().map(|_| ())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, (): ()) {
        let address = ptr::from_ref(&self.word);
        // Release: what the holder did happens before the next acquisition.
        if self.word.swap(FREE, Release) == CONTENDED {
            P::wake_one(address);
        }
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.parked.load(Relaxed) != 0
    }
}
