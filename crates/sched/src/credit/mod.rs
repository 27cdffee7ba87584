//! credit: proportional share by credits, with a boost for vCPUs that wake, caps by parking, and
//! one queue per pCPU balanced by stealing. Xen's default scheduler from 2006 to 2019.
//!
//! In every period (the time slice, 30 ms) each pCPU mints 300 credits, and the accounting hands
//! them to the *active* vCPUs by weight. Running costs 10 credits per millisecond. Credit decides
//! the class, and the class decides the order; within a class, vCPUs run first come, first served:
//!
//! ```text
//!               wakes up                          credit < 0, cap used up
//!      UNDER ──────────────▶ BOOST      OVER ────────────────────────────▶ parked
//!        ▲ ◀──────────────────┘          ▲                                   │
//!        │   a tick while running        │ accounting: credit < 0            │ credit ≥ 0
//!        ├───────────────────────────────┘                                   │
//!        └───────────────────────────────────────────────────────────────────┘
//!          accounting: credit ≥ 0 (this ends BOOST too)
//! ```
//!
//! A vCPU becomes active when a tick finds it running, and inactive when it has more credit than a
//! period can use. A vCPU that blocks before each tick therefore never drops a class: it stays in
//! BOOST and can starve vCPUs that compute. This is the well-known weakness of credit.
//!
//! Source: schedulers specification §3 (after Xen's credit.c of 2026 and of releases 4.3 to 4.8)
//! and §2 for the profiles. Files: [`profile`] (what differs between versions, and parameters),
//! [`queue`] (run queues), [`accounting`] (credit), [`placement`] (where to run, which pCPU to tell,
//! stealing), [`invariants`] (what must always hold).

mod accounting;
mod invariants;
mod placement;
mod profile;
mod queue;

pub(crate) use profile::Profile;

use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Opaque, Scheduler};
use crate::time::Nanos;
use alloc::string::String;
use alloc::vec::Vec;
use placement::first_of;
use profile::{Params, Yields};

/// The class of a vCPU; a greater one goes first. Only the idle vCPU has `Idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Idle,
    Over,
    Under,
    Boost,
}

#[derive(Clone, Debug)]
struct Vcpu {
    domain: DomainId,
    priority: Priority,
    credit: i64,
    /// The uncharged remainder below one credit, in millionths of a credit.
    residual: i64,
    /// The time up to which it is charged. While it is on no pCPU, the time of leaving is
    /// subtracted, so that uncharged time is carried to the next dispatch.
    start: Nanos,
    /// When a scheduling pass last found it running.
    last_pass: Nanos,
    /// Earns credit. Set by a tick that finds it running.
    active: bool,
    /// Kept from running by its cap.
    parked: bool,
    /// Gives way once: set by a yield, cleared when it is taken off a queue.
    yields: bool,
    /// Was placed since it last woke: the wake-up that completes a placement does not boost.
    placed: bool,
    /// Counted in [`Credit::soft_affinities`].
    prefers: bool,
}

#[derive(Clone, Debug)]
struct Pcpu {
    queue: List,
    /// Length of `queue`.
    queued: u32,
    /// The accounting after which the queue was last repaired.
    sorted: u64,
    ticking: bool,
    ticks: u32,
    /// The pCPU that the last placement chose among the idle pCPUs around this one.
    idle_bias: PcpuId,
    last_balance: Nanos,
    /// The idle pCPU that a wake-up executed here last told to look for work.
    last_tickled: PcpuId,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: i64,
    cap: i64,
    active: List,
    /// Length of `active`.
    active_vcpus: i64,
}

