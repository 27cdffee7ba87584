//! Invariants of bvt, which hold between any two calls.

use super::Bvt;
use crate::ids::VcpuId;
use crate::machine::Machine;
use alloc::format;
use alloc::string::String;

impl Bvt {
    pub(super) fn check(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            let listed = self.links.is_linked(v.0);
            if waits != listed {
                return Err(format!("{v:?} is lost or queued wrongly: waits = {waits}"));
            }
            let svt = self.pcpus[machine.home(v).index()].svt;
            if !self.as_is && (waits || machine.is_current(v)) && vcpu.avt < svt {
                return Err(format!("{v:?} is before SVT {svt}: {vcpu:?}"));
            }
        }
        for (i, pcpu) in self.pcpus.iter().enumerate() {
            if let Some(v) =
                self.links.iter(&pcpu.queue).find(|v| machine.home(VcpuId(*v)).index() != i)
            {
                return Err(format!("vCPU {v} is queued on pCPU {i}, away from its home"));
            }
        }
        Ok(())
    }
}
