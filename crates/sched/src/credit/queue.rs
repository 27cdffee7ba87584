//! The run queues: one per pCPU, ordered by class, and first come, first served within a class.
//!
//! In the originals, the idle vCPU is last in the queue; here, the end of the list stands for it.
//! The accounting changes classes in place, so a queue can be out of order until the next tick of
//! its pCPU.

use super::{Credit, Priority};
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;

impl Credit {
    fn priority_of(&self, v: u32) -> Priority {
        self.vcpus[v as usize].priority
    }

    /// The class of the vCPU that `p` runs.
    pub(super) fn current_priority(&self, machine: &Machine, p: PcpuId) -> Priority {
        machine.current(p).map_or(Priority::Idle, |v| self.vcpus[v.index()].priority)
    }

    /// The first vCPU in the queue of `p`.
    pub(super) fn head(&self, p: PcpuId) -> Option<VcpuId> {
        self.pcpus[p.index()].queue.head().map(VcpuId)
    }

    /// Queues `v` behind all vCPUs of its class or above, before the first of a lower class. A vCPU
    /// that yields goes one place further back, behind that first one. O(queue).
    pub(super) fn enqueue(&mut self, p: PcpuId, v: VcpuId) {
        let priority = self.priority_of(v.0);
        let mut queue = self.pcpus[p.index()].queue;
        let mut before = self.run_links.iter(&queue).find(|x| self.priority_of(*x) < priority);
        if self.vcpus[v.index()].yields
            && let Some(lower) = before
        {
            before = self.run_links.next(lower);
        }
        self.run_links.insert_before(&mut queue, v.0, before);
        let pcpu = &mut self.pcpus[p.index()];
        pcpu.queue = queue;
        pcpu.queued += 1;
        self.waiting.insert(p);
    }

    /// Removes `v` from the queue of `p`, where it is queued, and ends its yield. O(1).
    pub(super) fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        self.run_links.remove(&mut pcpu.queue, v.0);
        pcpu.queued -= 1;
        if pcpu.queued == 0 {
            self.waiting.remove(p);
        }
        self.vcpus[v.index()].yields = false;
    }

    /// Repairs the queue of `p` if there was an accounting since the last repair: UNDER and above
    /// go before OVER, and the order stays otherwise. O(queue).
    pub(super) fn sort(&mut self, p: PcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        if core::mem::replace(&mut pcpu.sorted, self.epoch) == self.epoch {
            return;
        }
        let mut queue = pcpu.queue;
        // The next misplaced vCPU goes before the first OVER seen.
        let mut first_over = None;
        let mut at = queue.head();
        while let Some(x) = at {
            at = self.run_links.next(x);
            if self.priority_of(x) < Priority::Under {
                first_over = first_over.or(Some(x));
            } else if first_over.is_some() {
                self.run_links.remove(&mut queue, x);
                self.run_links.insert_before(&mut queue, x, first_over);
            }
        }
        self.pcpus[p.index()].queue = queue;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::*;
    use crate::params::Params;
    use crate::time::Nanos;
    use crate::{Context, DomainId, DomainParams, Hypervisor, Scheduler, Topology};
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    const P: PcpuId = PcpuId(0);

    /// A scheduler with three vCPUs of these classes, none queued.
    fn with_classes(classes: [Priority; 3]) -> Credit {
        let new = || Credit::new(&Profile::TODAY, &Params::default()).unwrap();
        // The layer makes the machine's records of the vCPUs; a second scheduler is under test.
        let topology = Topology::flat(1);
        let mut layer = Hypervisor::new(topology, Box::new(new()));
        let mut actions = Vec::new();
        layer.start(Nanos::ZERO, &mut actions);
        let params = DomainParams::default();
        let d = layer.create_domain(params).unwrap();
        for _ in classes {
            layer.create_vcpu(Nanos::ZERO, d, crate::Affinity::any(), &mut actions).unwrap();
        }
        let mut machine: Machine = layer.machine().clone();
        let mut credit = new();
        let cx = &mut Context {
            now: Nanos::ZERO,
            executing: P,
            machine: &mut machine,
            actions: &mut actions,
        };
        credit.start(cx);
        credit.create_domain(DomainId(0), params);
        for (i, class) in classes.into_iter().enumerate() {
            credit.insert(cx, VcpuId(i as u32));
            credit.vcpus[i].priority = class;
        }
        credit
    }

    fn order(credit: &Credit) -> Vec<u32> {
        credit.run_links.iter(&credit.pcpus[0].queue).collect()
    }

    #[test]
    fn a_yield_queues_one_place_further_back_example_c5() {
        let classes = [Priority::Under, Priority::Under, Priority::Over];
        let (a, b, c) = (VcpuId(0), VcpuId(1), VcpuId(2));
        for (yields, expected) in [(true, [1, 2, 0]), (false, [1, 0, 2])] {
            let mut credit = with_classes(classes);
            credit.enqueue(P, b);
            credit.enqueue(P, c);
            credit.vcpus[a.index()].yields = yields;
            credit.enqueue(P, a);
            assert_eq!(order(&credit), expected);
            credit.dequeue(P, a);
            assert!(!credit.vcpus[a.index()].yields, "a yield has its effect once");
        }
    }

    #[test]
    fn nobody_yields_to_the_idle_vcpu() {
        let mut credit = with_classes([Priority::Under; 3]);
        credit.enqueue(P, VcpuId(1));
        credit.vcpus[0].yields = true;
        credit.enqueue(P, VcpuId(0));
        assert_eq!(order(&credit), [1, 0]);
    }

    #[test]
    fn sorting_is_stable_and_happens_once_for_an_accounting() {
        let mut credit = with_classes([Priority::Under; 3]);
        (0..3).for_each(|v| credit.enqueue(P, VcpuId(v)));
        credit.vcpus[0].priority = Priority::Over;
        credit.sort(P);
        assert_eq!(order(&credit), [0, 1, 2], "no accounting, no repair");
        credit.epoch += 1;
        credit.sort(P);
        assert_eq!(order(&credit), [1, 2, 0]);
    }
}
