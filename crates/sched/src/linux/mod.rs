//! cfs, eevdf and eevdf-6.18: a Linux host that runs vCPUs as threads, as KVM does.
//!
//! Each pCPU has a queue of its own, ordered by the scheduling [`Class`]: `cfs` by virtual runtime (2.6.23
//! to 6.5), `eevdf` and `eevdf-6.18` by virtual deadline. Their common parts are here: ticks, wake-ups,
//! balancing, bandwidth control.
//!
//! ```text
//!            placed on a queue               pass
//!  wake ────────────────────────▶ queued ──────────▶ running
//!              ▲                     │   ◀──────────    │
//!              │ refill              │ preempted        │ quota used up
//!              └───────────────── throttled ◀───────────┘
//! ```
//!
//! Until 6.17 the pass that finds the quota used up throttles all vCPUs of the domain on that pCPU at once.
//! Since 6.18 each is throttled as it enters its guest: the pass that picks it finds the quota used up, puts
//! the vCPU aside and picks again (`bandwidth`).
//!
//! Charging uses time stamps, decisions use ticks. A tick preempts a vCPU that has run its share; a wake-up
//! preempts if the waking vCPU deserves the pCPU more. There are no slice timers. An idle pCPU does not
//! tick.
//!
//! Weights: a domain's weight of 256 corresponds to a thread of nice 0 (1024), and each of its vCPUs has
//! that weight, unless it has one of its own. With `group_shares` weights are divided by the runnable vCPUs of
//! the domain on the whole machine (the specification's flat model of group scheduling). A domain's cap is the quota of its
//! bandwidth control: a throttled vCPU stays runnable, so its guest sees steal.
//!
//! `balance` turns on balance scheduling (Sukwong & Kim, EuroSys 2011; specification §11): a vCPU is
//! queued only where no sibling is queued or runs, if there is such a place.
//!
//! Source: schedulers specification §9.1, §9.2 and §11, after Linux kernel/sched/fair.c of 5.x and 6.6.
//! Balancing follows the kernel instead of the sketch given there. Decisions where it is silent: the first
//! wake-up of a vCPU places it like a new thread, on the least loaded pCPU of the machine. A pCPU that ticks
//! with a vCPU queued moves that vCPU to an idle pCPU (the kernel balances for idle ones). A vCPU that wakes
//! before its registers are saved stays on its pCPU, also under `balance`. Pause-loop exiting, the host's
//! directed yields and halt polling belong to the world (§9.3).
//!
//! Files: `mod` (events and passes), [`queueing`] (on and off the queues), [`class`] (the interface of a class),
//! [`cfs`], [`eevdf`] (the classes), [`debooster`] (what a directed yield costs, as an option), [`tasks`] (the same for the tasks of a guest), [`tasks_2008`] (an older policy for
//! them), [`placement`] (of vCPUs that wake), [`balance`], [`groups`], [`attempts`], [`average`] (pulling: what, how much,
//! when, and how load is measured), [`bandwidth`] (quotas), [`params`], [`invariants`] (what must always hold).

mod attempts;
mod average;
mod balance;
mod bandwidth;
mod cfs;
mod class;
mod debooster;
mod eevdf;
mod groups;
mod invariants;
mod params;
mod placement;
mod queueing;
mod tasks;
mod tasks_2008;

pub(crate) use params::{CFS, EEVDF, EEVDF_6_18};
pub use tasks::TaskQueues;
pub use tasks_2008::Cfs2008Queues;

use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::params::Params;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler, Throttling, Whose};
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use attempts::Attempts;
use average::Average;
use cfs::Cfs;
use class::{Arrival, Class, DOMAIN_WEIGHT, Entity, NICE_0, RunQueue};
use eevdf::Eevdf;
use groups::Share;
use params::Tunables;
use queueing::{Domain, Vcpu};

