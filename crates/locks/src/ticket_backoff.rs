//! Ticket lock with proportional backoff: a waiter looks away for as long as the waiters before it
//! need.
//!
//! The word and its states are those of [`ticket`]. A ticket tells how many waiters are served before
//! it. A waiter pauses for its distance times the expected length of a critical section, looks again,
//! and spins only when it is next.
//!
//! **Properties.** Those of the ticket lock, but a release costs fewer misses: the next in line watches
//! the word, the others look at it now and then. If sections are longer than expected, waiters look
//! more often than necessary; if they are shorter, the lock stays free for up to a pause. Descheduled
//! holders and waiters do the same harm. Uncontended: two read-modify-writes.
//!
//! **Source.** Mellor-Crummey and Scott 1991, section 2.2.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::delay::Delay;
use crate::ticket::{self, TicketWord};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Platform, RawLock, Tuning, WordLock};

/// Pause for each waiter in front, in wait-loop iterations: a short critical section with its
/// hand-over.
pub const DEFAULT_PAUSE: u32 = 32;
/// Longest pause, in wait-loop iterations: some tens of microseconds.
const LONGEST_PAUSE: u32 = 1 << 11;

/// Properties of [`TicketBackoff`].
pub const INFO: LockInfo = LockInfo {
    name: "ticket-backoff",
    brief: "Ticket lock whose waiters pause in proportion to their distance.",
    source: "Mellor-Crummey and Scott 1991",
    ..ticket::INFO
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct TicketBackoff<P: Platform> {
    word: P::U32,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    delay: Delay<P>,
    pause: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, with a pause of `pause` wait-loop iterations for each waiter in front.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, pause: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self { delay: Delay::new(cpus), pause })
    }
}

impl<P: Platform> TicketBackoff<P> {
    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, mine: u16, mut found: u32) {
        // The CPUs before us without the holder, which has been in its section for a while.
        let in_front = |word: u32| u32::from(mine.wrapping_sub(word.head())).saturating_sub(1);
        while in_front(found) > 0 {
            shared.delay.pause(shared.pause.saturating_mul(in_front(found)).min(LONGEST_PAUSE));
            // Relaxed: only the distance matters.
            found = self.word.load(Relaxed);
        }
        // Acquires: pairs with the release that serves `mine`.
        let _ = self.word.spin_until_eq(u32::head, mine, Budget::Forever);
    }
}

impl<P: Platform> RawLock<P> for TicketBackoff<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = u16;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, DEFAULT_PAUSE)
    }

    fn new() -> Self {
        Self { word: P::U32::new(u32::IDLE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> u16 {
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(u32::DRAW, Acquire);
        let mine = found.tail();
        if found.head() != mine {
            self.lock_slow(shared, mine, found);
        }
        mine
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<u16> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if found.outstanding() != 0 {
            return None;
        }
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word.compare_exchange(found, found.drawn(), Acquire, Relaxed).ok()?;
        Some(found.tail())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, mine: u16) {
        // Release: what the holder did happens before the acquisition that this grants.
        self.word.fetch_add(u32::serve_next(mine), Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() != 0
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() > 1
    }
}

impl<P: Platform> WordLock<P> for TicketBackoff<P> {
    #[inline(always)]
    fn token_of_holder(&self) -> u16 {
        // Relaxed: only the holder changes `head`.
        self.word.load(Relaxed).head()
    }
}
