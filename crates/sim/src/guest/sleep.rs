//! Sleep and wake-up for locks with a sleeping slow path: of vCPUs, for locks of the kernel, and of tasks, for locks of
//! user mode. An address is that of a futex.

use super::slice::Ends;
use super::{Guest, TaskRef, TaskState};
use crate::engine::Engine;
use overspin_host::block::Block;
use overspin_host::{Moment, SleepEvent};
use overspin_scenario::Picos;
use overspin_workload::Mode;

/// One that sleeps until a wake-up at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleeper {
    /// A vCPU, by its number.
    Vcpu(u32),
    Task(TaskRef),
}

impl Guest {
    /// Puts the current vCPU to sleep until a wake-up at `address` or an interrupt. Returns at once if
    /// `still` returns false.
    pub(crate) fn wait_at(&self, engine: &Engine, address: usize, still: impl FnOnce() -> bool) {
        let v = engine.cpu();
        v.irqs.latch.set(false);
        let me = Sleeper::Vcpu(v.id);
        // Register first, then look: a wake-up between the two sets the latch.
        self.sleepers.borrow_mut().push_back((address, me));
        if still() {
            engine.block(Block::Poll);
        }
        // A wake-up has removed the entry already.
        self.sleepers.borrow_mut().retain(|(_, sleeper)| *sleeper != me);
        engine.take_interrupts();
    }

    /// The same for `task`, which runs in user mode.
    pub(crate) fn task_waits_at(
        &self,
        engine: &Engine,
        task: TaskRef,
        address: usize,
        still: impl FnOnce() -> bool,
    ) {
        task.latch.set(false);
        let me = Sleeper::Task(task);
        self.sleepers.borrow_mut().push_back((address, me));
        self.park(engine, task, still);
        self.sleepers.borrow_mut().retain(|(_, sleeper)| *sleeper != me);
    }

    /// Wakes the vCPU or the task that has slept on `address` for the longest time, if any.
    pub(crate) fn wake_at(&self, engine: &Engine, address: usize) {
        let first = {
            let mut sleepers = self.sleepers.borrow_mut();
            let at = sleepers.iter().position(|(key, _)| *key == address);
            at.and_then(|at| sleepers.remove(at))
        };
        match first {
            Some((_, Sleeper::Vcpu(sleeper))) => engine.kick(&engine.vcpus[sleeper as usize]),
            Some((_, Sleeper::Task(task))) => self.unpark(engine, Some(task)),
            // The hypercall finds no sleeper, and takes its time all the same.
            None if engine.user_task().is_none() => engine.burn(engine.costs.hypercall.next()),
            None => self.unpark(engine, None),
        }
    }

    /// A system call of the current task: what it does, between entry and return, is kernel code. An extension of its time
    /// slice `ends` so.
    pub(super) fn system_call(&self, engine: &Engine, ends: Ends, does: impl FnOnce()) {
        let task = engine.cpu().task.get();
        task.mode.set(Mode::Kernel);
        engine.burn(engine.scenario.host.costs.system_call);
        self.end_extension(engine, ends);
        does();
        self.schedule_if_needed(engine);
        task.mode.set(Mode::User);
    }

    /// Puts `task`, the current one, to sleep until [`unpark`](Self::unpark); not if that came since its latch was
    /// cleared, or if `still` returns false.
    pub(crate) fn park(&self, engine: &Engine, task: TaskRef, still: impl FnOnce() -> bool) {
        self.system_call(engine, Ends::Aborted, || {
            // From the look at the latch to the switch no other task runs on this vCPU, and `wake` finds a task on
            // another vCPU that has not left it yet.
            if still() && !task.latch.replace(false) {
                task.state.set(TaskState::Parked);
                self.tell_sleep(engine, task, SleepEvent::Begins);
                self.schedule(engine);
                self.tell_sleep(engine, task, SleepEvent::Returns);
            }
        });
    }

    /// Puts `task`, the current one, to sleep for `time` (`nanosleep`). Nothing ends it early.
    pub(crate) fn nap(&self, engine: &Engine, task: TaskRef, time: Picos) {
        self.system_call(engine, Ends::Aborted, || {
            self.tell_sleep(engine, task, SleepEvent::Begins);
            self.sleep_for(engine, task, time);
            self.tell_sleep(engine, task, SleepEvent::Returns);
        });
    }

    /// What a system call of `task`, the current one, does to sleep for `time`.
    pub(super) fn sleep_for(&self, engine: &Engine, task: TaskRef, time: Picos) {
        let until = engine.now() + time;
        task.state.set(TaskState::Sleeping);
        self.queue(engine.cpu()).sleep_until(until, task);
        self.schedule(engine);
    }

    pub(super) fn tell_sleep(&self, engine: &Engine, task: TaskRef, what: SleepEvent) {
        engine.tell(Moment::TaskSleep { domain: self.id as u16, task: task.number(), what });
    }

    /// Wakes a task that parks, or keeps it from doing so; `None`: the call finds nobody.
    pub(crate) fn unpark(&self, engine: &Engine, task: Option<TaskRef>) {
        self.system_call(engine, Ends::Aborted, || {
            let Some(task) = task else { return };
            task.latch.set(true);
            if task.state.get() == TaskState::Parked {
                self.tell_sleep(engine, task, SleepEvent::Wakes);
                let target = self.target(engine, task);
                self.wake(engine, task, target);
            }
        });
    }

    /// The vCPU for a task that wakes: its own if that idles, else the idlest.
    pub(super) fn target(&self, engine: &Engine, task: TaskRef) -> u32 {
        let own = task.queue.get().unwrap_or(0);
        let idles = self.load(engine, own) == 0;
        if idles {
            own
        } else {
            Some(self.idlest(engine, task)).filter(|i| self.load(engine, *i) == 0).unwrap_or(own)
        }
    }

    /// Lets the other tasks of its vCPU run before the current one (`sched_yield`).
    pub(crate) fn yield_task(&self, engine: &Engine) {
        self.system_call(engine, Ends::Aborted, || self.go_last(engine));
    }
}
