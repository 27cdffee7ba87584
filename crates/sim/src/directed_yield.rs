//! Directed yields in the simulator: what the try to run another vCPU instead of one that spins costs.
//! `overspin_host::directed_yield` has the rules by which KVM chooses.
//!
//! # What it costs
//! `yield_to` of Linux takes the locks of two run queues, that of the spinner's pCPU and that of the
//! target's, the lower pCPU's first, and holds both while it works. A lock is a time until which it is
//! taken; those who want it get it in the order in which they ask:
//!
//! ```text
//!   spinner A  |- waits for q2 -|== holds q2, q5 ==|
//!   spinner B       |- waits for q5 (holds q3) ----|== holds q3, q5 ==|
//!   pass of p3            |- put off until q3 is free ----------------|
//! ```
//!
//! All that is time of the host on the spinner's thread: it runs, spins no more, and takes no
//! interrupts. A target that has moved to another queue meanwhile is tried again there. After a yield
//! that was taken the spinner's own pass waits for its queue anew. A scheduling pass waits for the
//! lock of its pCPU, and one that switches holds it until the switch is over (in Linux the next thread
//! releases it).
//!
//! Left out: wake-ups, ticks and balancing, which take these locks too, neither wait nor hold; a pCPU
//! whose pass is put off goes on running its guest, where a real one would spin in the host; locks get
//! no slower by their number of waiters; looking at siblings is free.
//!
//! # What the scheduler makes of it
//! The target becomes the next buddy of its own queue, and its pCPU passes; the spinner's pCPU passes
//! too. A buddy is a hint: who has run for longer than is fair is not picked (`crates/sched`, `linux`).

use crate::engine::Engine;
use crate::pause_loop::in_kernel;
use crate::vcpu::{Op, Vcpu};
use overspin_host::Moment;
use overspin_host::directed_yield::{Known, boost};
use overspin_scenario::{DirectedYieldRules as Rules, Picos, Why};

/// When the locks of two queues, taken until `low` and `high`, are released by someone who asks for
/// them at `now`, in this order, and needs them for `work`.
fn both_locks(now: Picos, low: Picos, high: Picos, work: Picos) -> Picos {
    // The first is held while the second is waited for.
    now.max(low).max(high).saturating_add(work)
}

impl Engine {
    /// Whether run queues have locks: there is somebody to contend for them.
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
    /// whether one took it. O(its siblings).
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

    /// `me`, the current vCPU, yields to `to`. Returns whether the scheduler took it; then the pass of
    /// its pCPU is due.
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

    /// Takes the locks of two run queues for a directed yield; returns when it is over.
    fn lock_run_queues(&self, a: u32, b: u32) -> Picos {
        let queue = |p: u32| &self.machine.pcpus[p as usize].run_queue;
        let (low, high) = (queue(a.min(b)), queue(a.max(b)));
        let work = self.scenario.host.costs.yield_to;
        let until = both_locks(self.now(), low.get(), high.get(), work);
        low.set(until);
        high.set(until);
        until
    }

    /// Whether the lock of the run queue of `pcpu`, which is to pass, is taken by somebody who asked
    /// earlier: then the pass comes when it is its turn.
    pub(crate) fn awaits_run_queue(&self, pcpu: u32) -> bool {
        let (p, now) = (&self.machine.pcpus[pcpu as usize], self.now());
        if p.run_queue.get() <= now || p.turn.get() == now {
            return false;
        }
        // Who asks later does not come before it.
        if p.turn.get() < now {
            p.turn.set(p.run_queue.get());
        }
        self.raise_softirq(pcpu, p.turn.get());
        true
    }

    /// `pcpu` switches, which takes `cost`, with the lock of its run queue held.
    pub(crate) fn holds_run_queue(&self, pcpu: u32, cost: Picos) {
        if self.locks_run_queues() {
            let queue = &self.machine.pcpus[pcpu as usize].run_queue;
            queue.set(queue.get().max(self.now()).saturating_add(cost));
        }
    }

    /// The thread of the current vCPU is in the host until `end`: no interrupt is taken.
    pub(crate) fn host_until(&self, end: Picos) {
        let now = self.now();
        if end > now {
            // Not as work, which a sibling thread would stretch: the end is known.
            let (v, left) = (self.cpu(), end - now);
            if self.time.is_free_until(end) || self.lengthen_leash(end) {
                self.step_until(end);
            } else {
                self.arm(v, Op::Step, v.run.shrink(left));
                self.suspend(crate::engine::Suspend::Operation);
            }
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
        // Three spinners that want the same target from three pCPUs get it one after another.
        let mut target = Picos::ZERO;
        let ends = [0, 1, 2].map(|at| {
            target = both_locks(Picos(at), Picos::ZERO, target, Picos(5));
            target.0
        });
        assert_eq!(ends, [5, 10, 15]);
    }
}
