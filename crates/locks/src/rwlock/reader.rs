//! Readers.

use core::mem;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{
    ASLEEP, MOST, MOST_COUNTED, PENDING, READER, RwLock, Shared, TooManyReaders, WAITER, WRITER,
    admits_a_reader_that_insists, admits_a_writer, admits_readers, readers, waiters,
};
use crate::bug::right;
use crate::deadline::{NEVER, has_passed, sleep};
use crate::turn::FIRST_LOOKS;
use crate::{AtomicCell, RawLock, WakeAll};

impl<P: WakeAll, M: RawLock<P>> RwLock<P, M> {
    /// Enters as a reader if no writer is there or waits. May fail if there are too many readers.
    #[inline]
    pub fn try_lock_shared(&self) -> bool {
        // Relaxed: the exchange checks it.
        let mut found = self.word.load(Relaxed);
        while admits_readers(found) {
            if self.try_change(found, found + READER) {
                return true;
            }
            found = self.word.load(Relaxed);
        }
        false
    }

    /// Enters as a reader, or gives up at a time of [`Platform::now`](crate::Platform::now) and returns false. If there are too many
    /// readers, it looks again and again until then; without a deadline (`u64::MAX`) it gives up.
    #[inline]
    pub fn lock_shared_until(&self, shared: &Shared<M::Shared>, deadline_ns: u64) -> bool {
        self.try_lock_shared() || self.wait_as_reader(shared, shared.patience, deadline_ns)
    }

    /// Enters as a reader.
    ///
    /// # Errors
    /// If there are too many readers.
    #[inline]
    pub fn lock_shared(&self, shared: &Shared<M::Shared>) -> Result<(), TooManyReaders> {
        if self.lock_shared_until(shared, NEVER) { Ok(()) } else { Err(TooManyReaders) }
    }

    /// `patience`: sleeps before it insists.
    #[cold]
    pub(super) fn wait_as_reader(
        &self,
        shared: &Shared<M::Shared>,
        mut patience: u32,
        deadline_ns: u64,
    ) -> bool {
        let is_full = |found: u32| found & WRITER == 0 && readers(found) == MOST;
        // Too many readers may never leave.
        let gives_up = |found: u32| match deadline_ns {
            NEVER => is_full(found),
            _ => has_passed::<P>(deadline_ns),
        };
        let mut left = shared.spin_budget.min(FIRST_LOOKS);
        let mut later = shared.spin_budget - left;
        loop {
            match self.word.spin_until_within(admits_readers, &mut left) {
                Ok(found) if self.try_change(found, found + READER) => return true,
                Ok(_) => {}
                Err(_) if later > 0 => {
                    left = mem::take(&mut later);
                    self.turns.wait::<P>(shared.pace);
                }
                Err(_) => break,
            }
        }
        // `counted` is `WAITER` once the reader is counted.
        let mut counted = 0;
        loop {
            // Acquire, and before the word: see "No wake-up is lost".
            let wakes = right!(
                Some(self.reader_wakes.load(Acquire)),
                P,
                L1RwLockReaderReadsWakesLate,
                None
            );
            // Relaxed: the exchange checks it.
            let found = self.word.load(Relaxed);
            let insists = patience == 0;
            if admits_readers(found) || insists && admits_a_reader_that_insists(found) {
                let entered = found - counted + READER;
                if self.try_change(found, entered) {
                    self.after_insisting(counted, entered);
                    return true;
                }
            } else if gives_up(found) {
                let counted = right!(counted, P, L2RwLockReaderGivesUpAndStaysCounted, 0);
                if counted > 0 {
                    // Relaxed: the thread has not seen what the lock protects.
                    let found = self.word.fetch_sub(counted, Relaxed);
                    self.after_insisting(counted, found - counted);
                }
                return false;
            } else if is_full(found) {
                P::yield_now();
            } else {
                let is_new = counted == 0 && waiters(found) < MOST_COUNTED;
                let more = if insists && is_new { WAITER } else { 0 };
                let new = (found | ASLEEP) + more;
                if new != found && !self.try_change(found, new) {
                    continue;
                }
                counted += more;
                patience = patience.saturating_sub(1);
                let wakes = wakes.unwrap_or_else(|| self.reader_wakes.load(Acquire));
                sleep::<P>(&self.reader_wakes, wakes, deadline_ns);
            }
        }
    }

    /// For a reader that does not wait any more, and was `counted`; the word is, or was, `word`.
    fn after_insisting(&self, counted: u32, word: u32) {
        if counted > 0 && word & PENDING != 0 && admits_a_writer(word) {
            right!(self.wake_writer(), P, L3RwLockLastWaiterDoesNotWakeTheWriter, ());
        }
    }

    /// Leaves. For a reader.
    #[inline]
    pub fn unlock_shared(&self) {
        // Release: what the reader did happens before the next writer.
        let word = self.word.fetch_sub(READER, Release) - READER;
        if word & (WRITER | PENDING) == WRITER | PENDING && readers(word) == 0 {
            right!(self.wake_writer(), P, L4RwLockLastReaderDoesNotWakeTheWriter, ());
        }
    }
}
