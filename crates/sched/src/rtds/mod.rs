//! rtds: global earliest deadline first over deferrable servers. Each vCPU gets its *budget* in each
//! of its *periods*, at whatever time in the period it asks for it.
//!
//! Priority is the level, then the deadline (the end of the period); a smaller one goes first.
//! Running burns the budget, blocking keeps it, and the scheduler refills it when the deadline passes
//! (the rest is lost). A vCPU without budget waits on the depleted list until then. If it has
//! *extratime*, it gets its budget again at once instead, one level down, below all vCPUs that still
//! have theirs.
//!
//! ```text
//!            first, or first of equals           blocks
//!  wake ──▶ run queue ──────────▶ running ────────────────▶ blocked
//!            ▲    ▲  preempted       │ budget gone
//!            │    └──────────────────┤
//!            │ deadline              ▼
//!            └────────────────── depleted (not with extratime)
//! ```
//!
//! Every runnable or running vCPU is also in the replenishment queue, by deadline; the scheduler's
//! only timer is set for its head. vCPUs of one period share all deadlines, so ties are the rule. The
//! timer refills vCPUs from the head on and puts them back from the last to the first, so equals take
//! turns in being first. Put back in order, the last ones would starve while the others overbook the
//! machine.
//!
//! Invariants: without extratime a vCPU never runs longer than its budget in one of its periods; one
//! pCPU with Σ budget/period ≤ 1 gives each always-runnable vCPU its full budget before each
//! deadline; nothing runs with an empty budget. There is no admission control. Not work-conserving
//! without extratime. Weights, caps and yields have no effect (after a yield, the pass chooses by
//! deadline again; on a tie a queued vCPU wins over the running one).
//!
//! Source: schedulers specification §5, after Xen's rt.c (4.10 and later; profile `rtds-4.5`: 4.5 and
//! 4.6, which have no timer and no extratime. They look for due deadlines of queued vCPUs in passes
//! at most 1 ms apart, and when a vCPU is queued; the running vCPU wins a tie, and of queued ones the
//! last). `as_is` follows the original in three points: a replenished vCPU with extratime preempts no
//! other, replenishment goes by level before deadline, so that it may come late, and no pCPU is told
//! about a depleted vCPU that gets extratime.
//! Deviations: a wake-up of a depleted vCPU tells no pCPU, since it would have no effect; an idle pCPU
//! of `rtds-4.5` looks every 1 ms, as a busy one does.
//!
//! Files: `mod` (the passes and events), [`server`] (budgets and deadlines), [`queues`] (waiting vCPUs,
//! and which pCPU is told), [`params`], [`invariants`] (what must always hold).

mod invariants;
mod params;
mod queues;
mod server;

pub(crate) use params::{TODAY, V4_5};

use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::params::Params;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler, Whose};
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use server::{Key, Server, Vcpu};

/// The longest slice of `rtds-4.5`.
const POLL: Nanos = Nanos::MS;

/// A version of the original, and whether to follow it exactly.
#[derive(Clone, Copy, Debug)]
struct Profile {
    pub name: &'static str,
    /// Looks for due deadlines in passes at most [`POLL`] apart instead of using a timer.
    pub polls: bool,
    pub as_is: bool,
}

/// The rtds scheduler. Made by name with [`make`](crate::make).
///
/// Costs, for n runnable vCPUs: a pass is O(log n), or O(n log n) with affinities in the way; a
/// wake-up is O(log n) if it finds an idle pCPU, else O(pCPUs), and O(vCPUs with later deadlines) in
/// both cases; the timer costs the same for each vCPU that it replenishes. Queues allocate as they
/// grow.
#[derive(Debug)]
pub struct Rtds {
    profile: Profile,
    default: Server,
    domains: Vec<Server>,
    vcpus: Vec<Vcpu>,
    run_queue: BTreeSet<(Key, VcpuId)>,
    /// vCPUs without budget, the last first.
    depleted: List,
    depleted_links: Links,
    replenishments: List,
    deadline_links: Links,
    arrivals: u64,
    /// The time to which the timer is set.
    timer: Option<Nanos>,
    /// pCPUs that run their idle vCPU and have not been told since to look for work.
    idle: CpuSet,
    /// pCPUs that were told to look for work and have not passed since.
    told: CpuSet,
    /// Working space of the timer: each vCPU that it replenished, and whether it was depleted.
    replenished: Vec<(VcpuId, bool)>,
}

impl Rtds {
    fn new(profile: Profile, default: Server) -> Self {
        Self {
            profile,
            default,
            domains: Vec::new(),
            vcpus: Vec::new(),
            run_queue: BTreeSet::new(),
            depleted: List::EMPTY,
            depleted_links: Links::default(),
            replenishments: List::EMPTY,
            deadline_links: Links::default(),
            arrivals: 0,
            timer: None,
            idle: CpuSet::empty(0),
            told: CpuSet::empty(0),
            replenished: Vec::new(),
        }
    }

