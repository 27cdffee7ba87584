//! Spinlock algorithms, each written once and generic over the [`Platform`] it runs on.
//!
//! | File | Lock |
//! |---|---|
//! | [`aligned`] | `lock-byte` and `ticket`, on cache lines of their own |
//! | [`clh`] | a queue; each waiter spins on the node before its own |
//! | [`cna`] | MCS, and the holder's NUMA node first |
//! | [`flexguard`] | a queue that spins until somebody who matters is descheduled |
//! | [`futex`] | a word; who spins too long sleeps on it |
//! | [`hemlock`] | a queue without nodes: one word per CPU for all its locks |
//! | [`ispinlock`] | ticket lock that only those join who can finish in their slice |
//! | [`lock_byte`] | a byte, and everybody tests and sets it |
//! | [`malthusian`] | MCS that puts surplus waiters to sleep |
//! | [`mcs`] | a queue; each waiter spins on its own node |
//! | [`mcs_tp`] | MCS that passes over waiters who do not run |
//! | [`mutexee`] | a word; a releaser looks for a moment whether somebody takes over |
//! | [`preemptable`] | ticket lock whose waiters lose patience |
//! | [`pv_qspinlock`] | qspinlock whose waiters sleep; newcomers may pass a sleeping queue; in three versions |
//! | [`pv_ticket`] | ticket lock whose waiters sleep; in two forms, the older in two sizes |
//! | [`qspinlock`] | a byte, a place for one waiter, then a queue; and its fallback |
//! | [`qspinlock_unfair`] | qspinlock whose waiters may take it out of turn |
//! | [`rotating`] | Overspin's mutex: those who run keep it busy, sleepers take turns |
//! | [`shfllock`] | a byte, and a queue that its waiters sort |
//! | [`ticket`] | draw a number, wait until it is served; two sizes |
//! | [`ticket_backoff`] | ticket lock whose waiters pause in proportion to their distance |
//! | [`ttas`] | a byte that waiters look at less and less often |
//! | [`twa`] | ticket lock; who is not next in line waits in an array |
//! | [`xen_pv`] | a byte; who spins too long sleeps until kicked |
//!
//! To add a lock: its file, and its line in [`registry`]. The checks (`overspin-check`) then run it; if
//! its models take long, its line in the table of bounds there says so.
//!
//! The crate has no unsafe code, no allocation and no dependency.
#![no_std]
#![forbid(unsafe_code)]

pub mod aligned;
mod bug;
pub mod clh;
pub mod cna;
mod core_cells;
mod deadline;
mod delay;
mod family;
pub mod flexguard;
pub mod futex;
pub mod hemlock;
pub mod ispinlock;
pub mod lock_byte;
mod lottery;
pub mod malthusian;
pub mod mcs;
pub mod mcs_tp;
pub mod mutexee;
mod nodes;
mod padded;
mod platform;
pub mod preemptable;
pub mod pv_qspinlock;
pub mod pv_ticket;
pub mod qspinlock;
pub mod qspinlock_unfair;
pub mod registry;
pub mod rotating;
pub mod shfllock;
pub mod ticket;
pub mod ticket_backoff;
pub mod ttas;
pub mod twa;
pub mod xen_pv;

pub use aligned::{Aligned, LockByteAligned, TicketAligned};
pub use bug::Bug;
pub use clh::Clh;
pub use cna::Cna;
pub use family::LockFamily;
pub use flexguard::FlexGuard;
pub use futex::Futex;
pub use hemlock::Hemlock;
pub use ispinlock::ISpinlock;
pub use lock_byte::LockByte;
pub use malthusian::Malthusian;
pub use mcs::Mcs;
pub use mcs_tp::McsTp;
pub use mutexee::Mutexee;
pub use padded::CachePadded;
pub use platform::{AtomicCell, Budget, CpuId, Platform};
pub use preemptable::PreemptableTicket;
pub use pv_qspinlock::{PvQspinlock, PvQspinlock42, PvQspinlock45};
pub use pv_ticket::{PvTicket, PvTicket2012, PvTicket2012Small};
pub use qspinlock::{Qspinlock, QspinlockTas};
pub use qspinlock_unfair::QspinlockUnfair;
pub use registry::{find, infos, infos_and_aliases, with_lock};
pub use rotating::Rotating;
pub use shfllock::ShflLock;
pub use ticket::{Ticket, TicketSmall};
pub use ticket_backoff::TicketBackoff;
pub use ttas::Ttas;
pub use twa::Twa;
pub use xen_pv::XenPv;

