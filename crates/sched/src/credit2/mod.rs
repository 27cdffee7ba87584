//! credit2: runqueues shared by the pCPUs of a socket, ordered by credit; epochs instead of ticks.
//! Xen's default scheduler since 2019.
//!
//! A vCPU burns credit while it runs; the lighter it is, the faster. The vCPUs with the most credit
//! in a runqueue run. When the best has none left, all are paid at once: the epoch ends. There are
//! no classes and no periodic work. All accounting happens in scheduling passes, in wake-ups (for
//! the vCPUs that they might preempt) and at the end of an epoch. The life of a vCPU:
//!
//! ```text
//!            wakes                pass chooses it            registers saved, not runnable
//!  blocked ─────────▶ queued ───────────────────▶ scheduled ─────────────▶ blocked
//!                       ▲                          │    │ no budget
//!                       └──────────────────────────┘    ▼
//!                         registers saved, runnable   parked: blocked until its domain has budget
//! ```
//!
//! *Scheduled* lasts until the registers are saved. A vCPU that leaves is on no queue until then,
//! and the scheduler remembers a wake-up in that time (`delayed_add`). The layer calls this state
//! "running".
//!
//! Source: schedulers specification §4 (after Xen's credit2.c) and §2 for the versions. Files:
//! [`profile`] (versions, parameters), [`runqueue`] (sharing, order), [`credits`] (burning, epochs,
//! slices), [`choice`] (what to run), [`tickle`] (which pCPU to tell), [`caps`] (budgets), [`load`]
//! (averages), [`balance`] (placement and moves), [`smt`] (threads of a core), [`invariants`] (what
//! must always hold). Decisions where the source is silent are in docs/schedulers.md.

mod balance;
#[cfg(test)]
mod bench;
mod caps;
mod choice;
mod credits;
mod invariants;
mod load;
mod profile;
mod runqueue;
mod smt;
mod tickle;

pub(crate) use profile::{TODAY, Y2013, Y2016};

use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use crate::time::Nanos;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use balance::Candidate;
use caps::Cap;
use load::Window;
use profile::{CREDIT_INIT, MIGRATE_COMPENSATION, Params, Profile};
use runqueue::Runqueue;
use smt::Cores;

#[derive(Clone, Debug)]
struct Vcpu {
    domain: DomainId,
    credit: i64,
    /// The uncharged remainder below one credit, in units of 1/weight of a credit.
    residual: i64,
    /// The time up to which it is charged.
    start: Nanos,
    /// The same on the progress clock of its core; kept with an option of [`smt`].
    mark: i64,
    /// Time alone on a core that it is owed, or owes if negative, in ns; 0 without `smt_space`.
    space: i64,
    /// Its runqueue, while `assigned`: the runqueue of its home.
    queue: usize,
    /// Lives on a runqueue: from insertion to removal.
    assigned: bool,
    /// Goes on the queue once its registers are saved.
    delayed_add: bool,
    /// Gives way once.
    yields: bool,
    /// Kept from running by its cap.
    parked: bool,
    /// The runqueue to which it moves once it has left its pCPU.
    target: Option<usize>,
    /// The pCPU that was told about it.
    tickled_by: Option<PcpuId>,
    /// How much it wanted to run recently, and when that was last updated.
    average: i64,
    average_at: i64,
    /// How long it may still run before it must take more budget, in ns; None is no limit.
    budget: Option<Nanos>,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: i64,
    /// Cap in percent of a pCPU; 0 is none. `cap` is set once there is a vCPU.
    percent: u32,
    cap: Option<Cap>,
    vcpus: Vec<VcpuId>,
    /// vCPUs parked without budget, the last parked first.
    parked: List,
}

/// The credit2 scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a wake-up is O(queue + pCPUs of its runqueue + pCPUs/64); a pass is O(queue); the end of
/// an epoch is O(vCPUs of the runqueue + runqueues), and O(product of the vCPUs of two runqueues)
/// if they differ enough to balance; a replenishment is O(capped domains). Only creation allocates.
#[derive(Debug)]
pub struct Credit2 {
    profile: &'static Profile,
    params: Params,
    vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    /// By id; a runqueue without members does not exist.
    queues: Vec<Runqueue>,
    /// The runqueue of each pCPU.
    queue_of: Vec<usize>,
    cores: Cores,
    run_links: Links,
    assigned_links: Links,
    parked_links: Links,
    /// Domains with a cap, in order.
    capped: Vec<DomainId>,
    /// Scratch space, kept so that calls do not allocate.
    scratch: CpuSet,
    pushes: Vec<Candidate>,
    pulls: Vec<Candidate>,
}

impl Credit2 {
    fn new(profile: &'static Profile, params: &crate::params::Params) -> Result<Self, SchedError> {
        Ok(Self {
            profile,
            params: Params::new(profile, params)?,
            vcpus: Vec::new(),
            domains: Vec::new(),
            queues: Vec::new(),
            queue_of: Vec::new(),
            cores: Cores::default(),
            run_links: Links::default(),
            assigned_links: Links::default(),
            parked_links: Links::default(),
            capped: Vec::new(),
            scratch: CpuSet::empty(0),
            pushes: Vec::new(),
            pulls: Vec::new(),
        })
    }
}

