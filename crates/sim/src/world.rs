//! The world: everything in one simulated host, and the way to it from a coroutine.
//!
//! # Borrow rule
//! Everything is reached through `&World`. No `RefCell` borrow is held across a suspension or a
//! resume, since the other side needs the same cells.

use crate::attribution::Attribution;
use crate::events::{Event, Timer};
use crate::execution::Postponed;
use crate::foresight::Foresight;
use crate::guest::Guest;
use crate::host::Pcpu;
use crate::memory::Memory;
use crate::queue::EventQueue;
use crate::speed::Socket;
use crate::vcpu::Vcpu;
use corosensei::Yielder;
use corosensei::stack::DefaultStack;
use overspin_scenario::{ChangeOutcome, Picos, Scenario, TraceEvent, TraceSink};
use overspin_sched::{Action, DomainParams, Pools};
use std::cell::{Cell, OnceCell, RefCell};

/// What a coroutine wants when it suspends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspend {
    /// Its vCPU is in an operation, which is armed.
    Operation,
    /// Its vCPU goes on with another task, already set.
    SwitchTask,
}

pub(crate) type TaskYielder = Yielder<(), Suspend>;

/// Everything in one simulated host. See the module documentation.
pub(crate) struct World {
    pub now: Cell<Picos>,
    /// Time of the next pending event.
    pub horizon: Cell<Picos>,
    /// The turn of the event that is processed, among those due at its instant.
    pub turn: Cell<u64>,
    /// See [`World::push_operation`].
    pub postponed: RefCell<Vec<Postponed>>,
    pub any_postponed: Cell<bool>,
    /// The vCPU whose code runs.
    pub current: Cell<u32>,
    pub yielder: Cell<*const TaskYielder>,
    pub memory: Memory,
    pub events: RefCell<EventQueue>,
    pub processed: Cell<u64>,
    pub run_ahead: Cell<u64>,
    pub hash: Cell<u64>,
    /// Grows whenever a task gets anywhere; the watchdog looks at it.
    pub progress: Cell<u64>,
    /// With the domains of the host's noise after its own.
    pub scenario: Scenario,
    /// Domains that make no noise.
    pub own_domains: usize,
    /// When the last vCPU of these domains comes up.
    pub all_up: Cell<Picos>,
    pub hypervisor: RefCell<Pools>,
    /// Weights and caps of the domains as they are now.
    pub params: RefCell<Vec<DomainParams>>,
    /// What the administrator has done.
    pub changes: RefCell<Vec<ChangeOutcome>>,
    pub actions: RefCell<Vec<Action>>,
    /// The hypervisor scheduler's timers.
    pub timers: Vec<Timer>,
    pub pcpus: Vec<Pcpu>,
    pub sockets: Vec<Socket>,
    pub vcpus: Vec<Vcpu>,
    pub guests: OnceCell<Vec<Guest>>,
    pub stacks: RefCell<Vec<DefaultStack>>,
    pub seed: u64,
    /// Domains whose workload has an end and which have not reached it.
    pub unfinished: Cell<u32>,
    pub attribution: Attribution,
    pub foresight: Option<Foresight>,
    /// Raw, because the caller's sink outlives the world but not `'static`.
    pub trace: Cell<Option<*mut dyn TraceSink>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now.get()).finish_non_exhaustive()
    }
}

thread_local! {
    static WORLD: Cell<*const World> = const { Cell::new(std::ptr::null()) };
}

/// The world of the run on this thread.
///
/// # Panics
/// Outside of a run.
#[inline]
pub(crate) fn world<'a>() -> &'a World {
    let world = WORLD.get();
    assert!(!world.is_null(), "simulated cells work only inside a simulation");
    // SAFETY: set by `Entered`, whose borrow of the world outlives every coroutine of the run;
    // all state behind it is in cells, so shared references may coexist.
    unsafe { &*world }
}

/// Makes a world the current one until dropped.
#[derive(Debug)]
pub(crate) struct Entered;

impl Entered {
    pub(crate) fn new(world: &World) -> Self {
        assert!(WORLD.get().is_null(), "a simulation cannot run inside another on one thread");
        WORLD.set(world);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        WORLD.set(std::ptr::null());
    }
}

impl World {
    /// The vCPU whose code runs.
    #[inline]
    pub(crate) fn cpu(&self) -> &Vcpu {
        &self.vcpus[self.current.get() as usize]
    }

    #[inline]
    pub(crate) fn set_cpu(&self, vcpu: u32) {
        self.current.set(vcpu);
    }

    pub(crate) fn guest(&self, guest: u32) -> &Guest {
        &self.guests.get().expect("guests exist once the run has begun")[guest as usize]
    }

    /// A task got somewhere, unless this is an interrupt handler's doing or the host's noise: ticks and
    /// noise go on in a deadlock.
    pub(crate) fn advanced(&self) {
        let v = self.cpu();
        if v.nesting.get() == 0 && !v.is_noise {
            self.progress.set(self.progress.get() + 1);
        }
    }

    #[inline(always)]
    pub(crate) fn push(&self, at: Picos, event: Event) {
        self.events.borrow_mut().push(at, event);
        if at < self.horizon.get() {
            self.horizon.set(at);
        }
    }

    /// Mixes an event into the trace hash.
    #[inline]
    pub(crate) fn mix(&self, what: u64) {
        let h = (self.hash.get() ^ self.now.get()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash.set((h.rotate_left(23) ^ what).wrapping_mul(0xd6e8_feb8_6659_fd93));
    }

    /// Hands a moment to the trace, if there is one.
    #[inline]
    pub(crate) fn trace(&self, event: impl FnOnce() -> TraceEvent) {
        if let Some(sink) = self.trace.get() {
            // SAFETY: the sink is exclusively borrowed by `run` for as long as the world lives,
            // and sinks do not call back into the world.
            unsafe { (*sink).record(self.now.get(), event()) };
        }
    }
}
