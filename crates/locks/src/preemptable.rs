//! Preemptable ticket lock: tickets are a preference; a waiter whose turn is late competes.
//!
//! One word, two halves: `tail` (high), the next ticket to draw, and `head` (low), the ticket being
//! served and, in bit 0, `HELD`. Tickets are the upper 15 bits of a half and move by 2.
//!
//! | `tail - head` | `HELD` | State |
//! |---|---|---|
//! | 0 | 0 | free, the idle state |
//! | n | 1 | held; n - 1 wait |
//! | n | 0 | free; the owner of ticket `head`, or a waiter that has lost patience, is about to take it |
//!
//! `HELD` alone is the lock. A waiter watches `head` until its ticket is served, for at most a budget
//! that grows with its distance. After that it assumes that the waiters before it are descheduled, and
//! takes the lock when `HELD` is clear. Each release serves the next ticket, whichever CPU held the lock.
//! So `head` never passes `tail`, but may pass a waiter. That waiter need not wait for its turn any more:
//! the turn has come and gone.
//!
//! **One size.** A release adds 1. With `HELD` set, that carries into the ticket: it clears `HELD` and
//! serves the next ticket. At the highest ticket the carry would go on into `tail`; there the holder
//! instead adds the difference that takes `head` to 0. Only the holder changes `head`, so the value that
//! it saw is still there.
//!
//! **Properties.** In the order of arrival unless a budget runs out; then unfair, and a waiter may starve
//! in theory. A descheduled waiter costs the others their budgets. While the holder is descheduled, all
//! waiters burn. All waiters watch the one word, so each release costs a miss per waiter. Uncontended:
//! three read-modify-writes. The release is the last access to the lock.
//!
//! **Interrupts.** A waiter gets the lock out of turn in the end. But a handler that wants the same lock
//! would first wait for the budget of its own CPU. So [`RawLock::lock_irqsave`] switches interrupts off.
//!
//! **Source.** Ouyang and Lange, "Preemptable ticket spinlocks: improving consolidated performance in the
//! cloud", VEE 2013, in the compact form of their third version, 2015. Corrections: the sign of the
//! distance tells a ticket that was passed from one that is yet to come, and survives the wrap of
//! tickets; a waiter that was passed competes at once; the idle lock is not reported as held.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const HELD: u32 = 1;
/// Distance from one ticket to the next.
const INC: u16 = 2;
/// What to add to draw a ticket. The carry falls off the word.
const DRAW: u32 = (INC as u32) << 16;

/// Wait-loop iterations for each waiter in front: the published value, 2^8 per unit of a half.
pub const DEFAULT_SPIN_BUDGET: u32 = (INC as u32) << 8;

/// Properties of [`PreemptableTicket`].
pub const INFO: LockInfo = LockInfo {
    name: "preemptable-ticket",
    brief: "Ticket lock whose waiters compete out of order once they have lost patience.",
    source: "Ouyang and Lange, VEE 2013, version 3",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: false,
    blocks: false,
    // Distances must have a sign: fewer than half of the tickets.
    max_cpus: (1 << 14) - 1,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct PreemptableTicket<P: Platform> {
    word: P::U32,
}

/// What all locks of a system share: the wait-loop iterations for each waiter in front.
#[derive(Debug)]
pub struct Shared(u32);

/// Proof of an acquisition.
#[derive(Debug)]
pub struct Token {
    mine: u16,
    /// `head` while the lock is held.
    head: u16,
}

impl Token {
    /// Whether the lock was taken in the order of tickets.
    pub fn in_turn(&self) -> bool {
        self.mine == ticket(self.head)
    }
}

/// The low half, with `HELD`.
fn head(word: u32) -> u16 {
    // Truncation is intended.
    word as u16
}

fn tail(word: u32) -> u16 {
    (word >> 16) as u16
}

/// The ticket in a half.
fn ticket(half: u16) -> u16 {
    half & !1
}

fn outstanding(word: u32) -> u16 {
    tail(word).wrapping_sub(ticket(head(word)))
}

impl<P: Platform> PreemptableTicket<P> {
    /// Makes an unlocked lock where `first`, an even number, is the next ticket, so that a checker can
    /// begin just before the tickets wrap.
    ///
    /// # Panics
    /// If `first` is odd.
    pub fn with_first_ticket(first: u16) -> Self {
        assert!(ticket(first) == first, "tickets are even");
        Self { word: P::U32::new(u32::from(first) << 16 | u32::from(first)) }
    }

    /// Takes the lock if it is free. Sets `HELD` in any case; a lock that is not free has it already.
    #[inline]
    fn acquire_at_once(&self, mine: u16) -> Option<Token> {
        // Acquire: pairs with the release in `unlock`.
        let found = self.word.fetch_or(HELD, Acquire);
        (found & HELD == 0).then_some(Token { mine, head: head(found | HELD) })
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared, mine: u16, found: u32) -> Token {
        let has_come = |word: u32| {
            let served = ticket(head(word));
            // The sign tells the past from the future, even where tickets wrap.
            let distance = mine.wrapping_sub(served).cast_signed();
            right!(distance <= 0, P, K1PreemptableComparesWrappedTickets, mine <= served)
        };
        if !has_come(found) {
            let in_front = mine.wrapping_sub(ticket(head(found))) / INC;
            let budget = shared.0.saturating_mul(in_front.into());
            let _ = self.word.spin_until(has_come, Budget::Iterations(budget));
        }
        loop {
            let _ = self.word.spin_until(|word| word & HELD == 0, Budget::Forever);
            if let Some(token) = self.acquire_at_once(mine) {
                return token;
            }
        }
    }
}

impl<P: Platform> RawLock<P> for PreemptableTicket<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared(tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET)))
    }

    fn new() -> Self {
        Self::with_first_ticket(0)
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared) -> Token {
        // Relaxed: a ticket is only a number; what came before is acquired with `HELD`.
        let found = self.word.fetch_add(DRAW, Relaxed);
        let mine = tail(found);
        // The comparison includes `HELD`: it is set if another CPU has taken the lock out of turn.
        if head(found) == mine
            && let Some(token) = self.acquire_at_once(mine)
        {
            return token;
        }
        self.lock_slow(shared, mine, found)
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared) -> Option<Token> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if outstanding(found) != 0 || found & HELD != 0 {
            return None;
        }
        let drawn = found.wrapping_add(DRAW) | HELD;
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(found, drawn, Acquire, Relaxed).ok()?;
        Some(Token { mine: tail(found), head: head(drawn) })
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared, token: Token) {
        // See "One size". Adding a whole ticket instead would leave `HELD` set.
        let step = right!(1, P, K2PreemptableServesWithoutReleasing, INC);
        let next = token.head.wrapping_add(step);
        // Release: what the holder did happens before the next acquisition.
        self.word.fetch_add(u32::from(next).wrapping_sub(u32::from(token.head)), Release);
    }

    fn is_locked(&self, _shared: &Shared) -> bool {
        let word = self.word.load(Relaxed);
        word & HELD != 0 || outstanding(word) != 0
    }

    fn is_contended(&self, _shared: &Shared) -> bool {
        outstanding(self.word.load(Relaxed)) > INC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_whether_the_turn_was_kept() {
        assert!(Token { mine: 4, head: 5 }.in_turn());
        assert!(!Token { mine: 4, head: 3 }.in_turn());
    }
}
