//! rtds: global earliest deadline first over deferrable servers. Each vCPU gets its *budget* in each
//! of its *periods*, whenever in the period it asks for it.
//!
//! Priority is the level, then the deadline (the end of the period); a smaller one goes first. The
//! budget is burned by running, kept while blocked, and refilled (what is left is lost) when the
//! deadline passes. A vCPU out of budget waits for that on the depleted list, unless it has
//! *extratime*: then it gets its budget again at once, one level down, below all that still have
//! theirs.
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
//! Every runnable or running vCPU is also in the replenishment queue, by deadline; the one timer of
//! the scheduler is that of its head.
//!
//! Invariants: without extratime a vCPU never runs longer than its budget in one of its periods; one
//! pCPU with Σ budget/period ≤ 1 gives each always-runnable vCPU its full budget before each
//! deadline; nothing runs with an empty budget. Nothing checks admission. Not work-conserving
//! without extratime. Weights, caps and yields have no effect (a pass chooses by deadline again; on
//! a tie the queue wins over what runs).
//!
//! Source: schedulers specification §5, after Xen's rt.c (4.7 and later; profile `rtds-4.5`: 4.5 and
//! 4.6, which look for due deadlines in passes at most 1 ms apart instead of by a timer, and know no
//! extratime). `as_is` follows the original where a replenished vCPU with extratime preempts nobody,
//! and where replenishment goes by level before deadline. Deviations: the replenishment queue keeps
//! the level that a vCPU had when it was put there, where the original compares with what the others
//! have become since; a wake-up of a depleted vCPU tells nobody, as nothing can come of it; an idle
//! pCPU of `rtds-4.5` looks every 1 ms, as a busy one does.

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, Nanos, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The longest slice of `rtds-4.5`.
const POLL: Nanos = 1_000_000;

/// What a vCPU may use: `budget` ns of each `period` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub period: Nanos,
    pub budget: Nanos,
    pub extratime: bool,
}

/// A version of the scheduler, and how closely to follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub name: &'static str,
    /// Looks for due deadlines in passes at most [`POLL`] apart instead of by a timer.
    pub polls: bool,
    pub as_is: bool,
}

/// Position in a queue: level, deadline, order of arrival.
type Key = (u32, Nanos, u64);

#[derive(Clone, Debug)]
struct Vcpu {
    server: Server,
    level: u32,
    deadline: Nanos,
    /// What is left of the budget.
    left: Nanos,
    /// Up to when the budget is burned, while it runs.
    burned: Nanos,
    queued: Option<Key>,
    /// On the depleted list.
    depleted: bool,
    replenishes: Option<Key>,
}

impl Vcpu {
    /// Smaller goes first.
    fn priority(&self) -> (u32, Nanos) {
        (self.level, self.deadline)
    }
}

/// The rtds scheduler. Made by name with [`make`](crate::make).
///
/// Costs, for n runnable vCPUs: a pass is O(log n), or O(n log n) with affinities in the way; a
/// wake-up is O(log n) if it finds an idle pCPU, else O(pCPUs); the timer the same for each vCPU that
/// it replenishes. Queues allocate as they grow.
#[derive(Debug)]
pub struct Rtds {
    profile: Profile,
    default: Server,
    domains: Vec<Server>,
    vcpus: Vec<Vcpu>,
    run_queue: BTreeSet<(Key, VcpuId)>,
    replenishments: BTreeSet<(Key, VcpuId)>,
    arrivals: u64,
    /// What the timer is set to.
    timer: Option<Nanos>,
    /// pCPUs that run their idle vCPU and were not told to look for work since.
    idle: CpuSet,
    /// pCPUs that were told to and have not passed since.
    told: CpuSet,
    /// Working space of the timer: what it replenished, and whether that was depleted.
    replenished: Vec<(VcpuId, bool)>,
}

