//! cfs and eevdf: a Linux host that runs vCPUs as threads, as KVM does.
//!
//! Each pCPU has a queue of its own, ordered by the scheduling [`Class`]: `cfs` by virtual runtime
//! (2.6.23 to 6.5), `eevdf` by virtual deadline (6.6). What both share is here: ticks, wake-ups,
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
//! Charging is by time stamps, decisions are by ticks: what runs is preempted by a tick that finds
//! it to have run its share, or by a wake-up that deserves the pCPU more. There are no slice timers.
//! An idle pCPU does not tick.
//!
//! Weights: a domain's weight 256 is that of a thread of nice 0 (1024), and each of its vCPUs has it;
//! with `group_shares` it is that of the domain, divided by its runnable vCPUs on the whole machine
//! (the specification's flat model of group scheduling). A domain's cap is the quota of its
//! bandwidth control: a throttled vCPU stays runnable, so its guest sees steal.
//!
//! `balance` turns on balance scheduling (Sukwong & Kim, EuroSys 2011; specification §11): a vCPU is
//! queued only where no sibling is queued or runs, if there is such a place.
//!
//! Source: schedulers specification §9.1, §9.2 and §11, after Linux kernel/sched/fair.c of 5.x and
//! 6.6. Balancing is the sketch given there. Decisions where it is silent: the first wake-up of a
//! vCPU is placed as a new thread, on the least loaded pCPU of the machine; a pCPU that ticks with
//! somebody queued tells an idle pCPU (the kernel's idle balancing on behalf of others); a vCPU that
//! wakes before its registers are saved stays on its pCPU, also under `balance`. Pause-loop exiting,
//! directed yields by the host and halt polling belong to the world (§9.3).
//!
//! Files: `mod` (the passes), `cfs`, `eevdf` (the classes), `balance` (who runs where), `bandwidth`
//! (quotas), `check` (invariants).

mod balance;
mod bandwidth;
mod cfs;
mod check;
mod eevdf;

pub(crate) use cfs::Cfs;
pub(crate) use eevdf::Eevdf;

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, Nanos, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use bandwidth::Quota;
use core::fmt::Debug;

/// Weight of a thread of nice 0.
const NICE_0: i64 = 1024;
/// Weight of a domain that stands for nice 0.
const DOMAIN_WEIGHT: i64 = 256;

/// Parameters that both classes have. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tunables {
    pub tick: Nanos,
    /// What ran less than this ago is not pulled to another pCPU.
    pub migration_cost: Nanos,
    pub bandwidth_period: Nanos,
    pub group_shares: bool,
    pub balance: bool,
}

/// What a class knows about a vCPU. Virtual times are ns at nice 0.
#[derive(Clone, Debug, Default)]
struct Entity {
    weight: i64,
    vruntime: Nanos,
    /// Run time since it was picked.
    ran: Nanos,
    /// Its virtual deadline, and that with which it was picked (`eevdf`).
    deadline: Nanos,
    picked: Nanos,
    /// What it was owed when it left the queue (`eevdf`).
    lag: Nanos,
    /// Where it is queued: its key, and the order of arrival among equals.
    key: Option<(Nanos, u64)>,
}

/// How a vCPU comes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    New,
    Woken,
    Moved,
}

/// The queue of a pCPU. What runs there counts, but is not in the tree.
#[derive(Debug, Default)]
struct RunQueue<S> {
    tree: BTreeSet<((Nanos, u64), VcpuId)>,
    arrivals: u64,
    current: Option<VcpuId>,
    /// Up to when `current` is charged.
    charged: Nanos,
    /// Sum of the weights.
    load: i64,
    class: S,
}

impl<S> RunQueue<S> {
    /// Number of vCPUs, the running one included.
    fn count(&self) -> i64 {
        self.tree.len() as i64 + i64::from(self.current.is_some())
    }

    fn first(&self) -> Option<VcpuId> {
        self.tree.first().map(|(_, v)| *v)
    }

    /// Puts `v` into the tree, behind its equals. O(log n).
    fn link(&mut self, entity: &mut Entity, v: VcpuId, key: Nanos) {
        self.arrivals += 1;
        entity.key = Some((key, self.arrivals));
        self.tree.insert(((key, self.arrivals), v));
    }

