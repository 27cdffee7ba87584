//! Pools: the machine divided among several schedulers, each with its own pCPUs and domains.
//!
//! Each pool is a [`Hypervisor`]; this layer routes calls to the right one, and moves pCPUs and
//! domains between pools while they run. Ids refer to the whole machine. A pool's hypervisor knows
//! a domain or vCPU by its *local* id, and each move gives it a new one. A pool knows nothing of
//! the others, so load in one never affects another. Source: schedulers specification §1.10, after
//! Xen's cpupools.
//!
//! A move waits until nothing that it concerns runs. A pCPU moves once it idles. A domain is
//! paused, and moves once its vCPUs have left their pCPUs. Both moves end in
//! [`Pools::context_saved`]. Files: this one routes calls; `moves` creates and destroys pools, and
//! moves pCPUs and domains.

use crate::affinity::Affinity;
use crate::error::SchedError;
use crate::hypervisor::{Hypervisor, Switch};
use crate::ids::{Action, DomainId, PcpuId, PoolId, TimerId, VcpuId};
use crate::scheduler::{DomainParams, Scheduler};
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

mod moves;

#[derive(Debug)]
struct Pool {
    hypervisor: Hypervisor,
    /// Machine-wide ids of its vCPUs, by local id.
    vcpus: Vec<VcpuId>,
    /// When its accounting timer is due.
    accounting: Option<Nanos>,
}

/// Where a pCPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    pool: PoolId,
    /// Where it goes once it has left `pool`.
    to: Option<PoolId>,
}

/// Where a domain is.
#[derive(Clone, Debug)]
struct Place {
    pool: PoolId,
    local: DomainId,
    to: Option<PoolId>,
    vcpus: Vec<VcpuId>,
}

/// Several hypervisors on one machine. A world drives it like a [`Hypervisor`], with the same
/// [`Action`]s. Timers of different pools that would have the same id are merged into one.
///
/// A call costs as much as in the pool; the accounting timer adds O(pools). A move costs O(vCPUs).
///
/// # Panics
/// Methods that return no `Result` panic on ids that this object did not hand out. They also panic on a vCPU that was
/// removed, if its pool was destroyed afterwards.
#[derive(Debug)]
pub struct Pools {
    topology: Topology,
    /// By id; None is a pool that was destroyed.
    pools: Vec<Option<Pool>>,
    seats: Vec<Seat>,
    domains: Vec<Place>,
    /// Domains on their way to another pool: a context switch looks only at these.
    moving: Vec<DomainId>,
    /// Pool and local id of each vCPU.
    vcpus: Vec<(PoolId, VcpuId)>,
    /// The time for which the accounting timer is set.
    armed: Option<Nanos>,
    /// Actions of a pool, before they are passed on.
    scratch: Vec<Action>,
}

impl Pools {
    /// A machine whose pool 0 has all pCPUs. Pool 0 always keeps the boot pCPU.
    ///
    /// # Panics
    /// If [`Topology::check`] refuses the topology.
    pub fn new(topology: Topology, scheduler: Box<dyn Scheduler>) -> Self {
        let hypervisor = Hypervisor::new(topology, scheduler);
        Self {
            topology,
            pools: vec![Some(Pool { hypervisor, vcpus: Vec::new(), accounting: None })],
            seats: vec![Seat { pool: PoolId(0), to: None }; topology.pcpus() as usize],
            domains: Vec::new(),
            moving: Vec::new(),
            vcpus: Vec::new(),
            armed: None,
            scratch: Vec::new(),
        }
    }

