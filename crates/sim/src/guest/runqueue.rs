//! Per-vCPU runqueues and the switch from one task to another, after Linux's CFS of 2008. The task with
//! the least virtual runtime runs. A task that wakes preempts if it is far enough behind.
//!
//! As in Linux, a runqueue lock stays held across a switch: the outgoing task takes it, the incoming task
//! releases it.

use super::{Guest, TaskRef, TaskState};
use crate::engine::{Engine, Suspend};
use crate::prefetch::touch;
use crate::vcpu::Vcpu;
use overspin_host::Moment;
use overspin_scenario::Picos;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that sleeps until a given time. The sequence number keeps sleepers of equal times in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    pub until: Picos,
    seq: u64,
    pub task: TaskRef,
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        (self.until, self.seq) == (other.until, other.seq)
    }
}
impl Eq for Sleeper {}
impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.until, self.seq).cmp(&(other.until, other.seq))
    }
}

/// The tasks of one vCPU, on two cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct RunQueue {
    /// Waiting tasks in order of arrival. They are few, so a search finds the least virtual runtime.
    queue: RefCell<Vec<TaskRef>>,
    /// New and woken tasks start near this virtual runtime. It never falls.
    min_vruntime: Cell<Picos>,
    pub need_resched: Cell<bool>,
    pub sleepers: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    seq: Cell<u64>,
    /// The phase of the vCPU's ticks within the period, and the time of the next tick.
    pub phase: Cell<Picos>,
    pub next_tick: Cell<Picos>,
}

impl RunQueue {
    pub(super) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Prefetches the lists.
    pub(super) fn fetch_lists(&self) {
        touch(self.queue.borrow().as_ptr(), 1);
        touch(self.sleepers.borrow().as_slice().as_ptr(), 1);
    }

    /// Queues a task behind the others.
    pub(super) fn insert(&self, task: TaskRef) {
        self.queue.borrow_mut().push(task);
    }

    pub(super) fn sleep_until(&self, until: Picos, task: TaskRef) {
        self.seq.set(self.seq.get() + 1);
        let seq = self.seq.get();
        self.sleepers.borrow_mut().push(Reverse(Sleeper { until, seq, task }));
    }

    /// Moves a task's virtual runtime to the time line of this queue, that of vCPU `index`. A task from
    /// another queue keeps its distance from `min_vruntime`. A task that is behind is owed at most `credit`,
    /// a new task nothing.
    pub(super) fn place(&self, index: u32, task: TaskRef, queues: &[RunQueue], credit: Picos) {
        let here = self.min_vruntime.get();
        let place = match task.queue.replace(Some(index)) {
            None => here,
            Some(from) => {
                let there = queues[from as usize].min_vruntime.get();
                (task.vruntime.get() + here).saturating_sub(there).max(here.saturating_sub(credit))
            }
        };
        task.vruntime.set(place);
    }

    /// The least virtual runtime among the queued tasks.
    pub(super) fn least(&self) -> Option<Picos> {
        self.queue.borrow().iter().map(|t| t.vruntime.get()).min()
    }

    fn take_least(&self) -> Option<TaskRef> {
        let mut queue = self.queue.borrow_mut();
        let (at, task) = queue.iter().enumerate().min_by_key(|(_, t)| t.vruntime.get())?;
        let task = *task;
        queue.remove(at);
        Some(task)
    }

    /// Whether a waiting task may use `vcpu`.
    pub(super) fn has_for(&self, vcpu: u32) -> bool {
        self.queue.borrow().iter().any(|t| t.may_use(vcpu))
    }

    /// Removes and returns the task to give away to `vcpu`: of those that may use it, the one that would run last.
    pub(super) fn take_last(&self, vcpu: u32) -> Option<TaskRef> {
        let mut queue = self.queue.borrow_mut();
        let may = queue.iter().enumerate().filter(|(_, t)| t.may_use(vcpu));
        let (at, task) = may.max_by_key(|(_, t)| t.vruntime.get())?;
        let task = *task;
        queue.remove(at);
        Some(task)
    }