/// A Linux host. Made by name with [`make`](crate::make) (`cfs`, `eevdf`, `eevdf-6.18`).
///
/// Costs, for n vCPUs on a queue: a pass, a wake-up and a tick are O(log n), plus O(pCPUs of a socket) where
/// a wake-up looks for an idle pCPU. A pCPU that looks for work needs O(pCPUs + queued vCPUs), and once in an
/// interval of at least 16 ms O(vCPUs). A pick of `eevdf` is O(1 + queued vCPUs with an earlier deadline that are not eligible). `group_shares` and
/// `balance` add O(vCPUs of the domain) to a wake-up and a sleep.
#[derive(Debug)]
struct Host<C: Class> {
    class: C,
    tunables: Tunables,
    vcpus: Vec<Vcpu>,
    entities: Vec<Entity>,
    domains: Vec<Domain>,
    queues: Vec<RunQueue<C::Queue>>,
    /// How balancing went, for each pCPU in each of its scheduling domains.
    attempts: Vec<[Attempts; 3]>,
    /// Working space of balancing.
    shares: Vec<Share>,
    /// pCPUs that run their idle vCPU and have not been told since to look for work.
    idle: CpuSet,
    /// pCPUs with a vCPU in the tree.
    waiting: CpuSet,
    ticking: CpuSet,
    /// Domains with a quota.
    quotas: BTreeSet<DomainId>,
    /// Whether the refill timer is set.
    refills: bool,
    /// When the next period begins, and when throttled pCPUs get what others gave back before.
    refill_at: Nanos,
    slack_at: Option<Nanos>,
    /// Working space of placements.
    candidates: CpuSet,
}

impl<C: Class> Host<C> {
    fn new(class: C, tunables: Tunables) -> Self {
        Self {
            class,
            tunables,
            vcpus: Vec::new(),
            entities: Vec::new(),
            domains: Vec::new(),
            queues: Vec::new(),
            attempts: Vec::new(),
            shares: Vec::new(),
            idle: CpuSet::empty(0),
            waiting: CpuSet::empty(0),
            ticking: CpuSet::empty(0),
            quotas: BTreeSet::new(),
            refills: false,
            refill_at: Nanos::ZERO,
            slack_at: None,
            candidates: CpuSet::empty(0),
        }
    }
}

