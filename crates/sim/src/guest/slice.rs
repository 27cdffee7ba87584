//! Extensions of time slices (rseq, Linux 7.0): a task that asks may finish its section before another one takes over.
//!
//! The task writes its request before, and the kernel reads it where an interrupt would let another task take over on the
//! return to user mode. The kernel grants one extension for each preemption, and a timer bounds it. The task gives the rest
//! back by a system call after its section. Any other system call ends the extension too, and a switch to another task clears
//! request and grant. The host knows nothing of this: it preempts the vCPU as ever.
//!
//! # Costs
//! Setting the request is a store, withdrawing it a store and a look: cache hits. Giving back is a system call. The timer is
//! programmed for the grant and again for what follows: each is a hypercall, like all programming of a guest's timer.

use super::runqueue::Resched;
use super::{Guest, TaskRef};
use crate::engine::Engine;
use overspin_scenario::ExtensionOutcome;
use overspin_workload::SliceRequest;
use std::cell::Cell;

/// What a task and its kernel tell each other.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    asks: Cell<bool>,
    granted: Cell<bool>,
    /// It takes a lock, and withdraws its request while it waits for it.
    stands_back: Cell<bool>,
}

/// How an extension ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    Yielded,
    Aborted,
    Expired,
    Revoked,
}

/// The extensions of a guest.
#[derive(Debug, Default)]
pub(crate) struct Extensions(Cell<ExtensionOutcome>);

impl Extensions {
    fn count(&self, what: impl FnOnce(&mut ExtensionOutcome)) {
        let mut counts = self.0.get();
        what(&mut counts);
        self.0.set(counts);
    }

    /// Takes request and grant from `task`. Returns whether it had an extension, which then `ends` so.
    fn clear(&self, task: TaskRef, ends: Ends) -> bool {
        task.slice.asks.set(false);
        let granted = task.slice.granted.replace(false);
        if granted {
            self.count(|c| match ends {
                Ends::Yielded => c.yielded += 1,
                Ends::Aborted => c.aborted += 1,
                Ends::Expired => c.expired += 1,
                Ends::Revoked => c.revoked += 1,
            });
        }
        granted
    }
}

impl Guest {
    /// What came of the extensions; `None` if the kernel has none.
    pub(crate) fn extension_outcome(&self) -> Option<ExtensionOutcome> {
        self.domain.kernel.slice_extension.map(|_| self.extensions.0.get())
    }

    /// The return from an interrupt to user mode: lets other tasks run if that is due and no extension puts it off.
    pub(super) fn schedule_or_extend(&self, engine: &Engine) {
        while self.queue(engine.cpu()).resched.get() != Resched::No {
            if !self.grants(engine) {
                self.schedule(engine);
            }
        }
    }

    /// Grants the current task an extension if it asks for one and has none.
    fn grants(&self, engine: &Engine) -> bool {
        let Some(length) = self.domain.kernel.slice_extension else { return false };
        let task = engine.cpu().task.get();
        if task.slice.granted.get() || !task.slice.asks.get() {
            self.extensions.clear(task, Ends::Revoked);
            return false;
        }
        task.slice.asks.set(false);
        task.slice.granted.set(true);
        self.extensions.count(|c| c.granted += 1);
        let queue = self.queue(engine.cpu());
        queue.resched.set(Resched::No);
        queue.extension.set(Some(engine.now() + length));
        self.program_extension(engine);
        true
    }

    /// Programs the timer of the current vCPU after a change of its extension.
    fn program_extension(&self, engine: &Engine) {
        engine.cpu().irqs.on.set(false);
        self.program_timer(engine, engine.cpu());
        engine.set_irqs(true);
    }

    /// Handles the end of an extension in the timer interrupt of the current vCPU. A task that had it may have left without
    /// cancelling the timer.
    pub(super) fn extension_expires(&self, engine: &Engine) {
        let v = engine.cpu();
        let queue = self.queue(v);
        if queue.extension.get().is_some_and(|until| until <= engine.now()) {
            queue.extension.set(None);
            if self.extensions.clear(v.task.get(), Ends::Expired) {
                queue.resched.set(Resched::Now);
            }
        }
    }

    /// A system call of the current task ends its extension, if it has one: other tasks run at once.
    pub(super) fn end_extension(&self, engine: &Engine, ends: Ends) {
        let task = engine.cpu().task.get();
        if self.extensions.clear(task, ends) {
            let queue = self.queue(engine.cpu());
            queue.extension.set(None);
            queue.resched.set(Resched::Now);
            self.program_extension(engine);
            self.schedule_if_needed(engine);
        }
    }

    /// `task` leaves its vCPU to another one.
    pub(super) fn leave_extension(&self, task: TaskRef) {
        self.extensions.clear(task, Ends::Revoked);
    }

    /// `task`, the current one, takes a lock in user mode, and asks for extensions from now on, or from when it does not wait.
    pub(super) fn ask_to_take(&self, engine: &Engine, task: TaskRef, when: SliceRequest) {
        task.slice.stands_back.set(when == SliceRequest::Holding);
        task.slice.ask(engine);
    }

    /// The current task, in user mode, withdraws its request, and gives an extension back.
    pub(super) fn withdraw_request(&self, engine: &Engine, task: TaskRef) {
        engine.burn(2 * engine.scenario.host.costs.cache_hit);
        task.slice.asks.set(false);
        if task.slice.granted.get() {
            self.system_call(engine, Ends::Yielded, || {});
        }
    }
}

impl Slice {
    /// The task has the lock.
    pub(super) fn holds(&self) {
        self.stands_back.set(false);
    }

    fn ask(&self, engine: &Engine) {
        engine.burn(engine.scenario.host.costs.cache_hit);
        self.asks.set(true);
    }
}

impl Engine {
    /// Before the code that runs waits for a lock: withdraws the request of a task that asks as a holder only. Returns this
    /// task.
    #[inline(always)]
    pub(crate) fn stand_back(&self) -> Option<TaskRef> {
        let task = self.user_task().filter(|task| task.slice.stands_back.get());
        if let Some(task) = task {
            self.withdraw(task);
        }
        task
    }

    #[cold]
    #[inline(never)]
    fn withdraw(&self, task: TaskRef) {
        self.guest(task.guest).withdraw_request(self, task);
    }

    /// After the wait, before the lock is tried again.
    #[inline(always)]
    pub(crate) fn ask_again(&self, task: Option<TaskRef>) {
        if let Some(task) = task {
            task.slice.ask(self);
        }
    }
}
