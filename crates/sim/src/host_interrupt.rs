//! Interrupts of the host, on a host that makes directed yields: rescheduling interrupts from other pCPUs, and the
//! scheduler's timers.
//!
//! Each takes a running vCPU out of its guest, also one that has nothing to do with the reason. A directed yield sends
//! one to the target's pCPU, whose vCPU leaves its guest, and goes on if the scheduler does not prefer the target:
//!
//! ```text
//!   guest | out of the guest: waits for the run queue's lock, then the pass | guest again
//!         ^ interrupt                                                       ^ `host_interrupt` after the lock
//! ```
//!
//! If the pass switches, the exit is part of the context switch. A vCPU that is in the host already, for an exit of its
//! own, pays nothing. Elsewhere than on hosts with directed yields such interrupts are rare, a tick every few milliseconds,
//! and free.

use crate::engine::Engine;
use crate::events::Event;
use crate::vcpu::{Op, Vcpu};
use overspin_scenario::Picos;
use std::cell::Cell;

/// The interrupt of the host that a pCPU handles, if its vCPU [is interrupted](crate::vcpu::Run::is_interrupted).
#[derive(Debug, Default)]
pub(crate) struct HostInterrupt {
    since: Cell<Picos>,
    /// When the vCPU returns to its guest; `Picos::MAX` while its pCPU waits for the lock of its run queue.
    returns: Cell<Picos>,
}

impl Engine {
    /// An interrupt of the host reaches `pcpu`. If a vCPU is in its guest there, it leaves it for a while.
    pub(crate) fn host_interrupt(&self, pcpu: u32) {
        let p = &self.machine.pcpus[pcpu as usize];
        if !self.locks_run_queues() || p.switching.get() {
            return;
        }
        let Some(v) = self.current_on(pcpu) else { return };
        let in_guest = v.run.is_on()
            && !v.spin.pauses.in_exit()
            && matches!(v.op.kind.get(), Op::Burn | Op::Step | Op::Spin);
        if !in_guest {
            return;
        }
        self.take_operation_back(v);
        v.run.interrupt(true);
        p.interrupt.since.set(self.now());
        self.returns_after_interrupt(pcpu);
    }

    /// The vCPU of `pcpu`, which is interrupted, returns to its guest once the interrupt is handled.
    fn returns_after_interrupt(&self, pcpu: u32) {
        let at = self.now() + self.scenario.host.costs.host_interrupt;
        self.machine.pcpus[pcpu as usize].interrupt.returns.set(at);
        self.push(at, Event::Returns { pcpu });
    }

    fn interrupted_on(&self, pcpu: u32) -> Option<&Vcpu> {
        self.current_on(pcpu).filter(|v| v.run.is_interrupted())
    }

    /// The pass of `pcpu` waits for a lock. An interrupted vCPU stays in the host meanwhile.
    pub(crate) fn waits_in_host(&self, pcpu: u32) {
        if self.interrupted_on(pcpu).is_some() {
            self.machine.pcpus[pcpu as usize].interrupt.returns.set(Picos::MAX);
        }
    }

    /// The pass of `pcpu` has not switched. An interrupted vCPU that has waited for the pass returns to its guest.
    pub(crate) fn keeps_its_guest(&self, pcpu: u32) {
        let waited = self.machine.pcpus[pcpu as usize].interrupt.returns.get() == Picos::MAX;
        if waited && self.interrupted_on(pcpu).is_some() {
            self.returns_after_interrupt(pcpu);
        }
    }

    /// An event that ends an interrupt on `pcpu` has come, perhaps one that is void.
    pub(crate) fn returns(&self, pcpu: u32) {
        let due = self.machine.pcpus[pcpu as usize].interrupt.returns.get() == self.now();
        let Some(v) = self.interrupted_on(pcpu).filter(|_| due) else { return };
        self.end_interrupt(v);
        v.run.interrupt(false);
        v.spin.pauses.entered();
        self.spinner_runs(v, true);
        self.continue_on(v);
    }

    /// Counts the interrupt that ends for `v`.
    pub(crate) fn end_interrupt(&self, v: &Vcpu) {
        let p = &self.machine.pcpus[v.run.pcpu.get() as usize];
        let took = self.now() - p.interrupt.since.get();
        v.spin.interrupted.set(v.spin.interrupted.get() + took);
        if v.spin.since.get() != Picos::MAX {
            // It does not spin while it is in the host.
            v.spin.since.set(v.spin.since.get() + took);
        }
    }
}
