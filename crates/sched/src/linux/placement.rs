//! Placement of waking vCPUs.

use super::Host;
use super::class::Class;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::Context;
use core::ops::Range;

impl<C: Class> Host<C> {
    /// Whether a sibling of `v` is queued or runs on `p`. O(members of the domain).
    pub(super) fn has_sibling(&self, machine: &Machine, v: VcpuId, p: PcpuId) -> bool {
        let domain = &self.domains[self.vcpus[v.index()].domain.index()];
        let mut others = domain.members.iter().filter(|m| **m != v);
        others.any(|m| self.vcpus[m.index()].queued && machine.home(*m) == p)
    }

    /// Fills `candidates` with the pCPUs on which `v` may be queued: its affinity. With balance
    /// scheduling the pCPUs of its siblings are left out, if any others remain.
    fn gather_candidates(&mut self, machine: &Machine, v: VcpuId) {
        let hard = machine.affinity(v).hard();
        self.candidates.copy_from(hard);
        if !self.tunables.balance {
            return;
        }
        let domain = &self.domains[self.vcpus[v.index()].domain.index()];
        for m in domain.members.iter().filter(|m| **m != v) {
            if self.vcpus[m.index()].queued {
                self.candidates.remove(machine.home(*m));
            }
        }
        if self.candidates.is_empty() {
            self.candidates.copy_from(hard);
        }
    }

    /// Finds an idle pCPU among the candidates in `range`, from `near` on; one of an idle core if
    /// possible.
    fn find_idle(&self, machine: &Machine, near: PcpuId, range: Range<u32>) -> Option<PcpuId> {
        let mates = |p| machine.topology().siblings(p);
        let whole = |p: PcpuId| self.idle.count_range(mates(p)) == mates(p).len() as u32;
        let first = self.idle.cycle_and_within(near, &self.candidates, range.clone())?;
        let mut p = first;
        while !whole(p) {
            p = self.idle.cycle_and_within(p, &self.candidates, range.clone())?;
            if p == first {
                break;
            }
        }
        Some(p)
    }

    /// Chooses the pCPU on which the waking `v` is queued: its home if that idles, else an idle pCPU
    /// that shares a cache with its home or with the pCPU that wakes it, else its home. A new vCPU goes
    /// to any idle pCPU, else to the least loaded.
    pub(super) fn select(&mut self, cx: &Context<'_>, v: VcpuId, new: bool) -> PcpuId {
        self.gather_candidates(cx, v);
        let home = cx.home(v);
        if self.candidates.contains(home) && self.idle.contains(home) {
            return home;
        }
        let topology = cx.topology();
        let near = topology.socket_mates(home);
        let waker = topology.socket_mates(cx.executing());
        let mut idle = self.find_idle(cx, home, near.clone());
        if idle.is_none() && waker != near {
            idle = self.find_idle(cx, cx.executing(), waker);
        }
        if idle.is_none() && new {
            idle = self.find_idle(cx, home, 0..cx.pcpus());
        }
        if let Some(p) = idle {
            return p;
        }
        if self.candidates.contains(home) && !new {
            return home;
        }
        let around = |p: &PcpuId| (p.0 + cx.pcpus() - home.0) % cx.pcpus();
        let load = |p: &PcpuId| self.queues[p.index()].load;
        self.candidates.iter().min_by_key(|p| (load(p), around(p))).unwrap_or(home)
    }
}
