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
use overspin_scenario::{NS, Picos, Preemption};
use overspin_sched::Nanos;
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

/// Whether another task should take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resched {
    /// No.
    #[default]
    No,
    /// On the return to user mode; it becomes [`Now`](Self::Now) at the next tick.
    Lazy,
    /// As soon as the kernel may be preempted.
    Now,
}

/// The tasks of one vCPU, on two cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct RunQueue {
    /// Waiting tasks in order of arrival. They are few, so a search finds the least virtual runtime.
    queue: RefCell<Vec<TaskRef>>,
    /// New and woken tasks start near this virtual runtime. It never falls.
    min_vruntime: Cell<Picos>,
    pub resched: Cell<Resched>,
    pub sleepers: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    seq: Cell<u64>,
    /// The phase of the vCPU's ticks within the period, and the time of the next tick.
    pub phase: Cell<Picos>,
    pub next_tick: Cell<Picos>,
    /// When the extension ends for which its timer was set last.
    pub extension: Cell<Option<Picos>>,
    /// The task that the vCPU's kernel thread moves next, and the vCPU that gets it.
    pub moving: Cell<Option<(TaskRef, u32)>>,
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

    /// Removes a waiting task.
    fn remove(&self, task: TaskRef) {
        self.queue.borrow_mut().retain(|t| *t != task);
    }

    /// Removes a waiting task. Returns whether it was there.
    pub(super) fn take(&self, task: TaskRef) -> bool {
        let before = self.len();
        self.remove(task);
        self.len() < before
    }

    fn take_least(&self) -> Option<TaskRef> {
        let mut queue = self.queue.borrow_mut();
        let (at, task) = queue.iter().enumerate().min_by_key(|(_, t)| t.vruntime.get())?;
        let task = *task;
        queue.remove(at);
        Some(task)
    }

    /// Whether one of the waiting tasks `may` leave.
    pub(super) fn has(&self, may: impl Fn(TaskRef) -> bool) -> bool {
        self.queue.borrow().iter().any(|t| may(*t))
    }

    /// Removes and returns the task to give away: of those that `may` leave, the one that would run last.
    pub(super) fn take_last(&self, may: impl Fn(TaskRef) -> bool) -> Option<TaskRef> {
        let mut queue = self.queue.borrow_mut();
        let may = queue.iter().enumerate().filter(|(_, t)| may(**t));
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
    /// Asks that another task take over on the vCPU of `queue`, which runs a task. Returns whether that is new.
    pub(super) fn ask(&self, queue: &RunQueue) -> bool {
        let lazily = self.domain.kernel.preemption == Preemption::Lazy;
        let asked = if lazily { Resched::Lazy } else { Resched::Now };
        queue.resched.replace(queue.resched.get().max(asked)) == Resched::No
    }

    /// Charges the running task for its time since it was put on the vCPU or last charged.
    pub(super) fn charge(&self, engine: &Engine, v: &Vcpu) {
        let task = v.task.get();
        let clock = v.run.clock(engine.now());
        let ran = clock - task.clock_in.replace(clock);
        task.cpu.set(task.cpu.get() + ran);
        let queue = self.queue(v);
        if let Some(queues) = &self.eevdf {
            // Whole nanoseconds of the clock: no rest is lost.
            let time = Nanos((clock / NS - (clock - ran) / NS) as i64);
            if queues.borrow_mut().charge(v.index, time) {
                self.ask(queue);
            }
            return;
        }
        task.vruntime.set(task.vruntime.get() + ran);
        let least = queue.least().unwrap_or(Picos::MAX);
        queue.advance(task.vruntime.get().min(least));
    }

    /// Puts the current task behind the others of its vCPU, if there are any.
    pub(super) fn go_last(&self, engine: &Engine) {
        let v = engine.cpu();
        self.charge(engine, v);
        let (task, queue) = (v.task.get(), self.queue(v));
        let last = queue.queue.borrow().iter().map(|t| t.vruntime.get()).max();
        if let Some(queues) = &self.eevdf {
            queues.borrow_mut().yield_now(v.index);
            queue.resched.set(Resched::Now);
        } else if let Some(last) = last {
            task.vruntime.set(task.vruntime.get().max(last + Picos(1)));
            queue.resched.set(Resched::Now);
        }
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
        let prev = v.task.get();
        if !self.is_idle(v) {
            self.charge(engine, v);
        }
        queue.resched.set(Resched::No);
        let goes_on = prev.index.is_some() && prev.state.get() == TaskState::Runnable;
        let next = self.next_task(v, prev, goes_on);
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

    /// The task that runs on `v` after `prev`, which waits there if it `goes_on`; both leave the list of those that wait.
    fn next_task(&self, v: &Vcpu, prev: TaskRef, goes_on: bool) -> TaskRef {
        let queue = self.queue(v);
        let Some(queues) = &self.eevdf else {
            if goes_on {
                queue.insert(prev);
            }
            if queue.moving.get().is_some() {
                // The kernel thread comes before all tasks. The idle loop is its stand-in.
                return self.idle_of(v);
            }
            return queue.take_least().unwrap_or_else(|| self.idle_of(v));
        };
        let mut queues = queues.borrow_mut();
        if let Some(task) = prev.index.filter(|_| !goes_on) {
            queues.leave(v.index, task);
        }
        if queue.moving.get().is_some() {
            queues.stop(v.index);
            if goes_on {
                queue.insert(prev);
            }
            return self.idle_of(v);
        }
        let next = queues.pick(v.index).map_or_else(|| self.idle_of(v), |t| self.task(t as usize));
        if next != prev {
            queue.remove(next);
            if goes_on {
                queue.insert(prev);
            }
        }
        next
    }

    /// Gives `task`, which comes to the queue of vCPU `index`, its place in the order of tasks there; see
    /// [`RunQueue::place`] about `credit`.
    pub(super) fn place(&self, index: u32, task: TaskRef, credit: Picos) {
        let Some(queues) = &self.eevdf else {
            self.queues[index as usize].place(index, task, &self.queues, credit);
            return;
        };
        let new = task.queue.replace(Some(index)).is_none();
        let mut queues = queues.borrow_mut();
        if credit == Picos::MAX && !new {
            // It is owed all that it was owed: it comes from another queue and did not sleep.
            queues.arrive(index, task.number());
        } else {
            queues.enqueue(index, task.number(), new);
        }
    }

    /// Marks `next` as the task of the vCPU. No simulated time passes from here to the suspension, so no
    /// vCPU sees a task that has left and still runs.
    fn switch_to(&self, engine: &Engine, v: &Vcpu, prev: TaskRef, next: TaskRef) {
        self.leave_extension(prev);
        prev.on_cpu.set(false);
        next.on_cpu.set(true);
        next.clock_in.set(v.run.clock(engine.now()));
        prev.lock.set(v.lock.exchange(next.lock.get()));
        v.task.set(next);
        engine.tell(Moment::Task { vcpu: v.id, task: next.index });
    }

    /// The first step of the incoming task: pays for the switch and releases the runqueue's lock.
    pub(crate) fn finish_switch(&self, engine: &Engine) {
        engine.burn(self.domain.kernel.task_switch);
        let v = engine.cpu();
        if self.is_idle(v) && self.queue(v).moving.get().is_none() {
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
                if engine.end.unfinished.get() == 0 {
                    // The run ends now, however far this vCPU could go on idling.
                    engine.time.stop_running_ahead();
                }
            }
        }
        self.queue(v).resched.set(Resched::No);
        let next = self.next_task(v, task, false);
        self.switch_to(engine, v, task, next);
    }
}
