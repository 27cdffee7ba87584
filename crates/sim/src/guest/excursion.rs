//! Entries of a task from user mode into its kernel at given places: in the middle of a section, and until another vCPU wakes it.
//!
//! The return to user mode is where the kernel lets another task take over if that is due. Every kernel has this point.
//! What differs is what comes due there: a kernel that preempts lazily does not interrupt a vCPU for a task that wakes on
//! it, and leaves the request to the next return. All requests that came since the latest return then meet at the excursion, with
//! the lock held. A kernel that interrupts takes over at once, wherever the task is. In the kernel itself `kernel.preemption` says
//! whether a request that cannot wait is honoured before the return.
//!
//! The return from a fault grants an extension of the time slice to a task that asks ([`slice`](super::slice)), as that from an interrupt
//! does. A system call ends it.

use super::slice::Ends;
use super::{Guest, TaskRef, TaskState};
use crate::engine::Engine;
use overspin_scenario::{ExcursionOutcome, Picos, Preemption};
use overspin_workload::{Excursion, Mode};
use std::cell::Cell;

/// The excursions of a guest.
#[derive(Debug, Default)]
pub(crate) struct Excursions(Cell<ExcursionOutcome>);

impl Guest {
    /// The number of excursions; `None` if its tasks make none.
    pub(crate) fn excursion_outcome(&self) -> Option<ExcursionOutcome> {
        self.loads.make_excursions().then(|| self.excursions.0.get())
    }

    /// `task`, the current one, is in its kernel for `time`, and returns to user mode.
    pub(super) fn excursion(&self, engine: &Engine, task: TaskRef, kind: Excursion, time: Picos) {
        let before = task.preemptions.get();
        match kind {
            Excursion::Fault => {
                task.mode.set(Mode::Kernel);
                self.kernel_work(engine, task, time);
                self.schedule_or_extend(engine);
                task.mode.set(Mode::User);
            }
            Excursion::SystemCall => {
                self.system_call(engine, Ends::Aborted, || self.kernel_work(engine, task, time));
            }
        }
        let mut counts = self.excursions.0.get();
        counts.number += 1;
        counts.preempted += u64::from(task.preemptions.get() != before);
        self.excursions.0.set(counts);
    }

    /// Work of `task`, the current one, in the kernel, where it holds no lock of the kernel.
    pub(super) fn kernel_work(&self, engine: &Engine, task: TaskRef, work: Picos) {
        let preemption = self.domain.kernel.preemption;
        task.preemptible.set(preemption >= Preemption::Lazy);
        engine.burn(work);
        task.preemptible.set(false);
        if preemption == Preemption::Voluntary {
            self.schedule_if_needed(engine);
        }
    }

    /// `task`, the current one, sleeps for `time`. An interrupt of a vCPU by lot wakes it.
    pub(super) fn sleep_until_woken(&self, engine: &Engine, task: TaskRef, time: Picos) {
        self.end_extension(engine, Ends::Aborted);
        let until = engine.now() + time;
        task.state.set(TaskState::Sleeping);
        task.woken_elsewhere.set(true);
        let by = self.random_bits(engine, task.number(), WAKERS ^ task.sleeps.get() as u32);
        let other = &engine.vcpus[self.first as usize + (by % u64::from(self.vcpus)) as usize];
        // One that has not come up yet takes no interrupts.
        let v = if other.run.dispatches.get() > 0 { other } else { engine.cpu() };
        self.queue(v).sleep_until(until, task);
        // The device knows the time: it costs no vCPU anything to arm it.
        if v.irqs.timer.due() > until {
            engine.set_guest_timer(v, until);
        }
        self.schedule(engine);
    }

    /// The vCPU for `task`, whose sleep has ended on vCPU `here`.
    pub(super) fn woken_on(&self, engine: &Engine, task: TaskRef, here: u32) -> u32 {
        if task.woken_elsewhere.replace(false) { self.target(engine, task) } else { here }
    }
}

/// The purpose of the random numbers for the vCPUs that wake tasks; workloads count theirs from 0.
const WAKERS: u32 = 1 << 31;
