//! Invariants, which hold between any two calls.

use super::{PENALTY, Sedf, UTILISATION};
use crate::ids::VcpuId;
use crate::list::List;
use crate::machine::Machine;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl Sedf {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let current = machine.is_current(v);
            let listed = self.links.is_linked(v.0);
            let runnable = machine.is_runnable(v);
            // A current vCPU that stops being runnable stays on its queues until the next pass.
            if listed != runnable && !(listed && current) {
                return Err(format!("{v:?} is lost or queued wrongly: {vcpu:?}"));
            }
            let extra = [PENALTY, UTILISATION].map(|q| self.extra_links[q].is_linked(v.0));
            if !listed && (extra[PENALTY] || extra[UTILISATION]) {
                return Err(format!("{v:?} sleeps and is queued for extra time: {vcpu:?}"));
            }
            if vcpu.share.slice > vcpu.share.period || vcpu.used < Nanos::ZERO {
                return Err(format!("{v:?} has impossible times: {vcpu:?}"));
            }
        }
        for (i, pcpu) in self.pcpus.iter().enumerate() {
            let sorted = |list: &List, waits: bool| {
                let keys: Vec<_> = (self.links.iter(list).map(|x| &self.vcpus[x as usize]))
                    .map(|v| if waits { v.begin() } else { v.deadline })
                    .collect();
                keys.is_sorted()
            };
            if !sorted(&pcpu.run, false) || !sorted(&pcpu.wait, true) {
                return Err(format!("queues of pCPU {i} are out of order: {pcpu:?}"));
            }
        }
        Ok(())
    }
}