    /// Arms the first timers. Must be the first call after [`Self::new`].
    pub fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.with(PoolId(0), out, |h, out| h.start(now, out));
    }

    /// States which pCPU executes the calls that follow and concern its pool; see
    /// [`Hypervisor::set_executing`].
    pub fn set_executing(&mut self, p: PcpuId) {
        let hypervisor = &mut self.pool_mut(self.seats[p.index()].pool).hypervisor;
        // A pCPU that is leaving no longer influences placement.
        if hypervisor.machine().pool().contains(p) {
            hypervisor.set_executing(p);
        }
    }

    /// Creates a domain without vCPUs in a pool.
    ///
    /// # Errors
    /// [`SchedError::UnknownPool`], and those of [`Hypervisor::create_domain`].
    pub fn create_domain(
        &mut self,
        pool: PoolId,
        params: DomainParams,
    ) -> Result<DomainId, SchedError> {
        self.check(pool)?;
        let local = self.pool_mut(pool).hypervisor.create_domain(params)?;
        self.domains.push(Place { pool, local, to: None, vcpus: Vec::new() });
        Ok(DomainId(self.domains.len() as u32 - 1))
    }

    /// Creates a vCPU; see [`Hypervisor::create_vcpu`].
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`], [`SchedError::DomainMoves`], [`SchedError::NoSuchPcpu`],
    /// [`SchedError::EmptyAffinity`].
    pub fn create_vcpu(
        &mut self,
        now: Nanos,
        d: DomainId,
        affinity: Affinity,
        out: &mut Vec<Action>,
    ) -> Result<VcpuId, SchedError> {
        let place = self.at_rest(d)?;
        let (pool, local) = (place.pool, place.local);
        let v = self.with(pool, out, |h, out| h.create_vcpu(now, local, affinity, out))?;
        let global = VcpuId(self.vcpus.len() as u32);
        self.vcpus.push((pool, v));
        self.pool_mut(pool).vcpus.push(global);
        self.domains[d.index()].vcpus.push(global);
        Ok(global)
    }

    /// Calls the hypervisor of the pool of `v`, with the local id of `v`. The call must not create
    /// anything.
    pub fn on_vcpu<R>(
        &mut self,
        v: VcpuId,
        out: &mut Vec<Action>,
        call: impl FnOnce(&mut Hypervisor, VcpuId, &mut Vec<Action>) -> R,
    ) -> R {
        let (pool, local) = self.local(v);
        self.with(pool, out, |h, out| call(h, local, out))
    }

    /// Calls the hypervisor of the pool of `d`, with the local id of `d`. The call must not create
    /// anything.
    pub fn on_domain<R>(
        &mut self,
        d: DomainId,
        out: &mut Vec<Action>,
        call: impl FnOnce(&mut Hypervisor, DomainId, &mut Vec<Action>) -> R,
    ) -> R {
        let place = &self.domains[d.index()];
        let (pool, local) = (place.pool, place.local);
        self.with(pool, out, |h, out| call(h, local, out))
    }

    /// The scheduling pass of `p`; see [`Hypervisor::schedule`].
    pub fn schedule(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) -> Switch {
        // The pass first completes the last switch, after which the pCPU may belong to another
        // pool.
        if self.seats[p.index()].to.is_some() || !self.moving.is_empty() {
            self.context_saved(now, p, out);
        }
        let pool = self.seats[p.index()].pool;
        let switch = self.with(pool, out, |h, out| h.schedule(now, p, out));
        let global = |v: Option<VcpuId>| v.map(|v| self.global(pool, v));
        Switch { prev: global(switch.prev), next: global(switch.next), ..switch }
    }

    /// The registers of the vCPU that left `p` are saved; see [`Hypervisor::context_saved`]. Moves
    /// that waited for this continue.
    pub fn context_saved(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) {
        let pool = self.seats[p.index()].pool;
        self.with(pool, out, |h, out| h.context_saved(now, p, out));
        self.settle_pcpu(now, p, out);
        // In reverse order, because domains that arrive drop out of the list.
        for i in (0..self.moving.len()).rev() {
            let d = self.moving[i];
            if self.domains[d.index()].pool == pool {
                self.settle_domain(now, d, out);
            }
        }
    }

    /// A timer has expired; see [`Hypervisor::timer`].
    pub fn timer(&mut self, now: Nanos, timer: TimerId, out: &mut Vec<Action>) {
        match timer {
            TimerId::Tick(p) | TimerId::Slice(p) => {
                let pool = self.seats[p.index()].pool;
                self.with(pool, out, |h, out| h.timer(now, timer, out));
            }
            TimerId::Accounting => {
                self.armed = None;
                for i in 0..self.pools.len() {
                    let Some(pool) = &mut self.pools[i] else { continue };
                    if pool.accounting.is_some_and(|at| at <= now) {
                        pool.accounting = None;
                        self.with(PoolId(i as u32), out, |h, out| h.timer(now, timer, out));
                    }
                }
                self.arm(out);
            }
        }
    }

    /// The pool of `p`, and the pool to which it is on its way, if any.
    pub fn pool_of(&self, p: PcpuId) -> (PoolId, Option<PoolId>) {
        (self.seats[p.index()].pool, self.seats[p.index()].to)
    }

    /// The pool of `d`, and the pool to which it is on its way, if any.
    pub fn pool_of_domain(&self, d: DomainId) -> (PoolId, Option<PoolId>) {
        (self.domains[d.index()].pool, self.domains[d.index()].to)
    }

    /// The pCPUs of a pool, in index order, without those that are leaving or on their way.
    pub fn pcpus_of(&self, pool: PoolId) -> impl Iterator<Item = PcpuId> + '_ {
        let stays = move |(_, s): &(usize, &Seat)| s.pool == pool && s.to.is_none();
        self.seats.iter().enumerate().filter(stays).map(|(p, _)| PcpuId(p as u32))
    }

    /// The hypervisor of a pool, to read. It uses local ids. None if the pool was destroyed.
    pub fn hypervisor(&self, pool: PoolId) -> Option<&Hypervisor> {
        self.pools.get(pool.index())?.as_ref().map(|p| &p.hypervisor)
    }

    /// The pool of `v` and its local id there.
    pub fn local(&self, v: VcpuId) -> (PoolId, VcpuId) {
        if self.undivided() { (PoolId(0), v) } else { self.vcpus[v.index()] }
    }

    /// Checks all pools, and that each pCPU is in only one. For tests.
    ///
    /// # Errors
    /// A description of what is broken.
    pub fn is_valid(&self) -> Result<(), String> {
        for (i, pool) in self.pools.iter().enumerate() {
            let Some(pool) = pool else { continue };
            pool.hypervisor.is_valid().map_err(|broken| format!("pool {i}: {broken}"))?;
            for (p, seat) in self.seats.iter().enumerate() {
                let (p, here) = (PcpuId(p as u32), seat.pool.index() == i && seat.to.is_none());
                if pool.hypervisor.machine().pool().contains(p) != here {
                    return Err(format!("pool {i} and {seat:?} disagree about {p:?}"));
                }
                if seat.pool.index() != i && pool.hypervisor.current(p).is_some() {
                    return Err(format!("pool {i} runs a vCPU on {p:?}, but that is at {seat:?}"));
                }
            }
        }
        for (i, (pool, local)) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            if self.hypervisor(*pool).is_some() && self.global(*pool, *local) != v {
                return Err(format!("{v:?} has another id in {pool:?}"));
            }
        }
        Ok(())
    }

    fn check(&self, pool: PoolId) -> Result<(), SchedError> {
        self.hypervisor(pool).map(|_| ()).ok_or(SchedError::UnknownPool(pool))
    }

    /// The place of `d`, unless it is on its way to another pool.
    fn at_rest(&self, d: DomainId) -> Result<&Place, SchedError> {
        let place = self.domains.get(d.index()).ok_or(SchedError::UnknownDomain(d))?;
        if place.to.is_some() { Err(SchedError::DomainMoves(d)) } else { Ok(place) }
    }

    fn pool_mut(&mut self, pool: PoolId) -> &mut Pool {
        let pool = self.pools[pool.index()].as_mut();
        pool.expect("a pool that something is in exists: destroying it was refused")
    }

    /// Whether there has only ever been one pool. Then nothing has moved, and local ids and timers
    /// equal the global ones. Most machines have one pool, and on a large one it would cost too
    /// much time to look vCPUs up in tables.
    fn undivided(&self) -> bool {
        self.pools.len() == 1
    }

    fn global(&self, pool: PoolId, local: VcpuId) -> VcpuId {
        if self.undivided() {
            return local;
        }
        let pool = self.pools[pool.index()].as_ref();
        pool.expect("a pool that something is in exists: destroying it was refused").vcpus
            [local.index()]
    }

    /// Calls the hypervisor of a pool and passes its actions on.
    fn with<R>(
        &mut self,
        pool: PoolId,
        out: &mut Vec<Action>,
        call: impl FnOnce(&mut Hypervisor, &mut Vec<Action>) -> R,
    ) -> R {
        if self.undivided() {
            let before = out.len();
            let only = self.pool_mut(pool);
            let result = call(&mut only.hypervisor, out);
            for action in &out[before..] {
                match action {
                    Action::SetTimer { timer: TimerId::Accounting, at } => {
                        only.accounting = Some(*at);
                    }
                    Action::StopTimer { timer: TimerId::Accounting } => only.accounting = None,
                    _ => {}
                }
            }
            self.armed = only.accounting;
            return result;
        }
        let mut actions = core::mem::take(&mut self.scratch);
        let result = call(&mut self.pool_mut(pool).hypervisor, &mut actions);
        for action in actions.drain(..) {
            match action {
                Action::SetTimer { timer: TimerId::Accounting, at } => {
                    self.pool_mut(pool).accounting = Some(at);
                    self.arm(out);
                }
                Action::StopTimer { timer: TimerId::Accounting } => {
                    self.pool_mut(pool).accounting = None;
                    self.arm(out);
                }
                Action::Throttle { vcpu, on } => {
                    out.push(Action::Throttle { vcpu: self.global(pool, vcpu), on });
                }
                other => out.push(other),
            }
        }
        self.scratch = actions;
        result
    }

    /// Sets the accounting timer for the first pool that needs it.
    fn arm(&mut self, out: &mut Vec<Action>) {
        let first = self.pools.iter().flatten().filter_map(|pool| pool.accounting).min();
        if core::mem::replace(&mut self.armed, first) != first {
            let timer = TimerId::Accounting;
            out.push(match first {
                Some(at) => Action::SetTimer { timer, at },
                None => Action::StopTimer { timer },
            });
        }
    }
}
