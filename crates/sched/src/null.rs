//! null: each vCPU permanently has its own pCPU. There is no queueing, no preemption and no slice.
//! Partitioned systems run it. As long as vCPUs do not outnumber pCPUs, it is the upper bound for
//! all other schedulers.
//!
//! ```text
//!          comes online, a pCPU is free
//!   ┌──────────────────────────────────────▶ assigned ──┐ goes offline, is removed, is moved:
//!  none                                          ▲      │ the pCPU takes the first that waits
//!   └──────────────────────────▶ waiting ────────┘      ▼
//!          comes online, none is free    a pCPU gets free
//! ```
//!
//! Invariants: a pCPU has at most one vCPU. An assigned vCPU runs whenever it is runnable, so its
//! only steal is the pass itself. A vCPU that blocks *keeps* its pCPU: null is not work-conserving,
//! and a waiting vCPU starves while others sleep. There are no parameters; yields, weights and caps
//! have no effect.
//!
//! Source: schedulers specification §6, after Xen's null.c. Decisions where the specification is
//! silent: a vCPU comes online with its first wake-up after it was down. A vCPU that gets another
//! pCPU before its registers are saved runs there only once they are saved.

use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::{Machine, flags};
use crate::registry::SchedulerInfo;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub(crate) const INFO: SchedulerInfo = SchedulerInfo {
    name: "null",
    aliases: &[],
    brief: "one pCPU for each vCPU, for good; those too many wait",
    source: "Xen null",
    work_conserving: false,
    weights: false,
    vcpu_weights: false,
    pv_guests: true,
    caps: false,
    ticks: false,
    params: &[],
    domain_params: &[],
    make: &|_| Ok(Box::new(Null::new())),
};

/// The null scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a wake-up and a pass are O(1) for an assigned vCPU. Coming online and going offline are
/// O(waiting + pCPUs/64); coming online without finding a free pCPU is O(pCPUs). None of these
/// allocates.
#[derive(Debug)]
pub struct Null {
    /// The vCPU to which each pCPU is assigned.
    owner: Vec<Option<VcpuId>>,
    /// The pCPU assigned to each vCPU.
    place: Vec<Option<PcpuId>>,
    /// Whether each vCPU was woken since it last slept, so that another wake-up does nothing.
    awake: Vec<bool>,
    /// pCPUs without an owner.
    free: CpuSet,
    /// Online vCPUs without a pCPU, first come, first served.
    waiting: List,
    links: Links,
}

impl Null {
    fn new() -> Self {
        Self {
            owner: Vec::new(),
            place: Vec::new(),
            awake: Vec::new(),
            free: CpuSet::empty(0),
            waiting: List::EMPTY,
            links: Links::default(),
        }
    }

    fn assign(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        self.owner[p.index()] = Some(v);
        self.place[v.index()] = Some(p);
        self.free.remove(p);
        cx.set_home(v, p);
    }

    /// `p` takes the first waiting vCPU that prefers it, else the first that may run there, and
    /// skips vCPUs that are still on another pCPU. Returns whether it took one.
    fn take_waiting(&mut self, cx: &mut Context<'_>, p: PcpuId) -> bool {
        let fits = |v: &VcpuId, soft: bool| {
            let affinity = cx.affinity(*v);
            let here = !cx.is_running(*v) || cx.current(p) == Some(*v);
            here && affinity.hard().contains(p)
                && (!soft || affinity.soft().is_some_and(|s| s.contains(p)))
        };
        let first = |soft| self.links.iter(&self.waiting).map(VcpuId).find(|v| fits(v, soft));
        let Some(v) = first(true).or_else(|| first(false)) else { return false };
        self.links.remove(&mut self.waiting, v.0);
        self.assign(cx, v, p);
        true
    }

    /// `v` goes offline or moves: its pCPU, if it has one, goes to a waiting vCPU.
    fn leave(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.links.is_linked(v.0) {
            self.links.remove(&mut self.waiting, v.0);
        }
        if let Some(p) = self.place[v.index()].take() {
            self.owner[p.index()] = None;
            self.free.insert(p);
            self.take_waiting(cx, p);
            cx.resched(p);
        }
    }

    /// `v` came online without a pCPU. It takes the pCPU that `pick` chooses if that is free and
    /// its registers are saved; else it waits, and all free pCPUs on which it may run are told.
    fn arrive(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = self.pick(cx, v);
        if self.free.contains(p) && !cx.is_running(v) {
            self.assign(cx, v, p);
            cx.resched(p);
        } else {
            self.links.insert_before(&mut self.waiting, v.0, None);
            self.tell_free(cx, v);
        }
    }

