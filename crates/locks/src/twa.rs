//! Ticket lock with a waiting array: waiters far from their turn wait elsewhere. Strictly first come,
//! first served.
//!
//! | `ticket - grant` | State |
//! |---|---|
//! | 0 | free, the idle state, whatever the two values are |
//! | 1 | held by the owner of ticket `grant`, no waiters |
//! | n | held by, or granted to, the owner of ticket `grant`; n - 1 wait behind it |
//!
//! Only the next in line, at distance 1, spins on `grant`. Each of the others spins on a slot, chosen
//! by lock and ticket, of an array of counters that all locks share. A release serves the next ticket,
//! then counts up the slot of the ticket after it, whose owner must now watch `grant`. Tickets that
//! collide in a slot wake each other for nothing: they look again.
//!
//! **No wake-up is lost.** The waiter reads its slot *before* it reads `grant`; the releaser writes
//! `grant` before the slot, and both writes release. So the waiter either finds `grant` advanced, or
//! has read the slot before the count that is still to come.
//!
//! **Properties.** Fair: no CPU overtakes. As bad as a ticket lock when the holder or the next in line
//! is descheduled. The hand-over after a release costs about two misses, whatever the number of
//! waiters; the count does not delay it. Slots lie close together, so several waiters may share a
//! line; otherwise the array would be sixteen times as large. Uncontended: two read-modify-writes and
//! a store. After `grant` is written, `unlock` uses only the address of the lock.
//!
//! **Interrupts** stay off from before the draw: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Dice and Kogan, "TWA: ticket locks augmented with a waiting array", Euro-Par 2019.
//! Deviation: the array is as large as the system needs, up to the published 4096.

use core::convert::identity;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// A waiter farther than this from its turn waits in the array. The published value.
const NEAR: u32 = 1;
/// Number of slots in a large system: the published value.
const MAX_SLOTS: usize = 4096;
/// Slots per CPU in a small system: few enough collisions with some locks contended at once.
const SLOTS_PER_CPU: usize = 64;
/// Spreads the slots of successive tickets over cache lines: the published value, a prime.
const TICKET_STRIDE: usize = 127;

/// Properties of [`Twa`].
pub const INFO: LockInfo = LockInfo {
    name: "twa",
    brief: "Ticket lock; all but the next in line wait in an array: first come, first served.",
    source: "Dice and Kogan, Euro-Par 2019",
    fair: true,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: u32::MAX,
    size: 8,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Twa<P: Platform> {
    /// The next ticket to draw.
    ticket: P::U32,
    /// The ticket being served. Only the holder writes it.
    grant: P::U32,
}

/// What all locks of a system share: the waiting array.
#[derive(Debug)]
pub struct Shared<P: Platform>(P::Slots<P::U32>);

/// Proof of an acquisition: its ticket.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> Shared<P> {
    /// A waiting array of `slots` counters. It is for a checker that wants few slots; locks in use
    /// want [`RawLock::shared`].
    ///
    /// # Panics
    /// If `slots` is not a power of two.
    pub fn with_slots(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "the slot is chosen by a mask");
        Self(P::slots(slots, |_| P::U32::new(0)))
    }

    /// The slot where the owner of `ticket` waits for `lock`.
    fn slot(&self, lock: &Twa<P>, ticket: u32) -> &P::U32 {
        // Locks are at least their size apart.
        let place = P::place(ptr::from_ref(lock).addr(), self.0.as_ptr().addr());
        let hash = (ticket as usize).wrapping_mul(TICKET_STRIDE) ^ (place / size_of::<Twa<P>>());
        &self.0[hash & (self.0.len() - 1)]
    }
}

impl<P: Platform> Twa<P> {
    /// A lock that begins with this ticket. It is for a checker that wants tickets to wrap.
    pub fn with_first_ticket(first: u32) -> Self {
        Self { ticket: P::U32::new(first), grant: P::U32::new(first) }
    }

    #[cold]
    fn wait(&self, shared: &Shared<P>, mine: u32) {
        let slot = shared.slot(self, mine);
        let is_near = |grant: u32| mine.wrapping_sub(grant) <= NEAR;
        loop {
            // Acquire, both: see "No wake-up is lost". If the slot were read second, it could already
            // be counted up, and would not be counted up again.
            let look = || is_near(self.grant.load(Acquire));
            let (seen, near) = right!((slot.load(Acquire), look()), P, W1TwaGrantBeforeSlot, {
                let near = look();
                (slot.load(Acquire), near)
            });
            if near {
                break;
            }
            let _ = slot.spin_until(|count| count != seen, Budget::Forever);
        }
        // Acquires: pairs with the release in `unlock`.
        let _ = self.grant.spin_until_eq(identity, mine, Budget::Forever);
    }
}

impl<P: Platform> RawLock<P> for Twa<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        let slots = cpus.saturating_mul(SLOTS_PER_CPU).clamp(1, MAX_SLOTS);
        Ok(Shared::with_slots(slots.next_power_of_two()))
    }

    fn new() -> Self {
        Self::with_first_ticket(0)
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        // Relaxed: a ticket is only a number; what came before is acquired with `grant`.
        let mine = self.ticket.fetch_add(1, Relaxed);
        // Acquire: pairs with the release in `unlock`.
        if self.grant.load(Acquire) != mine {
            self.wait(shared, mine);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<Token> {
        // Acquire: pairs with the release in `unlock`.
        let served = self.grant.load(Acquire);
        self.ticket.compare_exchange(served, served.wrapping_add(1), Relaxed, Relaxed).is_ok().then(
            || {
                // At once, unless all 2^32 tickets were drawn since the look: then this ticket is like
                // any other. See the wrong `try_lock` in the ticket lock.
                let _ = self.grant.spin_until_eq(identity, served, Budget::Forever);
                Token(served)
            },
        )
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(mine): Token) {
        let next = mine.wrapping_add(1);
        let slot = shared.slot(self, next.wrapping_add(NEAR));
        // Release: what the holder did happens before the next acquisition.
        self.grant.store(next, Release);
        // Release: a CPU that sees the count sees the grant.
        slot.fetch_add(1, Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.ticket.load(Relaxed) != self.grant.load(Relaxed)
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.ticket.load(Relaxed).wrapping_sub(self.grant.load(Relaxed)) > 1
    }
}
