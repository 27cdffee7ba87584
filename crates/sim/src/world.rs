//! The world: virtual time, the vCPUs, and how code that runs in a coroutine uses time.
//!
//! # Run-ahead
//! Guest code runs in stackful coroutines. It uses time by calling into the world. If the
//! operation ends before the next pending event, nothing can interact with it: the clock moves
//! and the code goes on, without a switch. Otherwise the operation is armed as an event and the
//! coroutine suspends to the engine loop.
//!
//! # Cancellation by epoch
//! Each vCPU has an epoch that counts the operations it armed. A preempted vCPU's pending event is
//! invalidated by bumping the epoch; what remained of the operation is kept and armed again at the
//! next dispatch. So preemption can hit between any two memory operations, as on hardware.
//!
//! # Inlining
//! A switch between coroutines leaves the processor's return predictor with the other coroutine's
//! callers, so every `ret` that follows is mispredicted, one for each frame between the suspension
//! and the workload's loop. Measured, that was a third of the time of a contended lock operation.
//! Everything from a lock's memory operation down to the suspension is therefore `inline(always)`.
//!
//! # Borrow rule
//! Everything is reached through `&World`. No `RefCell` borrow is held across a suspension or a
//! resume, since the other side needs the same cells.

use crate::events::{Event, EventQueue, Timer};
use crate::guest::{Guest, TaskRef};
use crate::host::Pcpu;
use crate::memory::{Access, Memory, NONE};
use corosensei::Yielder;
use corosensei::stack::DefaultStack;
use overspin_scenario::{Picos, Scenario, TraceEvent, TraceSink};
use overspin_sched::{Action, Hypervisor};
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
    /// Blocked in the hypervisor until an interrupt (idle).
    Halt,
    /// Blocked in the hypervisor until its latch is set or an interrupt that is on.
    Poll,
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
}

/// Pending virtual interrupts.
pub(crate) const IRQ_TIMER: u32 = 1;
pub(crate) const IRQ_RESCHED: u32 = 2;

/// What a vCPU spins on. The pointers are to the suspended coroutine's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub data: *const (),
    pub holds: unsafe fn(*const ()) -> bool,
}

/// A virtual CPU.
#[derive(Debug)]
pub(crate) struct Vcpu {
    pub id: u32,
    pub guest: u32,
    /// Number within its guest.
    pub index: u32,
    /// Where it runs, or ran last.
    pub pcpu: Cell<u32>,
    /// It executes guest code on `pcpu` (not while the hypervisor is still switching to it).
    pub running: Cell<bool>,
    /// Thousandths of full speed.
    pub speed: Cell<u32>,
    pub epoch: Cell<u32>,
    pub op: Cell<Op>,
    /// When the operation ends, if armed (`Picos::MAX`: an endless spin).
    pub op_end: Cell<Picos>,
    /// Work left, if not armed.
    pub op_left: Cell<Picos>,
    pub reason: Cell<Reason>,
    pub watch: Cell<Option<Watch>>,
    /// Line that it spins on, with its place in the list of spinners.
    pub line: Cell<u32>,
    next: Cell<u32>,
    prev: Cell<u32>,
    /// A look at a changed line is already armed.
    hit_armed: Cell<bool>,
    pub task: Cell<TaskRef>,
    pub irqs_on: Cell<bool>,
    /// Interrupt handlers on the stack of what runs.
    pub nesting: Cell<usize>,
    pub irqs_pending: Cell<u32>,
    /// Latched kick (event channel pending bit).
    pub latch: Cell<bool>,
    /// The guest's one-shot timer.
    pub timer: Timer,
    /// Time on a pCPU up to `since`, and since when it runs.
    pub ran: Cell<Picos>,
    pub since: Cell<Picos>,
    pub spinning: Cell<Picos>,
    pub dispatches: Cell<u64>,
    pub migrations: Cell<u64>,
    pub ticks: Cell<u64>,
    /// When the lock operation that runs on it first had to wait.
    pub wait_since: Cell<Option<Picos>>,
    /// Lock that the code on this vCPU waits for or releases (for statistics), `NONE` if none.
    pub lock_wanted: Cell<u32>,
    pub lock_released: Cell<u32>,
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
            op_end: Cell::new(0),
            op_left: Cell::new(0),
            reason: Cell::new(Reason::Done),
            watch: Cell::new(None),
            line: Cell::new(NONE),
            next: Cell::new(NONE),
            prev: Cell::new(NONE),
            hit_armed: Cell::new(false),
            task: Cell::new(TaskRef::dangling()),
            irqs_on: Cell::new(true),
            nesting: Cell::new(0),
            irqs_pending: Cell::new(0),
            latch: Cell::new(false),
            timer: Timer::new(),
            ran: Cell::new(0),
            since: Cell::new(0),
            spinning: Cell::new(0),
            dispatches: Cell::new(0),
            migrations: Cell::new(0),
            ticks: Cell::new(0),
            wait_since: Cell::new(None),
            lock_wanted: Cell::new(NONE),
            lock_released: Cell::new(NONE),
        }
    }

    /// Wall time that `work` takes on this vCPU.
    #[inline]
    pub(crate) fn stretch(&self, work: Picos) -> Picos {
        match self.speed.get() {
            1000 => work,
            speed => (u128::from(work) * 1000 / u128::from(speed)) as Picos,
        }
    }

    /// Work done in `time`: the inverse of [`Vcpu::stretch`].
    pub(crate) fn shrink(&self, time: Picos) -> Picos {
        match self.speed.get() {
            1000 => time,
            speed => (u128::from(time) * u128::from(speed) / 1000) as Picos,
        }
    }

    /// Time that it has run so far.
    pub(crate) fn run_clock(&self, now: Picos) -> Picos {
        self.ran.get() + if self.running.get() { now - self.since.get() } else { 0 }
    }

    #[inline]
    pub(crate) fn interruptible(&self) -> bool {
        self.irqs_on.get() && self.irqs_pending.get() != 0
    }
}

