//! A virtual CPU: what it is doing, what it waits for, and its share of the statistics.

use crate::events::Timer;
use crate::guest::TaskRef;
use crate::memory::NONE;
use crate::pause_loop::Exits;
use crate::watchers::Watch;
use overspin_host::Doing;
use overspin_host::block::{Block, Place};
use overspin_host::notification::Notified;
use overspin_host::pause_loop::Pauses;
use overspin_scenario::{Picos, Why};
use std::cell::{Cell, RefCell};

/// The operation that a vCPU is in while its coroutine is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// None: its coroutine runs, or has not started.
    None,
    /// Uses CPU time; can be interrupted.
    Burn,
    /// A memory operation or something else that interrupts cannot split.
    Step,
    /// Spins on a line; can be interrupted.
    Spin,
    /// Blocked in the hypervisor.
    Blocked(Block),
    /// Waits on its pCPU for what it is about to block for (see `halt_polling.rs`).
    HaltPoll(Block),
}

/// Why a suspended coroutine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The operation is complete.
    Done,
    /// What it spins on satisfies its condition.
    Hit,
    /// An interrupt is to be taken first; `op_left` says what remains.
    Interrupted,
    /// It has spun for so long that the processor exits to the hypervisor.
    PauseLoop,
}

/// A virtual CPU.
///
/// In this order, on cache lines of its own: a host of thousands pays for each line that an event
/// touches. The first two are what every event needs, the third what spinning and halting need.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Vcpu {
    pub id: u32,
    pub guest: u32,
    /// Number within its guest.
    pub index: u32,
    /// Where it runs, or ran last.
    pub pcpu: Cell<u32>,
    /// Thousandths of full speed.
    pub speed: Cell<u32>,
    pub epoch: Cell<u32>,
    /// It executes guest code on `pcpu` (not while the hypervisor is still switching to it).
    pub running: Cell<bool>,
    pub op: Cell<Op>,
    pub reason: Cell<Reason>,
    pub irqs_on: Cell<bool>,
    /// Latched kick (event channel pending bit).
    pub latch: Cell<bool>,
    /// A look at a changed line is already armed.
    pub hit_armed: Cell<bool>,
    /// It is part of the host's noise.
    pub is_noise: bool,
    /// What it does, as far as waits for locks care.
    pub doing: Cell<Doing>,
    pub irqs_pending: Cell<u32>,
    /// Lock that the code on this vCPU waits for (for statistics), `NONE` if none.
    pub lock_wanted: Cell<u32>,
    /// Interrupt handlers on the stack of what runs.
    pub nesting: Cell<usize>,
    pub task: Cell<TaskRef>,
    /// When the operation ends, if armed (`Picos::MAX`: an endless spin).
    pub op_end: Cell<Picos>,

    /// Work left, if not armed.
    pub op_left: Cell<Picos>,
    /// The guest's one-shot timer.
    pub timer: Timer,
    /// Time on a pCPU up to `since`, and since when it runs.
    pub ran: Cell<Picos>,
    pub since: Cell<Picos>,
    /// When the lock operation that runs on it first had to wait.
    pub wait_since: Cell<Option<Picos>>,
    /// Lock that the code on this vCPU releases, as `lock_wanted`.
    pub lock_released: Cell<u32>,

    /// Line that it spins on, in whose list it is; `NONE` if it is in none.
    pub line: Cell<u32>,
    pub watch: Cell<Option<Watch>>,
    pub dispatches: Cell<u64>,
    /// When it halted or blocked last.
    pub blocked_since: Cell<Picos>,
    /// How long it polls when it halts.
    pub poll_window: Cell<Picos>,

    /// When it looks again at the line, and that event's turn, unless it is armed: see `look_again`.
    pub look: Cell<(Picos, u64)>,
    pub spinning: Cell<Picos>,
    pub pauses: Pauses,
    pub exits: Exits,
    pub notified: RefCell<Notified>,
    /// It gives its pCPU up by itself; the next pass is no preemption.
    pub gives_way: Cell<bool>,
    /// Time that it has polled on its pCPU.
    pub polling: Cell<Picos>,
    pub migrations: Cell<u64>,
    pub ticks: Cell<u64>,

    /// When it last yielded, and whether that was its own will or the host's.
    pub yielded: Cell<(Picos, Why)>,
}

impl Vcpu {
    pub(crate) fn new(id: u32, guest: u32, index: u32) -> Self {
        Self {
            id,
            guest,
            index,
            pcpu: Cell::new(NONE),
            running: Cell::new(false),
            speed: Cell::new(1000),
            epoch: Cell::new(0),
            op: Cell::new(Op::None),
            op_end: Cell::new(Picos::ZERO),
            op_left: Cell::new(Picos::ZERO),
            reason: Cell::new(Reason::Done),
            watch: Cell::new(None),
            look: Cell::new((Picos::ZERO, 0)),
            line: Cell::new(NONE),
            hit_armed: Cell::new(false),
            is_noise: false,
            task: Cell::new(TaskRef::dangling()),
            irqs_on: Cell::new(true),
            nesting: Cell::new(0),
            irqs_pending: Cell::new(0),
            latch: Cell::new(false),
            timer: Timer::new(),
            ran: Cell::new(Picos::ZERO),
            since: Cell::new(Picos::ZERO),
            spinning: Cell::new(Picos::ZERO),
            dispatches: Cell::new(0),
            migrations: Cell::new(0),
            ticks: Cell::new(0),
            pauses: Pauses::new(),
            exits: Exits::default(),
            notified: RefCell::default(),
            gives_way: Cell::new(false),
            blocked_since: Cell::new(Picos::ZERO),
            poll_window: Cell::new(Picos::ZERO),
            polling: Cell::new(Picos::ZERO),
            wait_since: Cell::new(None),
            lock_wanted: Cell::new(NONE),
            lock_released: Cell::new(NONE),
            doing: Cell::new(Doing::Wants),
            yielded: Cell::new((Picos::MAX, Why::Yield)),
        }
    }

    /// Where it is, for what comes for it.
    pub(crate) fn place(&self) -> Place {
        match self.op.get() {
            Op::Blocked(how) => Place::Blocked(how),
            Op::HaltPoll(how) => Place::HaltPolls(how),
            Op::None | Op::Burn | Op::Step | Op::Spin => Place::Guest,
        }
    }

    /// Whether it polls on its pCPU before it blocks.
    pub(crate) fn polls(&self) -> bool {
        matches!(self.op.get(), Op::HaltPoll(_))
    }

    /// Wall time that `work` takes on this vCPU.
    #[inline]
    pub(crate) fn stretch(&self, work: Picos) -> Picos {
        match self.speed.get() {
            1000 => work,
            speed => {
                let time = u128::from(work.0) * 1000 / u128::from(speed);
                u64::try_from(time).map_or(Picos::MAX, Picos)
            }
        }
    }

    /// Work done in `time`: the inverse of [`Vcpu::stretch`].
    pub(crate) fn shrink(&self, time: Picos) -> Picos {
        match self.speed.get() {
            1000 => time,
            speed => Picos((u128::from(time.0) * u128::from(speed) / 1000) as u64),
        }
    }

    /// Time that it has run so far.
    pub(crate) fn run_clock(&self, now: Picos) -> Picos {
        self.ran.get() + if self.running.get() { now - self.since.get() } else { Picos::ZERO }
    }

    #[inline]
    pub(crate) fn interruptible(&self) -> bool {
        self.irqs_on.get() && self.irqs_pending.get() != 0
    }
}