/// The credit scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a wake-up is O(queue of its pCPU + pCPUs/64); a pass is the same, and O(pCPUs) at worst
/// when it looks for work elsewhere; a tick is the same as a placement, O(sockets + cores of a
/// socket) steps over pCPUs/64 words; an accounting is O(active vCPUs). None of these allocates.
#[derive(Debug)]
pub struct Credit {
    profile: &'static Profile,
    params: Params,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    domains: Vec<Domain>,
    run_links: Links,
    active_links: Links,
    domain_links: Links,
    active_domains: List,
    /// pCPUs that run their idle vCPU and were not told to look for work since.
    idlers: CpuSet,
    /// pCPUs whose queue is not empty.
    waiting: CpuSet,
    /// For each node, the pCPU from which a vCPU was last stolen; at first its first pCPU.
    steal_bias: Vec<PcpuId>,
    /// Sum of the active weights of all domains.
    weight: i64,
    /// Sum of the credits of the vCPUs that were active at the last accounting.
    balance: i64,
    /// Number of accountings: a queue not repaired since the last one may be out of order.
    epoch: u64,
    /// Number of vCPUs with soft affinity; without any, searches need no soft step.
    soft_affinities: u32,
    /// Scratch space of placements, kept so that they do not allocate.
    idle_scratch: CpuSet,
    candidates: CpuSet,
}

impl Credit {
    pub(crate) fn new(
        profile: &'static Profile,
        params: &crate::params::Params,
    ) -> Result<Self, SchedError> {
        Ok(Self {
            params: Params::new(profile, params)?,
            profile,
            vcpus: Vec::new(),
            pcpus: Vec::new(),
            domains: Vec::new(),
            run_links: Links::default(),
            active_links: Links::default(),
            domain_links: Links::default(),
            active_domains: List::EMPTY,
            idlers: CpuSet::empty(0),
            waiting: CpuSet::empty(0),
            steal_bias: Vec::new(),
            weight: 0,
            balance: 0,
            epoch: 0,
            soft_affinities: 0,
            idle_scratch: CpuSet::empty(0),
            candidates: CpuSet::empty(0),
        })
    }

    /// The slice of `v`, which has run for `ran`, if the ratelimit protects it.
    fn protection(&self, v: VcpuId, ran: Nanos) -> Option<Nanos> {
        let limit = self.params.ratelimit;
        let exempt = self.vcpus[v.index()].yields && self.profile.yields == Yields::AtOnce;
        if exempt || ran >= limit {
            return None;
        }
        Some(if !self.profile.ratelimit_remainder {
            limit
        } else if self.params.as_is {
            // The original compares its lower bound, 100 in us, with a number of ns.
            if ran < Nanos(100) { Nanos(100) } else { limit - ran }
        } else {
            (limit - ran).max(Nanos::us(100))
        })
    }
}

