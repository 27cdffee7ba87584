//! rr: one first-come-first-served queue for all pCPUs, and a quantum. It is the baseline that the
//! other schedulers must beat.
//!
//! ```text
//!            pass: first that may run here        quantum over, yield: tail
//!  wake ──▶ tail of the queue ──────────▶ running ──────────▶ tail of the queue
//! ```
//!
//! A wake-up tells one idle pCPU (the vCPU's home if that is idle) and never preempts. Properties:
//! no starvation (with full affinity, `n` runnable vCPUs on `m` pCPUs wait at most ⌈n/m⌉ quanta),
//! equal shares within a quantum, work-conserving. There are no weights and no caps; soft affinity
//! is ignored.
//!
//! Source: schedulers specification §11. Decision where it is silent: the pass that takes a vCPU
//! off its pCPU queues it, but other pCPUs take it only once its registers are saved.

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::params::ParamInfo;
use crate::registry::SchedulerInfo;
use crate::scheduler::{Context, Decision, DomainParams, Scheduler};
use crate::time::Nanos;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub(crate) const INFO: SchedulerInfo = SchedulerInfo {
    name: "rr",
    aliases: &["round-robin"],
    brief: "round robin: one queue for all pCPUs, first come, first served, with a quantum",
    source: "textbook",
    work_conserving: true,
    weights: false,
    vcpu_weights: false,
    pv_guests: true,
    caps: false,
    ticks: false,
    params: &[QUANTUM],
    domain_params: &[],
    make: &|params| Ok(Box::new(RoundRobin::new(QUANTUM.time_in(params)))),
};

const QUANTUM: ParamInfo = ParamInfo::time(
    "quantum",
    (Nanos::US, Nanos::sec(10)),
    Nanos::ms(10),
    "A running vCPU gives way after this long, if another vCPU waits.",
);

#[derive(Clone, Debug)]
struct Vcpu {
    /// When a pass last chose it from the queue: the start of its quantum.
    picked: Nanos,
    /// Whether its quantum ends at the next pass.
    yields: bool,
}

/// The round-robin scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a wake-up is O(pCPUs/64). A pass costs the same if the first queued vCPU may run there,
/// and O(queue × pCPUs/64) at worst, when affinities prevent that. Neither allocates.
#[derive(Debug)]
pub struct RoundRobin {
    quantum: Nanos,
    vcpus: Vec<Vcpu>,
    links: Links,
    queue: List,
    /// pCPUs that run their idle vCPU and were not told to look for work since.
    idle: CpuSet,
}

impl RoundRobin {
    /// `quantum` in ns.
    fn new(quantum: Nanos) -> Self {
        Self {
            quantum,
            vcpus: Vec::new(),
            links: Links::default(),
            queue: List::EMPTY,
            idle: CpuSet::empty(0),
        }
    }

    /// Tells an idle pCPU to look for `v`, which is queued, unless `v` has not left its pCPU yet.
    /// Returns whether it told one.
    fn tell(&mut self, cx: &mut Context<'_>, v: VcpuId) -> bool {
        if cx.is_running(v) {
            return false;
        }
        let Some(p) = self.idle.toc_and(cx.home(v), cx.affinity(v).hard()) else { return false };
        self.idle.remove(p);
        cx.resched(p);
        true
    }
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.idle = CpuSet::all(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {}

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.links.grow();
        self.vcpus.push(Vcpu { picked: Nanos::ZERO, yields: false });
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) || self.links.is_linked(v.0) {
            return;
        }
        self.links.insert_before(&mut self.queue, v.0, None);
        self.tell(cx, v);
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        } else if self.links.is_linked(v.0) {
            self.links.remove(&mut self.queue, v.0);
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
        let now = cx.now();
        let current = cx.current(p);
        if let Some(v) = current {
            let vcpu = &mut self.vcpus[v.index()];
            let yields = core::mem::take(&mut vcpu.yields);
            let left = self.quantum - (now - vcpu.picked);
            if cx.is_runnable(v) {
                if left > Nanos::ZERO && !yields {
                    return Decision { next: Some(v), slice: Some(left) };
                }
                self.links.insert_before(&mut self.queue, v.0, None);
            }
        }
        let next = self.links.iter(&self.queue).map(VcpuId).find(|v| {
            let here = current == Some(*v) || !cx.is_running(*v);
            here && cx.affinity(*v).hard().contains(p)
        });
        if let Some(v) = next {
            self.links.remove(&mut self.queue, v.0);
            self.vcpus[v.index()].picked = now;
            cx.set_home(v, p);
        }
        self.idle.set(p, next.is_none());
        // The pCPU that was told about `next` may be unable to run the vCPUs that still wait, so
        // this tells one that can.
        let mut at = if self.idle.is_empty() { None } else { self.queue.head() };
        while let Some(x) = at
            && !self.tell(cx, VcpuId(x))
        {
            at = self.links.next(x);
        }
        Decision { next, slice: next.map(|_| self.quantum) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.links.is_linked(v.0) {
            self.tell(cx, v);
        }
    }

    fn timer(&mut self, _cx: &mut Context<'_>, _timer: TimerId) {}

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for v in (0..machine.vcpu_count()).map(VcpuId) {
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            if waits != self.links.is_linked(v.0) {
                return Err(format!("{v:?} is lost or queued wrongly: waits = {waits}"));
            }
        }
        match self.idle.iter().find(|p| machine.current(*p).is_some()) {
            Some(p) => Err(format!("{p:?} is busy and counts as idle")),
            None => Ok(()),
        }
    }
}
