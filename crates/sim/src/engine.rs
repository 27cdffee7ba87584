//! The engine: everything in one simulated host, and the way to it from a coroutine.
//!
//! # Borrow rule
//! Everything is reached through `&Engine`. No `RefCell` borrow is held across a suspension or a
//! resume, since the other side needs the same cells.

use crate::asking::Asking;
use crate::events::{Event, Timer};
use crate::foresight::Foresight;
use crate::guest::Guest;
use crate::host::Pcpu;
use crate::memory::Memory;
use crate::speed::Socket;
use crate::telling::Telling;
use crate::timeline::Timeline;
use crate::vcpu::Vcpu;
use corosensei::Yielder;
use corosensei::stack::DefaultStack;
use overspin_host::Moment;
use overspin_host::admin::Administrator;
use overspin_scenario::{Picos, Scenario};
use overspin_sched::{Action, Pools};
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

/// Guest code: coroutines, and whose code runs.
pub(crate) struct Code {
    /// The vCPU whose code runs: one of the engine's, which stay where they are. A pointer, because guest
    /// code asks for it several times in each operation.
    pub current: Cell<*const Vcpu>,
    /// What its coroutine suspends with.
    pub yielder: Cell<*const TaskYielder>,
    /// Stacks of tasks that have ended.
    pub stacks: RefCell<Vec<DefaultStack>>,
}

/// The hypervisor, and what it has asked for.
pub(crate) struct HypervisorState {
    pub pools: RefCell<Pools>,
    pub administrator: RefCell<Administrator>,
    /// What the operation under way asks for; empty in between.
    pub actions: RefCell<Vec<Action>>,
    /// The scheduler's timers.
    pub timers: Vec<Timer>,
}

/// The hardware.
pub(crate) struct Machine {
    pub pcpus: Vec<Pcpu>,
    pub sockets: Vec<Socket>,
    pub memory: Memory,
}

/// What decides when the run ends.
pub(crate) struct End {
    /// Domains whose workload has an end and which have not reached it.
    pub unfinished: Cell<u32>,
    /// Grows whenever a task gets anywhere; the watchdog looks at it.
    pub progress: Cell<u64>,
    pub asking: Asking,
}

/// Everything in one simulated host. See the module documentation.
pub(crate) struct Engine {
    pub seed: u64,
    /// With the domains of the host's noise after its own.
    pub scenario: Scenario,
    /// Domains that make no noise.
    pub own_domains: usize,
    /// When the last vCPU of these domains comes up.
    pub all_up: Cell<Picos>,
    pub time: Timeline,
    pub machine: Machine,
    pub hypervisor: HypervisorState,
    pub vcpus: Vec<Vcpu>,
    pub guests: OnceCell<Vec<Guest>>,
    pub code: Code,
    pub end: End,
    /// The observer, and what it has not been told yet.
    pub telling: Telling,
    pub foresight: Option<Foresight>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("now", &self.now()).finish_non_exhaustive()
    }
}

thread_local! {
    static ENGINE: Cell<*const Engine> = const { Cell::new(std::ptr::null()) };
}

/// The engine of the run on this thread.
///
/// # Panics
/// Outside of a run.
#[inline]
pub(crate) fn engine<'a>() -> &'a Engine {
    let engine = ENGINE.get();
    assert!(!engine.is_null(), "simulated cells work only inside a simulation");
    // SAFETY: set by `Entered`, whose borrow of the engine outlives every coroutine of the run;
    // all state behind it is in cells, so shared references may coexist.
    unsafe { &*engine }
}

/// Makes an engine the current one until dropped.
#[derive(Debug)]
pub(crate) struct Entered;

impl Entered {
    pub(crate) fn new(engine: &Engine) -> Self {
        assert!(ENGINE.get().is_null(), "a simulation cannot run inside another on one thread");
        ENGINE.set(engine);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENGINE.set(std::ptr::null());
    }
}

impl Engine {
    /// The vCPU whose code runs.
    #[inline]
    pub(crate) fn cpu(&self) -> &Vcpu {
        // SAFETY: it is the first of `self.vcpus` or the one that `set_cpu` was given; they stay where they are
        // as long as the engine is there, and only vCPUs run code.
        unsafe { &*self.code.current.get() }
    }

    #[inline]
    pub(crate) fn set_cpu(&self, vcpu: &Vcpu) {
        self.code.current.set(vcpu);
    }

    pub(crate) fn guest(&self, guest: u32) -> &Guest {
        &self.guests.get().expect("guests exist once the run has begun")[guest as usize]
    }

    /// A task got somewhere, unless this is an interrupt handler's doing or the host's noise: ticks and
    /// noise go on in a deadlock.
    pub(crate) fn advanced(&self) {
        let v = self.cpu();
        if v.irqs.nesting.get() == 0 && !v.is_noise {
            self.end.progress.set(self.end.progress.get() + 1);
        }
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Picos {
        self.time.now()
    }

    #[inline(always)]
    pub(crate) fn push(&self, at: Picos, event: Event) {
        self.time.push(at, event);
    }

    /// Tells the observer, if there is one, what happens now.
    #[inline(always)]
    pub(crate) fn tell(&self, moment: Moment) {
        self.telling.tell(self.now(), moment, &self.code.yielder);
    }
}
