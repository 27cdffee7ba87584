//! Relaxed co-scheduling, as in VMware ESX since 3.x: the vCPUs of a VM may run at different times as long as none
//! falls too far behind.
//!
//! All pCPUs share one queue, ordered by virtual time (run time divided by shares). A vCPU runs until the end of
//! its quantum, or until it is co-stopped; nothing else preempts it:
//!
//! ```text
//!            least virtual time
//!  wake ──▶ ready ──────────▶ running
//!             ▲  ◀────────────  │
//!             │   quantum over  │ too far ahead
//!             │ skew ≤ start    ▼ (also from ready)
//!             └──────────── co-stopped
//! ```
//!
//! | Name | Measured at each sample | Stopped vCPUs, and until when |
//! |---|---|---|
//! | `cosched` (ESX 4 and later) | *skew* of a vCPU: its progress minus that of its slowest sibling; it progresses while it runs or blocks | vCPUs with skew > stop; until skew ≤ start |
//! | `cosched-vm` (ESX 3.x) | one counter for the VM: it rises while one sibling runs and another is ready, and falls while none is ready | all, when the counter is above stop; until there are pCPUs for all that lagged, which then start at one instant |
//!
//! To its guest, a co-stopped vCPU is runnable. [`Scheduler::costop`] returns how long it was held.
//!
//! Invariants: no skew above stop + sample; no starvation (least virtual time first). Not work-conserving: pCPUs
//! idle while vCPUs are co-stopped. There are no caps; a yield only makes the pCPU choose again. A domain's weight
//! 256 stands for the 1000 shares of a vCPU.
//!
//! Source: schedulers specification §10. ESX is closed source: its rules are published; the constants and the queue
//! are the specification's model. Decisions where it is silent: progress is exact, not in whole samples (all time
//! except waiting counts). A blocked vCPU is never ahead by more than stop, so that a long sleep does not cause a
//! long stop. An added vCPU starts level with the slowest. `cosched-vm`: if the best choice of a pCPU, by virtual
//! time, is a stopped VM, that VM *wins* the pCPU, which idles for it. After a quantum a stopped VM is released in
//! any case, since affinities may make its start impossible.
//!
//! Files: `mod` (events and passes), [`queue`] (virtual times, waiting vCPUs), [`skew`] (both rules), [`params`], [`invariants`]
//! (what must always hold), [`strict`] (another scheduler: all vCPUs at once, or none).

mod invariants;
mod params;
mod queue;
mod skew;
mod strict;

pub(crate) use params::{RELAXED_VCPU, RELAXED_VM, STRICT};

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use params::Tunables;
use queue::{Domain, Vcpu};

/// Weight of a domain at which virtual time is run time.
const WEIGHT: i64 = 256;

/// The relaxed co-scheduler. Made by name with [`make`](crate::make).
///
/// Costs, for n ready vCPUs: a pass is O(log n), or O(n) with affinities in the way; a wake-up is O(log n + pCPUs);
/// a sample is O(vCPUs of the VMs in which a vCPU waits).
#[derive(Debug)]
struct Relaxed {
    tunables: Tunables,
    per_vm: bool,
    domains: Vec<Domain>,
    vcpus: Vec<Vcpu>,
    ready: BTreeSet<(i64, VcpuId)>,
    /// Domains that a sample examines: those with at least two vCPUs, and a waiting vCPU, now or (`cosched`) since the last
    /// sample, or a counter above 0.
    uneven: BTreeSet<DomainId>,
    /// `cosched-vm`: domains that are stopped, and the pCPUs that they won.
    stopped: BTreeSet<DomainId>,
    won: Vec<Option<DomainId>>,
    /// The vCPU that starts on each pCPU together with its siblings.
    seated: Vec<Option<VcpuId>>,
    sampling: bool,
    /// pCPUs that run their idle vCPU, have not been told since to look for work, and are not won.
    idle: CpuSet,
}

impl Relaxed {
    fn new(per_vm: bool, tunables: Tunables) -> Self {
        Self {
            tunables,
            per_vm,
            domains: Vec::new(),
            vcpus: Vec::new(),
            ready: BTreeSet::new(),
            uneven: BTreeSet::new(),
            stopped: BTreeSet::new(),
            won: Vec::new(),
            seated: Vec::new(),
            sampling: false,
            idle: CpuSet::empty(0),
        }
    }
}