    /// Changes the server of `v`. Period and budget apply from its next period on, extratime at once.
    fn set_server(&mut self, cx: &mut Context<'_>, v: VcpuId, server: Server) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.server = server;
        if server.extratime && vcpu.left == Nanos::ZERO {
            vcpu.level = vcpu.level.saturating_add(1);
            vcpu.left = server.budget;
            if self.dequeue(v) {
                self.enqueue(v);
                if !self.profile.as_is {
                    self.tell(cx, v);
                }
            }
        }
    }
}

impl Scheduler for Rtds {
    fn name(&self) -> &'static str {
        self.profile.name
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.idle = CpuSet::all(cx.pcpus());
        self.told = CpuSet::empty(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {
        self.domains.push(self.default);
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn configure(
        &mut self,
        cx: &mut Context<'_>,
        whose: Whose,
        params: &Params,
    ) -> Result<(), SchedError> {
        let new = cx.belonging_to(whose).map(|v| (v, self.vcpus[v.index()].server.with(params)));
        // All, before the first changes: one may refuse.
        let new: Vec<_> =
            new.map(|(v, server)| Ok((v, server?))).collect::<Result<_, SchedError>>()?;
        if let Whose::Domain(d) = whose {
            self.domains[d.index()] = self.domains[d.index()].with(params)?;
        }
        for (v, server) in new {
            self.set_server(cx, v, server);
        }
        Ok(())
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus.push(Vcpu::new(self.domains[cx.domain_of(v).index()]));
        self.deadline_links.grow();
        self.depleted_links.grow();
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        self.vcpus[v.index()].update(cx.now());
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let vcpu = &self.vcpus[v.index()];
        if cx.is_current(v) || vcpu.queued.is_some() || vcpu.depleted {
            return;
        }
        if self.profile.polls {
            if !cx.is_running(v) {
                self.vcpus[v.index()].update(cx.now());
                self.enqueue(v);
                self.look_around(cx);
            }
            return;
        }
        let updated = self.vcpus[v.index()].update(cx.now());
        if cx.is_running(v) {
            // `v` is queued when its registers are saved.
            if updated {
                self.await_deadline(v);
            }
        } else {
            self.await_deadline(v);
            self.enqueue(v);
            if !self.vcpus[v.index()].depleted {
                self.tell(cx, v);
            }
        }
        self.arm(cx);
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        } else if self.dequeue(v) {
            self.forget_deadline(v);
            self.arm(cx);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let home = cx.home(v);
        cx.affinity(v).hard().toc(home).unwrap_or(home)
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        self.told.remove(p);
        let current = cx.current(p);
        if let Some(v) = current {
            self.vcpus[v.index()].burn(now);
        }
        if self.profile.polls {
            self.refill_queued(now);
        }
        let allowed = |v: &VcpuId| cx.affinity(*v).hard().contains(p);
        let first = self.run_queue.iter().map(|(_, v)| *v).find(allowed);
        let keep = current.filter(|v| {
            let vcpu = &self.vcpus[v.index()];
            let first = first.map(|f| self.vcpus[f.index()].priority());
            cx.is_runnable(*v)
                && vcpu.left > Nanos::ZERO
                && first.is_none_or(|first| {
                    vcpu.priority() < first || self.profile.polls && vcpu.priority() == first
                })
        });
        let next = keep.or(first);
        self.idle.set(p, next.is_none());
        let Some(v) = next else {
            return Decision { next, slice: self.profile.polls.then_some(POLL) };
        };
        if keep.is_none() {
            self.dequeue(v);
            cx.set_home(v, p);
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.burned = now;
        // With polls the original takes the whole budget, be it left or not.
        let slice = if self.profile.polls { vcpu.server.budget.min(POLL) } else { vcpu.left };
        Decision { next, slice: Some(slice) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_runnable(v) {
            self.enqueue(v);
            if self.profile.polls {
                self.look_around(cx);
            } else if !self.vcpus[v.index()].depleted {
                self.tell(cx, v);
            }
        } else {
            self.forget_deadline(v);
            self.arm(cx);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _timer: TimerId) {
        self.timer = None;
        self.replenish(cx.now());
        while let Some((v, depleted)) = self.replenished.pop() {
            let vcpu = &self.vcpus[v.index()];
            if cx.is_current(v) {
                let first = self.run_queue.first().map(|(_, first)| *first);
                if let Some(first) = first
                    && self.vcpus[first.index()].priority() < vcpu.priority()
                {
                    self.tell(cx, first);
                }
            } else if vcpu.queued.is_some() && (depleted || !self.profile.as_is) {
                self.tell(cx, v);
            }
            // The last goes back first; see the module's documentation.
            self.await_deadline(v);
        }
        self.arm(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = match vcpu.level {
            _ if vcpu.left == Nanos::ZERO => "depleted",
            0 => "budget",
            _ => "extratime",
        };
        Some(Detail { class, credit: vcpu.left.0, active: vcpu.left > Nanos::ZERO })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
