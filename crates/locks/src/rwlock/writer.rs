//! Writers.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{
    IDLE_PART, MOST_PAUSES, PENDING, READER, RwLock, Shared, Token, WRITER, admits_a_writer,
    readers, waiters,
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
            let queue = || self.queue(shared, Some(self.writers.lock(&shared.writers)), NEVER);
            let spin = || self.spin_for_idle(shared);
            if let Some(token) = self.try_lock_exclusive().or_else(spin).or_else(queue) {
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
        let queue = || {
            let held = match M::LOCK_UNTIL {
                Some(lock_until) => lock_until(&self.writers, &shared.writers, deadline_ns),
                None => Some(self.writers.lock(&shared.writers)),
            };
            self.queue(shared, held, deadline_ns)
        };
        self.try_lock_exclusive().or_else(|| self.spin_for_idle(shared)).or_else(queue)
    }

    /// For a writer that holds the mutex.
    #[cold]
    fn queue(
        &self,
        shared: &Shared<M::Shared>,
        held: Option<M::Token>,
        deadline_ns: u64,
    ) -> Option<Token<M::Token>> {
        let held = held?;
        if self.wait_as_writer(shared, 0, deadline_ns) {
            return Some(Token { queued: Some(held) });
        }
        self.writers.unlock(&shared.writers, held);
        None
    }

    /// Takes the lock for a thread that holds the mutex, and is `own` in the word. Returns false only after the deadline.
    pub(super) fn wait_as_writer(
        &self,
        shared: &Shared<M::Shared>,
        own: u32,
        deadline_ns: u64,
    ) -> bool {
        // Relaxed: it only asks others to wake this thread, and keeps other writers away.
        self.word.fetch_or(PENDING, Relaxed);
        loop {
            let Some(found) = self.writer_sees(admits_a_writer, shared, deadline_ns) else {
                // Relaxed, here and below: the thread has not seen what the lock protects.
                self.word.fetch_and(!PENDING, Relaxed);
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
        if waiters(self.word.fetch_and(!(WRITER | PENDING), Relaxed)) > 0 {
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
        if waiters(found) > 0 {
            // The last of them wakes the pending writer.
            self.wake_readers();
        } else if found & PENDING & !held != 0 {
            right!(self.wake_writer(), P, L7RwLockFasterWriterDoesNotWake, ());
        }
        if let Some(queued) = token.queued {
            self.writers.unlock(&shared.writers, queued);
        }
    }
}
