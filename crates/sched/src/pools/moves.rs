//! Creates and destroys pools, and moves pCPUs and domains between them.

use super::{Place, Pool, Pools, Seat};
use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::hypervisor::Hypervisor;
use crate::ids::{Action, DomainId, PcpuId, PoolId, VcpuId};
use crate::scheduler::{DomainParams, Scheduler};
use crate::time::Nanos;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Pools {
    /// Creates a pool without pCPUs.
    pub fn create_pool(
        &mut self,
        now: Nanos,
        scheduler: Box<dyn Scheduler>,
        out: &mut Vec<Action>,
    ) -> PoolId {
        let none = CpuSet::empty(self.topology.pcpus());
        let hypervisor = Hypervisor::on(self.topology, none, scheduler);
        let id = PoolId(self.pools.len() as u32);
        self.pools.push(Some(Pool { hypervisor, vcpus: Vec::new(), accounting: None }));
        self.with(id, out, |h, out| h.start(now, out));
        id
    }

    /// Destroys a pool.
    ///
    /// # Errors
    /// [`SchedError::UnknownPool`], [`SchedError::FirstPool`]; [`SchedError::PoolInUse`] if there
    /// are pCPUs or domains in it, or on their way to it.
    pub fn destroy_pool(&mut self, pool: PoolId, out: &mut Vec<Action>) -> Result<(), SchedError> {
        self.check(pool)?;
        if pool == PoolId(0) {
            return Err(SchedError::FirstPool);
        }
        let pcpus = self.seats.iter().filter(|s| s.pool == pool || s.to == Some(pool)).count();
        let lives = |d: &&Place| d.pool == pool || d.to == Some(pool);
        let domains = self.domains.iter().filter(lives).count();
        if pcpus + domains > 0 {
            let (pcpus, domains) = (pcpus as u32, domains as u32);
            return Err(SchedError::PoolInUse { pool, pcpus, domains });
        }
        self.pools[pool.index()] = None;
        self.arm(out);
        Ok(())
    }

    /// Moves `p` to another pool: at once if it idles, else once its current vCPU has left. No
    /// effect if it is there already.
    ///
    /// # Errors
    /// [`SchedError::UnknownPool`], [`SchedError::NoSuchPcpu`], [`SchedError::BootPcpu`],
    /// [`SchedError::PcpuMoves`], and those of [`Hypervisor::take_pcpu`].
    pub fn move_pcpu(
        &mut self,
        now: Nanos,
        p: PcpuId,
        to: PoolId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        self.check(to)?;
        let pcpus = self.topology.pcpus();
        let seat = *self.seats.get(p.index()).ok_or(SchedError::NoSuchPcpu { pcpu: p.0, pcpus })?;
        if seat.to.is_some() {
            return Err(SchedError::PcpuMoves(p));
        }
        if seat.pool == to {
            return Ok(());
        }
        if p == PcpuId(0) {
            return Err(SchedError::BootPcpu);
        }
        // A domain on its way to the pool counts too: it may arrive when the pool has no pCPU left.
        let arrives = self.domains.iter().any(|d| d.to == Some(seat.pool));
        if arrives && self.pcpus_of(seat.pool).eq([p]) {
            return Err(SchedError::LastPcpu(p));
        }
        let taken = self.with(seat.pool, out, |h, out| h.take_pcpu(now, p, out));
        taken.map_err(|error| match error {
            SchedError::Stranded { vcpu, pcpu } => {
                SchedError::Stranded { vcpu: self.global(seat.pool, vcpu), pcpu }
            }
            other => other,
        })?;
        self.seats[p.index()].to = Some(to);
        self.settle_pcpu(now, p, out);
        Ok(())
    }

    /// Moves `d` to another pool: at once if none of its vCPUs is on a pCPU, else once they have
    /// left. It is paused until then. In the new pool, it has default parameters and may run on any
    /// pCPU. No effect if it is there already.
    ///
    /// # Errors
    /// [`SchedError::UnknownPool`], [`SchedError::UnknownDomain`], [`SchedError::DomainMoves`],
    /// [`SchedError::PoolWithoutPcpus`].
    pub fn move_domain(
        &mut self,
        now: Nanos,
        d: DomainId,
        to: PoolId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        self.check(to)?;
        let place = self.at_rest(d)?;
        let (from, local) = (place.pool, place.local);
        if from == to {
            return Ok(());
        }
        if self.pcpus_of(to).next().is_none() {
            return Err(SchedError::PoolWithoutPcpus(to));
        }
        self.with(from, out, |h, out| h.pause_domain(now, local, out));
        self.domains[d.index()].to = Some(to);
        self.moving.push(d);
        self.settle_domain(now, d, out);
        Ok(())
    }

    /// Completes the move of `p` if it has left its pool.
    pub(super) fn settle_pcpu(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) {
        let Seat { pool, to: Some(to) } = self.seats[p.index()] else { return };
        if self.hypervisor(pool).is_some_and(|h| h.has_left(p)) {
            self.seats[p.index()] = Seat { pool: to, to: None };
            let given = self.with(to, out, |h, out| h.give_pcpu(now, p, out));
            debug_assert_eq!(given, Ok(()), "what left one pool is in no other");
        }
    }

    /// Completes the move of `d` if none of its vCPUs is on a pCPU.
    pub(super) fn settle_domain(&mut self, now: Nanos, d: DomainId, out: &mut Vec<Action>) {
        let Place { pool: from, local, to: Some(to), .. } = self.domains[d.index()] else { return };
        let vcpus = self.domains[d.index()].vcpus.clone();
        let runs = |v: &VcpuId| {
            self.hypervisor(from).is_some_and(|h| h.is_running(self.vcpus[v.index()].1))
        };
        if vcpus.iter().any(runs) {
            return;
        }
        // One of the pauses belongs to the move.
        let pauses = self.pool_mut(from).hypervisor.pauses_of(local) - 1;
        let new = self.pool_mut(to).hypervisor.create_domain(DomainParams::default());
        let new = new.expect("default parameters are legal");
        for _ in 0..=pauses {
            self.with(to, out, |h, out| h.pause_domain(now, new, out));
        }
        for v in vcpus {
            let old = self.vcpus[v.index()].1;
            if !self.pool_mut(from).hypervisor.vcpus_of(local).contains(&old) {
                // It was removed, and has no place in either pool.
                self.domains[d.index()].vcpus.retain(|x| *x != v);
                continue;
            }
            let carried = self.with(from, out, |h, out| h.carry_out(now, old, out));
            let moved = self.with(to, out, |h, out| h.carry_in(now, new, carried, out));
            self.vcpus[v.index()] = (to, moved);
            self.pool_mut(to).vcpus.push(v);
        }
        let place = &mut self.domains[d.index()];
        (place.pool, place.local, place.to) = (to, new, None);
        self.moving.retain(|x| *x != d);
        self.with(to, out, |h, out| h.unpause_domain(now, new, out));
    }
}
