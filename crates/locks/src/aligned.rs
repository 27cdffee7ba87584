//! A lock on a cache line of its own.
//!
//! Waiters that look at a lock keep pulling its line out of the holder's cache. If the line also
//! contains another lock, or data that the holder writes, each write waits for the line to come back.
//! Critical sections then get longer, and the queue with them. Alignment alone is not enough, because
//! neighbours may follow in the same line; so the wrapper fills its lines. A lock with little contention
//! does better with its data beside it.
//!
//! **Source.** Juergen Doelle, Linux 2.4.5 to 2.4.12, 2001, for the five hottest locks of a file server.

use crate::{
    CachePadded, CapacityError, LockByte, LockInfo, LockUntil, Platform, RawLock, Ticket, Tuning,
};
use crate::{lock_byte, ticket};

/// The properties of a lock that also exists on a cache line of its own.
pub trait AlignedInfo {
    /// Properties of [`Aligned`] of this lock.
    const ALIGNED_INFO: LockInfo;
}

/// `info` for the lock on cache lines of its own.
const fn aligned(info: LockInfo, name: &'static str, brief: &'static str) -> LockInfo {
    LockInfo {
        name,
        brief,
        source: "Doelle 2001, Linux 2.4",
        size: size_of::<CachePadded<u8>>(),
        ..info
    }
}

/// Properties of [`LockByteAligned`].
pub const LOCK_BYTE_INFO: LockInfo =
    aligned(lock_byte::INFO, "lock-byte-aligned", "lock-byte on a cache line of its own.");
/// Properties of [`TicketAligned`].
pub const TICKET_INFO: LockInfo =
    aligned(ticket::INFO, "ticket-aligned", "ticket on a cache line of its own.");

impl<P: Platform> AlignedInfo for LockByte<P> {
    const ALIGNED_INFO: LockInfo = LOCK_BYTE_INFO;
}

impl<P: Platform> AlignedInfo for Ticket<P> {
    const ALIGNED_INFO: LockInfo = TICKET_INFO;
}

/// `lock-byte` on a cache line of its own.
pub type LockByteAligned<P> = Aligned<LockByte<P>>;
/// `ticket` on a cache line of its own.
pub type TicketAligned<P> = Aligned<Ticket<P>>;

/// The lock `L` on one or more cache lines of its own. See the [module](self). It behaves like `L`.
#[derive(Debug)]
#[repr(transparent)]
pub struct Aligned<L>(CachePadded<L>);

impl<P: Platform, L: RawLock<P> + AlignedInfo> RawLock<P> for Aligned<L> {
    const INFO: LockInfo = L::ALIGNED_INFO;
    type Shared = L::Shared;
    type Token = L::Token;
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = match L::LOCK_UNTIL {
        Some(_) => Some(|it, shared, deadline_ns| L::LOCK_UNTIL?(&it.0, shared, deadline_ns)),
        None => None,
    };

    fn shared(cpus: usize, tuning: Tuning) -> Result<L::Shared, CapacityError> {
        L::shared(cpus, tuning)
    }

    fn new() -> Self {
        Self(CachePadded::new(L::new()))
    }

    #[inline(always)]
    fn lock(&self, shared: &L::Shared) -> L::Token {
        self.0.lock(shared)
    }

    #[inline]
    fn try_lock(&self, shared: &L::Shared) -> Option<L::Token> {
        self.0.try_lock(shared)
    }

    #[inline(always)]
    fn unlock(&self, shared: &L::Shared, token: L::Token) {
        self.0.unlock(shared, token);
    }

    #[inline(always)]
    fn lock_irqsave(&self, shared: &L::Shared) -> (L::Token, P::IrqState) {
        self.0.lock_irqsave(shared)
    }

    fn is_locked(&self, shared: &L::Shared) -> bool {
        self.0.is_locked(shared)
    }

    fn is_contended(&self, shared: &L::Shared) -> bool {
        self.0.is_contended(shared)
    }
}
