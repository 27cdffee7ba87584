//! The state of a run in which one CPU stops.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use overspin_locks::CpuId;

/// The CPU that stops.
pub(super) const VICTIM: CpuId = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// In its section, after this many completed sections.
    Holder(u32),
    /// As a waiter, after this many failed looks.
    Waiter(u32),
}

#[derive(Default)]
pub(super) struct Cpu {
    pub(super) stopped: Cell<bool>,
    pub(super) asleep: Cell<bool>,
    /// The cell that it sleeps on; 0 for its latch.
    pub(super) asleep_at: Cell<usize>,
    pub(super) latch: Cell<bool>,
    pub(super) in_lock: Cell<bool>,
    looks_in_vain: Cell<u32>,
    /// The step of the last acquisition, and the step at which it last gave way or called `lock`.
    pub(super) acquired_at: Cell<u64>,
    pub(super) gave_way_at: Cell<u64>,
}

pub(super) struct World {
    pub(super) cpus: Vec<Cpu>,
    stop: Stop,
    /// The platform tells which CPUs do not run, and tells the victim that its slice is over.
    pub(super) told: bool,
    pub(super) steps: Cell<u64>,
    pub(super) stopped_at: Cell<Option<u64>>,
    pub(super) limit: u64,
    pub(super) slept: Cell<bool>,
    /// Looks at each cell by each CPU since the stop.
    pub(super) looks: RefCell<HashMap<(usize, CpuId), u64>>,
}

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The world of this run.
pub(super) fn world() -> Rc<World> {
    WORLD.with_borrow(|world| Rc::clone(world.as_ref().expect("a run has a world")))
}

/// The CPU that executes this call.
pub(super) fn here() -> CpuId {
    shuttle::current::get_current_task().map_or(0, CpuId::from)
}

impl World {
    /// Begins a run. It counts `limit` steps from the stop.
    pub(super) fn install(cpus: usize, stop: Stop, told: bool, limit: u64) {
        WORLD.set(Some(Rc::new(Self {
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            stop,
            told,
            steps: Cell::new(0),
            stopped_at: Cell::new(None),
            limit,
            slept: Cell::new(false),
            looks: RefCell::default(),
        })));
    }

    /// Ends the run. Returns the world as the run has left it.
    pub(super) fn take() -> Rc<Self> {
        WORLD.take().expect("a run has a world")
    }

    pub(super) fn me(&self) -> &Cpu {
        &self.cpus[here()]
    }

    pub(super) fn step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    pub(super) fn stop(&self) {
        self.me().stopped.set(true);
        self.stopped_at.set(Some(self.steps.get()));
        self.looks.borrow_mut().clear();
        shuttle::thread::yield_now();
    }

    /// Called after a failed look, or at the end of a sleep.
    pub(super) fn waits(&self) {
        let me = self.me();
        if me.in_lock.get() {
            me.looks_in_vain.set(me.looks_in_vain.get() + 1);
            if here() == VICTIM && self.stop == Stop::Waiter(me.looks_in_vain.get()) {
                self.stop();
            }
        }
        shuttle::thread::yield_now();
    }

    pub(super) fn gives_way(&self) {
        self.me().gave_way_at.set(self.steps.get());
    }

    pub(super) fn sleep_at(&self, address: usize) {
        let me = self.me();
        self.slept.set(true);
        self.gives_way();
        me.asleep_at.set(address);
        me.asleep.set(true);
        while me.asleep.get() {
            shuttle::thread::yield_now();
        }
        self.gives_way();
        self.waits();
    }
}
