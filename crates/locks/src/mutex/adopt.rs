//! Sleepers of something else that become sleepers of a mutex, because they need it next.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{Mutex, SLEEPER, Shared, Token, Woken, is_free};
use crate::bug::right;
use crate::condvar::Parking;
use crate::deadline::NEVER;
use crate::turn::FIRST_LOOKS;
use crate::{AtomicCell, RawLock};

impl<P: Parking> Mutex<P> {
    /// Hint: a sleeper would be cared for.
    pub(crate) fn is_held(&self) -> bool {
        !is_free(self.word.load(Relaxed))
    }

    /// Waiters for this lock take no turn for `us` microseconds.
    pub(crate) fn put_turns_off(&self, shared: &Shared, us: u32) {
        if shared.spin_budget > FIRST_LOOKS {
            self.turns.put_off(P::now(), us);
        }
    }

    /// Makes the CPU that sleeps on `cell`, or is about to, a sleeper of this lock, and stores `value` in the cell. Does
    /// nothing and returns false if the lock is free, because a free lock has no holder that would wake a sleeper.
    ///
    /// The CPU sleeps while the cell holds another value. When it finds `value` there, it calls
    /// [`lock_adopted`](Mutex::lock_adopted).
    ///
    /// **No wake-up is lost.** A release that finds the sleeper counted may come before the move, and wake nobody. Then it has changed
    /// `wakes`, and that is seen here after the move. If it changes `wakes` later than that look, then it also wakes later
    /// than the move. A sleeper that is awake without need begins anew.
    pub(crate) fn adopt(&self, cell: &P::U32, value: u32) -> bool {
        // Acquire, and before the count: as for a sleeper.
        let wakes = self.wakes.load(Acquire);
        // Relaxed: the exchange checks it.
        let mut found = self.word.load(Relaxed);
        loop {
            if right!(is_free(found), P, D5CondvarMovesToAFreeMutex, false) {
                return false;
            }
            let counted = found.wrapping_add(SLEEPER);
            // Acquire and release: as for a sleeper.
            match self.word.compare_exchange_weak(found, counted, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        // Release: the sleeper leaves the count after it was counted.
        cell.store(value, Release);
        P::requeue(ptr::from_ref(cell), ptr::from_ref(&self.wakes));
        // A read-modify-write reads the newest value.
        let woken = self.wakes.fetch_add(0, Relaxed) != wakes;
        if right!(woken, P, D6CondvarForgetsAWakeUpBeforeTheMove, false) {
            P::wake_one(ptr::from_ref(&self.wakes));
        }
        true
    }

    /// Acquires the lock for an adopted sleeper that is awake, for whatever reason.
    pub(crate) fn lock_adopted(&self, shared: &Shared) -> Token {
        match self.leave_the_count(shared, NEVER, false) {
            Woken::Took(found) => self.begin(shared, found, true),
            Woken::GaveUp | Woken::WentBack | Woken::BeginsAnew => {
                self.lock(&shared.after_a_sleep())
            }
        }
    }
}