/// Everything in one simulated host. See the module documentation.
pub(crate) struct World {
    pub now: Cell<Picos>,
    /// Time of the next pending event.
    pub horizon: Cell<Picos>,
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
    pub scenario: Scenario,
    pub hypervisor: RefCell<Hypervisor>,
    pub actions: RefCell<Vec<Action>>,
    /// The hypervisor scheduler's timers.
    pub timers: Vec<Timer>,
    pub pcpus: Vec<Pcpu>,
    pub vcpus: Vec<Vcpu>,
    pub guests: OnceCell<Vec<Guest>>,
    pub stacks: RefCell<Vec<DefaultStack>>,
    pub seed: u64,
    /// Domains whose workload has an end and which have not reached it.
    pub unfinished: Cell<u32>,
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

    /// Arms the operation of `vcpu` to end after `work` (at full speed) from now.
    pub(crate) fn arm(&self, v: &Vcpu, op: Op, work: Picos) {
        let end = self.now.get().saturating_add(v.stretch(work));
        v.op.set(op);
        v.op_end.set(end);
        if end != Picos::MAX {
            self.push(end, Event::Operation { vcpu: v.id, epoch: v.epoch.get() });
        }
    }

    /// Takes an armed operation back; what remains of it is kept.
    pub(crate) fn disarm(&self, v: &Vcpu) {
        v.epoch.set(v.epoch.get().wrapping_add(1));
        let left = v.op_end.get().saturating_sub(self.now.get());
        v.op_left.set(if v.op_end.get() == Picos::MAX { Picos::MAX } else { v.shrink(left) });
    }

    /// Suspends the running coroutine. Comes back when its vCPU may go on; that vCPU may be
    /// another one than before if the task was moved meanwhile.
    #[inline(always)]
    pub(crate) fn suspend(&self, why: Suspend) {
        // SAFETY: the pointer was set by `resume` to the yielder of the coroutine that runs now,
        // which is alive on that coroutine's stack.
        unsafe { (*self.yielder.get()).suspend(why) };
    }

    /// Uses `work` of CPU time; interrupts may be taken on the way.
    #[inline]
    pub(crate) fn burn(&self, work: Picos) {
        let end = self.now.get() + self.cpu().stretch(work);
        if end < self.horizon.get() {
            self.now.set(end);
            self.run_ahead.set(self.run_ahead.get() + 1);
        } else {
            self.burn_slow(work);
        }
    }

    fn burn_slow(&self, work: Picos) {
        let mut left = work;
        loop {
            let v = self.cpu();
            self.arm(v, Op::Burn, left);
            self.suspend(Suspend::Operation);
            let v = self.cpu();
            if v.reason.get() == Reason::Done {
                break;
            }
            left = v.op_left.get();
            self.take_interrupts();
        }
        self.progress.set(self.progress.get() + 1);
        self.take_interrupts();
    }

