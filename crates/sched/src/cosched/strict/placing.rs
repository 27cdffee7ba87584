//! Placement: which vCPU gets which pCPU, at a boundary and within a quantum.

use super::super::WEIGHT;
use super::Strict;
use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec;
use alloc::vec::Vec;

impl Strict {
    /// Reserves a free pCPU for `v`, its home if possible, and returns it.
    pub(super) fn seat(&mut self, machine: &Machine, v: VcpuId) -> Option<PcpuId> {
        let p = self.free.toc_and(machine.home(v), machine.affinity(v).hard())?;
        self.free.remove(p);
        self.slots[p.index()] = Some(v);
        self.vcpus[v.index()].slot = Some(p);
        Some(p)
    }

    pub(super) fn unseat(&mut self, v: VcpuId) {
        if let Some(p) = self.vcpus[v.index()].slot.take() {
            self.slots[p.index()] = None;
            self.free.insert(p);
        }
    }

    /// Places `d` if there is a pCPU for each of its vCPUs that wants to run; if `any`, places it
    /// with as many as fit.
    pub(super) fn place(&mut self, cx: &Context<'_>, d: DomainId, any: bool) -> bool {
        let vcpus = &self.vcpus;
        let awake = |v: &&VcpuId| vcpus[v.index()].awake;
        let mut members: Vec<_> =
            self.domains[d.index()].members.iter().filter(awake).copied().collect();
        members.sort_by_key(|v| (self.vcpus[v.index()].ran, *v));
        let mut fits = !members.is_empty();
        for v in &members {
            fits &= self.seat(cx, *v).is_some();
        }
        let placed = fits || any;
        if !placed {
            members.iter().for_each(|v| self.unseat(*v));
        }
        self.domains[d.index()].placed = placed.then(|| cx.now());
        placed
    }

    /// Handles a boundary: charges the placed VMs, and places VMs anew.
    pub(super) fn boundary(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        for domain in &mut self.domains {
            if let Some(since) = domain.placed.take() {
                domain.vt += (now - since).0 * WEIGHT / domain.weight;
            }
        }
        // A vCPU that keeps its pCPU makes no pass, which would charge it.
        for v in (0..cx.pcpus()).filter_map(|p| cx.current(PcpuId(p))) {
            self.charge(now, v);
        }
        let before = core::mem::replace(&mut self.slots, vec![None; cx.pcpus() as usize]);
        before.iter().flatten().for_each(|v| self.vcpus[v.index()].slot = None);
        self.free = CpuSet::all(cx.pcpus());
        self.began = None;
        let mut order: Vec<_> =
            self.awake.iter().map(|d| (self.domains[d.index()].vt, *d)).collect();
        order.sort_unstable();
        for (i, (_, d)) in order.iter().enumerate() {
            self.place(cx, *d, i == 0);
        }
        if !order.is_empty() {
            self.began = Some(now);
            cx.set_timer(TimerId::Accounting, now + self.quantum);
        }
        for p in (0..cx.pcpus()).map(PcpuId) {
            let stays = self.slots[p.index()] == cx.current(p) && !self.backfill;
            if !stays && cx.pool().contains(p) {
                cx.resched(p);
            }
        }
    }

    /// Charges `v`, which runs, up to now.
    pub(super) fn charge(&mut self, now: Nanos, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.ran += now - vcpu.charged;
        vcpu.charged = now;
    }

    /// Counts `v` as wanting to run, or not.
    pub(super) fn set_awake(&mut self, v: VcpuId, awake: bool) {
        let vcpu = &mut self.vcpus[v.index()];
        if core::mem::replace(&mut vcpu.awake, awake) == awake {
            return;
        }
        let d = vcpu.domain;
        let domain = &mut self.domains[d.index()];
        if awake {
            domain.awake += 1;
            self.awake.insert(d);
        } else {
            domain.awake -= 1;
            if domain.awake == 0 {
                self.awake.remove(&d);
            }
        }
    }

    /// With backfill: the vCPU that `p`, which has nothing to run, takes.
    pub(super) fn find_filler(&self, cx: &Context<'_>, p: PcpuId) -> Option<VcpuId> {
        let current = cx.current(p);
        let fits = |v: &&VcpuId| {
            let vcpu = &self.vcpus[v.index()];
            let here = current == Some(**v) || !cx.is_running(**v);
            vcpu.awake && vcpu.slot.is_none() && here && cx.affinity(**v).hard().contains(p)
        };
        let mut order: Vec<_> =
            self.awake.iter().map(|d| (self.domains[d.index()].vt, *d)).collect();
        order.sort_unstable();
        order.iter().find_map(|(_, d)| self.domains[d.index()].members.iter().find(fits).copied())
    }

    /// With backfill: tells the pCPUs that run nothing that `v` waits.
    pub(super) fn tell_idle(&self, cx: &mut Context<'_>, v: VcpuId) {
        for p in (0..cx.pcpus()).map(PcpuId) {
            if cx.current(p).is_none() && cx.affinity(v).hard().contains(p) {
                cx.resched(p);
            }
        }
    }
}
