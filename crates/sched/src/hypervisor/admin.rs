//! Operations of an administrator: create domains, create and remove vCPUs, change parameters and
//! affinities.

use super::{Change, DomainRecord, Hypervisor};
use crate::affinity::Affinity;
use crate::error::SchedError;
use crate::ids::{Action, DomainId, PcpuId, VcpuId};
use crate::machine::{RunState, RunTimes, VcpuRecord, flags};
use crate::params::Params;
use crate::scheduler::{Context, DomainParams, Whose};
use crate::time::Nanos;
use alloc::vec::Vec;

impl Hypervisor {
    /// Creates a domain without vCPUs.
    ///
    /// # Errors
    /// [`SchedError::Param`] if a parameter is outside its range; the cap is checked against the
    /// number of vCPUs by [`Self::set_domain`] only, when that number is known.
    pub fn create_domain(&mut self, params: DomainParams) -> Result<DomainId, SchedError> {
        params.check(None)?;
        let d = DomainId(self.domains.len() as u32);
        self.domains.push(DomainRecord { vcpus: Vec::new() });
        self.machine.domain_pauses.push(0);
        self.scheduler.create_domain(d, params);
        self.changes.note(self.clock, Change::DomainCreated(d));
        Ok(d)
    }

    /// Creates a vCPU. It is down: [`Self::up`] starts it.
    ///
    /// Its initial home, which the scheduler may improve, is the first pCPU of the pool for the
    /// first vCPU of a domain. For the others, it is the pCPU after the home of the previous vCPU.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`], [`SchedError::NoSuchPcpu`], [`SchedError::EmptyAffinity`].
    pub fn create_vcpu(
        &mut self,
        now: Nanos,
        domain: DomainId,
        affinity: Affinity,
        out: &mut Vec<Action>,
    ) -> Result<VcpuId, SchedError> {
        let mask = affinity.resolve(self.machine.shared_pool(), self.machine.pcpus())?;
        if self.domains.get(domain.index()).is_none() {
            return Err(SchedError::UnknownDomain(domain));
        }
        let record = VcpuRecord {
            domain,
            flags: flags::DOWN,
            pauses: 0,
            home: PcpuId(0),
            running: false,
            on: PcpuId(0),
            throttled: false,
            entry: now,
            state: RunState::Offline,
            state_entry: now,
            times: RunTimes::default(),
            created: now,
            removed: false,
            wanted: affinity,
            affinity: mask,
        };
        let pool = self.machine.pool();
        let home = match self.domains[domain.index()].vcpus.last() {
            Some(last) => pool.cycle(self.machine.home(*last)),
            None => pool.first(),
        };
        // The pool has a pCPU, because the affinity was resolved against it.
        let v = self.add_vcpu(now, record, home.unwrap_or(PcpuId(0)), out);
        self.changes.note(now, Change::VcpuCreated(v));
        Ok(v)
    }

    /// Adds a vCPU, which is not running, to an existing domain. The scheduler may improve its home.
    pub(super) fn add_vcpu(
        &mut self,
        now: Nanos,
        mut record: VcpuRecord,
        home: PcpuId,
        out: &mut Vec<Action>,
    ) -> VcpuId {
        (record.home, record.on) = (home, home);
        let v = VcpuId(self.machine.vcpu_count());
        self.domains[record.domain.index()].vcpus.push(v);
        self.machine.vcpus.push(record);
        self.tell(now);
        self.scheduler.insert(cx!(self, now, self.executing, out), v);
        v
    }

    /// Removes a vCPU for good. Its id is not used again.
    ///
    /// # Errors
    /// [`SchedError::UnknownVcpu`]; [`SchedError::VcpuRuns`] if it is on a pCPU: take it
    /// [`down`](Self::down) and let its pCPU schedule first.
    pub fn remove_vcpu(
        &mut self,
        now: Nanos,
        v: VcpuId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        match self.machine.vcpus.get(v.index()) {
            None => return Err(SchedError::UnknownVcpu(v)),
            Some(r) if r.removed => return Err(SchedError::UnknownVcpu(v)),
            Some(r) if r.running => return Err(SchedError::VcpuRuns(v)),
            Some(_) => {}
        }
        self.down(now, v, out);
        self.scheduler.remove(cx!(self, now, self.executing, out), v);
        let r = self.machine.vcpu_mut(v);
        r.removed = true;
        self.domains[r.domain.index()].vcpus.retain(|x| *x != v);
        self.changes.note(now, Change::VcpuRemoved(v));
        Ok(())
    }

