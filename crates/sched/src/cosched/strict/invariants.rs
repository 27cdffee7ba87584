//! Invariants of strict co-scheduling, which hold between any two calls.

use super::Strict;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use alloc::format;
use alloc::string::String;

impl Strict {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let wants = machine.is_runnable(v) || machine.is_current(v);
            if vcpu.awake != wants {
                return Err(format!("{v:?} is lost: {vcpu:?}"));
            }
            if vcpu.slot.is_some_and(|p| self.slots[p.index()] != Some(v)) {
                return Err(format!("{v:?} has no claim to its slot: {vcpu:?}"));
            }
        }
        for (i, slot) in self.slots.iter().enumerate() {
            let p = PcpuId(i as u32);
            if self.free.contains(p) != slot.is_none() {
                return Err(format!("{p:?} is kept for {slot:?} and free is wrong"));
            }
            if slot.is_some_and(|v| self.vcpus[v.index()].slot != Some(p)) {
                return Err(format!("{p:?} is kept for {slot:?}, which does not know"));
            }
        }
        let awake = self.domains.iter().filter(|d| d.awake > 0).count();
        if awake != self.awake.len() || (awake > 0 && self.began.is_none()) {
            return Err(format!("{awake} domains are awake: {self:?}"));
        }
        Ok(())
    }
}
