//! Invariants, which hold between any two calls.

use super::Rtds;
use crate::ids::VcpuId;
use crate::machine::Machine;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;

impl Rtds {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let (current, on) = (machine.is_current(v), machine.is_running(v));
            let listed = vcpu.queued.is_some() || vcpu.depleted;
            let waits = machine.is_runnable(v) && !on;
            let fail = |what: &str| Err(format!("{v:?} {what}: {vcpu:?}"));
            if listed != waits || vcpu.depleted != self.depleted_links.is_linked(v.0) {
                return fail("is lost or queued wrongly");
            }
            if vcpu.queued.is_some() == (listed && vcpu.left == Nanos::ZERO) && listed {
                return fail("is on the wrong list for its budget");
            }
            if current && vcpu.left == Nanos::ZERO {
                return fail("runs without budget");
            }
            if vcpu.left < Nanos::ZERO {
                return fail("is below zero");
            }
            if vcpu.queued.is_some_and(|(l, d, _)| (l, d) != vcpu.priority()) {
                return fail("is queued in the wrong place");
            }
            let awaits = (waits || on) && !self.profile.polls;
            if self.deadline_links.is_linked(v.0) != awaits {
                return fail("waits for its deadline, or not, wrongly");
            }
        }
        let queued = self.vcpus.iter().filter(|v| v.queued.is_some()).count();
        if queued != self.run_queue.len() {
            return Err(format!("{queued} queued: {self:?}"));
        }
        let deadlines = self.deadline_links.iter(&self.replenishments);
        let deadlines = deadlines.map(|x| self.vcpus[x as usize].deadline);
        if !self.profile.as_is && !deadlines.is_sorted() {
            return Err(format!("deadlines are out of order: {self:?}"));
        }
        match self.idle.iter().find(|p| machine.current(*p).is_some()) {
            Some(p) => Err(format!("{p:?} is busy and counts as idle")),
            None => Ok(()),
        }
    }
}
