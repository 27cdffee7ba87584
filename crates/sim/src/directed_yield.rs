//! Directed yields in the simulator: a spinning vCPU tries to let a sibling run instead, at a cost.
//! `overspin_host::directed_yield` has the rules by which KVM chooses the sibling.
//!
//! # What it costs
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
//! All this is host time on the spinner's thread: the thread runs, does not spin, and takes no
//! interrupts. If the target has meanwhile moved to another queue, the spinner tries again there. After
//! a successful yield, the spinner's own pass waits for its queue anew. A scheduling pass waits for the
//! lock of its pCPU. A pass that switches holds the lock until the switch is over (in Linux the next
//! thread releases it).
//!
//! The model leaves out four things. Wake-ups, ticks and balancing take these locks in Linux; here they
//! neither wait for them nor hold them. A pCPU whose pass is put off goes on running its guest; a real one
//! would spin in the host. Locks do not get slower with the number of waiters. Looking at siblings is free.
//!
//! # What the scheduler makes of it
//! The target becomes the next buddy of its own queue. Its pCPU makes a scheduling pass, and so does the
//! spinner's. A buddy is only a hint: the scheduler does not pick a buddy that has run for longer than is
//! fair (`crates/sched`, `linux`).

use crate::engine::Engine;
use crate::pause_loop::in_kernel;
use crate::vcpu::{Op, Vcpu};
use overspin_host::Moment;
use overspin_host::directed_yield::{Known, boost};
use overspin_scenario::{DirectedYieldRules as Rules, Picos, Why};

/// When a requester releases the locks of two queues. It asks for them at `now`, in this order, and holds
/// both for `work`; other holders keep them until `low` and `high`.
fn both_locks(now: Picos, low: Picos, high: Picos, work: Picos) -> Picos {
    // The requester holds the first while it waits for the second.
    now.max(low).max(high).saturating_add(work)
}

impl Engine {
    /// Whether run queues have locks. They do only if directed yields can contend for them.
    fn locks_run_queues(&self) -> bool {
        self.scenario.host.directed_yield && self.scenario.host.pause_loop_exiting.is_some()
    }

    fn known(&self, v: &Vcpu) -> Known {
        Known {
            state: self.runstate(v.id),
            in_exit: v.spin.pauses.in_exit(),
            preempted: matches!(v.op.kind.get(), Op::Burn | Op::Step | Op::Spin),
            in_kernel: in_kernel(v),
            interrupt: v.irqs.pending.get() != 0,
        }
    }

    /// Looks for a sibling of `me`, the current vCPU, that may run instead, and yields to it. Returns
    /// whether the scheduler accepted such a yield. O(vCPUs of the domain).
    pub(crate) fn boost_a_sibling(&self, me: &Vcpu, rules: Rules) -> bool {
        let guest = self.guest(me.guest);
        let siblings = &self.vcpus[guest.first as usize..(guest.first + guest.vcpus) as usize];
        let boosted = boost(
            rules,
            in_kernel(me),
            (siblings.len(), me.index as usize, guest.last_boosted.get() as usize),
            |i| self.known(&siblings[i]),
            |i| siblings[i].spin.pauses.eligible(),
            |i| self.yield_to(me, &siblings[i]),
        );
        if let Some(boosted) = boosted {
            guest.last_boosted.set(boosted as u32);
        }
        boosted.is_some()
    }

    /// Makes `me`, the current vCPU, yield to `to`. Returns whether the scheduler accepted; if so, the
    /// scheduling pass of `me`'s pCPU is due.
    fn yield_to(&self, me: &Vcpu, to: &Vcpu) -> bool {
        let queue_of = |v: &Vcpu| self.look_at(v.id, |h, local| h.machine().home(local).0);
        loop {
            let queue = queue_of(to);
            self.host_until(self.lock_run_queues(me.run.pcpu.get(), queue));
            if queue_of(to) != queue {
                continue;
            }
            // A domain is in one pool.
            let local = self.look_at(to.id, |_, local| local);
            let taken = self
                .on_vcpu(me.run.pcpu.get(), me.id, |h, now, v, out| h.yield_to(now, v, local, out));
            if taken {
                self.tell(Moment::DirectedYield { from: me.id, to: to.id });
                me.leave.by_itself.set(true);
                self.host_until(self.machine.pcpus[me.run.pcpu.get() as usize].run_queue.get());
                me.leave.yielded.set((self.now(), Why::PauseLoop));
            }
            return taken;
        }
    }

    /// Takes the locks of two run queues for a directed yield; returns when the yield is over.
    fn lock_run_queues(&self, a: u32, b: u32) -> Picos {
        let queue = |p: u32| &self.machine.pcpus[p as usize].run_queue;
        let (low, high) = (queue(a.min(b)), queue(a.max(b)));
        let work = self.scenario.host.costs.yield_to;
        let until = both_locks(self.now(), low.get(), high.get(), work);
        low.set(until);
        high.set(until);
        until
    }

    /// Whether the scheduling pass of `pcpu` must wait for its run queue's lock, which an earlier requester
    /// holds. If so, arranges the pass for when the lock becomes free.
    pub(crate) fn awaits_run_queue(&self, pcpu: u32) -> bool {
        let (p, now) = (&self.machine.pcpus[pcpu as usize], self.now());
        if p.run_queue.get() <= now || p.turn.get() == now {
            return false;
        }
        // The turn is kept: later requesters do not come before the pass.
        if p.turn.get() < now {
            p.turn.set(p.run_queue.get());
        }
        self.raise_softirq(pcpu, p.turn.get());
        true
    }

    /// Holds the run queue's lock of `pcpu` while it switches, which takes `cost`.
    pub(crate) fn holds_run_queue(&self, pcpu: u32, cost: Picos) {
        if self.locks_run_queues() {
            let queue = &self.machine.pcpus[pcpu as usize].run_queue;
            queue.set(queue.get().max(self.now()).saturating_add(cost));
        }
    }

    /// Keeps the thread of the current vCPU in the host until `end`, where it takes no interrupt. `end` is a
    /// fixed time even on a slowed thread: a conversion to work and back would round it, but only if another event comes
    /// first.
    pub(crate) fn host_until(&self, end: Picos) {
        if end > self.now() {
            self.step_until(end);
        }
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
