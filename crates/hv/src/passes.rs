//! Scheduling passes: which vCPU a pCPU runs next.

use crate::core::Core;
use overspin_guest_abi::event;
use overspin_host::notification::{self, Pass};
use overspin_host::{Doing, Leaving, Moment, VcpuState, WindowEnd, nanos, picos, why};
use overspin_scenario::Why;
use overspin_sched::{Nanos, PcpuId, RunState, Switch, VcpuId};
use std::sync::atomic::Ordering;

fn state(of: RunState) -> VcpuState {
    match of {
        RunState::Running => VcpuState::Running,
        RunState::Runnable => VcpuState::Runnable,
        RunState::Blocked => VcpuState::Blocked,
        RunState::Offline => VcpuState::Offline,
    }
}

impl Core {
    /// Makes the due scheduling pass of `p`. The vCPU of `p` is out of its guest, so its registers are saved.
    pub(crate) fn pass(&mut self, p: u32) {
        let now = self.clock.now();
        self.pcpus[p as usize].resched = false;
        if self.postpones(now, p) {
            return;
        }
        self.pcpus[p as usize].postponed = None;
        let switch = self.hypervisor(Some(p), |h, out| h.schedule(now, PcpuId(p), out));
        let pcpu = &mut self.pcpus[p as usize];
        pcpu.passes += 1;
        if switch.prev == switch.next {
            pcpu.slice_over = false;
            if let Some(v) = switch.next {
                // It has a new slice.
                self.show(now, v.0);
            }
            return;
        }
        self.switch(now, p, switch);
        // The pass took some time.
        let after = self.clock.now();
        self.pcpus[p as usize].passing += Nanos(after.0 - now.0);
    }

    fn switch(&mut self, now: Nanos, p: u32, switch: Switch) {
        self.tell_switch(now, p, switch);
        let pcpu = &mut self.pcpus[p as usize];
        pcpu.slice_over = false;
        pcpu.switches += 1;
        pcpu.current = switch.next.map(|v| v.0);
        if let Some(since) = pcpu.occupied_since.take() {
            pcpu.occupied += Nanos(now.0 - since.0);
        }
        pcpu.occupied_since = switch.next.map(|_| now);
        if let Some(v) = switch.prev {
            self.page(v.0).notice.store(0, Ordering::Relaxed);
            self.show(now, v.0);
        }
        self.hypervisor(Some(p), |h, out| h.context_saved(now, PcpuId(p), out));
        let Some(VcpuId(v)) = switch.next else { return };
        let vcpu = &mut self.vcpus[v as usize];
        vcpu.migrations += u64::from(vcpu.dispatches > 0 && vcpu.home != p);
        vcpu.dispatches += 1;
        vcpu.home = p;
        if vcpu.doing == Doing::Wants {
            vcpu.doing = Doing::Runs;
        }
        self.show(now, v);
        self.tell(now, Moment::Runs { vcpu: v, pcpu: p });
        self.returns(now, v);
    }

    /// A vCPU that slept returns from its call, if it was woken.
    pub(crate) fn returns(&mut self, now: Nanos, v: u32) {
        if self.vcpus[v as usize].doing == Doing::Wakes {
            self.vcpus[v as usize].doing = Doing::Runs;
            self.tell(now, Moment::Returns { vcpu: v });
        }
    }

    fn tell_switch(&mut self, now: Nanos, p: u32, switch: Switch) {
        let name = |v: Option<VcpuId>| v.map(|v| v.0);
        let (prev, next) = (name(switch.prev), name(switch.next));
        let mut because = None;
        if let Some(v) = prev
            // A vCPU that sleeps, or was woken before it had left its pCPU, was not descheduled.
            && self.vcpus[v as usize].doing == Doing::Runs
        {
            because = Some(self.why(now, v, p, next));
            self.vcpus[v as usize].doing = Doing::Wants;
        }
        let prev_state = state(switch.prev_state);
        self.tell(now, Moment::Switch { pcpu: p, prev, prev_state, why: because, next });
    }

    fn why(&self, now: Nanos, v: u32, p: u32, next: Option<u32>) -> Why {
        let leaving = Leaving {
            // The pass of a yield comes right after it.
            yielded: self.vcpus[v as usize]
                .yielded
                .filter(|(at, _)| now.0 - at.0 < 1_000_000)
                .map(|(_, why)| why),
            slice_over: self.pcpus[p as usize].slice_over,
            next: next.map(|next| self.vcpus[next as usize].doing),
        };
        self.look_at(v, |h, local| why(h, local, leaving))
    }

    /// Whether a window before a preemption puts the pass of `p` off.
    fn postpones(&mut self, now: Nanos, p: u32) -> bool {
        let Some(options) = &self.scenario.host.preemption_notification else { return false };
        let Some(v) = self.pcpus[p as usize].current else { return false };
        let vcpu = &self.vcpus[v as usize];
        if !notification::asks(options, self.domains[vcpu.domain as usize].vcpus) {
            return false;
        }
        let preempts =
            !vcpu.by_itself && self.look_at(v, |h, v| h.is_runnable(v)) && self.is_wanted(p);
        let held = self.page(v).held.load(Ordering::Relaxed);
        let vcpu = &mut self.vcpus[v as usize];
        vcpu.by_itself = false;
        vcpu.notified.holds(held);
        let (pass, ended) = vcpu.notified.pass(picos(now), options, preempts);
        if let Some(end) = ended {
            self.window_closes(now, v, end);
        }
        let Pass::PutOff { until, opened, upcall } = pass else { return false };
        self.pcpus[p as usize].postponed = Some(nanos(until));
        if opened {
            self.page(v).notice.store(1, Ordering::Relaxed);
            self.tell(now, Moment::WindowOpens { vcpu: v, until });
        }
        if upcall {
            self.page(v).pending.fetch_or(event::NOTICE, Ordering::SeqCst);
        }
        true
    }

    pub(crate) fn window_closes(&mut self, now: Nanos, v: u32, end: WindowEnd) {
        self.page(v).notice.store(0, Ordering::Relaxed);
        self.tell(now, Moment::WindowCloses { vcpu: v, end });
    }

    /// Whether some waiting vCPU may run on `p`. O(vCPUs).
    fn is_wanted(&self, p: u32) -> bool {
        (0..self.vcpus.len() as u32)
            .any(|v| self.look_at(v, |h, v| notification::wants(h, v, PcpuId(p))))
    }
}
