//! Invariants of a Linux host, which hold between any two calls.

use super::Host;
use super::class::Class;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use alloc::format;
use alloc::string::String;
use alloc::vec;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

impl<C: Class> Host<C> {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, queue) in self.queues.iter().enumerate() {
            let p = PcpuId(i as u32);
            let current = machine.current(p);
            ensure(queue.current == current, || format!("{p:?} runs {current:?}: {queue:?}"))?;
            let mut load = 0;
            for v in queue.tree.iter().map(|(_, v)| *v).chain(current) {
                ensure(machine.home(v) == p, || format!("{v:?} is queued away from its home"))?;
                ensure(self.vcpus[v.index()].queued, || format!("{v:?} does not know its place"))?;
                load += self.entities[v.index()].weight;
            }
            ensure(load == queue.load, || format!("weights of {p:?} sum to {load}: {queue:?}"))?;
            for (key, v) in &queue.tree {
                let entity = &self.entities[v.index()];
                let there = entity.key == Some(*key) && key.0 == self.class.key(entity);
                ensure(there, || format!("{v:?} is in the wrong place: {queue:?}"))?;
                ensure(current != Some(*v), || format!("I5: {v:?} is queued and current"))?;
            }
            let waits = !queue.tree.is_empty();
            ensure(self.waiting.contains(p) == waits, || format!("waiting({p:?}) is wrong"))?;
            ensure(self.ticking.contains(p) == current.is_some(), || format!("{p:?}: tick"))?;
            let told = current.is_none() || !self.idle.contains(p);
            ensure(told, || format!("{p:?} is busy and counts as idle"))?;
            self.class.check(queue, &self.entities)?;
        }
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let current = machine.is_current(v);
            ensure(!(vcpu.queued && vcpu.throttled), || format!("{v:?} is throttled and queued"))?;
            let told = machine.is_capped(v) == vcpu.throttled;
            ensure(told, || format!("{v:?}: nobody was told whether it is throttled: {vcpu:?}"))?;
            let may = !vcpu.throttled || self.has_cap(v);
            ensure(may, || format!("{v:?} is throttled and has no cap: {vcpu:?}"))?;
            let listed = vcpu.queued || vcpu.throttled;
            let wants = machine.is_runnable(v) || current;
            ensure(listed == wants, || format!("{v:?} is lost or queued wrongly: {vcpu:?}"))?;
            let linked = self.entities[v.index()].key.is_some();
            ensure(linked == (vcpu.queued && !current), || format!("{v:?} is linked: {linked}"))?;
        }
        for domain in &self.domains {
            let listed = |v: &&VcpuId| {
                let vcpu = &self.vcpus[v.index()];
                vcpu.queued || vcpu.throttled
            };
            let n = domain.members.iter().filter(listed).count() as i64;
            ensure(n == domain.runnable, || format!("{n} are runnable: {domain:?}"))?;
            let mut throttled = vec![0; self.queues.len()];
            for v in &domain.members {
                let vcpu = &self.vcpus[v.index()];
                throttled[vcpu.stopped_on.index()] += u32::from(vcpu.throttled);
            }
            let quota = domain.quota.as_ref();
            let counted = quota.is_none_or(|quota| quota.is_valid(&throttled));
            ensure(counted, || format!("{throttled:?} are throttled: {domain:?}"))?;
        }
        Ok(())
    }
}