    /// Uses time that interrupts cannot split, until `end`.
    #[inline(always)]
    fn step_until(&self, end: Picos) -> bool {
        if end < self.horizon.get() {
            self.now.set(end);
            self.run_ahead.set(self.run_ahead.get() + 1);
            return false;
        }
        let v = self.cpu();
        self.arm(v, Op::Step, end - self.now.get());
        self.suspend(Suspend::Operation);
        true
    }

    /// Performs a memory operation on `cell`: charges it, applies `apply` at the moment when it
    /// completes, and lets those who spin on the line know.
    #[inline(always)]
    pub(crate) fn access<C, R>(&self, cell: &C, access: Access, apply: impl FnOnce(&C) -> R) -> R {
        let line = self.memory.line_of(cell);
        let end = self.memory.access(line, self.cpu().pcpu.get(), access, self.now.get());
        let suspended = self.step_until(end);
        let result = apply(cell);
        if access != Access::Load
            && let Some(line) = line
            && self.memory.first_watcher(line) != NONE
        {
            self.notify(line);
        }
        if suspended {
            self.take_interrupts();
        }
        result
    }

    /// A line was written: those who spin on it and now find their condition true will see that
    /// after the line has reached them, one after another. The others read it again too, and go on
    /// spinning.
    fn notify(&self, line: usize) {
        let writer = self.cpu().id;
        let mut position = 0;
        let mut id = self.memory.first_watcher(line);
        while id != NONE {
            let v = &self.vcpus[id as usize];
            id = v.next.get();
            if v.id == writer || !v.running.get() {
                continue;
            }
            if !v.hit_armed.get() && self.holds(v) {
                v.hit_armed.set(true);
                let sees = self.memory.served(line, v.pcpu.get(), position, self.now.get());
                self.push(sees, Event::Operation { vcpu: v.id, epoch: v.epoch.get() });
            }
            position += 1;
        }
        if position > 0 {
            self.memory.refetch(line, position, self.now.get());
        }
    }

    /// Whether what `v` spins on satisfies its condition now.
    pub(crate) fn holds(&self, v: &Vcpu) -> bool {
        let watch = v.watch.get().expect("a spinning vCPU watches something");
        // SAFETY: `data` points into the frame of `spin` on the suspended coroutine's stack, which
        // stays until the watch is removed.
        unsafe { (watch.holds)(watch.data) }
    }

    /// Spins on `line` until the watch's condition holds or `left` of CPU time is gone, and takes
    /// the time used off `left`. Returns whether the condition was seen to hold.
    #[inline(always)]
    pub(crate) fn spin(&self, line: Option<usize>, watch: Watch, left: &mut Picos) -> bool {
        self.begin_wait();
        loop {
            let v = self.cpu();
            v.watch.set(Some(watch));
            self.watch(v, line);
            let spun_since = v.run_clock(self.now.get());
            self.arm(v, Op::Spin, *left);
            self.suspend(Suspend::Operation);
            // Interrupted or not, the wait was on the vCPU that is current now.
            let v = self.cpu();
            self.unwatch(v);
            v.watch.set(None);
            v.spinning.set(v.spinning.get() + v.run_clock(self.now.get()) - spun_since);
            match v.reason.get() {
                Reason::Hit => {
                    if v.op_end.get() != Picos::MAX {
                        *left = v.shrink(v.op_end.get().saturating_sub(self.now.get()));
                    }
                    self.take_interrupts();
                    return true;
                }
                Reason::Done => {
                    *left = 0;
                    self.take_interrupts();
                    return false;
                }
                Reason::Interrupted => {
                    *left = v.op_left.get();
                    self.take_interrupts();
                    // SAFETY: the watch is the caller's own, alive in its frame.
                    if unsafe { (watch.holds)(watch.data) } {
                        return true;
                    }
                }
            }
        }
    }

    /// The lock operation on the current vCPU has to wait, from now if it did not before.
    #[inline(always)]
    pub(crate) fn begin_wait(&self) {
        let v = self.cpu();
        if v.wait_since.get().is_none() {
            v.wait_since.set(Some(self.now.get()));
            let lock = v.lock_wanted.get();
            if lock != NONE {
                self.trace(|| TraceEvent::LockWait { vcpu: v.id, lock });
            }
        }
    }

