//! pCPUs that join and leave a running pool, and vCPUs that move between pools.
//!
//! A pCPU leaves in two steps, because it may be running a vCPU:
//!
//! ```text
//!  in the pool ──take──▶ leaving: no vCPU may be placed there; vCPUs whose home it was are placed
//!      ▲                    │      anew, and the running vCPU is asked to leave
//!      │                    ▼ idle, and the registers of the last vCPU are saved
//!      └──────give──────── out of the pool
//! ```
//!
//! Most schedulers need not know: hard affinities exclude pCPUs outside the pool at every moment.
//! The layer tells the scheduler at the arrows, for state per pCPU that matters even without vCPUs
//! there.

use super::{Change, Hypervisor};
use crate::affinity::Affinity;
use crate::error::SchedError;
use crate::ids::{Action, DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::{VcpuRecord, flags};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec::Vec;

/// A vCPU between two pools, with its runstates and pauses.
#[derive(Debug)]
pub(crate) struct Carried(VcpuRecord);

impl Hypervisor {
    /// Begins to remove `p` from the pool. It has left when [`Self::has_left`] says so: at once if
    /// it idles, else after its next pass and [`Self::context_saved`]. O(vCPUs).
    ///
    /// # Errors
    /// [`SchedError::NotInPool`]; [`SchedError::LastPcpu`] if there are vCPUs and this is the last
    /// pCPU; [`SchedError::Stranded`] if a vCPU may run on no other one. Nothing has changed then.
    pub fn take_pcpu(
        &mut self,
        now: Nanos,
        p: PcpuId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        if p.0 >= self.machine.pcpus() || !self.machine.pool().contains(p) {
            return Err(SchedError::NotInPool(p));
        }
        self.tell(now);
        self.machine.set_in_pool(p, false);
        if let Err(error) = self.resolve_affinities(p) {
            self.machine.set_in_pool(p, true);
            return Err(error);
        }
        self.changes.note(now, Change::PcpuLeaving(p));
        if self.executing == p {
            self.executing = self.machine.pool().first().unwrap_or(p);
        }
        for v in (0..self.machine.vcpu_count()).map(VcpuId) {
            let r = self.machine.vcpu(v);
            if !r.removed && r.home == p {
                self.replace(now, v, out);
            } else if !r.removed {
                self.scheduler.affinity_changed(cx!(self, now, self.executing, out), v);
            }
        }
        self.finish_take(now, p, out);
        Ok(())
    }

    /// Whether `p` is out of the pool and runs nothing for it any more.
    pub fn has_left(&self, p: PcpuId) -> bool {
        let runs = self.machine.current(p).is_some() || self.leaving[p.index()].is_some();
        !self.machine.pool().contains(p) && !runs
    }

    /// Adds `p`, which must run nothing, to the pool and asks it to enter its scheduler. From now
    /// on, vCPUs whose affinity allows it may run there. O(vCPUs).
    ///
    /// # Errors
    /// [`SchedError::InPool`] if it is there already, or has not left yet;
    /// [`SchedError::NoSuchPcpu`].
    pub fn give_pcpu(
        &mut self,
        now: Nanos,
        p: PcpuId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        let pcpus = self.machine.pcpus();
        if p.0 >= pcpus {
            return Err(SchedError::NoSuchPcpu { pcpu: p.0, pcpus });
        }
        if !self.has_left(p) {
            return Err(SchedError::InPool(p));
        }
        self.tell(now);
        self.machine.set_in_pool(p, true);
        self.scheduler.pcpu_added(cx!(self, now, p, out), p);
        // Another pCPU cannot make an affinity empty.
        let resolved = self.resolve_affinities(p);
        debug_assert_eq!(resolved, Ok(()));
        for v in (0..self.machine.vcpu_count()).map(VcpuId) {
            if !self.machine.vcpu(v).removed {
                self.scheduler.affinity_changed(cx!(self, now, p, out), v);
            }
        }
        self.changes.note(now, Change::PcpuGiven(p));
        out.push(Action::Resched(p));
        Ok(())
    }

    /// Recomputes the masks of all vCPUs for a pool that has just lost or gained `p`. Changes
    /// nothing on error.
    fn resolve_affinities(&mut self, p: PcpuId) -> Result<(), SchedError> {
        let pool = self.machine.shared_pool();
        let exist = || self.machine.vcpus.iter().enumerate().filter(|(_, r)| !r.removed);
        if pool.is_empty() && exist().next().is_some() {
            return Err(SchedError::LastPcpu(p));
        }
        let stranded = |i: usize| SchedError::Stranded { vcpu: VcpuId(i as u32), pcpu: p };
        let masks: Result<Vec<_>, _> = exist()
            .map(|(i, r)| {
                Ok((i, r.wanted.resolve(pool, self.machine.pcpus()).map_err(|_| stranded(i))?))
            })
            .collect();
        for (i, mask) in masks? {
            self.machine.vcpus[i].affinity = mask;
        }
        Ok(())
    }

    /// Completes the removal of `p` if it is out of the pool and runs nothing.
    pub(super) fn finish_take(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) {
        if self.has_left(p) {
            self.scheduler.pcpu_removed(cx!(self, now, p, out), p);
            self.slice_armed[p.index()] = false;
            out.push(Action::StopTimer { timer: TimerId::Tick(p) });
            out.push(Action::StopTimer { timer: TimerId::Slice(p) });
            self.changes.note(now, Change::PcpuTaken(p));
        }
    }

    /// The vCPUs of `d`.
    pub(crate) fn vcpus_of(&self, d: DomainId) -> &[VcpuId] {
        &self.domains[d.index()].vcpus
    }

    /// The pause count of `d`.
    pub(crate) fn pauses_of(&self, d: DomainId) -> u32 {
        self.machine.domain_pauses[d.index()]
    }

    /// Removes `v`, which continues in another pool. It must not run, and its domain must be
    /// paused.
    pub(crate) fn carry_out(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) -> Carried {
        let mut record = self.machine.vcpu(v).clone();
        record.flags &= !(flags::MIGRATING | flags::PARKED);
        let removed = self.remove_vcpu(now, v, out);
        debug_assert_eq!(removed, Ok(()), "a vCPU of a paused domain that runs nowhere");
        Carried(record)
    }

    /// Adds a vCPU from another pool to domain `d`, which is paused. It may run anywhere in the
    /// pool. As in Xen, the vCPUs of a domain get the pCPUs of the pool in turn, whatever the
    /// scheduler makes of that.
    ///
    /// # Panics
    /// If the pool has no pCPU.
    pub(crate) fn carry_in(
        &mut self,
        now: Nanos,
        d: DomainId,
        Carried(record): Carried,
        out: &mut Vec<Action>,
    ) -> VcpuId {
        let wanted = Affinity::any();
        let affinity = wanted.resolve(self.machine.shared_pool(), self.machine.pcpus());
        let affinity = affinity.expect("a pool keeps a pCPU for a domain on its way");
        let pool = self.machine.pool();
        let turn = self.vcpus_of(d).len() % pool.len() as usize;
        let home = pool.iter().nth(turn).unwrap_or(PcpuId(0));
        self.add_vcpu(now, VcpuRecord { domain: d, wanted, affinity, ..record }, home, out)
    }
}
