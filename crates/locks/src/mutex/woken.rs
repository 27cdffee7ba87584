//! What a sleeper does when it is awake, and how the woken thread gets the lock. The module above says why.

use core::sync::atomic::Ordering::Relaxed;

use super::{DUE, HEIR, HELD, Mutex, SLEEPER, Shared, WAKING};
use crate::bug::right;
use crate::deadline::has_passed;
use crate::{AtomicCell, Platform};

/// The first nap. The thread keeps its claim to a CPU, unlike one that yields.
const NAP_NS: u64 = 50_000;

/// Naps get longer, up to this: a nap costs some 40 us of a CPU on a virtual machine.
const MOST_NAP_NS: u64 = 4 * NAP_NS;

/// Rounds of looks of the heir before it naps where yields are dear: some 50 us, longer than most sections. The holder
/// of a lock that is held still may be waiting for this CPU. The nap is a short one, because the lock is idle if it is
/// released meanwhile.
const HEIR_ROUNDS: u32 = 8;

/// What became of a sleeper that is awake.
pub(super) enum Woken {
    /// It took the lock. The word was this.
    Took(u32),
    GaveUp,
    /// It was the woken thread and found the lock held, but it is not its turn: it wants the lock as a newcomer does.
    WentBack,
    /// It is not the woken thread: it wants the lock as a newcomer does.
    BeginsAnew,
}

impl<P: Platform> Mutex<P> {
    /// For a sleeper that is awake: it is no sleeper any more, and tries to take the lock if it is the woken thread.
    /// `went_back`: it has been that before, and went back to sleep.
    pub(super) fn leave_the_count(
        &self,
        shared: &Shared,
        deadline_ns: u64,
        went_back: bool,
    ) -> Woken {
        let found = self.word.fetch_sub(SLEEPER, Relaxed);
        // Only the thread that takes the lock as the woken one clears `WAKING`.
        if right!(found & WAKING != 0, P, O4MutexForgetsItWasWoken, false) {
            let due = found & DUE != 0 || went_back && !self.seldom_moves(shared);
            self.lock_woken(shared, due, deadline_ns)
        } else {
            Woken::BeginsAnew
        }
    }

    /// Tries to take the lock as the woken thread. `due`: it is its turn.
    fn lock_woken(&self, shared: &Shared, mut due: bool, deadline_ns: u64) -> Woken {
        let mut heir = 0;
        let mut naps = shared.naps;
        let mut nap_ns = NAP_NS;
        let mut heir_rounds = 0;
        loop {
            let looks = due && !self.is_held_here(shared);
            let mut left = if looks { shared.patience } else { 0 };
            while let Ok(found) = self.word.spin_until_within(|word| word & HELD == 0, &mut left) {
                if heir == 0 && found & HEIR != 0 {
                    // Another thread has left the count while `WAKING` was set, and was faster.
                    break;
                }
                // This clears the heir's mark too: no other thread does.
                let heir = right!(heir, P, O5MutexHeirStays, 0);
                let turn = right!(DUE, P, O12MutexStaysDue, 0);
                if self.take_weakly(found, (found | HELD) & !(WAKING | turn | heir)) {
                    return Woken::Took(found);
                }
            }
            if has_passed::<P>(deadline_ns) {
                self.give_up_woken(heir);
                return Woken::GaveUp;
            }
            if !due {
                if self.goes_back() {
                    return Woken::WentBack;
                }
                due = true;
            }
            if naps > 0 && P::yield_is_dear() {
                naps -= 1;
                P::nap(nap_ns);
                nap_ns = (2 * nap_ns).min(MOST_NAP_NS);
                continue;
            }
            if heir == 0 {
                // Relaxed: it only tells others to keep away. If there is an heir already, wait for it.
                let found = self.word.fetch_or(HEIR, Relaxed);
                heir = HEIR & !found;
            }
            // The holder may be waiting for this CPU.
            heir_rounds += 1;
            if heir_rounds > HEIR_ROUNDS && P::yield_is_dear() {
                P::nap(NAP_NS);
            } else {
                P::yield_if_cheap();
            }
        }
    }

    /// Ceases to be the woken thread, unless it is its turn by now. Returns whether it did. The lock may be free then, and
    /// no other thread may care for the sleepers: the caller looks again before it sleeps.
    fn goes_back(&self) -> bool {
        let wakes = right!(WAKING, P, O11MutexGoesBackAndStaysTheWokenThread, 0);
        // Relaxed: the exchange checks it.
        let mut found = self.word.load(Relaxed);
        while found & DUE == 0 {
            match self.word.compare_exchange_weak(found, found & !wakes, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => found = now,
            }
        }
        false
    }

    /// Gives up as the woken thread, and as the heir if `heir` is set.
    fn give_up_woken(&self, heir: u32) {
        let marks = right!(WAKING | DUE | heir, P, O9MutexGivesUpAndStaysTheHeir, WAKING | DUE);
        // Relaxed: the thread has not seen what the lock protects.
        let found = self.word.fetch_and(!marks, Relaxed);
        // The release that this thread has slept through woke no other one. Relied on by sleepers that came since.
        if right!(found & HELD == 0, P, O10MutexGivesUpWithoutASuccessor, false) {
            self.wake_one_of(found & !marks, false);
        }
    }
}