impl Scheduler for Credit {
    fn name(&self) -> &'static str {
        self.profile.name
    }

    fn record_of(&self, v: VcpuId) -> Option<&dyn Opaque> {
        Some(&self.vcpus[v.index()])
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpus = cx.pcpus();
        let pcpu = Pcpu {
            queue: List::EMPTY,
            queued: 0,
            sorted: 0,
            ticking: false,
            ticks: 0,
            idle_bias: PcpuId(pcpus - 1),
            last_balance: Nanos::ZERO,
            last_tickled: PcpuId(0),
        };
        self.pcpus = alloc::vec![pcpu; pcpus as usize];
        self.steal_bias = (0..cx.topology().sockets).map(|n| first_of(cx, n)).collect();
        self.idlers = CpuSet::all(pcpus);
        self.waiting = CpuSet::empty(pcpus);
        self.idle_scratch = CpuSet::empty(pcpus);
        self.candidates = CpuSet::empty(pcpus);
        if self.profile.idle_tick {
            for p in cx.pool().clone().iter() {
                self.start_tick(cx, p);
                // As if the pCPU had found no work just now.
                cx.set_timer(TimerId::Slice(p), cx.now() + self.params.tslice);
            }
        }
        // Sampled accounting is a part of the first pCPU's tick.
        if !self.profile.sampled {
            cx.set_timer(TimerId::Accounting, cx.now() + self.params.tslice);
        }
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domain_links.grow();
        self.domains.push(Domain {
            weight: params.weight.into(),
            cap: params.cap.into(),
            active: List::EMPTY,
            active_vcpus: 0,
        });
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        let before = self.active_weight(d);
        let domain = &mut self.domains[d.index()];
        domain.weight = params.weight.into();
        // Takes effect at the next accounting.
        domain.cap = params.cap.into();
        self.weight += self.active_weight(d) - before;
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.run_links.grow();
        self.active_links.grow();
        self.vcpus.push(Vcpu {
            domain: cx.domain_of(v),
            priority: Priority::Under,
            credit: 0,
            residual: 0,
            start: Nanos::ZERO,
            last_pass: Nanos::ZERO,
            active: false,
            parked: false,
            yields: false,
            placed: false,
            prefers: false,
        });
        self.note_soft_affinity(cx, v);
        let home = self.pick(cx, v);
        self.vcpus[v.index()].placed = !self.profile.boost_first;
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.enqueue(home, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if core::mem::take(&mut self.vcpus[v.index()].parked) {
            // It is down, so it does not wake.
            let _ = cx.unpark(v);
        }
        if self.vcpus[v.index()].active {
            self.deactivate(v);
        }
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) || self.run_links.is_linked(v.0) {
            return;
        }
        let vcpu = &mut self.vcpus[v.index()];
        let placed = core::mem::take(&mut vcpu.placed);
        let may_boost = !vcpu.parked && (!placed || self.profile.boost_after_migration);
        if vcpu.priority == Priority::Under && may_boost {
            vcpu.priority = Priority::Boost;
        }
        self.enqueue(cx.home(v), v);
        self.tickle(cx, v);
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        if cx.is_current(v) {
            cx.resched(home);
        } else if self.run_links.is_linked(v.0) {
            self.dequeue(home, v);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus[v.index()].yields = self.profile.yields != Yields::Pass;
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.vcpus[v.index()].placed = true;
        self.place(cx, v, true)
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        if let Some(v) = cx.current(p) {
            self.burn(now, v);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.start -= now;
            vcpu.last_pass = now;
            if cx.is_runnable(v) {
                if let Some(slice) = self.protection(v, now - cx.entry(v)) {
                    self.vcpus[v.index()].start += now;
                    return Decision { next: Some(v), slice: Some(slice) };
                }
                self.enqueue(p, v);
            }
            if self.profile.yields == Yields::Ratelimited {
                self.vcpus[v.index()].yields = false;
            }
        }
        let head = self.head(p);
        let priority = head.map_or(Priority::Idle, |v| self.vcpus[v.index()].priority);
        let pcpu = &mut self.pcpus[p.index()];
        let may_balance =
            self.params.balance_ratelimit.is_none_or(|limit| now - pcpu.last_balance > limit);
        let mut next = None;
        if priority <= Priority::Over && may_balance {
            pcpu.last_balance = now;
            next = self.steal(cx, p, priority);
        }
        if next.is_none()
            && let Some(v) = head
        {
            self.dequeue(p, v);
            next = head;
        }
        self.idlers.set(p, next.is_none());
        match next {
            Some(v) => {
                self.vcpus[v.index()].start += now;
                self.start_tick(cx, p);
            }
            None => self.stop_tick(cx, p),
        }
        let ends = next.is_some() || self.profile.idle_tick;
        Decision { next, slice: ends.then_some(self.params.tslice) }
    }

    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId) {
        match timer {
            TimerId::Tick(p) => self.tick(cx, p),
            TimerId::Accounting => {
                self.account(cx);
                cx.set_timer(TimerId::Accounting, cx.now() + self.params.tslice);
            }
            TimerId::Slice(p) => cx.resched(p),
        }
    }

    fn affinity_changed(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.note_soft_affinity(cx, v);
        if self.profile.places_running && cx.is_migrating(v) && cx.is_running(v) {
            // The choice comes to nothing, but takes a turn.
            self.pick(cx, v);
        }
    }

    fn pcpu_added(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.begin_stealing(cx, p);
        if self.profile.idle_tick {
            self.start_tick(cx, p);
        }
    }

    fn pcpu_removed(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.pcpus[p.index()].ticking = false;
        self.begin_stealing(cx, p);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = match vcpu.priority {
            _ if vcpu.parked => "parked",
            Priority::Boost => "boost",
            Priority::Under => "under",
            Priority::Over => "over",
            Priority::Idle => "idle",
        };
        Some(Detail { class, credit: vcpu.credit, active: vcpu.active })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
