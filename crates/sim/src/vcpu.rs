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

/// The operation that the code of a vCPU is in.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Operation {
    pub kind: Cell<Op>,
    /// Why the code goes on, once it does.
    pub reason: Cell<Reason>,
    /// Counts the operations; an event of an earlier one is void.
    pub epoch: Cell<u32>,
    /// When it ends, if armed (`Picos::MAX`: an endless spin).
    pub end: Cell<Picos>,
    /// Work left, if not armed.
    pub left: Cell<Picos>,
}

impl Operation {
    /// Makes the event of the operation void.
    pub(crate) fn cancel(&self) {
        self.epoch.set(self.epoch.get().wrapping_add(1));
    }
}

/// Where a vCPU runs, how fast, and for how long it has run.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Run {
    /// Where it runs, or ran last.
    pub pcpu: Cell<u32>,
    /// Thousandths of full speed.
    pub speed: Cell<u32>,
    /// Time on a pCPU up to `since`, and since when it runs.
    ran: Cell<Picos>,
    since: Cell<Picos>,
    pub dispatches: Cell<u64>,
    /// It executes guest code on `pcpu` (not while the hypervisor is still switching to it).
    on: Cell<bool>,
    pub migrations: Cell<u64>,
}

impl Run {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.on.get()
    }

    /// It executes guest code from now on.
    pub(crate) fn begin(&self, now: Picos) {
        self.on.set(true);
        self.since.set(now);
    }

    /// It leaves its pCPU.
    pub(crate) fn end(&self, now: Picos) {
        self.ran.set(self.clock(now));
        self.on.set(false);
    }

    /// Time that it has run so far.
    pub(crate) fn clock(&self, now: Picos) -> Picos {
        self.ran.get() + if self.on.get() { now - self.since.get() } else { Picos::ZERO }
    }

    /// Wall time that `work` takes here.
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

    /// Work done in `time`: the inverse of [`Run::stretch`].
    pub(crate) fn shrink(&self, time: Picos) -> Picos {
        match self.speed.get() {
            1000 => time,
            speed => Picos((u128::from(time.0) * u128::from(speed) / 1000) as u64),
        }
    }
}

/// What interrupts a vCPU, or wakes it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Interrupts {
    pub on: Cell<bool>,
    /// Latched kick (event channel pending bit).
    pub latch: Cell<bool>,
    pub pending: Cell<u32>,
    /// Interrupt handlers on the stack of what runs.
    pub nesting: Cell<usize>,
    /// The guest's one-shot timer.
    pub timer: Timer,
    /// Ticks that were taken.
    pub ticks: Cell<u64>,
}

impl Interrupts {
    /// Whether one can be taken now.
    #[inline]
    pub(crate) fn can_be_taken(&self) -> bool {
        self.on.get() && self.pending.get() != 0
    }
}

/// The lock operation of the code on a vCPU, for statistics and observers.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LockOperation {
    /// When it first had to wait.
    pub waits_since: Cell<Option<Picos>>,
    /// The lock that it waits for, `NONE` if none.
    pub wants: Cell<u32>,
    /// The lock that it releases, `NONE` if none.
    pub releases: Cell<u32>,
    /// What its vCPU does, as far as waits for locks care.
    pub doing: Cell<Doing>,
}

/// How a vCPU spins.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Spin {
    /// Line that it spins on, in whose list it is; `NONE` if it is in none.
    pub line: Cell<u32>,
    /// A look at a changed line is already armed.
    pub armed: Cell<bool>,
    pub watch: Cell<Option<Watch>>,
    /// When it looks again at the line, and that event's turn, unless it is armed: see `look_again`.
    pub look: Cell<(Picos, u64)>,
    /// Time that it has spun.
    pub time: Cell<Picos>,
    pub pauses: Pauses,
    pub exits: Exits,
}

impl Spin {
    /// It has no look to come.
    pub(crate) fn forget_look(&self) {
        self.armed.set(false);
        self.look.set((Picos::ZERO, 0));
    }
}

/// How a vCPU halts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Halt {
    /// When it halted or blocked last.
    pub since: Cell<Picos>,
    /// How long it polls when it halts.
    pub window: Cell<Picos>,
    /// Time that it has polled on its pCPU.
    pub polled: Cell<Picos>,
}

/// How a vCPU leaves its pCPU.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Leave {
    /// It gives its pCPU up by itself; the next pass is no preemption.
    pub by_itself: Cell<bool>,
    /// Windows before preemptions.
    pub notified: RefCell<Notified>,
    /// When it last yielded, and whether that was its own will or the host's.
    pub yielded: Cell<(Picos, Why)>,
}

/// A virtual CPU.
///
/// In this order: a host of thousands pays for each cache line that an event touches. What every event
/// needs is on the first two lines, what timers, locks and spinning need on the next two.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Vcpu {
    pub id: u32,
    pub guest: u32,
    /// Number within its guest.
    pub index: u32,
    /// It is part of the host's noise.
    pub is_noise: bool,
    pub task: Cell<TaskRef>,
    pub op: Operation,
    pub run: Run,
    pub irqs: Interrupts,
    pub lock: LockOperation,
    pub spin: Spin,
    pub halt: Halt,
    pub leave: Leave,
}

impl Vcpu {
    pub(crate) fn new(id: u32, guest: u32, index: u32) -> Self {
        let never = || Cell::new(Picos::ZERO);
        Self {
            id,
            guest,
            index,
            is_noise: false,
            task: Cell::new(TaskRef::dangling()),
            op: Operation {
                kind: Cell::new(Op::None),
                reason: Cell::new(Reason::Done),
                epoch: Cell::new(0),
                end: never(),
                left: never(),
            },
            run: Run {
                pcpu: Cell::new(NONE),
                speed: Cell::new(1000),
                ran: never(),
                since: never(),
                dispatches: Cell::new(0),
                on: Cell::new(false),
                migrations: Cell::new(0),
            },
            irqs: Interrupts {
                on: Cell::new(true),
                latch: Cell::new(false),
                pending: Cell::new(0),
                nesting: Cell::new(0),
                timer: Timer::new(),
                ticks: Cell::new(0),
            },
            lock: LockOperation {
                waits_since: Cell::new(None),
                wants: Cell::new(NONE),
                releases: Cell::new(NONE),
                doing: Cell::new(Doing::Wants),
            },
            spin: Spin {
                line: Cell::new(NONE),
                armed: Cell::new(false),
                watch: Cell::new(None),
                look: Cell::new((Picos::ZERO, 0)),
                time: never(),
                pauses: Pauses::new(),
                exits: Exits::default(),
            },
            halt: Halt { since: never(), window: never(), polled: never() },
            leave: Leave {
                by_itself: Cell::new(false),
                notified: RefCell::default(),
                yielded: Cell::new((Picos::MAX, Why::Yield)),
            },
        }
    }

    /// Where it is, for what comes for it.
    pub(crate) fn place(&self) -> Place {
        match self.op.kind.get() {
            Op::Blocked(how) => Place::Blocked(how),
            Op::HaltPoll(how) => Place::HaltPolls(how),
            Op::None | Op::Burn | Op::Step | Op::Spin => Place::Guest,
        }
    }

    /// Whether it polls on its pCPU before it blocks.
    pub(crate) fn polls(&self) -> bool {
        matches!(self.op.kind.get(), Op::HaltPoll(_))
    }
}