    fn watch(&self, v: &Vcpu, line: Option<usize>) {
        let Some(line) = line else { return };
        let (first, last) = self.memory.watchers(line);
        v.line.set(line as u32);
        v.prev.set(last.get());
        v.next.set(NONE);
        if last.get() == NONE {
            first.set(v.id);
        } else {
            self.vcpus[last.get() as usize].next.set(v.id);
        }
        last.set(v.id);
    }

    fn unwatch(&self, v: &Vcpu) {
        let line = v.line.get();
        v.hit_armed.set(false);
        if line == NONE {
            return;
        }
        let (first, last) = self.memory.watchers(line as usize);
        match v.prev.get() {
            NONE => first.set(v.next.get()),
            p => self.vcpus[p as usize].next.set(v.next.get()),
        }
        match v.next.get() {
            NONE => last.set(v.prev.get()),
            n => self.vcpus[n as usize].prev.set(v.prev.get()),
        }
        v.line.set(NONE);
    }

    /// An armed operation's event has come: decide whether the coroutine goes on, and why.
    pub(crate) fn operation_event(&self, v: &Vcpu) {
        if v.op.get() != Op::Spin {
            v.reason.set(Reason::Done);
        } else if self.holds(v) {
            v.reason.set(Reason::Hit);
        } else if self.now.get() >= v.op_end.get() {
            v.reason.set(Reason::Done);
        } else {
            // What it saw change has changed back (somebody else took the lock): spin on.
            v.hit_armed.set(false);
            return;
        }
        v.epoch.set(v.epoch.get().wrapping_add(1));
        self.resume(v);
    }

    /// Interrupts what `v` does, if that can be interrupted and an interrupt is pending and on.
    pub(crate) fn interrupt(&self, v: &Vcpu) {
        if !v.running.get() || !v.interruptible() {
            return;
        }
        if let Op::Burn | Op::Spin = v.op.get() {
            self.disarm(v);
            v.reason.set(Reason::Interrupted);
            self.resume(v);
        }
    }

    /// `v` has just been put on a pCPU: it goes on with what it was doing.
    pub(crate) fn continue_on(&self, v: &Vcpu) {
        match v.op.get() {
            Op::None | Op::Halt | Op::Poll => {
                v.reason.set(Reason::Done);
                self.resume(v);
            }
            Op::Burn | Op::Spin if v.interruptible() => {
                v.reason.set(Reason::Interrupted);
                self.resume(v);
            }
            Op::Burn | Op::Step => self.arm(v, v.op.get(), v.op_left.get()),
            Op::Spin => {
                // A descheduled spinner looks again when it next runs.
                self.arm(v, Op::Spin, v.op_left.get());
                let line = (v.line.get() != NONE).then_some(v.line.get() as usize);
                let sees = self.memory.access(line, v.pcpu.get(), Access::Load, self.now.get());
                v.hit_armed.set(true);
                self.push(sees, Event::Operation { vcpu: v.id, epoch: v.epoch.get() });
            }
        }
    }

    /// `v` leaves its pCPU: its operation is kept for later.
    pub(crate) fn stop(&self, v: &Vcpu) {
        if let Op::Burn | Op::Step | Op::Spin = v.op.get() {
            self.disarm(v);
            v.hit_armed.set(false);
        }
        v.ran.set(v.run_clock(self.now.get()));
        v.running.set(false);
    }

    /// Runs the code on `v` until it suspends in an operation.
    #[inline(always)]
    fn resume(&self, v: &Vcpu) {
        v.op.set(Op::None);
        self.set_cpu(v.id);
        loop {
            if v.task.get().run(self) == Suspend::Operation {
                return;
            }
        }
    }

    /// Takes pending interrupts of the current vCPU, if they are on.
    #[inline]
    pub(crate) fn take_interrupts(&self) {
        let v = self.cpu();
        if v.interruptible() {
            self.guest(v.guest).interrupts(self);
        }
    }

    /// Switches interrupts on (taking what is pending) or off.
    #[inline]
    pub(crate) fn set_irqs(&self, on: bool) {
        self.cpu().irqs_on.set(on);
        if on {
            self.take_interrupts();
        }
    }
}