    /// Changes where `v` may run and where it prefers to run, and places it again.
    ///
    /// # Errors
    /// [`SchedError::UnknownVcpu`], [`SchedError::NoSuchPcpu`], [`SchedError::EmptyAffinity`].
    pub fn set_affinity(
        &mut self,
        now: Nanos,
        v: VcpuId,
        affinity: Affinity,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        let mask = affinity.resolve(self.machine.shared_pool(), self.machine.pcpus())?;
        match self.machine.vcpus.get_mut(v.index()) {
            Some(r) if !r.removed => (r.wanted, r.affinity) = (affinity, mask),
            _ => return Err(SchedError::UnknownVcpu(v)),
        }
        self.changes.note(now, Change::Affinity(v));
        self.replace(now, v, out);
        Ok(())
    }

    /// Places `v` again, after a change of its affinity.
    pub(super) fn replace(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        self.machine.vcpu_mut(v).flags |= flags::MIGRATING;
        self.scheduler.affinity_changed(cx!(self, now, self.executing, out), v);
        self.sleep(now, v, out);
        if !self.machine.is_running(v) {
            self.finish_migration(now, self.executing, v, out);
        }
    }

    /// Changes the parameters of a domain.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`]; [`SchedError::Param`] if a parameter is outside its range.
    pub fn set_domain(
        &mut self,
        now: Nanos,
        d: DomainId,
        params: DomainParams,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        let record = self.domains.get(d.index()).ok_or(SchedError::UnknownDomain(d))?;
        let vcpus = record.vcpus.len() as u32;
        params.check((vcpus > 0).then_some(vcpus))?;
        self.tell(now);
        self.scheduler.set_domain(cx!(self, now, self.executing, out), d, params);
        self.changes.note(now, Change::DomainParams(d, params));
        Ok(())
    }

    /// Gives one vCPU a weight of its own in place of its domain's. Schedulers without such weights ignore it.
    ///
    /// # Errors
    /// [`SchedError::UnknownVcpu`]; [`SchedError::Param`] if the weight is outside its range.
    pub fn set_weight(
        &mut self,
        now: Nanos,
        v: VcpuId,
        weight: u32,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        if self.machine.vcpus.get(v.index()).is_none_or(|vcpu| vcpu.removed) {
            return Err(SchedError::UnknownVcpu(v));
        }
        DomainParams { weight, cap: 0 }.check(None)?;
        self.tell(now);
        self.scheduler.set_weight(cx!(self, now, self.executing, out), v, weight);
        self.changes.note(now, Change::Weight(v, weight));
        Ok(())
    }

    /// Sets parameters that only this scheduler has, for a domain or for one vCPU.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`], [`SchedError::UnknownVcpu`]; [`SchedError::UnknownParam`] or
    /// [`SchedError::IllegalParam`] for a parameter that the scheduler does not have or allow.
    pub fn configure(
        &mut self,
        now: Nanos,
        whose: Whose,
        params: &Params,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        match whose {
            Whose::Domain(d) if self.domains.get(d.index()).is_none() => {
                return Err(SchedError::UnknownDomain(d));
            }
            Whose::Vcpu(v) if v.0 >= self.machine.vcpu_count() => {
                return Err(SchedError::UnknownVcpu(v));
            }
            _ => {}
        }
        let name = self.scheduler.name();
        // A scheduler from outside this crate checks its own parameters.
        if let Ok(info) = crate::registry::find(name) {
            params.check(name, info.domain_params)?;
        }
        self.tell(now);
        self.scheduler.configure(cx!(self, now, self.executing, out), whose, params)?;
        self.changes.note(now, Change::Configured(whose));
        Ok(())
    }
}
