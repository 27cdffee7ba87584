//! The paravirtual ticket lock of 2015, whose flag is in `head`.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{FlaggedWord, Shared, Token};
use crate::bug::right;
use crate::{AtomicCell, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning, WordLock};

/// In `head`: there may be sleepers.
const FLAG: u32 = 1;

/// Properties of [`PvTicket`].
pub const INFO: LockInfo = LockInfo {
    name: "pv-ticket",
    brief: "Ticket lock whose waiters spin, then sleep; its release looks at nothing it freed.",
    source: "Linux 4.0 (arch/x86/include/asm/spinlock.h, arch/x86/xen/spinlock.c)",
    fair: true,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: false,
    blocks: true,
    max_cpus: u32::MAX_CPUS,
    size: 4,
};

/// The paravirtual ticket lock with its flag in `head`. See the [module](super) on sleeping.
///
/// | `tail - head` | `FLAG` | State |
/// |---|---|---|
/// | 0 | any | free, the idle state |
/// | 1 | any | held, no waiters |
/// | n | 0 | held, or granted; n - 1 wait, none of them sleeps |
/// | n | 1 | held, or granted; n - 1 wait, and any of them may sleep |
///
/// Tickets are the upper 15 bits of each half and move by 2. A needless flag costs a scan of
/// `waiting`. A CPU that gets the lock and finds the flag clears it if no other CPU is queued. No
/// sleeper loses its flag that way, because it drew a ticket before it set the flag.
///
/// **Properties.** Fair: no CPU overtakes. A descheduled holder or waiter costs the others their spin
/// budget; then they sleep, and the releaser tells the host which CPU to run. Waiters that still spin
/// have one miss each per release. Uncontended: two read-modify-writes. The addition that releases
/// the lock also returns the flag, and is the last access to the lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct PvTicket<P: Platform> {
    word: P::U32,
}

impl<P: Platform> PvTicket<P> {
    /// Makes an unlocked lock where `first`, an even number, is the next ticket, so that a checker
    /// can begin just before the tickets wrap.
    ///
    /// # Panics
    /// If `first` is odd.
    pub fn with_first_ticket(first: u16) -> Self {
        Self { word: P::U32::new(u32::idle(first)) }
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, mine: u16) {
        let found = loop {
            if let Ok(found) = shared.spin(&self.word, mine) {
                break found;
            }
            shared.sleep(self, mine.into(), || self.raise_flag().serves(mine));
        };
        if found & FLAG != 0 {
            self.clear_flag_if_last(mine);
        }
    }

    /// Sets the flag; returns the word of the moment before.
    fn raise_flag(&self) -> u32 {
        // Release: a CPU that sees the flag sees the record. Acquire: see "No wake-up is lost".
        let raise = || self.word.fetch_or(FLAG, AcqRel);
        right!(raise(), P, P3PvTicketHeadBeforeFlag, {
            let before = self.word.load(Relaxed);
            raise();
            before
        })
    }

    fn clear_flag_if_last(&self, mine: u16) {
        let last = u32::from(u32::after(mine)) << 16 | u32::from(mine);
        // The whole word, `tail` included: a CPU that has just queued may sleep by then. Relaxed: the
        // lock is ours already, and failing does not matter.
        let clear = || _ = self.word.compare_exchange(last | FLAG, last, Relaxed, Relaxed);
        right!(clear(), P, P5PvTicketFlagClearedBlindly, {
            self.word.fetch_and(!FLAG, Relaxed);
        });
    }
}

impl<P: Platform> RawLock<P> for PvTicket<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token<u16>;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(&INFO, cpus, tuning)
    }

    fn new() -> Self {
        Self::with_first_ticket(0)
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token<u16> {
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(u32::DRAW, Acquire);
        let mine = found.tail();
        // Flag included: with a flag left over, the slow path matches at once and clears it.
        if found.head() != mine {
            self.lock_slow(shared, mine);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<Token<u16>> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if found.outstanding() != 0 {
            return None;
        }
        let drawn = found.drawn() & !FLAG;
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word.compare_exchange(found, drawn, Acquire, Relaxed).ok()?;
        Some(Token(found.tail()))
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(mine): Token<u16>) {
        let address = ptr::from_ref(self).addr();
        if !P::paravirtual(shared.pv) {
            // Release: what the holder did happens before the acquisition that this grants.
            self.word.fetch_add(u32::serve_next(mine), Release);
            return;
        }
        // Release: as above. Acquire: a CPU that sees the flag sees the record.
        let found = self.word.fetch_add(u32::serve_next(mine), AcqRel);
        if found & FLAG != 0 {
            let next = right!(u32::after(mine), P, P4PvTicketKicksOldTicket, mine);
            shared.kick(address, next.into());
        }
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() != 0
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed).outstanding() > 1
    }
}

impl<P: Platform> WordLock<P> for PvTicket<P> {
    #[inline(always)]
    fn token_of_holder(&self) -> Token<u16> {
        // Relaxed: only the holder changes the ticket in `head`. Waiters may raise its flag.
        Token(u32::ticket(self.word.load(Relaxed).head()))
    }
}

const _: () = assert!(FLAG == 1, "a flag in `head` is the bit below the ticket");
