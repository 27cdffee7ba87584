//! Writers.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{
    ASLEEP, IDLE_PART, MOST_COUNTED, MOST_PAUSES, PENDING, QUEUED, READER, RwLock, Shared, Token,
    WRITER, admits_a_writer, bars_readers, queued, readers, waiters,
};
use crate::bug::right;
use crate::deadline::{NEVER, has_passed, sleep};
use crate::turn::FIRST_LOOKS;
use crate::{AtomicCell, RawLock, WakeAll};

impl<P: WakeAll, M: RawLock<P>> RwLock<P, M> {
    /// Takes the lock as a writer if it is idle.
    #[inline]
    pub fn try_lock_exclusive(&self) -> Option<Token<M::Token>> {
        // Acquire: pairs with the releases of those that left.
        let taken = self.word.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        taken.then_some(Token { queued: None })
    }

    /// Waits for a short time for an idle lock and takes it: several writers of short sections do not queue. Longer and
    /// longer pauses leave the lock to the CPU that has its cache line.
    #[cold]
    fn spin_for_idle(&self, shared: &Shared<M::Shared>) -> Option<Token<M::Token>> {
        let (mut left, mut pauses) = (shared.spin_budget / IDLE_PART, 1);
        while left > 0 {
            (0..pauses).for_each(|_| P::relax());
            left = left.saturating_sub(pauses);
            // Pauses double, so this comes once, after two looks.
            if pauses == FIRST_LOOKS {
                self.turns.wait::<P>(shared.pace);
            }
            pauses = MOST_PAUSES.min(2 * pauses);
            // Relaxed: the exchange checks it.
            if self.word.load(Relaxed) == 0
                && let Some(token) = self.try_lock_exclusive()
            {
                return Some(token);
            }
        }
        None
    }

    /// Takes the lock as a writer.
    #[inline]
    pub fn lock_exclusive(&self, shared: &Shared<M::Shared>) -> Token<M::Token> {
        loop {
            if let Some(token) = self.lock_exclusive_until(shared, NEVER) {
                return token;
            }
        }
    }

    /// Takes the lock as a writer, or gives up at a time of [`Platform::now`](crate::Platform::now). The mutex must be able to give up; otherwise a
    /// thread that queues there gives up only when it has that.
    pub fn lock_exclusive_until(
        &self,
        shared: &Shared<M::Shared>,
        deadline_ns: u64,
    ) -> Option<Token<M::Token>> {
        self.try_lock_exclusive()
            .or_else(|| self.spin_for_idle(shared))
            .or_else(|| self.queue(shared, deadline_ns))
    }

    #[cold]
    fn queue(&self, shared: &Shared<M::Shared>, deadline_ns: u64) -> Option<Token<M::Token>> {
        let (held, counted) = match self.writers.try_lock(&shared.writers) {
            Some(held) => (held, 0),
            None => {
                let counted = self.count_as_queued();
                let held = match M::LOCK_UNTIL {
                    Some(until) if deadline_ns != NEVER => {
                        until(&self.writers, &shared.writers, deadline_ns)
                    }
                    _ => Some(self.writers.lock(&shared.writers)),
                };
                let Some(held) = held else {
                    // Relaxed: the thread has not seen what the lock protects.
                    self.no_more_bars(self.word.fetch_sub(counted, Relaxed) - counted);
                    return None;
                };
                (held, counted)
            }
        };
        if self.wait_as_writer(shared, 0, counted, deadline_ns) {
            return Some(Token { queued: Some(held) });
        }
        self.writers.unlock(&shared.writers, held);
        None
    }

    /// Bars readers that come from now on. Returns what the word has grown by.
    fn count_as_queued(&self) -> u32 {
        loop {
            // Relaxed: the exchange checks it.
            let found = self.word.load(Relaxed);
            if queued(found) == MOST_COUNTED {
                return 0;
            }
            if self.try_change(found, found + QUEUED) {
                return QUEUED;
            }
        }
    }

    /// For a writer that has given up before it was one; the word is, or was, `word`.
    fn no_more_bars(&self, word: u32) {
        if word & ASLEEP != 0 && !bars_readers(word) {
            right!(self.wake_readers(), P, L10RwLockWriterGivesUpAndLeavesTheBarred, ());
        }
    }

    /// Takes the lock for a thread that holds the mutex, is `own` in the word, and was `counted` there as queued. Returns
    /// false only after the deadline.
    pub(super) fn wait_as_writer(
        &self,
        shared: &Shared<M::Shared>,
        own: u32,
        counted: u32,
        deadline_ns: u64,
    ) -> bool {
        // Relaxed: it only asks others to wake this thread, and keeps others away. The last thread with the mutex has
        // cleared it.
        self.word.fetch_add(PENDING.wrapping_sub(counted), Relaxed);
        loop {
            let Some(found) = self.writer_sees(admits_a_writer, shared, deadline_ns) else {
                // Relaxed, here and below: the thread has not seen what the lock protects.
                self.no_more_bars(self.word.fetch_and(!PENDING, Relaxed) & !PENDING);
                return false;
            };
            if self.try_change(found, (found | WRITER) - own) {
                break;
            }
        }
        let empty = |word| right!(readers(word) == 0, P, L6RwLockWriterDoesNotWaitForReaders, true);
        if self.writer_sees(empty, shared, deadline_ns).is_some() {
            return true;
        }
        if self.word.fetch_and(!(WRITER | PENDING), Relaxed) & ASLEEP != 0 {
            right!(self.wake_readers(), P, L8RwLockWriterGivesUpAndLeavesReadersAsleep, ());
        }
        false
    }

    /// Waits for a word, with acquire; `None` after the deadline.
    fn writer_sees(
        &self,
        until: impl Fn(u32) -> bool + Copy,
        shared: &Shared<M::Shared>,
        deadline_ns: u64,
    ) -> Option<u32> {
        let mut left = shared.spin_budget;
        loop {
            // Acquire, and before the word: see "No wake-up is lost".
            let wakes = self.writer_wakes.load(Acquire);
            // This acquires, too.
            if let Ok(found) = self.word.spin_until_within(until, &mut left) {
                return Some(found);
            }
            if has_passed::<P>(deadline_ns) {
                return None;
            }
            sleep::<P>(&self.writer_wakes, wakes, deadline_ns);
        }
    }

    /// Leaves. For a writer.
    #[inline]
    pub fn unlock_exclusive(&self, shared: &Shared<M::Shared>, token: Token<M::Token>) {
        self.leave_as_writer(shared, token, 0);
    }

    /// Makes a writer a reader, without a moment in which other writers could enter.
    pub fn downgrade(&self, shared: &Shared<M::Shared>, token: Token<M::Token>) {
        self.leave_as_writer(shared, token, READER);
    }

    fn leave_as_writer(&self, shared: &Shared<M::Shared>, token: Token<M::Token>, stays: u32) {
        let held = WRITER | if token.queued.is_some() { PENDING } else { 0 };
        // Release: what the writer did happens before the next ones enter. No reader is in, so nothing overflows.
        let found = self.word.fetch_add(stays.wrapping_sub(held), Release);
        // Otherwise the last of the counted readers wakes it.
        if found & PENDING & !held != 0 && waiters(found) == 0 {
            right!(self.wake_writer(), P, L7RwLockFasterWriterDoesNotWake, ());
        }
        // Before it wakes others: they may run in its place, and the mutex would be held by a thread without a CPU.
        if let Some(queued) = token.queued {
            self.writers.unlock(&shared.writers, queued);
        }
        if found & ASLEEP != 0 {
            self.wake_readers();
        }
    }
}
