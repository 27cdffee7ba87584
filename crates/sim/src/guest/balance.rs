//! Chooses the vCPU of a task: when the task is new, when it wakes, and when a vCPU runs out of tasks.

use super::runqueue::Resched;
use super::task::Rest;
use super::{Guest, TaskRef, TaskState};
use crate::engine::{Engine, Suspend};
use overspin_host::block::Block;
use overspin_scenario::Picos;

/// The most slices that a task is owed after a sleep (the scheduling latency over four tasks).
pub(super) const SLEEPER_SLICES: u64 = 4;

impl Guest {
    /// Number of tasks on a vCPU, including the running one.
    pub(super) fn load(&self, engine: &Engine, index: u32) -> usize {
        let v = &engine.vcpus[(self.first + index) as usize];
        self.queues[index as usize].len() + usize::from(!self.is_idle(v))
    }

    /// The vCPU with the fewest tasks among those that `task` may run on (fork and exec balancing). The search
    /// begins with the current vCPU, which therefore wins a tie.
    pub(super) fn idlest(&self, engine: &Engine, task: TaskRef) -> u32 {
        let here = engine.cpu().index;
        (0..self.vcpus)
            .map(|i| (here + i) % self.vcpus)
            .filter(|i| self.may_run(task, *i))
            .min_by_key(|i| self.load(engine, *i))
            .unwrap_or(here)
    }

    /// Makes a waiting task runnable and notifies its vCPU. That is `target` if the task may run there, else
    /// the idlest vCPU on which it may. Does nothing if the task is no longer waiting.
    pub(super) fn wake(&self, engine: &Engine, task: TaskRef, target: u32) {
        let target = if self.may_run(task, target) { target } else { self.idlest(engine, task) };
        self.lock_queue(engine, target);
        if task.state.get() == TaskState::Runnable {
            self.unlock_queue(engine, target);
            return;
        }
        task.state.set(TaskState::Runnable);
        if !self.is_noise {
            engine.end.progress.set(engine.end.progress.get() + 1);
        }
        if task.on_cpu.get() {
            // The task has not left its vCPU yet: it will find itself runnable and go on.
            self.unlock_queue(engine, target);
            return;
        }
        self.enqueue(engine, task, target, SLEEPER_SLICES * self.domain.kernel.slice);
    }

    /// Queues a task on `target`, notifies that vCPU if the task should preempt, and releases the
    /// runqueue lock of `target`, which the caller holds.
    ///
    /// The sender still holds the lock when it sends the interrupt, as in Linux (`resched_task` under the
    /// runqueue lock). That matters on an overcommitted host: an idle vCPU that wakes is boosted, may
    /// take the sender's own pCPU, and then spins for the lock that the sender holds. Its kernel
    /// charges this time to no task, because it is still the idle task that spins.
    ///
    /// [`RunQueue::place`](super::runqueue::RunQueue::place) says what `credit` is.
    pub(super) fn enqueue(&self, engine: &Engine, task: TaskRef, target: u32, credit: Picos) {
        let queue = &self.queues[target as usize];
        let v = &engine.vcpus[(self.first + target) as usize];
        let kernel = &self.domain.kernel;
        if self.eevdf.is_some() && !self.is_idle(v) {
            self.charge(engine, v);
        }
        self.place(target, task, credit);
        queue.insert(task);
        if let Some(queues) = &self.eevdf {
            if !queues.borrow_mut().preempts(target, task.number()) {
                self.unlock_queue(engine, target);
                return;
            }
        } else if !self.is_idle(v) {
            if v.id == engine.cpu().id {
                self.charge(engine, v);
            }
            let behind = v.task.get().vruntime.get().saturating_sub(task.vruntime.get());
            if behind <= kernel.wakeup_granularity {
                self.unlock_queue(engine, target);
                return;
            }
        }
        let noticed = if self.is_idle(v) {
            queue.resched.replace(Resched::Now) != Resched::No
        } else {
            // Who may wait for the return to user mode is not told.
            !self.ask(queue) || queue.resched.get() == Resched::Lazy
        };
        if !noticed && v.id != engine.cpu().id {
            engine.send_resched(v);
        }
        self.unlock_queue(engine, target);
    }

    /// Moves a waiting task from the fullest other vCPU to this one. Returns whether there was one.
    ///
    /// A vCPU with a single task keeps it, also while that waits for its idle vCPU to wake up: Linux looks at queues with
    /// more than one task (`busiest->nr_running > 1` in `load_balance_newidle`). One that has not come up yet keeps none.
    pub(super) fn pull(&self, engine: &Engine) -> bool {
        let here = engine.cpu().index;
        let may_come = |task: TaskRef| self.may_run(task, here);
        let Some(from) = (1..self.vcpus)
            .map(|i| (here + i) % self.vcpus)
            .filter(|i| self.is_preferred(*i) && self.queues[*i as usize].has(may_come))
            .filter(|i| {
                let is_up = self.idle[*i as usize].rest.get() != Rest::Fresh;
                self.load(engine, *i) > 1 || !is_up
            })
            .max_by_key(|i| self.load(engine, *i))
        else {
            return false;
        };
        self.lock_queue(engine, from);
        let task = self.queues[from as usize].take_last(may_come);
        if let (Some(task), Some(queues)) = (task, &self.eevdf) {
            queues.borrow_mut().leave(from, task.number());
        }
        self.unlock_queue(engine, from);
        let Some(task) = task else { return false };
        self.lock_queue(engine, here);
        let queue = &self.queues[here as usize];
        match &self.eevdf {
            Some(queues) => {
                task.queue.set(Some(here));
                queues.borrow_mut().arrive(here, task.number());
            }
            None => queue.place(here, task, &self.queues, Picos::MAX),
        }
        queue.insert(task);
        self.unlock_queue(engine, here);
        true
    }

    /// Continues the idle loop of a vCPU from where it rests until it rests again. Its coroutine then
    /// ends and returns the reason.
    pub(super) fn idle(&self, engine: &Engine, from: Rest) -> Suspend {
        // An idle loop never moves to another vCPU.
        let me = engine.cpu().task.get();
        match from {
            Rest::Fresh => {}
            Rest::Halted => {
                engine.unblocked(engine.cpu());
                engine.set_irqs(true);
            }
            Rest::Away => self.finish_switch(engine),
        }
        loop {
            let v = engine.cpu();
            let queue = self.queue(v);
            if let Some(moving) = queue.moving.get() {
                self.move_away(engine, moving);
            }
            if queue.len() > 0 || self.pull(engine) {
                if self.switch(engine) {
                    me.rest.set(Rest::Away);
                    return Suspend::SwitchTask;
                }
                continue;
            }
            // Interrupts stay off from the last look at the queue until the halt switches them on. So
            // a wake-up in between stays pending, and the halt returns at once.
            v.irqs.on.set(false);
            self.stop_tick(engine, v);
            if queue.len() == 0 {
                queue.resched.set(Resched::No);
                if engine.begin_block(Block::Halt) {
                    me.rest.set(Rest::Halted);
                    return Suspend::Operation;
                }
            }
            engine.set_irqs(true);
        }
    }
}