    fn unlink(&mut self, entity: &mut Entity, v: VcpuId) {
        if let Some(key) = entity.key.take() {
            self.tree.remove(&(key, v));
        }
    }
}

/// A way to order the vCPUs of one pCPU.
trait Class: Debug + Send {
    /// What it keeps for each pCPU.
    type Queue: Debug + Default + Send;

    fn name(&self) -> &'static str;

    /// Called once with the number of pCPUs, on which time constants depend.
    fn start(&mut self, pcpus: u32);

    /// What the tree is ordered by.
    fn key(&self, entity: &Entity) -> Nanos;

    /// What virtual times of this queue are relative to when they are taken to another.
    fn base(&self, queue: &RunQueue<Self::Queue>) -> Nanos;

    /// `queue.current` ran for `time`. Returns whether it must give way.
    fn charge(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        time: Nanos,
    ) -> bool;

    /// Gives `v`, which joins the queue and is not in its sums yet, its virtual times there.
    fn place(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    );

    /// `v` is not in the sums or the tree of the queue any more from here on.
    fn left(&self, queue: &mut RunQueue<Self::Queue>, entities: &mut [Entity], v: VcpuId);

    /// Changes the weight of `v`, which is on the queue; its sums follow, but for `load`.
    fn reweigh(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        weight: i64,
    );

    /// Chooses among the tree and `candidate`, the running vCPU if it may go on.
    fn pick(
        &self,
        queue: &RunQueue<Self::Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId>;

    /// `v` was picked.
    fn picked(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Whether a tick, which has charged, ends the turn of `current`.
    fn tick(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity], current: VcpuId) -> bool;

    /// Whether `new`, which woke and is queued, preempts `current`.
    fn preempts(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &[Entity],
        current: VcpuId,
        new: VcpuId,
    ) -> bool;

    /// `current` gives way.
    fn yield_now(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        current: VcpuId,
    );

    /// `v`, which is queued, should be picked next if that is not unfair.
    fn favour(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Checks the state of one queue.
    fn check(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity]) -> Result<(), String>;
}

#[derive(Clone, Debug)]
struct Vcpu {
    domain: DomainId,
    /// In the tree of its home, or current there.
    queued: bool,
    /// Runnable, and kept off the queues by its domain's quota.
    throttled: bool,
    /// Has never woken.
    new: bool,
    /// When it left a pCPU last.
    last_ran: Nanos,
}

#[derive(Debug)]
struct Domain {
    weight: i64,
    members: Vec<VcpuId>,
    /// Runnable members.
    runnable: i64,
    quota: Option<Quota>,
}

/// A Linux host. Made by name with [`make`](crate::make) (`cfs`, `eevdf`).
///
/// Costs, for n vCPUs on a queue: a pass, a wake-up and a tick are O(log n), plus O(pCPUs of a
/// socket) where a wake-up looks for an idle one and O(pCPUs + vCPUs queued) at worst where a pCPU
/// looks for work. A pick of `eevdf` is O(1 + queued vCPUs with an earlier deadline that are not
/// eligible). With `group_shares` or `balance` a wake-up and a sleep are O(vCPUs of the domain)
/// more.
#[derive(Debug)]
struct Host<C: Class> {
    class: C,
    tunables: Tunables,
    vcpus: Vec<Vcpu>,
    entities: Vec<Entity>,
    domains: Vec<Domain>,
    queues: Vec<RunQueue<C::Queue>>,
    /// When each pCPU next looks for work in each of its scheduling domains.
    balance_at: Vec<[Nanos; 3]>,
    /// pCPUs that run their idle vCPU and were not told to look for work since.
    idle: CpuSet,
    /// pCPUs with somebody in the tree.
    waiting: CpuSet,
    ticking: CpuSet,
    /// Domains with a quota.
    quotas: BTreeSet<DomainId>,
    /// The refill timer is set.
    refills: bool,
    /// Working space of placements.
    candidates: CpuSet,
}

/// A Linux host with this class.
pub(crate) fn host(
    class: impl Class + 'static,
    tunables: Tunables,
) -> alloc::boxed::Box<dyn Scheduler> {
    alloc::boxed::Box::new(Host {
        class,
        tunables,
        vcpus: Vec::new(),
        entities: Vec::new(),
        domains: Vec::new(),
        queues: Vec::new(),
        balance_at: Vec::new(),
        idle: CpuSet::empty(0),
        waiting: CpuSet::empty(0),
        ticking: CpuSet::empty(0),
        quotas: BTreeSet::new(),
        refills: false,
        candidates: CpuSet::empty(0),
    })
}

impl<C: Class> Host<C> {
    /// Charges what runs on `p`. Returns whether it must give way.
    fn charge(&mut self, now: Nanos, p: PcpuId) -> bool {
        let queue = &mut self.queues[p.index()];
        let time = now - queue.charged;
        let Some(v) = queue.current.filter(|_| time > 0) else { return false };
        queue.charged = now;
        let gives_way = self.class.charge(queue, &mut self.entities, time);
        let domain = &mut self.domains[self.vcpus[v.index()].domain.index()];
        let in_quota = domain.quota.as_mut().is_none_or(|quota| quota.charge(p, time));
        gives_way || !in_quota
    }

