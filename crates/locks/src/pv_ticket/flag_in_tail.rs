//! The paravirtual ticket lock of 2012, whose flag is in `tail`.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{FlaggedWord, Half, Shared, Token};
use crate::bug::right;
use crate::{AtomicCell, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning, WordLock};

/// The lock of 16 bits, for up to 127 CPUs.
pub type PvTicket2012Small<P> = PvTicket2012Lock<P, <P as Platform>::U16>;
/// The lock of 32 bits, for up to 32767 CPUs.
pub type PvTicket2012<P> = PvTicket2012Lock<P, <P as Platform>::U32>;

/// Properties of [`PvTicket2012`].
pub const INFO: LockInfo = LockInfo {
    name: "pv-ticket-2012",
    brief: "The first form of pv-ticket, whose release looks at the lock it has freed.",
    source: "Fitzhardinge and Raghavendra 2012; Linux 3.12 (arch/x86/include/asm/spinlock.h)",
    fair: true,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: false,
    blocks: true,
    max_cpus: u32::MAX_CPUS,
    size: 4,
};

/// Properties of [`PvTicket2012Small`].
pub const SMALL_INFO: LockInfo = LockInfo {
    name: "pv-ticket-2012-small",
    brief: "pv-ticket-2012 with tickets of 7 bits, for fewer than 128 CPUs.",
    max_cpus: u16::MAX_CPUS,
    size: 2,
    ..INFO
};

/// The paravirtual ticket lock with its flag in `tail`, over a cell `C`. Use it as [`PvTicket2012`] or
/// [`PvTicket2012Small`]; see the [module](super) on sleeping.
///
/// The states are those of [`PvTicket`](super::PvTicket). Here the releaser clears the flag if it
/// leaves a free lock behind.
///
/// **Properties.** Those of [`PvTicket`](super::PvTicket), with one exception: `unlock` reads the
/// lock, and may even write it, after it has released it. In between, another CPU may take and release
/// the lock and free its memory. An exchange that happens to match then flips a bit of something else.
/// This is faithful to the original, where it was found in 2015 and ended this form. Keep such a lock
/// alive until all unlocks have returned.
///
/// The original needs a full fence between its addition to `head` and its look at the flag, because
/// the two are in different halves. Here both access one word, and such accesses are in order.
#[derive(Debug)]
#[repr(transparent)]
pub struct PvTicket2012Lock<P: Platform, C: AtomicCell<Value: FlaggedWord>> {
    word: C,
    platform: PhantomData<P>,
}

impl<P: Platform, C: AtomicCell<Value: FlaggedWord>> PvTicket2012Lock<P, C> {
    /// Makes an unlocked lock where `first`, an even number, is the next ticket, so that a checker can
    /// begin just before the tickets wrap.
    ///
    /// # Panics
    /// If `first` is odd.
    pub fn with_first_ticket(first: Half<C>) -> Self {
        Self { word: C::new(C::Value::idle(first)), platform: PhantomData }
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, mine: Half<C>) {
        while shared.spin(&self.word, mine).is_err() {
            // Release: a CPU that sees the flag sees the record. Acquire: see "No wake-up is lost".
            let raise_flag = || self.word.fetch_or(C::Value::TAIL_FLAG, AcqRel).serves(mine);
            shared.sleep(self, mine.into(), raise_flag);
        }
    }

    /// Runs after a release that found the flag set. `before` is the word of a moment before the
    /// release.
    #[cold]
    fn unlock_slow(&self, shared: &Shared<P>, before: C::Value, next: Half<C>) {
        let address = ptr::from_ref(self).addr();
        let released = before.with_head(next);
        let cleared = released.without_tail_flag();
        // No CPU is queued: then none sleeps, and the flag can go, unless a CPU comes in between.
        // Relaxed: only the flag changes, and it was set in vain.
        let idle = released.outstanding() == 0
            && self.word.compare_exchange(released, cleared, Relaxed, Relaxed).is_ok();
        if !idle {
            shared.kick(address, next.into());
        }
    }
}

impl<P: Platform, C: AtomicCell<Value: FlaggedWord>> RawLock<P> for PvTicket2012Lock<P, C> {
    const INFO: LockInfo = C::Value::INFO_2012;
    type Shared = Shared<P>;
    type Token = Token<Half<C>>;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(&Self::INFO, cpus, tuning)
    }

    fn new() -> Self {
        // Ticket 0.
        Self::with_first_ticket(Half::<C>::default())
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Self::Token {
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(C::Value::DRAW, Acquire);
        let mine = C::Value::ticket(found.tail());
        if found.head() != mine {
            self.lock_slow(shared, mine);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<Self::Token> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if found.outstanding() != 0 {
            return None;
        }
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word.compare_exchange(found, found.drawn(), Acquire, Relaxed).ok()?;
        Some(Token(C::Value::ticket(found.tail())))
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(mine): Self::Token) {
        if !P::paravirtual(shared.pv) {
            // Release: what the holder did happens before the acquisition that this grants.
            self.word.fetch_add(C::Value::serve_next(mine), Release);
            return;
        }
        let before = self.word.load(Relaxed);
        // Release: as above. Acquire: a CPU that sees the flag sees the record.
        self.word.fetch_add(C::Value::serve_next(mine), AcqRel);
        // The read after release that the type warns about. It comes second: if we looked before the
        // release, we could miss the flag of a CPU that then still finds the old head. Acquire: as
        // above.
        let flagged = right!(self.word.load(Acquire), P, P1PvTicketFlagBeforeRelease, before);
        if flagged.has_tail_flag() {
            self.unlock_slow(shared, before, C::Value::after(mine));
        }
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() != 0
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() > 1
    }
}

impl<P: Platform, C: AtomicCell<Value: FlaggedWord>> WordLock<P> for PvTicket2012Lock<P, C> {
    #[inline(always)]
    fn token_of_holder(&self) -> Self::Token {
        // Relaxed: only the holder changes `head`.
        Token(self.word.load(Relaxed).head())
    }
}