impl Rtds {
    pub(crate) fn new(profile: Profile, default: Server) -> Self {
        Self {
            profile,
            default,
            domains: Vec::new(),
            vcpus: Vec::new(),
            run_queue: BTreeSet::new(),
            replenishments: BTreeSet::new(),
            arrivals: 0,
            timer: None,
            idle: CpuSet::empty(0),
            told: CpuSet::empty(0),
            replenished: Vec::new(),
        }
    }

    /// Begins a new period of `v` if its deadline has passed. Returns whether it has.
    fn update(&mut self, now: Nanos, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        if now < vcpu.deadline {
            return false;
        }
        let periods = (now - vcpu.deadline) / vcpu.server.period + 1;
        vcpu.deadline += periods * vcpu.server.period;
        vcpu.left = vcpu.server.budget;
        vcpu.level = 0;
        vcpu.burned = now;
        true
    }

    fn burn(&mut self, now: Nanos, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.left -= now - vcpu.burned;
        vcpu.burned = now;
        if vcpu.left <= 0 {
            vcpu.left = 0;
            if vcpu.server.extratime {
                vcpu.level = vcpu.level.saturating_add(1);
                vcpu.left = vcpu.server.budget;
            }
        }
    }

    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Puts `v` behind all of its priority in the run queue, or on the depleted list.
    fn enqueue(&mut self, v: VcpuId) {
        let arrival = self.arrival();
        let vcpu = &mut self.vcpus[v.index()];
        if vcpu.left > 0 {
            let key = (vcpu.level, vcpu.deadline, arrival);
            vcpu.queued = Some(key);
            self.run_queue.insert((key, v));
        } else {
            vcpu.depleted = true;
        }
    }

    /// Takes `v` off the run queue or the depleted list. Returns whether it was on one.
    fn dequeue(&mut self, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        if let Some(key) = vcpu.queued.take() {
            return self.run_queue.remove(&(key, v));
        }
        core::mem::take(&mut vcpu.depleted)
    }

    /// Puts `v` into the replenishment queue, anew if it is there.
    fn await_deadline(&mut self, v: VcpuId) {
        self.forget_deadline(v);
        let arrival = self.arrival();
        let vcpu = &mut self.vcpus[v.index()];
        let level = if self.profile.as_is { vcpu.level } else { 0 };
        let key = (level, vcpu.deadline, arrival);
        vcpu.replenishes = Some(key);
        self.replenishments.insert((key, v));
    }

    fn forget_deadline(&mut self, v: VcpuId) {
        if let Some(key) = self.vcpus[v.index()].replenishes.take() {
            self.replenishments.remove(&(key, v));
        }
    }

    /// Sets the timer to the first deadline.
    fn arm(&mut self, cx: &mut Context<'_>) {
        let first = self.replenishments.first().map(|((_, deadline, _), _)| *deadline);
        if self.profile.polls || self.timer == first {
            return;
        }
        self.timer = first;
        match first {
            Some(at) => cx.set_timer(TimerId::Accounting, at),
            None => cx.stop_timer(TimerId::Accounting),
        }
    }

    /// Asks the pCPU to pass that `new` should run on: an idle one, or the one with the lowest
    /// priority if that is below that of `new`. From home on; those told already are left alone.
    fn tell(&mut self, cx: &mut Context<'_>, new: VcpuId) {
        let (home, hard) = (cx.home(new), cx.affinity(new).hard());
        let found = self.idle.toc_and(home, hard).or_else(|| {
            let priority = |v: VcpuId| self.vcpus[v.index()].priority();
            let end = cx.pcpus();
            let around = (home.0..end).chain(0..home.0).map(PcpuId);
            let mut lowest = None;
            for p in around.filter(|p| hard.contains(*p) && !self.told.contains(*p)) {
                let running = cx.current(p).map(priority);
                if lowest.is_none_or(|(low, _)| running > low) {
                    lowest = Some((running, p));
                }
            }
            lowest.filter(|(low, _)| Some(priority(new)) < *low).map(|(_, p)| p)
        });
        if let Some(p) = found {
            self.idle.remove(p);
            self.told.insert(p);
            cx.resched(p);
        }
    }

