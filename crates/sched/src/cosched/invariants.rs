//! Invariants of relaxed co-scheduling, which hold between any two calls.

use super::Relaxed;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use alloc::format;
use alloc::string::String;

impl Relaxed {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            let held = vcpu.stopped.is_some() && !machine.is_current(v);
            let fail = |what: &str| Err(format!("{v:?} {what}: {vcpu:?}"));
            if waits != vcpu.waits.is_some() || waits != (vcpu.ready.is_some() || held) {
                return fail("is lost or queued wrongly");
            }
            if vcpu.ready.is_some() && vcpu.stopped.is_some() {
                return fail("is ready and co-stopped");
            }
            if vcpu.ready.is_some_and(|vt| !self.ready.contains(&(vt, v)) || vt != vcpu.vt) {
                return fail("is in the wrong place");
            }
            let seated = |p: PcpuId| vcpu.ready.is_some() && self.seated[p.index()] == Some(v);
            if vcpu.seat.is_some_and(|p| !seated(p)) {
                return fail("has a seat that it cannot take");
            }
        }
        let ready = self.vcpus.iter().filter(|v| v.ready.is_some()).count();
        if ready != self.ready.len() {
            return Err(format!("{ready} are ready: {:?}", self.ready));
        }
        for (i, domain) in self.domains.iter().enumerate() {
            let waiting = |v: &&VcpuId| self.vcpus[v.index()].waits.is_some();
            let n = domain.members.iter().filter(waiting).count();
            if n != domain.waiting as usize {
                return Err(format!("{n} members of domain {i} wait: {domain:?}"));
            }
        }
        for (i, won) in self.won.iter().enumerate() {
            let p = PcpuId(i as u32);
            if machine.current(p).is_some() && (won.is_some() || self.idle.contains(p)) {
                return Err(format!("{p:?} is busy and counts as idle: {won:?}"));
            }
        }
        Ok(())
    }
}
