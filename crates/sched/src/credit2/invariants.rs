//! Invariants of a credit2 scheduler, which hold between any two calls.

use super::Credit2;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Credit2 {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        (0..self.queues.len()).try_for_each(|q| self.check_queue(machine, q))?;
        (0..self.vcpus.len()).try_for_each(|v| self.check_vcpu(machine, VcpuId(v as u32)))?;
        self.check_cores(machine)?;
        self.domains.iter().enumerate().try_for_each(|(d, domain)| {
            let capped = self.capped.iter().any(|x| x.index() == d);
            ensure(capped == domain.cap.is_some(), || format!("domain {d}: capped {capped}"))
        })
    }

    fn check_queue(&self, machine: &Machine, q: usize) -> Result<(), String> {
        let queue = &self.queues[q];
        ensure(queue.members.len() == queue.size, || format!("runqueue {q}: {queue:?}"))?;
        for p in queue.members.iter() {
            let idle = machine.current(p).is_none();
            ensure(self.queue_of(p) == q, || format!("{p:?} is not of runqueue {q}"))?;
            ensure(queue.idle.contains(p) == idle, || format!("{p:?}: idle"))?;
            let free = idle && !queue.tickled.contains(p);
            ensure(queue.free.contains(p) == free, || format!("{p:?}: free"))?;
            let mut core = machine.topology().siblings(p).map(PcpuId);
            let idle_core = core.all(|t| !queue.members.contains(t) || queue.free.contains(t));
            ensure(queue.smt_idle.contains(p) == idle_core, || format!("{p:?}: idle core"))?;
        }
        let mut last = i64::MAX;
        for v in self.run_links.iter(&queue.queue).map(VcpuId) {
            let vcpu = &self.vcpus[v.index()];
            ensure(vcpu.credit <= last, || format!("runqueue {q} is not in order at {v:?}"))?;
            last = vcpu.credit;
            ensure(machine.is_runnable(v), || format!("{v:?} is queued and not runnable"))?;
            ensure(!machine.is_running(v), || format!("I5: {v:?} is queued and running"))?;
            ensure(vcpu.queue == q, || format!("{v:?} is queued on runqueue {q}: {vcpu:?}"))?;
        }
        let assigned = || self.assigned_links.iter(&queue.assigned).map(VcpuId);
        let wants = |v: &VcpuId| self.run_links.is_linked(v.0) || machine.is_running(*v);
        let count = assigned().filter(wants).count() as i64;
        ensure(queue.load.count == count, || {
            format!("runqueue {q} counts {queue:?}, not {count}")
        })?;
        let most = assigned().map(|v| self.weight(v)).max().unwrap_or(1);
        ensure(queue.max_weight == most, || format!("runqueue {q}: heaviest is {most}"))?;
        ensure(queue.load.forecast >= 0, || format!("runqueue {q}: load {:?}", queue.load))
    }

    fn check_vcpu(&self, machine: &Machine, v: VcpuId) -> Result<(), String> {
        let vcpu = &self.vcpus[v.index()];
        let queued = self.run_links.is_linked(v.0);
        let running = machine.is_running(v);
        let waits = machine.is_runnable(v) && !running;
        ensure(queued == waits, || format!("{v:?} is lost: queued {queued}, waits {waits}"))?;
        let leaving = running && !machine.is_current(v);
        let returns = leaving && machine.is_runnable(v);
        ensure(!returns || vcpu.delayed_add, || format!("{v:?} leaves and would be lost"))?;
        ensure(!vcpu.delayed_add || leaving, || format!("{v:?} is added later, but when?"))?;
        ensure(vcpu.assigned == self.assigned_links.is_linked(v.0), || format!("{v:?}: assigned"))?;
        let home = self.queue_of(machine.home(v));
        ensure(!vcpu.assigned || vcpu.queue == home, || {
            format!("{v:?} lives on {home}: {vcpu:?}")
        })?;
        ensure(vcpu.credit >= self.params.clamp, || format!("{v:?} is below the clamp: {vcpu:?}"))?;
        ensure(vcpu.parked == machine.is_parked(v), || format!("{v:?}: parked"))?;
        ensure(vcpu.parked == self.parked_links.is_linked(v.0), || format!("{v:?}: parked list"))?;
        let capped = self.domains[vcpu.domain.index()].cap.is_some();
        ensure(!vcpu.assigned || vcpu.budget.is_some() == capped, || format!("{v:?}: {vcpu:?}"))?;
        let hoards = !running && vcpu.budget.is_some_and(|b| b > Nanos::ZERO);
        ensure(!hoards, || format!("{v:?} keeps budget off its pCPU: {vcpu:?}"))
    }
}
