//! Invariants of a credit scheduler, which hold between any two calls.
//!
//! Bounds of credit are not checked here: they hold only for active vCPUs, and only right after an
//! accounting. A vCPU that became inactive may keep more than a period's credit if it had much
//! more. A vCPU that no tick ever finds running may lose credit without limit.

use super::{Credit, Priority};
use crate::ids::{DomainId, PcpuId, VcpuId};
use crate::machine::Machine;
use alloc::format;
use alloc::string::String;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Credit {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        self.check_queues(machine)?;
        self.check_vcpus(machine)?;
        self.check_domains()
    }

    fn check_queues(&self, machine: &Machine) -> Result<(), String> {
        for (i, pcpu) in self.pcpus.iter().enumerate() {
            let p = PcpuId(i as u32);
            let mut length = 0;
            for v in self.run_links.iter(&pcpu.queue).map(VcpuId) {
                length += 1;
                ensure(machine.home(v) == p, || format!("{v:?} is queued away from its home"))?;
                ensure(machine.is_runnable(v), || format!("{v:?} is queued and not runnable"))?;
                ensure(!machine.is_current(v), || format!("I5: {v:?} is queued and current"))?;
            }
            ensure(length == pcpu.queued, || format!("{p:?} queues {length}: {pcpu:?}"))?;
            ensure(self.waiting.contains(p) == (length > 0), || {
                format!("waiting({p:?}) is wrong")
            })?;
            let busy = machine.current(p).is_some();
            ensure(!(busy && self.idlers.contains(p)), || format!("{p:?} is busy and an idler"))?;
            // A pCPU that leaves the pool ticks until it has left.
            let ticks = busy || self.profile.idle_tick;
            let right = pcpu.ticking == ticks || !machine.pool().contains(p);
            ensure(right, || format!("{p:?} ticks: {}", pcpu.ticking))?;
        }
        Ok(())
    }

    fn check_vcpus(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let queued = self.run_links.is_linked(v.0);
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            ensure(queued == waits, || format!("{v:?} is lost: queued {queued}, waits {waits}"))?;
            ensure(vcpu.active == self.active_links.is_linked(v.0), || format!("{v:?}: active"))?;
            ensure(vcpu.parked == machine.is_parked(v), || format!("{v:?}: parked"))?;
            ensure(!vcpu.parked || vcpu.active, || format!("{v:?} is parked and never unparked"))?;
            ensure(vcpu.priority != Priority::Idle, || format!("{v:?} has the idle class"))?;
        }
        Ok(())
    }

    fn check_domains(&self) -> Result<(), String> {
        let mut weight = 0;
        for (i, domain) in self.domains.iter().enumerate() {
            let d = DomainId(i as u32);
            let n = self.active_links.iter(&domain.active).count() as i64;
            ensure(n == domain.active_vcpus, || format!("{d:?} has {n} active: {domain:?}"))?;
            let listed = self.domain_links.is_linked(d.0);
            ensure(listed == (n > 0), || format!("{d:?} is listed: {listed}, active: {n}"))?;
            weight += self.active_weight(d);
        }
        ensure(weight == self.weight, || format!("weights sum to {weight}, not {}", self.weight))
    }
}