impl<C: Class> Scheduler for Host<C> {
    fn name(&self) -> &'static str {
        self.class.name()
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpus = cx.pcpus();
        self.class.start(pcpus);
        self.queues = (0..pcpus).map(|_| RunQueue::default()).collect();
        self.attempts = vec![[Attempts::default(); 3]; pcpus as usize];
        self.shares = vec![Share::default(); pcpus as usize];
        self.idle = CpuSet::all(pcpus);
        self.waiting = CpuSet::empty(pcpus);
        self.ticking = CpuSet::empty(pcpus);
        self.candidates = CpuSet::empty(pcpus);
    }

    fn runs_threads(&self) -> bool {
        true
    }

    fn create_domain(&mut self, d: DomainId, params: DomainParams) {
        let weight = i64::from(params.weight) * NICE_0 / DOMAIN_WEIGHT;
        let (members, quota) = (Vec::new(), None);
        let domain = Domain { weight, members, created: 0, capped: u32::MAX, runnable: 0, quota };
        self.domains.push(domain);
        self.set_quota(d, params.cap);
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        self.domains[d.index()].weight = i64::from(params.weight) * NICE_0 / DOMAIN_WEIGHT;
        self.reweigh(cx, d);
        self.set_quota(d, params.cap);
        self.unthrottle(cx, d);
        self.arm_refill(cx);
    }

    fn configure(
        &mut self,
        cx: &mut Context<'_>,
        whose: Whose,
        params: &Params,
    ) -> Result<(), SchedError> {
        match (whose, params::capped_vcpus(params)) {
            (Whose::Domain(d), Some(capped)) => self.set_capped(cx, d, capped),
            (Whose::Vcpu(_), Some(capped)) => {
                let legal = "a domain's; a vCPU has none of its own".into();
                return Err(SchedError::Param { key: "capped_vcpus", value: capped.into(), legal });
            }
            (_, None) => {}
        }
        Ok(())
    }

    fn set_weight(&mut self, cx: &mut Context<'_>, v: VcpuId, weight: u32) {
        self.vcpus[v.index()].weight = Some(i64::from(weight) * NICE_0 / DOMAIN_WEIGHT);
        self.reweigh(cx, self.vcpus[v.index()].domain);
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let domain = cx.domain_of(v);
        let of = &mut self.domains[domain.index()];
        of.members.push(v);
        of.created += 1;
        let number = of.created - 1;
        self.entities.push(Entity::default());
        self.vcpus.push(Vcpu {
            domain,
            number,
            queued: false,
            throttled: false,
            stopped_on: PcpuId(0),
            weight: None,
            new: true,
            last_ran: Nanos::MIN / 2,
            average: Average::new(),
        });
        self.reweigh(cx, domain);
        self.arm_refill(cx);
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, _cx: &mut Context<'_>, v: VcpuId) {
        let domain = &mut self.domains[self.vcpus[v.index()].domain.index()];
        domain.members.retain(|m| *m != v);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        if vcpu.queued || vcpu.throttled {
            return;
        }
        let (d, new) = (vcpu.domain, core::mem::take(&mut vcpu.new));
        let arrival = if new { Arrival::New } else { Arrival::Woken };
        if !cx.is_running(v) {
            let p = self.select(cx, v, new);
            // A sleeper's virtual times follow the queue that it leaves; bring both queues up to date.
            let home = cx.home(v);
            self.update(cx, home);
            self.update(cx, p);
            self.move_home(cx, v, p);
        }
        self.runnable_changed(cx, d, 1);
        if self.enqueue(cx, v, arrival) {
            self.check_preemption(cx, v);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        let vcpu = &mut self.vcpus[v.index()];
        let d = vcpu.domain;
        if cx.is_current(v) {
            cx.resched(home);
        } else if vcpu.throttled {
            self.set_throttled(cx, v, false);
            self.runnable_changed(cx, d, -1);
        } else if vcpu.queued {
            self.update(cx, home);
            self.dequeue(cx, v);
            self.runnable_changed(cx, d, -1);
        }
    }

    fn yield_now(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = cx.home(v);
        self.update(cx, p);
        self.class.yield_now(&mut self.queues[p.index()], &mut self.entities, v);
    }

    /// Like the host's `yield_to`: fails if `to` is not queued, or if both are alone on their pCPUs.
    /// Otherwise `to` becomes the buddy of its queue, `v` yields, and both pCPUs choose again. As in the
    /// kernel, true means just that. The class decides whether the buddy runs next; `eevdf` ignores it by
    /// default.
    fn yield_to(&mut self, cx: &mut Context<'_>, v: VcpuId, to: VcpuId) -> bool {
        let (from, there) = (cx.home(v), cx.home(to));
        let alone = |p: PcpuId| self.queues[p.index()].count() == 1;
        if !self.vcpus[to.index()].queued || cx.is_current(to) || alone(from) && alone(there) {
            return false;
        }
        self.class.favour(&mut self.queues[there.index()], to);
        if self.class.deboosts() {
            self.update(cx, from);
            let (queue, pair) = (&mut self.queues[from.index()], (v, to, there == from));
            self.class.deboost(queue, &mut self.entities, cx.now(), pair);
        }
        self.yield_now(cx, v);
        if there != from {
            cx.resched(there);
        }
        true
    }

    fn directs_yields(&self) -> bool {
        true
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.select(cx, v, self.vcpus[v.index()].new)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        self.move_home(cx, v, p);
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        self.charge(now, p);
        let candidate = self.put_current(cx, p);
        let queue = &mut self.queues[p.index()];
        let mut next = self.class.choose(queue, &mut self.entities, candidate);
        if next.is_none() {
            next = self.pull_for_idle(cx, p);
        }
        if self.tunables.throttles_on_return() {
            next = self.enter_guest(cx, p, next);
        }
        let queue = &mut self.queues[p.index()];
        self.class.begin(queue, &mut self.entities, next);
        queue.charged = now;
        self.waiting.set(p, !queue.tree.is_empty());
        self.idle.set(p, next.is_none());
        self.set_tick(cx, p, next.is_some());
        Decision { next, slice: None }
    }

    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId) {
        match timer {
            TimerId::Tick(p) => {
                self.update(cx, p);
                let queue = &self.queues[p.index()];
                if let Some(v) = queue.current
                    && self.class.tick(queue, &self.entities, v)
                {
                    cx.resched(p);
                }
                self.balance(cx, p);
                self.ticking.remove(p);
                self.set_tick(cx, p, true);
            }
            _ => self.quota_timer(cx),
        }
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.throttled { "throttled" } else { "fair" };
        let credit = self.entities[v.index()].vruntime;
        Some(Detail { class, credit, active: !vcpu.throttled })
    }

    fn throttling(&self, d: DomainId, now: Nanos) -> Option<Throttling> {
        self.told(d, now)
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