    fn tell_free(&self, cx: &mut Context<'_>, v: VcpuId) {
        for p in self.free.iter() {
            if cx.affinity(v).hard().contains(p) {
                cx.resched(p);
            }
        }
    }

    fn is_online(machine: &Machine, v: VcpuId) -> bool {
        machine.vcpu(v).flags & flags::DOWN == 0
    }
}

impl Scheduler for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.owner = vec![None; cx.pcpus() as usize];
        self.free = CpuSet::all(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {}

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.links.grow();
        self.place.push(None);
        self.awake.push(cx.is_runnable(v));
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if Self::is_online(cx, v) {
            self.arrive(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.leave(cx, v);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if core::mem::replace(&mut self.awake[v.index()], true) {
            return;
        }
        match self.place[v.index()] {
            Some(p) => cx.resched(p),
            None if self.links.is_linked(v.0) => {}
            None => self.arrive(cx, v),
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        // A current vCPU sleeps from the next pass on; a wake-up before that pass cancels the
        // sleep.
        self.awake[v.index()] = cx.is_current(v);
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        }
        if !Self::is_online(cx, v) {
            self.awake[v.index()] = false;
            self.leave(cx, v);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    /// The home of `v` if it is free or assigned to `v`, else the first free pCPU: first among
    /// preferred pCPUs, then among all allowed pCPUs. If none is free, the first allowed pCPU.
    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let home = cx.home(v);
        let own = self.place[v.index()] == Some(home);
        let affinity = cx.affinity(v);
        let place = affinity.steps().find_map(|mask| {
            if mask.contains(home) && (own || self.free.contains(home)) {
                return Some(home);
            }
            // A cyclic search after the last pCPU begins at the first.
            self.free.cycle_and(PcpuId(cx.pcpus() - 1), mask)
        });
        place.or(affinity.hard().first()).unwrap_or(home)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        if self.place[v.index()] == Some(p) {
            return;
        }
        self.leave(cx, v);
        cx.set_home(v, p);
        // `p` need not be free. If `v` is online, it takes a free pCPU or waits.
        if Self::is_online(cx, v) {
            self.arrive(cx, v);
        }
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        if let Some(v) = cx.current(p)
            && !cx.is_runnable(v)
        {
            self.awake[v.index()] = false;
        }
        if self.owner[p.index()].is_none() {
            self.take_waiting(cx, p);
        }
        let owner = self.owner[p.index()];
        let ready =
            |v: &VcpuId| cx.is_runnable(*v) && (!cx.is_running(*v) || cx.current(p) == Some(*v));
        Decision { next: owner.filter(ready), slice: None }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        // A pCPU that could not take `v` while it was still on its old pCPU can take it now.
        if self.links.is_linked(v.0) {
            self.tell_free(cx, v);
        } else if let Some(p) = self.place[v.index()]
            && cx.is_runnable(v)
            && !cx.is_current(v)
        {
            cx.resched(p);
        }
    }

    fn timer(&mut self, _cx: &mut Context<'_>, _timer: TimerId) {}

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let assigned = self.place.get(v.index())?.is_some();
        let waits = self.links.is_linked(v.0);
        let class = if assigned {
            "assigned"
        } else if waits {
            "waiting"
        } else {
            "offline"
        };
        Some(Detail { class, credit: 0, active: assigned })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for (i, owner) in self.owner.iter().enumerate() {
            let p = PcpuId(i as u32);
            if self.free.contains(p) != owner.is_none() {
                return Err(format!("{p:?} has owner {owner:?} and free is wrong"));
            }
            if let Some(v) = owner
                && self.place[v.index()] != Some(p)
            {
                return Err(format!("{p:?} belongs to {v:?}, which is elsewhere"));
            }
        }
        for (i, place) in self.place.iter().enumerate() {
            let v = VcpuId(i as u32);
            if let Some(p) = place {
                if self.owner[p.index()] != Some(v) || machine.home(v) != *p {
                    return Err(format!("{v:?} is assigned to {p:?}, which it has not"));
                }
                if !machine.affinity(v).hard().contains(*p) && !machine.is_migrating(v) {
                    return Err(format!("{v:?} is assigned to {p:?}, outside its affinity"));
                }
            }
            let waits = self.links.is_linked(v.0);
            if waits && place.is_some() {
                return Err(format!("{v:?} is assigned and waits"));
            }
            if machine.is_runnable(v) && !waits && place.is_none() {
                return Err(format!("{v:?} is lost: {machine:?}"));
            }
        }
        Ok(())
    }
}
