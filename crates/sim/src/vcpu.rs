//! A virtual CPU: its current operation, its interrupts and waits, and its statistics.

use crate::events::Timer;
use crate::guest::TaskRef;
use crate::memory::NONE;
use crate::pause_loop::Exits;
use crate::watch::Watch;
use overspin_host::Doing;
use overspin_host::block::{Block, Place};
use overspin_host::ipis::Ipis;
use overspin_host::notification::Notified;
use overspin_host::pause_loop::Pauses;
use overspin_scenario::{Picos, Why};
use std::cell::{Cell, RefCell};

/// The kind of operation that a vCPU is in while its coroutine is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// None: its coroutine runs, or has not started.
    None,
    /// It uses CPU time; interrupts can split the operation.
    Burn,
    /// A memory operation, or another operation that interrupts cannot split.
    Step,
    /// It spins on a line; interrupts can split the operation.
    Spin,
    /// It is blocked in the hypervisor.
    Blocked(Block),
    /// It polls on its pCPU before it blocks (see `halt_polling.rs`).
    HaltPoll(Block),
}

/// Why a suspended coroutine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The operation is complete.
    Done,
    /// The cell that it spins on satisfies its condition.
    Hit,
    /// It must take an interrupt first; [`Operation::left`] is the remaining work.
    Interrupted,
    /// It has spun for so long that the processor exits to the hypervisor.
    PauseLoop,
}

/// The current operation of a vCPU's code.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Operation {
    pub kind: Cell<Op>,
    /// Why the code goes on, once it does.
    pub reason: Cell<Reason>,
    /// Increments when an operation ends or is taken back; an event with an earlier epoch is void.
    pub epoch: Cell<u32>,
    /// When the operation ends, if it is armed (`Picos::MAX`: an endless spin).
    pub end: Cell<Picos>,
    /// The remaining work, if it is not armed.
    pub left: Cell<Picos>,
}

impl Operation {
    /// Makes the operation's pending event void.
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
    /// Its speed in thousandths of full speed.
    pub speed: Cell<u32>,
    /// Total time on a pCPU, without the current stay.
    ran: Cell<Picos>,
    /// When the current stay began; `Picos::MAX` while it is off its pCPU.
    since: Cell<Picos>,
    pub dispatches: Cell<u64>,
    /// It executes guest code on `pcpu` (not while the hypervisor is still switching to it, nor while the host handles an
    /// interrupt of its own).
    on: Cell<bool>,
    pub migrations: Cell<u64>,
    /// How long the pCPU that it left last had been busy in all.
    pub busy_before: Cell<Picos>,
}

impl Run {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.on.get()
    }

    /// Records that it executes guest code from now on.
    pub(crate) fn begin(&self, now: Picos) {
        self.on.set(true);
        self.since.set(now);
    }

    /// Records that it leaves its pCPU.
    pub(crate) fn end(&self, now: Picos) {
        self.ran.set(self.clock(now));
        self.since.set(Picos::MAX);
        self.on.set(false);
    }

    /// It is on its pCPU, in the host, which handles an interrupt of its own: its clock goes on.
    pub(crate) fn is_interrupted(&self) -> bool {
        !self.on.get() && self.since.get() != Picos::MAX
    }

    /// Records that an interrupt of the host takes it out of its guest, or that it returns.
    pub(crate) fn interrupt(&self, interrupted: bool) {
        self.on.set(!interrupted);
    }

    /// The total time that it has run so far.
    pub(crate) fn clock(&self, now: Picos) -> Picos {
        self.ran.get() + now.saturating_sub(self.since.get())
    }

    /// The simulated time that `work` takes at the current speed.
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

    /// The work that takes `time` or a little longer: the inverse of [`Run::stretch`]. It rounds up, so that an operation
    /// which is taken back before its end never loses its last picosecond: a scheduling pass relies on that
    /// (`Engine::let_the_pass_come`).
    pub(crate) fn shrink(&self, time: Picos) -> Picos {
        match self.speed.get() {
            1000 => time,
            speed => Picos((u128::from(time.0) * u128::from(speed)).div_ceil(1000) as u64),
        }
    }
}

/// The interrupt state of a vCPU, its latch and its timer.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Interrupts {
    pub on: Cell<bool>,
    /// The latch of a kick (the event channel's pending bit).
    pub latch: Cell<bool>,
    pub pending: Cell<u32>,
    /// Number of nested interrupt handlers that run.
    pub nesting: Cell<usize>,
    /// The guest's one-shot timer.
    pub timer: Timer,
    /// Its end is put off, because the pCPU sleeps.
    pub timer_is_late: Cell<bool>,
    /// Number of ticks that it has taken.
    pub ticks: Cell<u64>,
    /// What the host remembers of interrupts that it sent and got, under rules that use that.
    pub ipis: Ipis,
}

impl Interrupts {
    /// Whether an interrupt can be taken now.
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
    /// The lock that it waits for; `NONE` if none.
    pub wants: Cell<u32>,
    /// The lock that it releases; `NONE` if none.
    pub releases: Cell<u32>,
    /// The state of its vCPU, as far as it matters for lock waits.
    pub doing: Cell<Doing>,
}

/// The part of a lock operation that goes with its task: one in user mode may be preempted by another task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnOperation {
    waits_since: Option<Picos>,
    wants: u32,
    /// The lock that the task releases; `NONE` if none.
    pub releases: u32,
}

