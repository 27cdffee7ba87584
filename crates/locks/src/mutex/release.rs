//! How the sleepers are cared for after a release. The module above says why.

use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::{DUE, HEIR, HELD, Mutex, SLEEPER, Shared, Token, WAKING, affinity};
use crate::bug::right;
use crate::{AtomicCell, Budget, Platform};

impl<P: Platform> Mutex<P> {
    /// Cares for the sleepers after a release that found `word`.
    #[cold]
    pub(super) fn after_release(&self, shared: &Shared, word: u32, token: Token) {
        self.charge(shared, token, word / SLEEPER);
        if word & (DUE | HEIR) != 0 {
            // The woken thread may be waiting for this CPU.
            P::yield_if_cheap();
            return;
        }
        let rotate = self.is_time_to_rotate(shared);
        if !rotate {
            if word & WAKING != 0 {
                return;
            }
            let somebody_cares = |word| word < SLEEPER || word & (HELD | HEIR | WAKING) != 0;
            if self.word.spin_until(somebody_cares, Budget::Iterations(shared.grace)).is_ok() {
                return;
            }
        }
        // Relaxed: the exchange checks it.
        self.wake_one_of(self.word.load(Relaxed), rotate);
    }

    /// Wakes a sleeper, unless another thread cares for them. The word is `found`, or has been. To `rotate` is to wake one
    /// although the lock may be held, and to make it its turn; a thread that is awake already gets the turn.
    pub(super) fn wake_one_of(&self, mut found: u32, rotate: bool) {
        let due = if rotate { DUE } else { 0 };
        loop {
            // A thread that holds the lock by now cares for the sleepers, but does not know that it is time to
            // rotate.
            let others_care = HEIR | DUE | if rotate { 0 } else { HELD | WAKING };
            if found < SLEEPER || found & others_care != 0 {
                return;
            }
            // Relaxed: `wakes` has the order.
            let new = found | WAKING | due;
            match self.word.compare_exchange_weak(found, new, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        if found & WAKING == 0 {
            self.wake_one();
        }
        if due != 0 {
            P::yield_if_cheap();
        }
    }

    fn wake_one(&self) {
        // A thread that is about to sleep on the old value must find it changed.
        let wake = || P::wake_one(ptr::from_ref(&self.wakes));
        right!((), P, O6MutexWakesBeforeItCounts, wake());
        // Release: see "Order".
        self.wakes.fetch_add(1, Release);
        right!(wake(), P, O6MutexWakesBeforeItCounts, ());
    }

    /// Whether moves are dear. Where locks do not learn it, this does not touch the lock.
    pub(super) fn seldom_moves(&self, shared: &Shared) -> bool {
        shared.learns() && self.affinity.is_strong(shared.move_ns)
    }

    /// Hint: the holder took the lock on this processor. It waits for it now, so looks would only make it wait longer.
    pub(super) fn is_held_here(&self, shared: &Shared) -> bool {
        shared.learns() && self.affinity.was_on(P::processor())
    }

    fn is_time_to_rotate(&self, shared: &Shared) -> bool {
        let Some(reading) = self.rotation.look(shared.releases_per_look, P::now) else {
            return false;
        };
        let since = u64::from(reading.since) * 1000;
        let most = shared.rotation_ns.saturating_mul(affinity::MOST);
        let stays = || self.seldom_moves(shared) && !self.affinity.has_stayed() && since < most;
        let rotate = !stays() && since >= shared.rotation_ns;
        if rotate {
            self.rotation.happens(&reading);
            if shared.learns() {
                self.affinity.rotate();
            }
        }
        rotate
    }
}