/// What the others do while a CPU that they wait for is descheduled. The worst that comes of it, however long
/// it lasts: with [`Tuning::DEFAULT`], where [`Platform::can_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// They burn their CPUs until it runs.
    Burn,
    /// They spin for a bounded time; then they sleep or [give their CPUs away](Platform::yield_now) until it runs.
    GiveWay,
    /// They spin for a bounded time; then those that run get the lock. Those that sleep may sleep until it runs.
    Pass,
    /// They burn their CPUs. But where the platform tells [when slices end](Platform::time_to_preempt) a CPU does
    /// not come to hold the lock, or to be the next, whose slice ends before that is over, as far as the lock can
    /// estimate it.
    AvoidIfTold,
    /// `GiveWay` where the platform tells [who is descheduled](Platform::preempted), else `Burn`.
    GiveWayIfTold,
    /// `Pass` where the platform tells [who is descheduled](Platform::preempted), else `Burn`.
    PassIfTold,
}

impl Meanwhile {
    /// As it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Burn => "burn",
            Self::GiveWay => "give way",
            Self::Pass => "pass",
            Self::AvoidIfTold => "avoid if told",
            Self::GiveWayIfTold => "give way if told",
            Self::PassIfTold => "pass if told",
        }
    }

    /// Whether nobody burns a CPU without bound, whatever the platform tells.
    pub const fn is_bounded(self) -> bool {
        matches!(self, Self::GiveWay | Self::Pass)
    }

    /// Whether the others get the lock, whatever the platform tells.
    pub const fn lets_pass(self) -> bool {
        matches!(self, Self::Pass)
    }
}

/// What a lock promises and costs, as data. Printed by `overspin list`.
///
/// All of it is for CPUs that have a queue node left, if the lock has any. One that is out of them competes for the
/// free lock: the module of such a lock says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Name on the command line and in scenarios, for example `ticket`.
    pub name: &'static str,
    /// One sentence: what it is.
    pub brief: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Who waits is served before all who come after that.
    pub fair: bool,
    /// A waiter that is not among the first two learns of its turn from a cache line that no other waiter of
    /// the lock spins on: what a release costs does not grow with the number of waiters.
    pub local_spin: bool,
    /// Lock-holder preemption: what waiters do while the holder is descheduled.
    pub lhp: Meanwhile,
    /// Lock-waiter preemption: what the others do while one is descheduled that waits, whichever it is. (In the
    /// few instructions of its arrival, before it waits, a queue may have to wait for it.)
    pub lwp: Meanwhile,
    /// A waiter can give up: the lock has [`RawLock::LOCK_UNTIL`].
    pub abortable: bool,
    /// Waiters may sleep and be kicked.
    pub blocks: bool,
    /// Most CPUs that may use one lock.
    pub max_cpus: u32,
    /// Bytes of one lock.
    pub size: usize,
}

impl LockInfo {
    /// Whether the lock serves so many CPUs.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_capacity(&self, cpus: usize) -> Result<(), CapacityError> {
        match u32::try_from(cpus) {
            Ok(asked) if asked <= self.max_cpus => Ok(()),
            _ => Err(CapacityError { cpus, max: self.max_cpus }),
        }
    }
}

/// Why a system of so many CPUs cannot use this lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    /// CPUs asked for.
    pub cpus: usize,
    /// Most CPUs that this lock serves.
    pub max: u32,
}

impl core::fmt::Display for CapacityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} CPUs are too many: this lock serves at most {}", self.cpus, self.max)
    }
}

impl core::error::Error for CapacityError {}

/// Knobs of a whole family of locks in one system; each lock reads those it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Wait-loop iterations before the slow path of a spin-then-block lock; `None` is its default.
    pub spin_budget: Option<u32>,
    /// Paravirtual locks behave as on bare hardware: nobody sleeps. The boot option of that name.
    pub nopvspin: bool,
    /// How often a waiter of a paravirtual ticket lock [gives its CPU up](Platform::yield_now) before it
    /// sleeps, in place of spinning. 0, as published, for a guest, where a yield is a call of the hypervisor;
    /// for threads a yield is cheap, and a sleep is not.
    pub yields: u32,
    /// Odds of a lock that draws lots at its releases: it favours the other choice once in so many, never with 0,
    /// always with 1; `None` is its default.
    pub lottery: Option<u32>,
}

