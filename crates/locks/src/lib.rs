#![doc = include_str!("../README.md")]
//!
//! # The locks
//!
//! Each module is a lock or a family of locks; its first line says which. `registry.rs` has their names.
//! [`condvar`] is no lock: threads sleep on it until another one says that something has changed.
//!
//! To add a lock, write its file, and add a line here and one to `registry.rs`. The checks (`overspin-check`) then run it. If
//! its models take long, add a line to the table of bounds there.
#![no_std]
#![forbid(unsafe_code)]

pub mod aligned;
mod bug;
pub mod clh;
pub mod cna;
mod coarse_clock;
pub mod condvar;
mod core_cells;
mod deadline;
mod delay;
mod family;
pub mod flexguard;
mod forwarding;
pub mod futex;
pub mod hapax;
pub mod hemlock;
pub mod ispinlock;
pub mod lock_byte;
mod lottery;
pub mod malthusian;
pub mod mcs;
pub mod mcs_tp;
pub mod mutex;
pub mod mutexee;
mod nodes;
mod padded;
mod platform;
pub mod preemptable;
pub mod pv_qspinlock;
pub mod pv_ticket;
pub mod qspinlock;
pub mod qspinlock_unfair;
mod registry;
pub mod rqspinlock;
pub mod rwlock;
pub mod s_lock;
pub mod shfllock;
pub mod swift_mutex;
pub mod tas;
pub mod ticket;
pub mod ticket_backoff;
pub mod ttas;
mod turn;
pub mod twa;
mod word;
pub mod xen_pv;

pub use aligned::Aligned;
pub use bug::Bug;
pub use condvar::Condvar;
pub use core_cells::spin_with;
pub use family::LockFamily;
pub use forwarding::{Waiters, WrappedCell};
pub use padded::CachePadded;
pub use platform::{AtomicCell, Budget, CpuId, Note, Platform};
pub use registry::*;
pub use rwlock::{RwLock, WakeAll};
pub use turn::Pace;
pub use word::WordLock;

/// What the other CPUs do while a CPU that they wait for is descheduled. It is the worst case, however long that
/// lasts, with [`Tuning::DEFAULT`] and where [`Platform::can_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// The others burn their CPUs until it runs.
    Burn,
    /// The others spin for a bounded time; then they sleep or [give their CPUs away](Platform::yield_now) until it
    /// runs.
    GiveWay,
    /// The others spin for a bounded time; then those that run get the lock. Those that sleep may sleep until it
    /// runs.
    Pass,
    /// The others burn their CPUs. But where the platform tells [when slices end](Platform::time_to_preempt), a CPU
    /// does not become the holder or the next waiter if its slice would end before it is done, as far as the lock
    /// can estimate.
    AvoidIfTold,
    /// `GiveWay` where the platform tells [which CPUs are descheduled](Platform::preempted), else `Burn`.
    GiveWayIfTold,
    /// `Pass` where the platform tells [which CPUs are descheduled](Platform::preempted), else `Burn`.
    PassIfTold,
}

impl Meanwhile {
    /// Name in tables.
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

    /// Whether no CPU burns without bound, whatever the platform tells.
    pub const fn is_bounded(self) -> bool {
        matches!(self, Self::GiveWay | Self::Pass)
    }

    /// Whether the other CPUs get the lock, whatever the platform tells.
    pub const fn lets_pass(self) -> bool {
        matches!(self, Self::Pass)
    }
}

/// What a lock promises and costs, as data. `overspin list` prints it.
///
/// All of it holds for CPUs that have a queue node left, if the lock has nodes. A CPU without a node competes for
/// the free lock; the module of such a lock says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Name on the command line and in scenarios, for example `ticket`.
    pub name: &'static str,
    /// One sentence that says what the lock is.
    pub brief: &'static str,
    /// Where the lock comes from.
    pub source: &'static str,
    /// A waiter is served before all CPUs that arrive after it.
    pub fair: bool,
    /// Every waiter but the first two learns of its turn from a cache line that no other waiter of the lock spins
    /// on. So the cost of a release does not grow with the number of waiters.
    pub local_spin: bool,
    /// Lock-holder preemption: what waiters do while the holder is descheduled.
    pub lhp: Meanwhile,
    /// Lock-waiter preemption: what the other CPUs do while a waiter, whichever it is, is descheduled. (A queue may
    /// have to wait for a CPU that is in the few instructions of its arrival, before it waits.)
    pub lwp: Meanwhile,
    /// A waiter can give up: the lock has [`RawLock::LOCK_UNTIL`].
    pub abortable: bool,
    /// Waiters may sleep and be kicked.
    pub blocks: bool,
    /// Maximum number of CPUs that may use one lock.
    pub max_cpus: u32,
    /// Size of one lock, in bytes.
    pub size: usize,
}

impl LockInfo {
    /// Checks that the lock serves `cpus` CPUs.
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

/// The error for a system that has more CPUs than the lock serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    /// CPUs asked for.
    pub cpus: usize,
    /// Maximum number of CPUs that this lock serves.
    pub max: u32,
}

impl core::fmt::Display for CapacityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} CPUs are too many: this lock serves at most {}", self.cpus, self.max)
    }
}

impl core::error::Error for CapacityError {}

