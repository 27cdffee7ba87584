//! Locks of the host's run queues, on a host that makes directed yields.
//!
//! Linux's `yield_to` takes the run-queue locks of the spinner's pCPU and of the target's pCPU, the lower
//! pCPU's first, and holds both while it works. The model stores a lock as the time at which it becomes
//! free; requesters get it in the order in which they ask:
//!
//! ```text
//!   spinner A  |- waits for q2 -|== holds q2, q5 ==|
//!   spinner B       |- waits for q5 (holds q3) ----|== holds q3, q5 ==|
//!   pass of p3            |- put off until q3 is free ----------------|
//! ```
//!
//! These take a lock:
//!
//! | | holds it for | waits for it |
//! |---|---|---|
//! | a directed yield that may succeed | `yield_to` | on the spinner's thread, in the host |
//! | one whose target turns out to run | the transfer of the target's line | the same |
//! | a pass that switches | `context_switch` (the next thread releases it) | its pCPU leaves its guest meanwhile |
//! | a tick, or a wake-up | `run_queue` | no: these are short |
//!
//! A requester that had to wait gets the line of the lock from the pCPU that releases it, which takes a transfer.
//! Balancing between queues takes none of these locks here.

use crate::engine::Engine;
use overspin_scenario::Picos;
use std::cell::Cell;

/// The lock of one run queue.
#[derive(Debug, Default)]
pub(crate) struct RunQueueLock {
    /// When it becomes free.
    free: Cell<Picos>,
    /// The pCPU that has it, or had it last.
    by: Cell<u32>,
    /// When the scheduling pass that waits for it gets it.
    turn: Cell<Picos>,
}

impl RunQueueLock {
    /// When it becomes free.
    pub(crate) fn free(&self) -> Picos {
        self.free.get()
    }

    /// A holder on pCPU `by` has it until `until`.
    fn take(&self, by: u32, until: Picos) {
        self.free.set(until);
        self.by.set(by);
    }
}

/// When a requester releases the locks of two queues. It asks for them at `now`, in this order, and holds
/// both for `work`; it gets them at `low` and `high`, if other holders keep them.
fn both_locks(now: Picos, low: Picos, high: Picos, work: Picos) -> Picos {
    // The requester holds the first while it waits for the second.
    now.max(low).max(high).saturating_add(work)
}

impl Engine {
    /// Whether run queues have locks. They do only if directed yields can contend for them.
    pub(crate) fn locks_run_queues(&self) -> bool {
        self.machine.locks_run_queues.get()
    }

    /// Looks whether they do, once all vCPUs exist. No pool ever gets another scheduler.
    pub(crate) fn find_run_queue_locks(&self) {
        let host = &self.scenario.host;
        let may = host.directed_yield && host.pause_loop_exiting.is_some();
        let does = may && self.any_vcpu(|h, _| h.scheduler().directs_yields());
        self.machine.locks_run_queues.set(does);
    }

    fn lock_of(&self, pcpu: u32) -> &RunQueueLock {
        &self.machine.pcpus[pcpu as usize].run_queue
    }

    /// When a requester on `pcpu` has the lock that it asks for now.
    fn has(&self, lock: &RunQueueLock, pcpu: u32) -> Picos {
        if lock.free() <= self.now() {
            return lock.free();
        }
        lock.free() + self.machine.memory.distance(lock.by.get(), pcpu)
    }

    /// Takes the locks of the run queues of `me`, on which the requester runs, and `other`, for `work`; returns when it
    /// releases both.
    pub(crate) fn lock_run_queues(&self, me: u32, other: u32, work: Picos) -> Picos {
        let (low, high) = (self.lock_of(me.min(other)), self.lock_of(me.max(other)));
        let until = both_locks(self.now(), self.has(low, me), self.has(high, me), work);
        low.take(me, until);
        high.take(me, until);
        until
    }

    /// Whether the scheduling pass of `pcpu` must wait for its run queue's lock, which an earlier requester
    /// holds. If so, arranges the pass for when the lock becomes free.
    pub(crate) fn awaits_run_queue(&self, pcpu: u32) -> bool {
        let (lock, now) = (self.lock_of(pcpu), self.now());
        if lock.free() <= now || lock.turn.get() == now {
            return false;
        }
        // The turn is kept: later requesters do not come before the pass.
        if lock.turn.get() < now {
            lock.turn.set(self.has(lock, pcpu));
        }
        self.raise_softirq(pcpu, lock.turn.get());
        self.waits_in_host(pcpu);
        true
    }

    /// Holds the run queue's lock of `pcpu` while it switches, which takes `cost`.
    pub(crate) fn holds_run_queue(&self, pcpu: u32, cost: Picos) {
        if self.locks_run_queues() {
            let lock = self.lock_of(pcpu);
            lock.take(pcpu, lock.free().max(self.now()).saturating_add(cost));
        }
    }

    /// A tick or a wake-up uses the run queue of `pcpu`.
    pub(crate) fn uses_run_queue(&self, pcpu: u32) {
        self.holds_run_queue(pcpu, self.scenario.host.costs.run_queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lock_is_held_while_the_second_is_waited_for() {
        let ends = |low, high| both_locks(Picos(100), Picos(low), Picos(high), Picos(5)).0;
        assert_eq!(ends(0, 0), 105, "both free");
        assert_eq!(ends(110, 0), 115);
        assert_eq!(ends(110, 120), 125);
        // Three spinners on three pCPUs that want the same target's lock get it one after another.
        let mut target = Picos::ZERO;
        let ends = [0, 1, 2].map(|at| {
            target = both_locks(Picos(at), Picos::ZERO, target, Picos(5));
            target.0
        });
        assert_eq!(ends, [5, 10, 15]);
    }
}