impl Tuning {
    /// Each lock as published.
    pub const DEFAULT: Self = Self { spin_budget: None, nopvspin: false, yields: 0, lottery: None };
}

/// How to [give up](RawLock::LOCK_UNTIL) waiting for the lock `L`: called with the lock, its system, and the
/// deadline in nanoseconds.
pub type LockUntil<P, L> =
    fn(&L, &<L as RawLock<P>>::Shared, u64) -> Option<<L as RawLock<P>>::Token>;

/// A mutual-exclusion lock. `Shared` is the state that all locks of the kind in one system share
/// (per-CPU records); `Token` travels from `lock` to `unlock`.
///
/// # Protocol
/// A caller gives the token of each acquisition to [`RawLock::unlock`] once: of the same lock, with the same
/// `Shared`, and on the CPU (or thread) that acquired, since queue nodes are its own. A token that is dropped
/// leaves the lock held for ever. All callers of one lock use one `Shared`. A lock that is held or waited for
/// does not move.
///
/// For callers that keep to this, a lock promises mutual exclusion: between the return of an acquisition and its
/// release no other returns, and what the holder wrote is seen by the next. The trait is safe to
/// implement, for a wrong lock harms no memory by itself. Code that rests on the promise for memory safety asks
/// for an unsafe trait on top of it, as `NativeLock` of `overspin-native` is.
///
/// # Interrupts
/// `lock` and `unlock` leave them alone. Use [`RawLock::lock_irqsave`] for a lock that an
/// interrupt handler takes too.
pub trait RawLock<P: Platform>: Sized + core::fmt::Debug {
    /// Properties.
    const INFO: LockInfo;
    /// Per-system state.
    type Shared: core::fmt::Debug;
    /// What an acquisition carries to its release.
    type Token: core::fmt::Debug;

    /// State for a system of `cpus` CPUs.
    ///
    /// # Errors
    /// If the lock cannot serve so many CPUs.
    fn shared(cpus: usize, tuning: Tuning) -> Result<Self::Shared, CapacityError>;
    /// An unlocked lock.
    ///
    /// It knows no number of CPUs: locks lie in statics and in structures whose size does not depend on it. What a
    /// CPU needs while it waits, or for each lock that it holds, is in [`RawLock::Shared`], which is made for
    /// so many. State for each CPU in the lock itself is an array as large as the type says; that is then its
    /// [`LockInfo::max_cpus`], and `Shared` says how much of it is used. `examples/array_lock.rs` of `overspin-check`
    /// is such a lock.
    fn new() -> Self;
    /// Acquires, waiting as long as it takes.
    #[must_use = "the lock is held until `unlock` gets the token"]
    fn lock(&self, shared: &Self::Shared) -> Self::Token;
    /// Acquires if that is possible at once.
    #[must_use = "if there is a token, the lock is held until `unlock` gets it"]
    fn try_lock(&self, shared: &Self::Shared) -> Option<Self::Token>;
    /// Acquires, or gives up at a time of [`Platform::now`]: `None`. It looks at least once, and whoever is given
    /// the lock has it, however late. A clock that stands still before the deadline means to wait as long as it
    /// takes. A wait ends some microseconds after the deadline, if the CPU runs.
    ///
    /// Only a lock that is [`LockInfo::abortable`] has it: others have no way back from the place that a waiter
    /// takes, or sleep without a limit.
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = None;
    /// Releases. `token` is of an acquisition of this lock by this CPU, see [the protocol](RawLock#protocol).
    fn unlock(&self, shared: &Self::Shared, token: Self::Token);
    /// Acquires with interrupts off from then on; returns the state to give back on release.
    /// The default switches them off first, as every FIFO lock must.
    #[must_use = "the lock is held until `unlock` gets the token, and interrupts are off"]
    #[inline(always)]
    fn lock_irqsave(&self, shared: &Self::Shared) -> (Self::Token, P::IrqState) {
        let state = P::irq_save();
        (self.lock(shared), state)
    }
    /// Advisory: somebody holds it. Queue locks look at their nodes, hence `shared`.
    fn is_locked(&self, shared: &Self::Shared) -> bool;
    /// Advisory: somebody waits for it. A lock that keeps no record of waiters says no.
    fn is_contended(&self, shared: &Self::Shared) -> bool;
}

/// Something to do with a lock type that is chosen by name at run time.
pub trait LockVisitor<P: Platform> {
    /// What comes back.
    type Output;
    /// Called with the type that the name stands for.
    fn visit<L: RawLock<P> + 'static>(self) -> Self::Output;
}