/// Settings for all locks of a system; each lock reads those that apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Wait-loop iterations before the slow path of a spin-then-block lock; `None`: the lock's default.
    pub spin_budget: Option<u32>,
    /// Paravirtual locks behave as on bare hardware: no waiter sleeps. Named after the boot option.
    pub nopvspin: bool,
    /// How often a waiter of a paravirtual ticket lock [gives its CPU up](Platform::yield_now) before it sleeps,
    /// instead of spinning. The published value is 0. It suits a guest, where a yield is a call of the hypervisor;
    /// for threads a yield is cheap and a sleep is not.
    pub yields: u32,
    /// Odds of a lock that draws lots at its releases: it favours the other choice once in this many releases,
    /// never with 0, always with 1; `None`: the lock's default.
    pub lottery: Option<u32>,
}

impl Tuning {
    /// Each lock as published.
    pub const DEFAULT: Self = Self { spin_budget: None, nopvspin: false, yields: 0, lottery: None };
}

/// The function that acquires the lock `L` or [gives up](RawLock::LOCK_UNTIL). Its arguments are the lock, the
/// shared state of its system, and the deadline in nanoseconds.
pub type LockUntil<P, L> =
    fn(&L, &<L as RawLock<P>>::Shared, u64) -> Option<<L as RawLock<P>>::Token>;

/// A mutual-exclusion lock. `Shared` is the state that all locks of the kind in one system share
/// (per-CPU records); `Token` travels from `lock` to `unlock`.
///
/// # Protocol
/// A caller gives the token of each acquisition to [`RawLock::unlock`] once: of the same lock, with the same
/// `Shared`, and on the CPU (or thread) that acquired, because queue nodes belong to a CPU. A dropped token leaves
/// the lock held for ever. All callers of one lock use the same `Shared`. A lock must not move while it is held or
/// waited for.
///
/// For callers that follow the protocol, a lock promises mutual exclusion: between the return of an acquisition and
/// its release no other acquisition returns, and the next holder sees what this holder wrote. The trait is safe to
/// implement, because a wrong lock harms no memory by itself. Code whose memory safety rests on the promise
/// requires an unsafe trait on top of it, such as `NativeLock` of `overspin-native`.
///
/// # Interrupts
/// `lock` and `unlock` leave interrupts as they are. Use [`RawLock::lock_irqsave`] for a lock that an interrupt
/// handler takes too.
pub trait RawLock<P: Platform>: Sized + core::fmt::Debug {
    /// Properties of the lock.
    const INFO: LockInfo;
    /// Per-system state.
    type Shared: core::fmt::Debug;
    /// What an acquisition hands to its release.
    type Token: core::fmt::Debug;

    /// Makes the shared state of a system of `cpus` CPUs.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    fn shared(cpus: usize, tuning: Tuning) -> Result<Self::Shared, CapacityError>;
    /// Makes an unlocked lock.
    ///
    /// A lock does not know the number of CPUs, because locks lie in statics and in structures whose size does not
    /// depend on it. [`RawLock::Shared`] is made for a number of CPUs: it has what a CPU needs while it waits, or
    /// for each lock that it holds. If the lock itself has state for each CPU, this is an array whose size the type
    /// fixes. That size is then its [`LockInfo::max_cpus`], and `Shared` says how much of it is used.
    /// `examples/array_lock.rs` of `overspin-check` is such a lock.
    fn new() -> Self;
    /// Acquires the lock; waits as long as necessary.
    #[must_use = "the lock is held until `unlock` gets the token"]
    fn lock(&self, shared: &Self::Shared) -> Self::Token;
    /// Acquires the lock if that is possible at once.
    #[must_use = "if there is a token, the lock is held until `unlock` gets it"]
    fn try_lock(&self, shared: &Self::Shared) -> Option<Self::Token>;
    /// Acquires the lock, or gives up at a time of [`Platform::now`] and returns `None`. It looks at the lock at
    /// least once. A waiter that is granted the lock has it, however late the grant. A clock that stands still
    /// before the deadline means an unlimited wait. A wait ends some microseconds after the deadline, if the CPU
    /// runs. What a CPU leaves behind when it gives up is known by the lock's address, so a lock must not be dropped either
    /// while it is held, once a CPU has given up.
    ///
    /// Only a lock that is [`LockInfo::abortable`] has this function. In other locks a waiter cannot give up the
    /// place that it takes, or it sleeps without a limit.
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = None;
    /// Releases the lock. `token` is from an acquisition of this lock by this CPU, see
    /// [the protocol](RawLock#protocol).
    fn unlock(&self, shared: &Self::Shared, token: Self::Token);
    /// Acquires the lock and leaves interrupts off; returns the interrupt state to restore after the release. The
    /// default switches interrupts off first, as every FIFO lock must.
    #[must_use = "the lock is held until `unlock` gets the token, and interrupts are off"]
    #[inline(always)]
    fn lock_irqsave(&self, shared: &Self::Shared) -> (Self::Token, P::IrqState) {
        let state = P::irq_save();
        (self.lock(shared), state)
    }
    /// Advisory: whether the lock is held. Queue locks look at their nodes, hence `shared`.
    fn is_locked(&self, shared: &Self::Shared) -> bool;
    /// Advisory: whether a CPU waits for the lock. A lock that keeps no record of waiters returns false.
    fn is_contended(&self, shared: &Self::Shared) -> bool;
}

/// An operation on a lock type that is chosen by name at run time.
pub trait LockVisitor<P: Platform> {
    /// The result of the operation.
    type Output;
    /// Runs the operation on the type that the name stands for.
    fn visit<L: RawLock<P> + 'static>(self) -> Self::Output;
}
