//! The reader that may become a writer. It holds the mutex of the writers besides.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{PENDING, READER, RwLock, Shared, Token, TooManyReaders, WRITER};
use crate::deadline::NEVER;
use crate::{AtomicCell, RawLock, WakeAll};

impl<P: WakeAll, M: RawLock<P>> RwLock<P, M> {
    /// Enters as the reader that may become a writer: one at a time, beside other readers.
    ///
    /// # Errors
    /// If there are too many readers.
    pub fn lock_upgradable(&self, shared: &Shared<M::Shared>) -> Result<M::Token, TooManyReaders> {
        let held = self.writers.lock(&shared.writers);
        // It insists at once: the writers that bar readers wait for its mutex.
        if self.try_lock_shared() || self.wait_as_reader(shared, 0, NEVER) {
            return Ok(held);
        }
        self.writers.unlock(&shared.writers, held);
        Err(TooManyReaders)
    }

    /// Locks for reading with the right to upgrade, if neither a writer nor another such reader is there or waits.
    pub fn try_lock_upgradable(&self, shared: &Shared<M::Shared>) -> Option<M::Token> {
        let held = self.writers.try_lock(&shared.writers)?;
        if self.try_lock_shared() {
            return Some(held);
        }
        self.writers.unlock(&shared.writers, held);
        None
    }

    /// Leaves. For a reader that might have become a writer.
    pub fn unlock_upgradable(&self, shared: &Shared<M::Shared>, held: M::Token) {
        self.unlock_shared();
        self.writers.unlock(&shared.writers, held);
    }

    /// Waits until the other readers have left, and is a writer then. No other writer comes first.
    pub fn upgrade(&self, shared: &Shared<M::Shared>, held: M::Token) -> Token<M::Token> {
        while !self.wait_as_writer(shared, READER, 0, NEVER) {}
        Token { queued: Some(held) }
    }

    /// Becomes a writer if there are no other readers.
    ///
    /// # Errors
    /// If there are: what the caller gave.
    pub fn try_upgrade(&self, held: M::Token) -> Result<Token<M::Token>, M::Token> {
        // Acquire: pairs with the releases of those that left.
        match self.word.compare_exchange(READER, WRITER | PENDING, Acquire, Relaxed) {
            Ok(_) => Ok(Token { queued: Some(held) }),
            Err(_) => Err(held),
        }
    }
}
