//! The end of a run of the suite: all vCPUs compute, and the suite looks for starvation and idling.

use super::world::World;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::RunState;
use crate::scheduler::DomainParams;
use crate::time::Nanos;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

impl World {
    /// Gives back all pCPUs, lifts pauses and caps, and starts all vCPUs, which then compute for
    /// ever.
    pub(super) fn wake_all(&mut self) -> Result<(), String> {
        self.settle()?;
        for p in core::mem::take(&mut self.out) {
            self.give(p);
            self.settle()?;
        }
        for d in self.domains.clone() {
            while self.h.pauses_of(d) > 0 {
                self.call(&format!("unpause {d:?}"), |h, now, out| h.unpause_domain(now, d, out));
            }
            let params = DomainParams::default();
            let name = format!("{d:?}: {params:?}");
            let set = self.call(&name, |h, now, out| h.set_domain(now, d, params, out));
            set.map_err(|e| e.to_string())?;
        }
        for v in self.vcpus.clone() {
            while self.h.machine().vcpu(v).pauses > 0 {
                self.call(&format!("unpause {v:?}"), |h, now, out| h.unpause(now, v, out));
            }
            self.call(&format!("unblock {v:?}"), |h, now, out| h.unblock(now, v, out));
            self.call(&format!("up {v:?}"), |h, now, out| h.up(now, v, out));
            self.settle()?;
        }
        Ok(())
    }

    /// Lets `time` pass, and checks that every vCPU runs within `runs`, and that no pCPU idles
    /// longer than `idles` while a vCPU that may run there waits.
    pub(super) fn watch(
        &mut self,
        time: Nanos,
        runs: Option<Nanos>,
        idles: Option<Nanos>,
    ) -> Result<(), String> {
        let end = self.now + time;
        let mut last_ran: BTreeMap<VcpuId, Nanos> = BTreeMap::new();
        let mut idle_since: BTreeMap<PcpuId, Nanos> = BTreeMap::new();
        let start = self.now;
        while self.now < end {
            let next = self.timers.values().copied().min().unwrap_or(end);
            // Looks at least once per millisecond.
            self.now = next.clamp(self.now, self.now + Nanos::MS).min(end);
            self.deliver();
            self.settle()?;
            for v in &self.vcpus {
                let since = last_ran.entry(*v).or_insert(start);
                if self.h.runstate(*v) == RunState::Running {
                    *since = self.now;
                } else if let Some(most) = runs.filter(|most| self.now - *since > *most) {
                    return Err(format!("T6: {v:?} computes and has not run for {most}"));
                }
            }
            for p in (0..self.h.machine().pcpus()).map(PcpuId) {
                let waits = |v: &&VcpuId| {
                    self.h.runstate(**v) == RunState::Runnable
                        && self.h.machine().affinity(**v).hard().contains(p)
                };
                let waiting = self.vcpus.iter().find(waits);
                let Some(v) = waiting.filter(|_| self.h.current(p).is_none()) else {
                    idle_since.remove(&p);
                    continue;
                };
                let since = *idle_since.entry(p).or_insert(self.now);
                if let Some(most) = idles.filter(|most| self.now - since > *most) {
                    return Err(format!("T2: {p:?} idles for more than {most}, {v:?} waits"));
                }
            }
        }
        Ok(())
    }
}