    /// Charges what runs on `p` and asks it to pass if that must give way.
    fn update(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        if self.charge(cx.now(), p) {
            cx.resched(p);
        }
    }

    /// Puts `v` on the queue of its home, or aside if its domain has no quota left there. Returns
    /// whether it is on the queue.
    fn enqueue(&mut self, cx: &mut Context<'_>, v: VcpuId, arrival: Arrival) -> bool {
        let p = cx.home(v);
        self.update(cx, p);
        let vcpu = &mut self.vcpus[v.index()];
        let quota = self.domains[vcpu.domain.index()].quota.as_mut();
        if quota.is_some_and(|quota| !quota.admit(p)) {
            vcpu.throttled = true;
            return false;
        }
        vcpu.queued = true;
        let queue = &mut self.queues[p.index()];
        self.class.place(queue, &mut self.entities, v, arrival);
        let entity = &mut self.entities[v.index()];
        queue.load += entity.weight;
        queue.link(entity, v, self.class.key(entity));
        self.waiting.insert(p);
        true
    }

    /// Takes `v`, queued or current, off the queue of its home, which is charged.
    fn dequeue(&mut self, machine: &Machine, v: VcpuId) {
        let p = machine.home(v);
        let queue = &mut self.queues[p.index()];
        if queue.current == Some(v) {
            queue.current = None;
        }
        let entity = &mut self.entities[v.index()];
        queue.unlink(entity, v);
        queue.load -= entity.weight;
        self.class.left(queue, &mut self.entities, v);
        self.waiting.set(p, !queue.tree.is_empty());
        self.vcpus[v.index()].queued = false;
    }

    /// After `v` was queued: its home passes if it idles or if `v` preempts.
    fn check_preemption(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = cx.home(v);
        let queue = &mut self.queues[p.index()];
        let passes = match queue.current {
            None => true,
            Some(current) => self.class.preempts(queue, &self.entities, current, v),
        };
        if passes {
            self.idle.remove(p);
            cx.resched(p);
        }
    }

    /// One more or one less member of `d` is runnable: its weight may be divided anew.
    fn runnable_changed(&mut self, cx: &mut Context<'_>, d: DomainId, by: i64) {
        self.domains[d.index()].runnable += by;
        if self.tunables.group_shares {
            self.reweigh(cx, d);
        }
    }

    /// Gives all members of `d` the weight that they should have. O(members).
    fn reweigh(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let domain = &self.domains[d.index()];
        let by = if self.tunables.group_shares { domain.runnable.max(1) } else { 1 };
        let weight = (domain.weight / by).max(1);
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            let old = self.entities[v.index()].weight;
            if old == weight {
                continue;
            }
            if !self.vcpus[v.index()].queued {
                self.entities[v.index()].weight = weight;
                continue;
            }
            let p = cx.home(v);
            self.update(cx, p);
            let queue = &mut self.queues[p.index()];
            let linked = self.entities[v.index()].key.is_some();
            queue.unlink(&mut self.entities[v.index()], v);
            self.class.reweigh(queue, &mut self.entities, v, weight);
            queue.load += weight - old;
            if linked {
                let entity = &mut self.entities[v.index()];
                queue.link(entity, v, self.class.key(entity));
            }
        }
    }