impl Scheduler for Credit2 {
    fn name(&self) -> &'static str {
        self.profile.name
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpus = cx.pcpus();
        self.queue_of = vec![0; pcpus as usize];
        self.scratch = CpuSet::empty(pcpus);
        self.start_cores(cx);
        cx.pool().iter().for_each(|p| self.join_runqueue(cx, p));
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domains.push(Domain {
            weight: params.weight.into(),
            percent: if self.profile.early { 0 } else { params.cap },
            cap: None,
            vcpus: Vec::new(),
            parked: List::EMPTY,
        });
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        self.domains[d.index()].weight = params.weight.into();
        for i in 0..self.domains[d.index()].vcpus.len() {
            let v = self.domains[d.index()].vcpus[i];
            self.update_max_weight(self.vcpus[v.index()].queue);
        }
        if !self.profile.early {
            self.domains[d.index()].percent = params.cap;
            self.set_cap(cx, d, params.cap);
        }
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.run_links.grow();
        self.assigned_links.grow();
        self.parked_links.grow();
        let d = cx.domain_of(v);
        // If a domain has a cap from the start, its budget begins with its first vCPU.
        self.set_cap(cx, d, self.domains[d.index()].percent);
        let domain = &mut self.domains[d.index()];
        domain.vcpus.push(v);
        self.vcpus.push(Vcpu {
            domain: d,
            credit: CREDIT_INIT,
            residual: 0,
            start: Nanos::ZERO,
            mark: 0,
            space: 0,
            queue: 0,
            assigned: false,
            delayed_add: false,
            yields: false,
            parked: false,
            target: None,
            tickled_by: None,
            average: self.params.window.half(),
            average_at: Window::units(cx.now()),
            budget: domain.cap.is_some().then_some(Nanos::ZERO),
        });
        let home = self.place(cx, v);
        cx.set_home(v, home);
        self.assign(self.queue_of(home), v);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let d = self.vcpus[v.index()].domain;
        if core::mem::take(&mut self.vcpus[v.index()].parked) {
            self.parked_links.remove(&mut self.domains[d.index()].parked, v.0);
            // It is down, so it does not wake.
            let _ = cx.unpark(v);
        }
        self.domains[d.index()].vcpus.retain(|x| *x != v);
        self.stops_leaving(cx, v);
        self.deassign(v);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) || self.run_links.is_linked(v.0) {
            return;
        }
        if cx.is_running(v) {
            self.vcpus[v.index()].delayed_add = true;
            return;
        }
        let q = self.vcpus[v.index()].queue;
        self.update_load(cx, cx.now(), q, v, 1);
        self.stops_leaving(cx, v);
        self.enqueue(q, v);
        self.tickle(cx, v);
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let q = self.vcpus[v.index()].queue;
        if cx.is_current(v) && self.profile.early {
            cx.resched(cx.home(v));
        } else if cx.is_current(v) {
            self.tell(cx, q, cx.home(v));
        } else if self.run_links.is_linked(v.0) {
            self.update_load(cx, cx.now(), q, v, -1);
            self.dequeue(q, v);
        } else {
            self.vcpus[v.index()].delayed_add = false;
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, v: VcpuId) {
        self.vcpus[v.index()].yields = !self.profile.early;
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.place(cx, v)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        let (to, mut home) = (self.queue_of(p), p);
        self.stops_leaving(cx, v);
        if self.vcpus[v.index()].queue != to {
            self.deassign(v);
            // A move between runqueues takes a turn of its own, whatever the choice of `p` took.
            home = self.take_turn(cx, to, v).unwrap_or(p);
            self.assign(to, v);
        }
        cx.set_home(v, home);
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let (now, q) = (cx.now(), self.queue_of(p));
        self.clear_tickled(cx, p);
        let current = cx.current(p);
        if let Some(v) = current {
            self.burn(cx, v);
            self.grab(cx, v);
        }
        let next = self.candidate(cx, p);
        let leaves = current.filter(|v| next != current && cx.is_runnable(*v));
        if let Some(v) = leaves {
            self.vcpus[v.index()].delayed_add = true;
        }
        self.core_runs(cx, p, next);
        self.set_idle(cx, p, next.is_none());
        let Some(next) = next else {
            self.queues[q].load.update(self.params.window, now, 0);
            return Decision { next, slice: self.profile.polls.then_some(self.params.max_timer) };
        };
        let ran = if current == Some(next) {
            if !self.profile.early {
                self.update_load(cx, now, q, next, 0);
            }
            Some(now - cx.entry(next))
        } else {
            self.dequeue(q, next);
            None
        };
        if self.end_epoch(cx, q, next) {
            self.balance(cx, q, next);
        }
        let vcpu = &mut self.vcpus[next.index()];
        vcpu.start = now;
        vcpu.tickled_by = None;
        if cx.home(next) != p {
            vcpu.credit += MIGRATE_COMPENSATION;
            cx.set_home(next, p);
        }
        Decision { next: Some(next), slice: Some(self.slice(q, next, ran, leaves)) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let waiters = self.return_budget(v);
        let q = self.vcpus[v.index()].queue;
        if core::mem::take(&mut self.vcpus[v.index()].delayed_add) && cx.is_runnable(v) {
            self.stops_leaving(cx, v);
            self.enqueue(q, v);
            self.tickle(cx, v);
        } else {
            self.update_load(cx, cx.now(), q, v, -1);
        }
        if let Some(d) = waiters {
            self.unpark_all(cx, d);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId) {
        match timer {
            TimerId::Accounting => self.replenish(cx),
            TimerId::Tick(p) | TimerId::Slice(p) => cx.resched(p),
        }
    }

    fn pcpu_added(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.join_runqueue(cx, p);
    }

    fn pcpu_removed(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.leave_runqueue(cx, p);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.parked { "parked" } else { "normal" };
        Some(Detail { class, credit: vcpu.credit, active: vcpu.assigned })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
