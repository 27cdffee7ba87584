//! The paravirtual ticket lock of 2012, whose flag is in `tail`.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{
    DRAW, INC, MAX_CPUS, Shared, Token, head, idle, outstanding, same, serve_next, tail, ticket,
};
use crate::{AtomicCell, Budget, Bug, CapacityError, LockInfo, Platform, RawLock, Tuning};

/// In `tail`: somebody may sleep.
const FLAG: u32 = 1 << 16;
/// `head` alone.
const HEAD: u32 = u16::MAX as u32;

/// Properties of [`PvTicket2012`].
pub const INFO: LockInfo = LockInfo {
    name: "pv-ticket-2012",
    brief: "The first form of pv-ticket, whose release looks at the lock it has freed.",
    source: "Fitzhardinge and Raghavendra 2012; Linux 3.12 (arch/x86/include/asm/spinlock.h)",
    fair: true,
    local_spin: false,
    lhp_safe: true,
    lwp_safe: true,
    abortable: false,
    blocks: true,
    max_cpus: MAX_CPUS,
    size: 4,
};

/// The paravirtual ticket lock with its flag in `tail`. See the [module](super) on sleeping.
///
/// The states are those of [`PvTicket`](super::PvTicket). Here the releaser clears the flag, if it
/// leaves a free lock behind.
///
/// **Properties.** Those of [`PvTicket`](super::PvTicket), but for one: `unlock` reads the lock, and
/// may even write it, after it has released it. Another CPU may take, release and free the lock's
/// memory in between, and an exchange that happens to match then flips a bit of something else. This
/// is faithful to the original, where it was found in 2015 and ended this form: keep such a lock alive
/// until all unlocks have returned.
///
/// The original needs a full fence between its addition to `head` and its look at the flag, for the
/// two are in different halves. Here both are accesses to one word, which are in order.
#[derive(Debug)]
#[repr(transparent)]
pub struct PvTicket2012<P: Platform> {
    word: P::U32,
}

impl<P: Platform> PvTicket2012<P> {
    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, mine: u16) {
        let is_served = |word: u32| same(head(word), mine);
        let budget = if P::paravirtual(shared.pv) {
            Budget::Iterations(shared.spin_budget)
        } else {
            Budget::Forever
        };
        // Acquires: pairs with the release that serves `mine`.
        while self.word.spin_until(is_served, budget).is_err() {
            // Release: who sees the flag sees the record. Acquire: see "No wake-up is lost".
            shared.sleep(self, mine, || head(self.word.fetch_or(FLAG, AcqRel)));
        }
    }

    /// After the release, with the flag set. `before` is the word of a moment before the release.
    #[cold]
    fn unlock_slow(&self, shared: &Shared<P>, before: u32, next: u16) {
        let address = ptr::from_ref(self).addr();
        let released = before & !HEAD | u32::from(next);
        let cleared = released & !FLAG;
        // Nobody queued: then nobody sleeps, and the flag can go, unless somebody comes in between.
        // Relaxed: the flag is all that changes, and it was set in vain.
        let idle = outstanding(released) == 0
            && self.word.compare_exchange(released, cleared, Relaxed, Relaxed).is_ok();
        if !idle {
            shared.kick(address, next);
        }
    }
}

impl<P: Platform> RawLock<P> for PvTicket2012<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(&INFO, cpus, tuning)
    }

    fn new() -> Self {
        Self { word: P::U32::new(idle(0)) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(DRAW, Acquire);
        let mine = ticket(tail(found));
        if head(found) != mine {
            self.lock_slow(shared, mine);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<Token> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if outstanding(found) != 0 {
            return None;
        }
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word.compare_exchange(found, found.wrapping_add(DRAW), Acquire, Relaxed).ok()?;
        Some(Token(ticket(tail(found))))
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(mine): Token) {
        if !P::paravirtual(shared.pv) {
            // Release: what the holder did happens before the acquisition that this grants.
            self.word.fetch_add(serve_next(mine), Release);
            return;
        }
        let before = self.word.load(Relaxed);
        // Release: as above. Acquire: who sees the flag sees the record.
        self.word.fetch_add(serve_next(mine), AcqRel);
        // The read after release that the type warns of. It comes second: looking before the release,
        // we could miss the flag of somebody who then still finds the old head. Acquire: as above.
        let flagged = if P::seeded(Bug::P1PvTicketFlagBeforeRelease) {
            before
        } else {
            self.word.load(Acquire)
        };
        if flagged & FLAG != 0 {
            self.unlock_slow(shared, before, mine.wrapping_add(INC));
        }
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        outstanding(self.word.load(Relaxed)) != 0
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        outstanding(self.word.load(Relaxed)) > INC
    }
}