    /// Replenishes all whose deadline has passed. Fills `replenished`, in order of deadlines.
    fn replenish(&mut self, now: Nanos) {
        while let Some(&((_, deadline, _), v)) = self.replenishments.first()
            && deadline <= now
        {
            let depleted = self.vcpus[v.index()].depleted;
            self.update(now, v);
            if self.dequeue(v) {
                self.enqueue(v);
            }
            self.await_deadline(v);
            self.replenished.push((v, depleted));
        }
    }

    /// Changes what `v` may use, from its next period on; extratime at once.
    fn set_server(&mut self, cx: &mut Context<'_>, v: VcpuId, server: Server) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.server = server;
        if server.extratime && vcpu.left == 0 {
            vcpu.level = vcpu.level.saturating_add(1);
            vcpu.left = server.budget;
            if self.dequeue(v) {
                self.enqueue(v);
                self.tell(cx, v);
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

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus.push(Vcpu {
            server: self.domains[cx.domain_of(v).index()],
            level: 0,
            deadline: 0,
            left: 0,
            burned: 0,
            queued: None,
            depleted: false,
            replenishes: None,
        });
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        self.update(cx.now(), v);
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
        let updated = self.update(cx.now(), v);
        if cx.is_running(v) {
            // It queues when its registers are saved.
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
            self.burn(now, v);
        }
        if self.profile.polls {
            self.replenish(now);
            self.replenished.clear();
        }
        let allowed = |v: &VcpuId| cx.affinity(*v).hard().contains(p);
        let first = self.run_queue.iter().map(|(_, v)| *v).find(allowed);
        let keep = current.filter(|v| {
            let vcpu = &self.vcpus[v.index()];
            let first = first.map(|f| self.vcpus[f.index()].priority());
            cx.is_runnable(*v) && vcpu.left > 0 && first.is_none_or(|first| vcpu.priority() < first)
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
        let slice = if self.profile.polls { vcpu.left.min(POLL) } else { vcpu.left };
        Decision { next, slice: Some(slice) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_runnable(v) {
            self.enqueue(v);
            if !self.vcpus[v.index()].depleted {
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
        }
        self.arm(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = match vcpu.level {
            _ if vcpu.left == 0 => "depleted",
            0 => "budget",
            _ => "extratime",
        };
        Some(Detail { class, credit: vcpu.left, active: vcpu.left > 0 })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let (current, on) = (machine.is_current(v), machine.is_running(v));
            let listed = vcpu.queued.is_some() || vcpu.depleted;
            let waits = machine.is_runnable(v) && !on;
            let fail = |what: &str| Err(format!("{v:?} {what}: {vcpu:?}"));
            if listed != waits {
                return fail("is lost or queued wrongly");
            }
            if vcpu.queued.is_some() == (listed && vcpu.left == 0) && listed {
                return fail("is on the wrong list for its budget");
            }
            if current && vcpu.left == 0 {
                return fail("runs without budget");
            }
            if vcpu.left < 0 {
                return fail("is below zero");
            }
            let stale = vcpu.queued.is_some_and(|(l, d, _)| (l, d) != vcpu.priority());
            if stale || vcpu.replenishes.is_some_and(|(_, d, _)| d != vcpu.deadline) {
                return fail("is queued in the wrong place");
            }
            if vcpu.replenishes.is_some() != (waits || on) {
                return fail("waits for its deadline, or not, wrongly");
            }
        }
        let queued = self.vcpus.iter().filter(|v| v.queued.is_some()).count();
        let replenishes = self.vcpus.iter().filter(|v| v.replenishes.is_some()).count();
        if (queued, replenishes) != (self.run_queue.len(), self.replenishments.len()) {
            return Err(format!("{queued} queued, {replenishes} to replenish: {self:?}"));
        }
        match self.idle.iter().find(|p| machine.current(*p).is_some()) {
            Some(p) => Err(format!("{p:?} is busy and counts as idle")),
            None => Ok(()),
        }
    }
}
