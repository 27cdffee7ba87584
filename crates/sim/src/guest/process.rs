//! How a kernel starts processes: where a new one runs, whom it preempts, and what happens when it executes a program.
//!
//! Linux 2.6.26 balanced the load when a process executed a program, not when it was forked: no scheduling domain of one
//! node has `SD_BALANCE_FORK` (`include/linux/topology.h`). So a child begins on the vCPU of its parent. It gets the
//! parent's place in the order of tasks, the parent goes a slice behind it, and the parent is preempted
//! (`task_new_fair` in `kernel/sched_fair.c`: `sysctl_sched_child_runs_first`, then `resched_task`, always).
//!
//! At `execve` (`sched_exec` in `kernel/sched.c`) the process counts the tasks of each vCPU, itself among them. If another
//! one has fewer, it asks the migration thread of its own vCPU to move it. That thread comes before all tasks: it preempts
//! the process, takes the locks of both run queues, moves the process, and interrupts the other vCPU with both locks held
//! (`__migrate_task`, `check_preempt_curr`).
//!
//! The idle loop of a vCPU stands for its migration thread: both have no workload, no virtual runtime and no account.

use super::balance::SLEEPER_SLICES;
use super::runqueue::Resched;
use super::{Guest, TaskRef};
use crate::engine::Engine;
use overspin_scenario::{NewProcess, Picos};

impl Guest {
    /// Starts `task`, on `vcpu` if that is given.
    pub(super) fn start_process(&self, engine: &Engine, task: TaskRef, vcpu: Option<u32>) {
        let here = engine.cpu().index;
        let in_place =
            self.domain.kernel.new_process == NewProcess::Linux2626 && self.may_run(task, here);
        if in_place && vcpu.is_none_or(|v| v == here) {
            self.child_runs_first(engine, task);
            return;
        }
        let target =
            vcpu.filter(|v| !self.avoids(task, *v)).unwrap_or_else(|| self.idlest(engine, task));
        self.lock_queue(engine, target);
        self.enqueue(engine, task, target, SLEEPER_SLICES * self.domain.kernel.slice);
    }

    /// Puts the new task before the current one, its parent, and lets it run.
    fn child_runs_first(&self, engine: &Engine, child: TaskRef) {
        self.lock_queue(engine, engine.cpu().index);
        let v = engine.cpu();
        let (queue, parent) = (self.queue(v), v.task.get());
        self.charge(engine, v);
        self.place(v.index, child, Picos::ZERO);
        // `sched_vslice_add`: the new task starts behind by its share of the latency, no less than a slice here.
        let slice = self.domain.kernel.slice;
        let tasks = queue.len() as u64 + 2;
        let behind = child.vruntime.get() + (SLEEPER_SLICES * slice / tasks).max(slice);
        child.vruntime.set(behind);
        if parent.vruntime.get() < behind {
            child.vruntime.set(parent.vruntime.replace(behind));
        }
        queue.insert(child);
        queue.resched.set(Resched::Now);
        self.unlock_queue(engine, v.index);
        self.schedule_if_needed(engine);
    }

    /// For the current task, which executes a program: moves it to a vCPU with fewer tasks, if the kernel does that.
    pub(super) fn exec(&self, engine: &Engine) {
        if self.domain.kernel.new_process == NewProcess::Balanced {
            return;
        }
        let (me, here) = (engine.cpu().task.get(), engine.cpu().index);
        let target = self.idlest(engine, me);
        if target == here {
            return;
        }
        // One turn with the lock to ask, and one to wake the thread that moves it.
        self.lock_queue(engine, here);
        self.queue(engine.cpu()).moving.set(Some((me, target)));
        self.unlock_queue(engine, here);
        self.lock_queue(engine, here);
        self.queue(engine.cpu()).resched.set(Resched::Now);
        self.unlock_queue(engine, here);
        self.schedule(engine);
    }

    /// For the thread of the current vCPU that moves tasks: moves one that waits here, unless it has left meanwhile.
    pub(super) fn move_away(&self, engine: &Engine, (task, target): (TaskRef, u32)) {
        let here = engine.cpu().index;
        self.lock_queue(engine, here);
        self.queue(engine.cpu()).moving.set(None);
        self.unlock_queue(engine, here);
        // Interrupts stay off until both locks are free, in whatever order that happens.
        engine.cpu().irqs.on.set(false);
        self.lock_queue(engine, here.min(target));
        self.lock_queue(engine, here.max(target));
        if self.queue(engine.cpu()).take(task) {
            if let Some(queues) = &self.eevdf {
                queues.borrow_mut().leave(here, task.number());
            }
            self.enqueue(engine, task, target, Picos::MAX);
        } else {
            self.unlock_queue(engine, target);
        }
        self.unlock_queue(engine, here);
        engine.set_irqs(true);
    }
}
