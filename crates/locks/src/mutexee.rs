//! MUTEXEE: waiters spin, then sleep; a releaser waits a moment for another thread to take over in user space
//! before it wakes a sleeper.
//!
//! | `word` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | `HELD` | held, no sleepers |
//! | `SLEEPERS` | free, with sleepers; the last holder decides whether to wake one |
//! | `HELD + SLEEPERS` | held, maybe with sleepers |
//!
//! **No wake-up is lost.** A thread sleeps only while the word is `HELD + SLEEPERS`; the kernel checks this
//! and puts it to sleep in one step. A release leaves `SLEEPERS` set. A thread that takes the lock within
//! `GRACE` holds a word with `SLEEPERS`, and the duty to wake is its own. If no thread does, the releaser
//! clears the bit and wakes one sleeper. The woken thread takes the lock with `SLEEPERS`, because it cannot
//! know whether there are other sleepers. Until then threads that take the lock owe the sleepers nothing,
//! because one is awake.
//!
//! **Properties.** Fast with any number of threads, because sleepers stay asleep as long as running threads
//! keep the lock busy. For the same reason unfair without bound: a sleeper may wait until the running threads
//! are descheduled. [`mutex`](crate::mutex) bounds that.
//!
//! `unlock` looks at the word after the release. The users of the lock must keep it in place until `unlock`
//! has returned, as references do. A pthread mutex cannot be built on it, because it may be destroyed as soon
//! as it is released.
//!
//! **Source.** Falsafi, Guerraoui, Picorel and Trigonakis, "Unlocking Energy", USENIX ATC 2016, section 5.1.
//! Deviations: the spin limits do not adapt to the share of sleepers, and are counted in pauses.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const HELD: u32 = 1;
const SLEEPERS: u32 = 2;

/// Looks at a held lock before a thread sleeps: some 8000 cycles, the value of the source, at 140 cycles per
/// pause (Intel since Skylake).
pub const DEFAULT_SPIN_BUDGET: u32 = 60;

/// Looks of a releaser for a thread that takes over: some 400 cycles, as above.
const GRACE: u32 = 3;

/// Properties of [`Mutexee`].
pub const INFO: LockInfo = LockInfo {
    name: "mutexee",
    brief: "Spins, sleeps, and hands over in user space where it can.",
    source: "Falsafi, Guerraoui, Picorel and Trigonakis 2016",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::Pass,
    abortable: false,
    blocks: true,
    max_cpus: u32::MAX,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Mutexee<P: Platform> {
    word: P::U32,
}

/// What locks of a kind share: their patience.
#[derive(Debug)]
pub struct Shared {
    spin_budget: u32,
    grace: u32,
}

impl Shared {
    /// With the default spin budget.
    pub const DEFAULT: Self = Self { spin_budget: DEFAULT_SPIN_BUDGET, grace: GRACE };
}

impl<P: Platform> Mutexee<P> {
    /// Makes an unlocked lock from a cell that is 0. For statics: [`RawLock::new`] is not const.
    pub const fn of(word: P::U32) -> Self {
        Self { word }
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared) {
        // What the word has besides `HELD` when this thread takes it. Once the thread has slept: see "No
        // wake-up is lost".
        let mut sleepers = 0;
        loop {
            let mut left = shared.spin_budget;
            while let Ok(found) = self.word.spin_until_within(|word| word & HELD == 0, &mut left) {
                // With the bit as found: the releaser leaves its duty to the thread that takes the lock.
                let inherited = right!(found, P, E2MutexeeDropsTheDuty, 0);
                let taken = inherited | HELD | sleepers;
                // Acquire: pairs with the release in `unlock`.
                if self.word.compare_exchange_weak(found, taken, Acquire, Relaxed).is_ok() {
                    return;
                }
            }
            // Acquire: if the lock is free by now, this takes it; else it announces a sleeper.
            if self.word.swap(HELD | SLEEPERS, Acquire) & HELD == 0 {
                return;
            }
            if P::can_block() {
                // The value that has a waker, not whatever is there now.
                let now = || self.word.load(Relaxed);
                let asleep_at = right!(HELD | SLEEPERS, P, E4MutexeeWaitsWithoutComparing, now());
                P::wait(&self.word, asleep_at);
            }
            sleepers = right!(SLEEPERS, P, E1MutexeeForgetsOtherSleepers, 0);
        }
    }

    #[cold]
    fn hand_over(&self, shared: &Shared) {
        let taken_over = |word| word != SLEEPERS;
        if self.word.spin_until(taken_over, Budget::Iterations(shared.grace)).is_ok() {
            return;
        }
        // Relaxed: the lock is released already. If this fails, another thread has the lock and the duty.
        let clear = || self.word.compare_exchange(SLEEPERS, 0, Relaxed, Relaxed).is_ok();
        let cleared = right!(clear(), P, E3MutexeeClearsBlindly, {
            self.word.store(0, Relaxed);
            true
        });
        if !cleared {
            return;
        }
        P::wake_one(ptr::from_ref(&self.word));
    }
}

impl<P: Platform> RawLock<P> for Mutexee<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared;
    type Token = ();

    /// With a spin budget of 0, waiters and releasers have no patience at all.
    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(match tuning.spin_budget {
            None => Shared::DEFAULT,
            Some(0) => Shared { spin_budget: 0, grace: 0 },
            Some(spin_budget) => Shared { spin_budget, ..Shared::DEFAULT },
        })
    }

    fn new() -> Self {
        Self::of(P::U32::new(0))
    }

    #[inline]
    fn lock(&self, shared: &Shared) {
        // Acquire: pairs with the release in `unlock`.
        if self.word.compare_exchange(0, HELD, Acquire, Relaxed).is_err() {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared) -> Option<()> {
        // Acquire: pairs with the release in `unlock`.
        (self.word.fetch_or(HELD, Acquire) & HELD == 0).then_some(())
    }

    #[inline]
    fn unlock(&self, shared: &Shared, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        if self.word.fetch_sub(HELD, Release) != HELD {
            self.hand_over(shared);
        }
    }

    fn is_locked(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & HELD != 0
    }

    fn is_contended(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & SLEEPERS != 0
    }
}
