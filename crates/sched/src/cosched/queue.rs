//! The queue: virtual times, waiting and ready vCPUs, and which pCPU is told.

use super::{Relaxed, WEIGHT};
use crate::ids::{DomainId, PcpuId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub domain: DomainId,
    /// Virtual time: run time in ns at [`WEIGHT`]; while the vCPU runs, charged up to `charged`.
    pub vt: i64,
    pub charged: Nanos,
    /// When its quantum began.
    pub picked: Nanos,
    pub yields: bool,
    /// Its virtual time when it was queued; None if it is not ready.
    pub ready: Option<i64>,
    /// Since when it is co-stopped.
    pub stopped: Option<Nanos>,
    /// Time co-stopped until `stopped`.
    pub costop: Nanos,
    /// Since when it waits: ready, or co-stopped and off its pCPU.
    pub waits: Option<Nanos>,
    /// Time waited until `waits`. Less waiting means more progress.
    pub waited: Nanos,
    /// The pCPU on which it starts together with its siblings.
    pub seat: Option<PcpuId>,
}

#[derive(Debug)]
pub(super) struct Domain {
    pub weight: i64,
    pub members: Vec<VcpuId>,
    /// Members that wait.
    pub waiting: u32,
    /// `cosched-vm`: the counter; since when all members are stopped; the members that lagged then.
    pub counter: Nanos,
    pub stopped: Option<Nanos>,
    pub lagging: Vec<VcpuId>,
}

impl Relaxed {
    pub(super) fn vt_at(&self, now: Nanos, v: VcpuId) -> i64 {
        let vcpu = &self.vcpus[v.index()];
        let weight = self.domains[vcpu.domain.index()].weight;
        vcpu.vt + (now - vcpu.charged).0 * WEIGHT / weight
    }

    pub(super) fn charge(&mut self, now: Nanos, v: VcpuId) {
        self.vcpus[v.index()].vt = self.vt_at(now, v);
        self.vcpus[v.index()].charged = now;
    }

    /// The least virtual time of all running and ready vCPUs. O(pCPUs).
    pub(super) fn least(&self, cx: &Context<'_>) -> Option<i64> {
        let running = (0..cx.pcpus()).filter_map(|p| cx.current(PcpuId(p)));
        let running = running.map(|v| self.vt_at(cx.now(), v));
        running.chain(self.ready.first().map(|(vt, _)| *vt)).min()
    }

    /// Tells an idle pCPU to look for `v`, if `v` has left its pCPU. Returns whether it told one.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, v: VcpuId) -> bool {
        if cx.is_running(v) {
            return false;
        }
        let Some(p) = self.idle.toc_and(cx.home(v), cx.affinity(v).hard()) else { return false };
        self.idle.remove(p);
        cx.resched(p);
        true
    }

    /// Records that `v` waits from now on.
    pub(super) fn begin_wait(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.waits = Some(cx.now());
        let d = vcpu.domain;
        self.domains[d.index()].waiting += 1;
        self.note_uneven(cx, d);
    }

    pub(super) fn end_wait(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        if let Some(since) = vcpu.waits.take() {
            vcpu.waited += cx.now() - since;
            let d = vcpu.domain;
            self.domains[d.index()].waiting -= 1;
            self.note_uneven(cx, d);
        }
    }

    /// Makes `v`, which waits and is off its pCPU, ready.
    pub(super) fn make_ready(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.ready = Some(vcpu.vt);
        self.ready.insert((vcpu.vt, v));
    }

    pub(super) fn unready(&mut self, v: VcpuId) {
        if let Some(vt) = self.vcpus[v.index()].ready.take() {
            self.ready.remove(&(vt, v));
        }
    }

    /// Removes `v`, which no longer wants to run and is off its pCPU, from the queue and its seat.
    pub(super) fn leave(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.unready(v);
        self.end_stop(cx.now(), v);
        self.end_wait(cx, v);
        self.leave_seat(v);
    }

    pub(super) fn leave_seat(&mut self, v: VcpuId) {
        if let Some(p) = self.vcpus[v.index()].seat.take() {
            self.seated[p.index()] = None;
        }
    }

    /// Whether `p` may choose `v`, which is ready.
    pub(super) fn may_take(&self, cx: &Context<'_>, p: PcpuId, v: VcpuId) -> bool {
        let seat = self.vcpus[v.index()].seat;
        !cx.is_running(v) && seat.is_none_or(|s| s == p) && cx.affinity(v).hard().contains(p)
    }
}