impl Scheduler for Relaxed {
    fn name(&self) -> &'static str {
        if self.per_vm { RELAXED_VM.name } else { RELAXED_VCPU.name }
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.idle = CpuSet::all(cx.pcpus());
        self.won = vec![None; cx.pcpus() as usize];
        self.seated = vec![None; cx.pcpus() as usize];
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domains.push(Domain {
            weight: params.weight.into(),
            members: Vec::new(),
            waiting: 0,
            counter: Nanos::ZERO,
            stopped: None,
            lagging: Vec::new(),
        });
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if cx.is_current(v) {
                self.charge(cx.now(), v);
            }
        }
        self.domains[d.index()].weight = params.weight.into();
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let domain = cx.domain_of(v);
        let slowest = self.slowest(cx.now(), domain).unwrap_or(Nanos::ZERO);
        self.domains[domain.index()].members.push(v);
        self.vcpus.push(Vcpu {
            domain,
            vt: 0,
            charged: Nanos::ZERO,
            picked: Nanos::ZERO,
            yields: false,
            ready: None,
            stopped: None,
            costop: Nanos::ZERO,
            waits: None,
            waited: slowest,
            seat: None,
        });
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let d = self.vcpus[v.index()].domain;
        let domain = &mut self.domains[d.index()];
        domain.members.retain(|m| *m != v);
        domain.lagging.retain(|m| *m != v);
        self.note_uneven(cx, d);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let vcpu = &self.vcpus[v.index()];
        if cx.is_current(v) || vcpu.waits.is_some() {
            return;
        }
        let (vt, d) = (vcpu.vt, vcpu.domain);
        let least = self.least(cx).unwrap_or(vt);
        self.vcpus[v.index()].vt = vt.max(least);
        self.begin_wait(cx, v);
        if self.domains[d.index()].stopped.is_some() {
            self.vcpus[v.index()].stopped = Some(cx.now());
        } else {
            self.make_ready(v);
            self.tell(cx, v);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        } else {
            self.leave(cx, v);
            self.try_release(cx);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus[v.index()].yields = true;
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let home = cx.home(v);
        cx.affinity(v).hard().toc(home).unwrap_or(home)
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let (now, quantum) = (cx.now(), self.tunables.quantum);
        let current = cx.current(p);
        let seated = self.seated[p.index()].filter(|v| self.may_take(cx, p, *v));
        let mut candidate = None;
        if let Some(v) = current {
            self.charge(now, v);
            let vcpu = &mut self.vcpus[v.index()];
            let yields = core::mem::take(&mut vcpu.yields);
            let left = quantum - (now - vcpu.picked);
            candidate = current.filter(|v| cx.is_runnable(*v));
            candidate = candidate.filter(|_| vcpu.stopped.is_none());
            if candidate.is_some() && seated.is_none() && left > Nanos::ZERO && !yields {
                return Decision { next: current, slice: Some(left) };
            }
        }
        let own = candidate.map(|v| self.vcpus[v.index()].vt);
        let first = self.ready.iter().find(|(_, v)| self.may_take(cx, p, *v)).copied();
        let first = first.filter(|(vt, _)| own.is_none_or(|own| *vt < own));
        let seated = seated.and_then(|v| Some((self.vcpus[v.index()].ready?, v)));
        let first = seated.or(first);
        let vt = first.map(|(vt, _)| vt).or(own);
        let mut next = first.map(|(_, v)| v).or(candidate);
        // No VM wins this pCPU while a vCPU of a released VM has its seat here.
        let held = self.seated[p.index()].is_some();
        self.won[p.index()] = if held { None } else { self.winner(cx, p, vt) };
        if self.won[p.index()].is_some() {
            next = None;
        }
        if let Some(v) = current.filter(|_| next != current) {
            if !cx.is_runnable(v) {
                self.leave(cx, v);
            } else {
                self.begin_wait(cx, v);
                if self.vcpus[v.index()].stopped.is_none() {
                    self.make_ready(v);
                }
            }
        }
        if let Some(v) = next {
            self.unready(v);
            self.end_wait(cx, v);
            cx.set_home(v, p);
            self.leave_seat(v);
            let vcpu = &mut self.vcpus[v.index()];
            (vcpu.charged, vcpu.picked) = (now, now);
        }
        self.idle.set(p, next.is_none() && self.won[p.index()].is_none());
        // An idle pCPU was told about the vCPU taken here, but may be unable to run the one that waits now.
        if !self.idle.is_empty() {
            let waiting = self
                .ready
                .iter()
                .map(|(_, v)| *v)
                // A vCPU with a seat waits for that pCPU only, which was told.
                .filter(|v| self.vcpus[v.index()].seat.is_none() && !cx.is_running(*v))
                .find(|v| self.idle.intersects(cx.affinity(*v).hard()));
            if let Some(v) = waiting {
                self.tell(cx, v);
            }
        }
        if !self.stopped.is_empty() {
            self.try_release(cx);
        }
        Decision { next, slice: next.map(|_| quantum) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        match self.vcpus[v.index()].seat {
            Some(p) => cx.resched(p),
            None if self.vcpus[v.index()].ready.is_some() => {
                self.tell(cx, v);
            }
            None => {}
        }
    }

    fn affinity_changed(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let seat = self.vcpus[v.index()].seat;
        if seat.is_some_and(|p| !cx.affinity(v).hard().contains(p)) {
            self.leave_seat(v);
            if self.vcpus[v.index()].ready.is_some() {
                self.tell(cx, v);
            }
        }
    }

    fn pcpu_removed(&mut self, _cx: &mut Context<'_>, p: PcpuId) {
        self.won[p.index()] = None;
    }

    fn timer(&mut self, cx: &mut Context<'_>, _timer: TimerId) {
        self.sampling = false;
        self.sample(cx);
        self.arm(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.stopped.is_some() { "co-stopped" } else { "free" };
        Some(Detail { class, credit: vcpu.vt, active: vcpu.stopped.is_none() })
    }

    fn costop(&self, v: VcpuId, now: Nanos) -> Nanos {
        let vcpu = &self.vcpus[v.index()];
        vcpu.costop + vcpu.stopped.map_or(Nanos::ZERO, |since| now - since)
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
