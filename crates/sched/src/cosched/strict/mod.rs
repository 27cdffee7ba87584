//! Strict co-scheduling: all vCPUs of a VM run at once, or none (VMware ESX 2).
//!
//! At the boundaries of a common quantum, the scheduler takes VMs in the order of their virtual time (wall time on
//! the machine, divided by shares). A VM that finds a free pCPU for each of its vCPUs that want to run is *placed*
//! until the next boundary; any other VM waits. All else idles: the remaining pCPUs, and the pCPU of a vCPU that
//! blocks, until that vCPU wakes. This *fragmentation* is the price. With `backfill` such pCPUs take single vCPUs
//! of VMs that are not placed.
//!
//! Invariants (without backfill): at each boundary, of the vCPUs of a VM that want to run, all run or none does. No
//! starvation: the first VM finds all pCPUs free. Not work-conserving.
//!
//! Source: schedulers specification §10. Decisions where it is silent: a quantum begins at once if nothing is
//! placed. A vCPU that wakes during a quantum takes the pCPU kept for it; without one, it takes a free pCPU if its
//! VM is placed; a VM that is not placed is placed if it fits now. The first VM in order is placed even if there is
//! not a pCPU for each of its vCPUs: as many as fit run, those that ran least first.

mod invariants;
mod placing;

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

#[derive(Debug)]
struct Vcpu {
    domain: DomainId,
    /// The pCPU kept for it until the next boundary.
    slot: Option<PcpuId>,
    /// Total run time; while the vCPU runs, charged up to `charged`.
    ran: Nanos,
    charged: Nanos,
    /// Wants to run.
    awake: bool,
}

#[derive(Debug)]
struct Domain {
    weight: i64,
    members: Vec<VcpuId>,
    /// Virtual time: time placed, in ns at [`WEIGHT`](super::WEIGHT).
    vt: i64,
    awake: u32,
    /// Since when it is placed.
    placed: Option<Nanos>,
}

/// The strict co-scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a boundary is O(VMs that want to run × log + their vCPUs × pCPUs); a pass is O(1), or
/// O(vCPUs that wait) with backfill; a wake-up is O(pCPUs/64).
#[derive(Debug)]
pub(super) struct Strict {
    quantum: Nanos,
    backfill: bool,
    domains: Vec<Domain>,
    vcpus: Vec<Vcpu>,
    slots: Vec<Option<VcpuId>>,
    /// pCPUs that are kept for no vCPU.
    free: CpuSet,
    /// Domains with a vCPU that wants to run.
    awake: BTreeSet<DomainId>,
    /// When the current quantum began; None between the last quantum and the next wake-up.
    began: Option<Nanos>,
}

impl Strict {
    pub(super) fn new(quantum: Nanos, backfill: bool) -> Self {
        Self {
            quantum,
            backfill,
            domains: Vec::new(),
            vcpus: Vec::new(),
            slots: Vec::new(),
            free: CpuSet::empty(0),
            awake: BTreeSet::new(),
            began: None,
        }
    }
}

impl Scheduler for Strict {
    fn name(&self) -> &'static str {
        super::STRICT.name
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.slots = vec![None; cx.pcpus() as usize];
        self.free = CpuSet::all(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        let weight = params.weight.into();
        self.domains.push(Domain { weight, members: Vec::new(), vt: 0, awake: 0, placed: None });
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        // Takes effect at the next boundary, which charges the whole quantum at the new weight.
        self.domains[d.index()].weight = params.weight.into();
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let domain = cx.domain_of(v);
        self.domains[domain.index()].members.push(v);
        self.vcpus.push(Vcpu {
            domain,
            slot: None,
            ran: Nanos::ZERO,
            charged: Nanos::ZERO,
            awake: false,
        });
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, _cx: &mut Context<'_>, v: VcpuId) {
        self.unseat(v);
        self.domains[self.vcpus[v.index()].domain.index()].members.retain(|m| *m != v);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.vcpus[v.index()].awake {
            return;
        }
        let d = self.vcpus[v.index()].domain;
        if self.domains[d.index()].awake == 0 {
            // A VM gains nothing by having slept.
            let others = self.awake.iter().map(|o| self.domains[o.index()].vt);
            let least = others.min().unwrap_or(0);
            let domain = &mut self.domains[d.index()];
            domain.vt = domain.vt.max(least);
        }
        self.set_awake(v, true);
        if self.began.is_none() {
            return self.boundary(cx);
        }
        let placed = self.domains[d.index()].placed.is_some();
        let slot = self.vcpus[v.index()].slot;
        let slot = slot.or_else(|| placed.then(|| self.seat(cx, v))?);
        if let Some(p) = slot {
            cx.resched(p);
        } else if !placed && self.place(cx, d, false) {
            let slots = self.domains[d.index()].members.iter();
            slots.filter_map(|m| self.vcpus[m.index()].slot).for_each(|p| cx.resched(p));
        } else if self.backfill {
            self.tell_idle(cx, v);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        } else {
            self.set_awake(v, false);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let home = cx.home(v);
        cx.affinity(v).hard().toc(home).unwrap_or(home)
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        let current = cx.current(p);
        if let Some(v) = current {
            self.charge(now, v);
            if !cx.is_runnable(v) {
                self.set_awake(v, false);
            }
        }
        let slot = self.slots[p.index()]
            .filter(|v| self.vcpus[v.index()].awake && (current == Some(*v) || !cx.is_running(*v)));
        let filler = || self.backfill.then(|| self.find_filler(cx, p)).flatten();
        let next = slot.or_else(filler);
        if let Some(v) = next {
            self.vcpus[v.index()].charged = now;
            cx.set_home(v, p);
        }
        Decision { next, slice: None }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        // The pass that should have taken `v` came too early, before its registers were saved.
        match self.vcpus[v.index()].slot {
            Some(p) => cx.resched(p),
            None if self.backfill && self.vcpus[v.index()].awake => self.tell_idle(cx, v),
            None => {}
        }
    }

    fn affinity_changed(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        // `v` may no longer be allowed on the pCPU kept for it.
        if self.vcpus[v.index()].slot.is_some_and(|p| !cx.affinity(v).hard().contains(p)) {
            self.unseat(v);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _timer: TimerId) {
        self.boundary(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let domain = &self.domains[vcpu.domain.index()];
        let placed = domain.placed.is_some();
        let class = if placed { "placed" } else { "waiting" };
        Some(Detail { class, credit: domain.vt, active: placed })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
