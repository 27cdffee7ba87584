//! Both skew rules: which vCPUs are too far ahead, when they stop, and when they start again.

use super::Relaxed;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec::Vec;

impl Relaxed {
    fn waited_at(&self, now: Nanos, v: VcpuId) -> Nanos {
        let vcpu = &self.vcpus[v.index()];
        vcpu.waited + vcpu.waits.map_or(Nanos::ZERO, |since| now - since)
    }

    /// How long the slowest vCPU of `d` has waited. O(members).
    pub(super) fn slowest(&self, now: Nanos, d: DomainId) -> Option<Nanos> {
        self.domains[d.index()].members.iter().map(|v| self.waited_at(now, *v)).max()
    }

    /// Updates `uneven` for `d`, and keeps the sample timer running while there is a domain to
    /// examine.
    pub(super) fn note_uneven(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let domain = &self.domains[d.index()];
        let watched =
            domain.members.len() > 1 && (domain.waiting > 0 || domain.counter > Nanos::ZERO);
        if watched {
            self.uneven.insert(d);
        } else if self.per_vm || domain.members.len() < 2 {
            self.uneven.remove(&d);
        }
        self.arm(cx);
    }

    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        let sample = self.tunables.sample;
        if !self.uneven.is_empty() && !core::mem::replace(&mut self.sampling, true) {
            cx.set_timer(TimerId::Accounting, (cx.now().div_euclid(sample) + 1) * sample);
        }
    }

    pub(super) fn sample(&mut self, cx: &mut Context<'_>) {
        let mut next = self.uneven.first().copied();
        while let Some(d) = next {
            if self.per_vm {
                self.sample_vm(cx, d);
            } else {
                self.sample_vcpus(cx, d);
            }
            next = self.uneven.range(DomainId(d.0 + 1)..).next().copied();
        }
    }

    /// The rule of `cosched`.
    fn sample_vcpus(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let now = cx.now();
        let Some(slowest) = self.slowest(now, d) else { return };
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            let skew = slowest - self.waited_at(now, v);
            let stopped = self.vcpus[v.index()].stopped.is_some();
            if stopped && skew <= self.tunables.start {
                self.end_stop(now, v);
                self.return_to_ready(cx, v);
            } else if !stopped && skew > self.tunables.stop {
                if cx.is_runnable(v) {
                    self.stop(cx, v);
                } else {
                    // Blocked time counts as progress, but does not add a lead beyond `stop`.
                    self.vcpus[v.index()].waited += skew - self.tunables.stop;
                }
            }
        }
        // Skews grow no more, and this sample has seen them. Had the domain left when its last wait ended, a skew from just
        // before would grow by another sample in the next wait.
        if self.domains[d.index()].waiting == 0 {
            self.uneven.remove(&d);
        }
    }

    /// Co-stops `v`, which is ready or runs.
    fn stop(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus[v.index()].stopped = Some(cx.now());
        self.leave_seat(v);
        self.unready(v);
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        }
    }

    pub(super) fn end_stop(&mut self, now: Nanos, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        if let Some(since) = vcpu.stopped.take() {
            vcpu.costop += now - since;
        }
    }

    /// Makes `v`, which is no longer co-stopped, ready again if it has left its pCPU.
    fn return_to_ready(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.vcpus[v.index()].waits.is_some() {
            self.make_ready(v);
            self.tell(cx, v);
        }
    }

    /// The rule of `cosched-vm`.
    fn sample_vm(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let domain = &self.domains[d.index()];
        if let Some(since) = domain.stopped {
            if cx.now() - since >= self.tunables.quantum {
                self.release(cx, d, &[]);
            }
            return;
        }
        let runs = domain.members.iter().any(|v| cx.is_current(*v));
        let counter = match (domain.waiting > 0, runs) {
            (true, true) => domain.counter + self.tunables.sample,
            (true, false) => domain.counter,
            (false, _) => (domain.counter - self.tunables.sample).max(Nanos::ZERO),
        };
        self.domains[d.index()].counter = counter;
        self.note_uneven(cx, d);
        if counter > self.tunables.stop {
            self.stop_vm(cx, d);
        }
    }

    fn stop_vm(&mut self, cx: &mut Context<'_>, d: DomainId) {
        self.domains[d.index()].stopped = Some(cx.now());
        self.stopped.insert(d);
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if self.vcpus[v.index()].ready.is_some() {
                self.domains[d.index()].lagging.push(v);
            }
            if cx.is_runnable(v) {
                self.stop(cx, v);
            }
        }
        self.try_release(cx);
    }

    /// The laggards of `d` that still want to run.
    fn laggards(&self, d: DomainId) -> impl Iterator<Item = VcpuId> + '_ {
        let lagging = self.domains[d.index()].lagging.iter().copied();
        lagging.filter(|v| self.vcpus[v.index()].stopped.is_some())
    }

    /// The stopped VM that wins `p`: the one with the least virtual time among its laggards that
    /// may run here, if that is less than `other`, the virtual time of what else `p` could run.
    pub(super) fn winner(
        &self,
        cx: &Context<'_>,
        p: PcpuId,
        other: Option<i64>,
    ) -> Option<DomainId> {
        let vt = |v: VcpuId| self.vcpus[v.index()].vt;
        let least = |d: &DomainId| {
            let here = self.laggards(*d).filter(|v| cx.affinity(*v).hard().contains(p));
            Some((here.map(vt).min()?, *d))
        };
        let (vt, d) = self.stopped.iter().filter_map(least).min()?;
        other.is_none_or(|other| vt < other).then_some(d)
    }

    /// Releases the stopped VMs whose laggards can all have a pCPU now, won or idle.
    pub(super) fn try_release(&mut self, cx: &mut Context<'_>) {
        let mut next = self.stopped.first().copied();
        while let Some(d) = next {
            if let Some(seats) = self.find_seats(cx, d) {
                self.release(cx, d, &seats);
            }
            next = self.stopped.range(DomainId(d.0 + 1)..).next().copied();
        }
    }

    /// Finds a pCPU for each laggard of `d`, if there are enough.
    fn find_seats(&self, cx: &Context<'_>, d: DomainId) -> Option<Vec<(VcpuId, PcpuId)>> {
        let mut seats: Vec<(VcpuId, PcpuId)> = Vec::new();
        for v in self.laggards(d) {
            let mut free = cx.affinity(v).hard().iter().filter(|p| {
                let ours = self.won[p.index()] == Some(d);
                let held = self.seated[p.index()].is_some();
                !held && (ours || self.idle.contains(*p)) && seats.iter().all(|(_, s)| s != p)
            });
            seats.push((v, free.next()?));
        }
        Some(seats)
    }

    /// Ends the stop of `d`: vCPUs with a seat start there, the others are ready.
    fn release(&mut self, cx: &mut Context<'_>, d: DomainId, seats: &[(VcpuId, PcpuId)]) {
        self.stopped.remove(&d);
        let domain = &mut self.domains[d.index()];
        domain.stopped = None;
        domain.counter = Nanos::ZERO;
        domain.lagging.clear();
        for i in 0..self.won.len() {
            if self.won[i] == Some(d) {
                self.won[i] = None;
                cx.resched(PcpuId(i as u32));
            }
        }
        for (v, p) in seats {
            self.vcpus[v.index()].seat = Some(*p);
            self.seated[p.index()] = Some(*v);
            self.idle.remove(*p);
            cx.resched(*p);
        }
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if self.vcpus[v.index()].stopped.is_none() {
                continue;
            }
            self.end_stop(cx.now(), v);
            if self.vcpus[v.index()].seat.is_none() {
                self.return_to_ready(cx, v);
            } else {
                self.make_ready(v);
            }
        }
        self.note_uneven(cx, d);
    }
}
