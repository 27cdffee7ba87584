//! Ticket lock: draw a number, wait until it is served. Strictly first come, first served.
//!
//! One word, two halves: `head` (low), the ticket being served, and `tail` (high), the next ticket
//! to draw. All arithmetic on a half wraps.
//!
//! | `tail - head` | State |
//! |---|---|
//! | 0 | free, the idle state, whatever the two values are |
//! | 1 | held by the owner of ticket `head`, no waiters |
//! | n | held by, or granted to, the owner of ticket `head`; n - 1 wait behind it |
//!
//! Any CPU adds to `tail`; only the holder adds to `head`. With 2^bits CPUs the difference could
//! wrap to 0 and a held lock would look free, hence the capacity of 2^bits - 1.
//!
//! **One size.** Rust gives no meaning to racing accesses of different sizes to one address, so
//! every access is to the whole word. Adding 1 to `head` when it is at its maximum would then carry
//! into `tail`; there the holder instead adds the [delta](TicketWord::serve_next) that takes `head`
//! to 0. The carry out of `tail` falls off the word. `try_lock` compares the whole word too. If it
//! compared only `tail` after having seen `head == tail`, it would succeed when 2^bits acquisitions
//! came between, with the lock held (a flaw that one architecture's port once had).
//!
//! **Order.** All writes of the word are read-modify-writes. So a waiter that sees its ticket in
//! `head` with acquire synchronises with the release that put it there, even when other CPUs drew
//! tickets in between: these draws continue the release sequence.
//!
//! **Properties.** Fair: no CPU overtakes. As bad as a byte when the holder is descheduled, and far
//! worse when the next waiter is (lock-waiter preemption): the lock is free, and no other CPU may
//! take it. All waiters spin on the one word, so each release costs a miss per waiter. The release
//! is the last access to the lock. The C original releases by a plain narrow add; here it is a
//! locked one.
//!
//! **Interrupts.** A context with a ticket must not take an interrupt whose handler wants the same
//! lock: the handler would queue behind its own CPU. [`RawLock::lock_irqsave`] switches interrupts
//! off before drawing.
//!
//! **Source.** Mellor-Crummey and Scott 1991; Linux from 2.6.25 (Nick Piggin), in the two sizes of
//! `asm-x86/spinlock.h`: fewer than 256 CPUs, and more.

use core::fmt::Debug;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::{
    AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning, WordLock,
};

/// The lock of 16 bits, for up to 255 CPUs.
pub type TicketSmall<P> = TicketLock<P, <P as Platform>::U16>;
/// The lock of 32 bits, for up to 65535 CPUs.
pub type Ticket<P> = TicketLock<P, <P as Platform>::U32>;

/// Properties of [`Ticket`].
pub const INFO: LockInfo = LockInfo {
    name: "ticket",
    brief: "Ticket lock, 16-bit tickets: strictly first come, first served.",
    source: "Mellor-Crummey and Scott 1991; Linux 2.6.25 (asm-x86/spinlock.h)",
    fair: true,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: u16::MAX as u32,
    size: 4,
};

/// Properties of [`TicketSmall`].
pub const SMALL_INFO: LockInfo = LockInfo {
    name: "ticket-small",
    brief: "Ticket lock, 8-bit tickets: strictly first come, first served.",
    max_cpus: u8::MAX as u32,
    size: 2,
    ..INFO
};

/// A word that holds `head` and `tail`, and the lock that it makes. It is public so that a checker
/// can run the lock with tickets of two bits.
pub trait TicketWord: Copy + Eq + Debug {
    /// A ticket; travels from the acquisition to the release.
    type Ticket: Copy + Eq + Debug + Into<u64> + 'static;
    /// Properties of the lock with this word.
    const INFO: LockInfo;
    /// The word in which ticket 0 is the next to be served and the next to be drawn.
    const IDLE: Self;
    /// What to add to draw a ticket: 1 in `tail`, whose carry falls off the word.
    const DRAW: Self;

