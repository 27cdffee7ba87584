//! MUTEXEE: spin, then sleep; and whoever releases waits a moment for somebody to take over in user
//! space before it wakes a sleeper.
//!
//! | `word` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | `HELD` | held, nobody sleeps |
//! | `SLEEPERS` | free; sleepers, whose wake-up the last holder is considering |
//! | `HELD + SLEEPERS` | held, and somebody may sleep |
//!
//! **No wake-up is lost.** A thread sleeps only while the word is `HELD + SLEEPERS`, which the kernel
//! checks in one step with putting it to sleep. A release leaves `SLEEPERS` set. If somebody takes the lock
//! within `GRACE`, it holds a word with `SLEEPERS`, and the duty is its own. If not, the releaser
//! clears the bit and wakes one, who takes the lock with `SLEEPERS` because it cannot know whether
//! there are others; until then those who take the lock owe the sleepers nothing, for one is awake.
//!
//! **Properties.** Fast with any number of threads, for sleepers are left asleep as long as threads that run
//! keep the lock busy. For the same reason unfair without bound: a sleeper may wait until those who run are
//! descheduled. [`Mutex`](crate::Mutex) bounds that.
//!
//! `unlock` looks at the word after the release. Who shares the lock must keep it in place until `unlock` has
//! returned, as references do; a pthread mutex, which may be destroyed as soon as it is released,
//! cannot be built on it.
//!
//! **Source.** Falsafi, Guerraoui, Picorel and Trigonakis, "Unlocking Energy", USENIX ATC 2016, section 5.1.
//! Deviations: the spin limits do not adapt to the share of sleepers, and are counted in pauses.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use lock_api::GuardNoSend;
use overspin_locks::{AtomicCell, Budget};

use crate::futex;

const HELD: u32 = 1;
const SLEEPERS: u32 = 2;

/// Looks at a held lock before going to sleep: some 8000 cycles, the value of the source, where a
/// pause takes 140 cycles (Intel since Skylake).
const SPIN: Budget = Budget::Iterations(60);

/// Looks of a releaser for somebody who takes over: some 400 cycles, as above.
const GRACE: Budget = Budget::Iterations(3);

/// `Mutex<T>` over [`RawMutexee`].
pub type Mutexee<T> = lock_api::Mutex<RawMutexee, T>;

/// The lock. See the [module](self).
#[derive(Debug)]
pub struct RawMutexee {
    word: AtomicU32,
}

impl RawMutexee {
    #[cold]
    fn lock_slow(&self) {
        // What the word has besides `HELD` when this thread takes it. Once it has slept: see "No wake-up
        // is lost".
        let mut sleepers = 0;
        loop {
            while let Ok(found) = self.word.spin_until(|word| word & HELD == 0, SPIN) {
                let taken = found | HELD | sleepers;
                // Acquire: pairs with the release in `unlock`.
                if self.word.compare_exchange(found, taken, Acquire, Relaxed).is_ok() {
                    return;
                }
            }
            // Acquire: if it is free by now, this takes it; else it announces a sleeper.
            if self.word.swap(HELD | SLEEPERS, Acquire) & HELD == 0 {
                return;
            }
            futex::wait(&self.word, HELD | SLEEPERS);
            sleepers = SLEEPERS;
        }
    }

    #[cold]
    fn hand_over(&self) {
        if self.word.spin_until(|word| word != SLEEPERS, GRACE).is_ok() {
            return;
        }
        // Relaxed: the lock is released already. Failing means that somebody has it, with the duty.
        if self.word.compare_exchange(SLEEPERS, 0, Relaxed, Relaxed).is_ok() {
            futex::wake(&raw const self.word, 1);
        }
    }
}

// SAFETY: only who changes `HELD` from 0 to 1 gets a guard, and acquires; only `unlock` changes it back, and
// releases. Nothing unwinds. The guard has no destructor, and the word means nothing to anybody if it is
// moved or dropped while nobody else can use it.
unsafe impl lock_api::RawMutex for RawMutexee {
    const INIT: Self = Self { word: AtomicU32::new(0) };
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        // Acquire: pairs with the release in `unlock`.
        if self.word.compare_exchange(0, HELD, Acquire, Relaxed).is_err() {
            self.lock_slow();
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        // Acquire: pairs with the release in `unlock`.
        (self.word.fetch_or(HELD, Acquire) & HELD == 0).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // Release: what the holder did happens before the next acquisition.
        if self.word.fetch_sub(HELD, Release) != HELD {
            self.hand_over();
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) & HELD != 0
    }
}