    /// Changes the home of `v`, which is on no queue; its virtual times go with it.
    fn move_home(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        let base = |p: PcpuId| self.class.base(&self.queues[p.index()]);
        self.entities[v.index()].vruntime += base(p) - base(cx.home(v));
        cx.set_home(v, p);
    }

    /// Starts or stops the tick of `p`. Ticks come at multiples of their period.
    fn set_tick(&mut self, cx: &mut Context<'_>, p: PcpuId, on: bool) {
        if self.ticking.contains(p) != on {
            self.ticking.set(p, on);
            let tick = self.tunables.tick;
            match on {
                true => cx.set_timer(TimerId::Tick(p), (cx.now().div_euclid(tick) + 1) * tick),
                false => cx.stop_timer(TimerId::Tick(p)),
            }
        }
    }

    /// What ran on `p` leaves the queue if it may not go on; returns it if it may.
    fn put_current(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Option<VcpuId> {
        let v = self.queues[p.index()].current?;
        self.vcpus[v.index()].last_ran = cx.now();
        let d = self.vcpus[v.index()].domain;
        if !cx.is_runnable(v) {
            self.dequeue(cx, v);
            self.runnable_changed(cx, d, -1);
            return None;
        }
        let quota = self.domains[d.index()].quota.as_mut();
        if quota.is_some_and(|quota| !quota.admit(p)) {
            self.throttle(cx, d, p);
            return None;
        }
        Some(v)
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
        self.balance_at = vec![[0; 3]; pcpus as usize];
        self.idle = CpuSet::all(pcpus);
        self.waiting = CpuSet::empty(pcpus);
        self.ticking = CpuSet::empty(pcpus);
        self.candidates = CpuSet::empty(pcpus);
    }

    fn create_domain(&mut self, d: DomainId, params: DomainParams) {
        let weight = i64::from(params.weight) * NICE_0 / DOMAIN_WEIGHT;
        self.domains.push(Domain { weight, members: Vec::new(), runnable: 0, quota: None });
        self.set_quota(d, params.cap);
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        self.domains[d.index()].weight = i64::from(params.weight) * NICE_0 / DOMAIN_WEIGHT;
        self.reweigh(cx, d);
        self.set_quota(d, params.cap);
        self.unthrottle(cx, d);
        self.arm_refill(cx);
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let domain = cx.domain_of(v);
        self.domains[domain.index()].members.push(v);
        self.entities.push(Entity::default());
        self.vcpus.push(Vcpu {
            domain,
            queued: false,
            throttled: false,
            new: true,
            last_ran: Nanos::MIN / 2,
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
            // A sleeper's times follow the queue that it leaves up to now.
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
        } else if core::mem::take(&mut vcpu.throttled) {
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
        let mut next = self.class.pick(queue, &self.entities, candidate);
        if let Some(v) = candidate.filter(|_| next != candidate) {
            let entity = &mut self.entities[v.index()];
            queue.link(entity, v, self.class.key(entity));
        }
        queue.current = None;
        if next.is_none() {
            next = self.pull_for_idle(cx, p);
        }
        let queue = &mut self.queues[p.index()];
        if let Some(v) = next {
            let entity = &mut self.entities[v.index()];
            queue.unlink(entity, v);
            entity.ran = 0;
            entity.picked = entity.deadline;
            self.class.picked(queue, v);
        }
        queue.current = next;
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
            _ => self.refill(cx),
        }
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.throttled { "throttled" } else { "fair" };
        let credit = self.entities[v.index()].vruntime;
        Some(Detail { class, credit, active: !vcpu.throttled })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}

/// By how much time constants grow with the number of pCPUs.
fn scale(pcpus: u32) -> i64 {
    1 + i64::from(pcpus.min(8).ilog2())
}