    /// The ticket being served.
    fn head(self) -> Self::Ticket;
    /// The next ticket to draw.
    fn tail(self) -> Self::Ticket;
    /// Tickets drawn and not yet served to the end: holder and waiters.
    fn outstanding(self) -> u32;
    /// This word with one more ticket drawn.
    fn drawn(self) -> Self;
    /// What to add to serve the ticket after `head`: 1, or, where that would carry into `tail`, the
    /// difference that takes `head` to 0 and leaves `tail` alone.
    fn serve_next(head: Self::Ticket) -> Self;
}

macro_rules! ticket_word {
    ($word:ty, $ticket:ty, $info:expr) => {
        impl TicketWord for $word {
            type Ticket = $ticket;
            const INFO: LockInfo = $info;
            const IDLE: Self = 0;
            const DRAW: Self = 1 << <$ticket>::BITS;

            #[inline]
            fn head(self) -> $ticket {
                // The low half: truncation is intended.
                self as $ticket
            }

            #[inline]
            fn tail(self) -> $ticket {
                (self >> <$ticket>::BITS) as $ticket
            }

            #[inline]
            fn outstanding(self) -> u32 {
                self.tail().wrapping_sub(self.head()).into()
            }

            #[inline]
            fn drawn(self) -> Self {
                self.wrapping_add(Self::DRAW)
            }

            #[inline]
            fn serve_next(head: $ticket) -> Self {
                // The new head less the old one, modulo the word: 1, or -(2^bits - 1) at the wrap.
                Self::from(head.wrapping_add(1)).wrapping_sub(Self::from(head))
            }
        }
    };
}

ticket_word!(u16, u8, SMALL_INFO);
ticket_word!(u32, u16, INFO);

/// The lock over a cell `C`. Use it as [`Ticket`] or [`TicketSmall`]; see the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct TicketLock<P: Platform, C: AtomicCell<Value: TicketWord>> {
    word: C,
    platform: PhantomData<P>,
}

impl<P: Platform, C: AtomicCell<Value: TicketWord>> RawLock<P> for TicketLock<P, C> {
    const INFO: LockInfo = C::Value::INFO;
    type Shared = ();
    type Token = <C::Value as TicketWord>::Ticket;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        Self::INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { word: C::new(C::Value::IDLE), platform: PhantomData }
    }

    #[inline(always)]
    fn lock(&self, (): &()) -> Self::Token {
        // Acquire: if the ticket is served at once, this is the load that sees the last release.
        let found = self.word.fetch_add(C::Value::DRAW, Acquire);
        let mine = found.tail();
        if found.head() != mine {
            // `spin_until_eq` acquires: pairs with the release that serves `mine`.
            let _ = self.word.spin_until_eq(C::Value::head, mine, Budget::Forever);
        }
        mine
    }

    #[inline]
    fn try_lock(&self, (): &()) -> Option<Self::Token> {
        // Relaxed: only a guess, which the exchange checks in full.
        let found = self.word.load(Relaxed);
        if found.outstanding() != 0 {
            return None;
        }
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.word
            .compare_exchange(found, found.drawn(), Acquire, Relaxed)
            .ok()
            .map(|_| found.tail())
    }

    #[inline(always)]
    fn unlock(&self, (): &(), ticket: Self::Token) {
        // The holder's ticket is `head`, which no other CPU changes: no need to read it again.
        // Release: what the holder did happens before the acquisition that this grants.
        self.word.fetch_add(C::Value::serve_next(ticket), Release);
    }

    fn is_locked(&self, _shared: &Self::Shared) -> bool {
        self.word.load(Relaxed).outstanding() != 0
    }

    fn is_contended(&self, _shared: &Self::Shared) -> bool {
        self.word.load(Relaxed).outstanding() > 1
    }
}

impl<P: Platform, C: AtomicCell<Value: TicketWord>> WordLock<P> for TicketLock<P, C> {
    #[inline(always)]
    fn token_of_holder(&self) -> Self::Token {
        // Relaxed: only the holder changes `head`.
        self.word.load(Relaxed).head()
    }
}