    pub(super) fn advance(&self, to: Picos) {
        self.min_vruntime.set(self.min_vruntime.get().max(to));
    }
}

impl Guest {
    /// Charges the running task for its time since it was put on the vCPU or last charged.
    pub(super) fn charge(&self, engine: &Engine, v: &Vcpu) {
        let task = v.task.get();
        let clock = v.run.clock(engine.now());
        let ran = clock - task.clock_in.replace(clock);
        task.cpu.set(task.cpu.get() + ran);
        task.vruntime.set(task.vruntime.get() + ran);
        let queue = self.queue(v);
        let least = queue.least().unwrap_or(Picos::MAX);
        queue.advance(task.vruntime.get().min(least));
    }

    /// Gives the vCPU to the task that should run. The call returns when the current task is chosen
    /// again, maybe on another vCPU.
    pub(super) fn schedule(&self, engine: &Engine) {
        if self.switch(engine) {
            engine.suspend(Suspend::SwitchTask);
            self.finish_switch(engine);
        }
    }

    /// Gives the vCPU to the task that should run. Returns whether that is another task. If so, the
    /// coroutine of the current task must suspend or end at once.
    pub(super) fn switch(&self, engine: &Engine) -> bool {
        self.lock_queue(engine, engine.cpu().index);
        let v = engine.cpu();
        let queue = self.queue(v);
        queue.need_resched.set(false);
        let prev = v.task.get();
        if !self.is_idle(v) {
            self.charge(engine, v);
        }
        if prev.index.is_some() && prev.state.get() == TaskState::Runnable {
            queue.insert(prev);
        }
        let next = queue.take_least().unwrap_or_else(|| self.idle_of(v));
        if next == prev {
            self.unlock_queue(engine, v.index);
            return false;
        }
        let switches =
            if prev.state.get() == TaskState::Runnable { &prev.preemptions } else { &prev.sleeps };
        switches.set(switches.get() + 1);
        self.switch_to(engine, v, prev, next);
        true
    }

    /// Marks `next` as the task of the vCPU. No simulated time passes from here to the suspension, so no
    /// vCPU sees a task that has left and still runs.
    fn switch_to(&self, engine: &Engine, v: &Vcpu, prev: TaskRef, next: TaskRef) {
        prev.on_cpu.set(false);
        next.on_cpu.set(true);
        next.clock_in.set(v.run.clock(engine.now()));
        v.task.set(next);
        engine.tell(Moment::Task { vcpu: v.id, task: next.index });
    }

    /// The first step of the incoming task: pays for the switch and releases the runqueue's lock.
    pub(crate) fn finish_switch(&self, engine: &Engine) {
        engine.burn(self.domain.kernel.task_switch);
        let v = engine.cpu();
        if self.is_idle(v) {
            self.stop_tick(engine, v);
        } else {
            self.start_tick(engine, v);
        }
        self.unlock_queue(engine, v.index);
    }

    /// Ends the current task; its coroutine must return right after.
    pub(super) fn exit(&self, engine: &Engine) {
        let task = engine.cpu().task.get();
        self.lock_queue(engine, engine.cpu().index);
        let v = engine.cpu();
        self.charge(engine, v);
        task.state.set(TaskState::Ended);
        task.ended.set(Some(engine.now()));
        self.live.set(self.live.get() - u32::from(task.awaited));
        if task.awaited && self.live.get() == 0 {
            self.finished.set(Some(engine.now()));
            if !self.loads.is_endless() {
                engine.end.unfinished.set(engine.end.unfinished.get() - 1);
            }
        }
        let queue = self.queue(v);
        queue.need_resched.set(false);
        let next = queue.take_least().unwrap_or_else(|| self.idle_of(v));
        self.switch_to(engine, v, task, next);
    }
}
