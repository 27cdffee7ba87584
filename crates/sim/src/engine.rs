//! The engine: everything in one simulated host, and how a coroutine reaches it.
//!
//! # Borrow rule
//! All code reaches the state through `&Engine`. No code holds a `RefCell` borrow across a suspension or
//! a resume, since the other side needs the same cells.

use crate::asking::Asking;
use crate::costs::Costs;
use crate::counting::Counting;
use crate::events::{Event, Timer};
use crate::guest::{Guest, TaskRef};
use crate::host::Pcpu;
use crate::memory::Memory;
use crate::prefetch::Prefetch;
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
use overspin_workload::Mode;
use std::cell::{Cell, OnceCell, RefCell};

/// Why a coroutine suspends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspend {
    /// Its vCPU is in an operation; the operation is armed.
    Operation,
    /// Its vCPU goes on with another task, which is already set.
    SwitchTask,
}

pub(crate) type TaskYielder = Yielder<(), Suspend>;

/// Guest code: coroutines, and the vCPU whose code runs.
pub(crate) struct Code {
    /// The vCPU whose code runs: one of the engine's vCPUs, which never move in memory. It is a pointer for
    /// speed: guest code asks for it several times in each operation.
    pub current: Cell<*const Vcpu>,
    /// The yielder with which its coroutine suspends.
    pub yielder: Cell<*const TaskYielder>,
    /// Stacks of tasks that have ended.
    pub stacks: RefCell<Vec<DefaultStack>>,
}

/// The hypervisor, and the actions that it has asked for.
pub(crate) struct HypervisorState {
    pub pools: RefCell<Pools>,
    pub administrator: RefCell<Administrator>,
    /// The actions that the current hypervisor call asks for; empty between calls.
    pub actions: RefCell<Vec<Action>>,
    /// The scheduler's timers.
    pub timers: Vec<Timer>,
}

/// The hardware.
pub(crate) struct Machine {
    pub pcpus: Vec<Pcpu>,
    pub sockets: Vec<Socket>,
    pub memory: Memory,
    /// Run queues have locks, and interrupts of the host cost time (see `run_queue.rs`).
    pub locks_run_queues: Cell<bool>,
    /// The first of the lines with what the host knows of its vCPUs (see `directed_yield.rs`).
    pub host_lines: usize,
}

/// The state that decides when the run ends.
pub(crate) struct End {
    /// Number of domains whose workload has an end that they have not reached. One extra keeps the run going
    /// to its limit.
    pub unfinished: Cell<u32>,
    /// Grows whenever a task makes progress; the watchdog looks at it.
    pub progress: Cell<u64>,
    pub asking: Asking,
}

/// Everything in one simulated host. See the module documentation.
pub(crate) struct Engine {
    pub seed: u64,
    /// The scenario, with the domains of the host's noise after its own.
    pub scenario: Scenario,
    /// Those of its host's costs that may vary.
    pub costs: Costs,
    /// Number of the scenario's own domains, without noise.
    pub own_domains: usize,
    /// When the last vCPU of the scenario's own domains comes up.
    pub all_up: Cell<Picos>,
    pub time: Timeline,
    pub machine: Machine,
    pub hypervisor: HypervisorState,
    pub vcpus: Vec<Vcpu>,
    pub guests: OnceCell<Vec<Guest>>,
    pub code: Code,
    pub end: End,
    pub counting: Counting,
    /// The observer, and the moments that it has not been told yet.
    pub telling: Telling,
    pub prefetch: Option<Prefetch>,
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
/// If no run is under way on this thread.
#[inline]
pub(crate) fn engine<'a>() -> &'a Engine {
    let engine = ENGINE.get();
    assert!(!engine.is_null(), "simulated cells work only inside a simulation");
    // SAFETY: `Entered` set the pointer, and clears it when it is dropped, which is before the engine is.
    // All state behind it is in cells, so shared references may coexist.
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

/// Code outside the simulation, on a thread with a run: until this is dropped, the thread has no engine, and
/// simulated cells do not work.
#[derive(Debug)]
pub(crate) struct Left(*const Engine);

impl Left {
    /// Leaves the engine of the run on this thread, and returns it; `None` if there is no run.
    pub(crate) fn new<'a>() -> Option<(Self, &'a Engine)> {
        if ENGINE.get().is_null() {
            return None;
        }
        let engine = engine();
        ENGINE.set(std::ptr::null());
        Some((Self(engine), engine))
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        ENGINE.set(self.0);
    }
}

impl Engine {
    /// The vCPU whose code runs.
    #[inline]
    pub(crate) fn cpu(&self) -> &Vcpu {
        // SAFETY: the pointer is to the first of `self.vcpus` or to the vCPU given to `set_cpu`. Neither moves
        // while the engine lives, and only vCPUs run code.
        unsafe { &*self.code.current.get() }
    }

    /// The task whose user-mode code runs; `None` in a kernel.
    #[inline]
    pub(crate) fn user_task(&self) -> Option<TaskRef> {
        let v = self.cpu();
        let task = v.task.get();
        (task.mode.get() == Mode::User && v.irqs.nesting.get() == 0).then_some(task)
    }

    #[inline]
    pub(crate) fn set_cpu(&self, vcpu: &Vcpu) {
        self.code.current.set(vcpu);
    }

    pub(crate) fn guest(&self, guest: u32) -> &Guest {
        &self.guests.get().expect("guests exist once the run has begun")[guest as usize]
    }

    /// Records that a task made progress. Interrupt handlers and the host's noise do not count, since
    /// ticks and noise go on in a deadlock.
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

    /// Tells the observer, if there is one, that `moment` happens now.
    #[inline(always)]
    pub(crate) fn tell(&self, moment: Moment) {
        self.telling.tell(self.now(), moment, &self.code.yielder);
    }
}