impl Default for OwnOperation {
    fn default() -> Self {
        Self { waits_since: None, wants: NONE, releases: NONE }
    }
}

impl OwnOperation {
    /// A release of `lock`: a look in it is no wait for a lock.
    pub(crate) fn of_release(lock: u32) -> Self {
        Self { releases: lock, ..Self::default() }
    }

    /// Whether the task waits for a lock, or takes one.
    pub(crate) fn wants(&self) -> bool {
        self.wants != NONE
    }
}

impl LockOperation {
    /// Takes the operation of the outgoing task, or of what a handler interrupts, and goes on with the incoming one.
    pub(crate) fn exchange(&self, incoming: OwnOperation) -> OwnOperation {
        OwnOperation {
            waits_since: self.waits_since.replace(incoming.waits_since),
            wants: self.wants.replace(incoming.wants),
            releases: self.releases.replace(incoming.releases),
        }
    }
}

/// How a vCPU spins.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Spin {
    /// The line that it spins on, whose list contains it; `NONE` if no list does.
    pub line: Cell<u32>,
    /// Its place in that list, if the list has an index; else `NONE`.
    pub place: Cell<u32>,
    /// A look at a changed line is already armed.
    pub armed: Cell<bool>,
    pub watch: Cell<Option<Watch>>,
    /// When it looks at the line again after a dispatch, and the turn of that look's event (see `look_again`).
    pub look: Cell<(Picos, u64)>,
    /// Total time that it has spun up to `since`, the time on its run clock since which it spins; `Picos::MAX`: it does
    /// not.
    pub time: Cell<Picos>,
    pub since: Cell<Picos>,
    pub pauses: Pauses,
    pub exits: Exits,
    /// Total time that interrupts of the host took it out of its guest.
    pub interrupted: Cell<Picos>,
}

impl Spin {
    /// Total time that it has spun when its run clock shows `clock`.
    #[inline]
    pub(crate) fn time_at(&self, clock: Picos) -> Picos {
        self.time.get() + clock.saturating_sub(self.since.get())
    }

    /// Forgets the look that is to come.
    pub(crate) fn forget_look(&self) {
        self.armed.set(false);
        self.look.set((Picos::ZERO, 0));
    }
}

/// The halts of a vCPU, and its halt polling.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Halt {
    /// When it last began to halt or poll.
    pub since: Cell<Picos>,
    /// How long it polls on its pCPU before it blocks.
    pub window: Cell<Picos>,
    /// Total time that it has polled on its pCPU.
    pub polled: Cell<Picos>,
}

/// How a vCPU leaves its pCPU.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Leave {
    /// It gives its pCPU up by itself; the next pass is not a preemption.
    pub by_itself: Cell<bool>,
    /// The windows that precede its preemptions.
    pub notified: RefCell<Notified>,
    /// When it last yielded, and whether it yielded itself or the host made it yield.
    pub yielded: Cell<(Picos, Why)>,
}

/// A virtual CPU.
///
/// The order of the fields matters: with thousands of vCPUs, each cache line that an event touches costs
/// time. The fields that every event needs are on the first two lines, those for timers, locks and spinning
/// on the next two.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Vcpu {
    pub id: u32,
    pub guest: u32,
    /// Number within its guest.
    pub index: u32,
    /// It is part of the host's noise.
    pub is_noise: bool,
    /// The host's pause-loop exits reach it: its guest is not paravirtual.
    pub exits: bool,
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
            exits: true,
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
                since: Cell::new(Picos::MAX),
                dispatches: Cell::new(0),
                on: Cell::new(false),
                migrations: Cell::new(0),
                busy_before: never(),
            },
            irqs: Interrupts {
                on: Cell::new(true),
                latch: Cell::new(false),
                pending: Cell::new(0),
                nesting: Cell::new(0),
                timer: Timer::new(),
                timer_is_late: Cell::new(false),
                ticks: Cell::new(0),
                ipis: Ipis::default(),
            },
            lock: LockOperation {
                waits_since: Cell::new(None),
                wants: Cell::new(NONE),
                releases: Cell::new(NONE),
                doing: Cell::new(Doing::Wants),
            },
            spin: Spin {
                line: Cell::new(NONE),
                place: Cell::new(NONE),
                armed: Cell::new(false),
                watch: Cell::new(None),
                look: Cell::new((Picos::ZERO, 0)),
                time: never(),
                since: Cell::new(Picos::MAX),
                pauses: Pauses::new(),
                exits: Exits::default(),
                interrupted: never(),
            },
            halt: Halt { since: never(), window: never(), polled: never() },
            leave: Leave {
                by_itself: Cell::new(false),
                notified: RefCell::default(),
                yielded: Cell::new((Picos::MAX, Why::Yield)),
            },
        }
    }

    /// Where it is, as far as a kick or an interrupt cares.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_taken_back_at_once_is_whole() {
        let run = Vcpu::new(0, 0, 0).run;
        for speed in [1, 7, 100, 360, 500, 661, 999, 1000] {
            run.speed.set(speed);
            for work in (0..3000).chain([554_447, 1 << 40]).map(Picos) {
                assert_eq!(run.shrink(run.stretch(work)), work, "at {speed}");
            }
            assert_eq!(run.shrink(Picos(1)), Picos(1), "at {speed}: the last picosecond");
        }
    }
}
