//! Informed spinlock: a ticket lock that a CPU joins only if it can finish before it is descheduled.
//!
//! The host exports when the slice of each vCPU ends ([`Platform::time_to_preempt`]). A CPU that wants the
//! lock estimates how long it takes to get and to use it: the number of CPUs before it, plus itself, times
//! the length of a critical section, with a margin. If its slice ends sooner, it draws no ticket. It gives
//! its CPU away, and tries again in its next slice. So holders and waiters with a ticket are rarely
//! descheduled. After [`REFUSALS`] refusals it draws a ticket whatever its slice: progress does not rest
//! on estimates, and a section longer than a slice must run too.
//!
//! `word` and its states are those of [`ticket`]. `section_ns` is the estimate; only the holder writes it.
//! It jumps to a longer section, and falls by an eighth of the difference to a shorter one. A section in
//! which the slice ended says nothing and is not counted.
//!
//! **Properties.** Unfair: CPUs with a long slice left overtake refused CPUs, for a few slices at most.
//! CPUs that have drawn a ticket are served in order. A CPU that is descheduled before its slice ends, or
//! without notice, does the same harm as with a ticket lock; so does any descheduled CPU on a host that
//! exports nothing. Uncontended: two read-modify-writes, two looks at the clock and one at the slice. The
//! release is the last access to the lock.
//!
//! **Interrupts** stay off from before the draw: see [`RawLock::lock_irqsave`]. A CPU that gives itself
//! away leaves interrupts as they are.
//!
//! **Source.** Teabe, Nitu, Tchana and Hagimont, "The lock holder and the lock waiter pre-emption
//! problems: nip them in the bud using informed spinlocks (I-Spinlock)", EuroSys 2017. The principle is
//! theirs; estimate, margin and number of refusals are our reconstruction.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::ticket::{self, TicketWord};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// How often an acquisition gives its CPU away before it draws a ticket in any case: once at the end of a
/// slice, and once more if the next slice was short.
pub const REFUSALS: u32 = 2;

/// Properties of [`ISpinlock`].
pub const INFO: LockInfo = LockInfo {
    name: "i-spinlock",
    brief: "Ticket lock that a CPU joins only if its time slice lasts long enough.",
    source: "Teabe et al., EuroSys 2017 (reconstruction)",
    fair: false,
    // As far as slices end when the host says.
    lhp: Meanwhile::AvoidIfTold,
    lwp: Meanwhile::AvoidIfTold,
    size: 8,
    ..ticket::INFO
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct ISpinlock<P: Platform> {
    word: P::U32,
    section_ns: P::U32,
}

/// Proof of an acquisition.
#[derive(Debug)]
pub struct Token {
    ticket: u16,
    since: u64,
    /// When the slice ends, as far as was known before the draw.
    slice_end: u64,
}

impl<P: Platform> ISpinlock<P> {
    /// Whether this CPU will run for long enough; if so, returns when its slice ends. `now` is the time.
    #[inline]
    fn is_capable(&self, now: u64) -> Option<u64> {
        let Some(left) = P::time_to_preempt() else { return Some(u64::MAX) };
        // Relaxed, both: an estimate from values that are about to change.
        let section = u64::from(self.section_ns.load(Relaxed));
        let sections = u64::from(self.word.load(Relaxed).outstanding()) + 1;
        // One and a half times: sections vary, and so does the time before and after them.
        let need = section.saturating_mul(sections).saturating_mul(3) / 2;
        (left >= need).then(|| now.saturating_add(left))
    }

    /// Waits for a slice that is long enough; returns its end.
    #[cold]
    fn wait_for_slice(&self) -> u64 {
        let mut refusals = 0;
        loop {
            P::yield_now();
            refusals += 1;
            match self.is_capable(P::now()) {
                Some(slice_end) => return slice_end,
                // Draws all the same. The section may well outlast the slice: learn nothing from it.
                None if refusals >= REFUSALS => return 0,
                None => {}
            }
        }
    }

    /// As the holder, updates the estimate of the section's length.
    fn learn(&self, token: &Token) {
        let now = P::now();
        if now > token.slice_end {
            return;
        }
        let took = u32::try_from(now.saturating_sub(token.since)).unwrap_or(u32::MAX);
        // Relaxed, both: only the holder writes it.
        let known = self.section_ns.load(Relaxed);
        let new = if took >= known { took } else { known - (known - took).div_ceil(8) };
        if new != known {
            self.section_ns.store(new, Relaxed);
        }
    }
}

impl<P: Platform> RawLock<P> for ISpinlock<P> {
    const INFO: LockInfo = INFO;
    type Shared = ();
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { word: P::U32::new(u32::IDLE), section_ns: P::U32::new(0) }
    }

    #[inline(always)]
    fn lock(&self, (): &()) -> Token {
        let mut since = P::now();
        let slice_end = self.is_capable(since).unwrap_or_else(|| self.wait_for_slice());
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(u32::DRAW, Acquire);
        let ticket = found.tail();
        if found.head() != ticket {
            // Acquires: pairs with the release that serves the ticket.
            let _ = self.word.spin_until_eq(u32::head, ticket, Budget::Forever);
            since = P::now();
        }
        Token { ticket, since, slice_end }
    }

    #[inline]
    fn try_lock(&self, (): &()) -> Option<Token> {
        let since = P::now();
        let slice_end = self.is_capable(since)?;
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if found.outstanding() != 0 {
            return None;
        }
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word.compare_exchange(found, found.drawn(), Acquire, Relaxed).ok()?;
        Some(Token { ticket: found.tail(), since, slice_end })
    }

    #[inline(always)]
    fn unlock(&self, (): &(), token: Token) {
        // Before the release: after it the lock is not ours to write.
        right!(self.learn(&token), P, I1InformedLearnsAfterRelease, ());
        // Release: what the holder did happens before the acquisition that this grants.
        self.word.fetch_add(u32::serve_next(token.ticket), Release);
        right!((), P, I1InformedLearnsAfterRelease, self.learn(&token));
    }

    fn is_locked(&self, (): &()) -> bool {
        self.word.load(Relaxed).outstanding() != 0
    }

    fn is_contended(&self, (): &()) -> bool {
        self.word.load(Relaxed).outstanding() > 1
    }
}
