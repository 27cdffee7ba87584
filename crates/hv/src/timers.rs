//! What is due when, and on which pCPU.
//!
//! Each pCPU looks after its own scheduler timers, and after those of the vCPUs that ran on it last. pCPU 0 also
//! looks after the scheduler's accounting and the administrator's events.

use crate::core::Core;
use overspin_guest_abi::event;
use overspin_host::{Moment, nanos, picos};
use overspin_sched::{Nanos, PcpuId, TimerId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// When pCPU `p` has something to do next. O(vCPUs).
    pub(crate) fn due(&self, p: u32) -> Option<Nanos> {
        let pcpu = &self.pcpus[p as usize];
        let ticks = pcpu.current.and_then(|v| self.vcpus[v as usize].ticks);
        let own = [pcpu.tick, pcpu.slice, pcpu.postponed, ticks.map(|ticks| ticks.next)];
        let host = if p == 0 {
            let event = self.events.front().map(|e| nanos(self.scenario.events[*e].at));
            [self.accounting, event]
        } else {
            [None; 2]
        };
        let of_vcpus = self.vcpus.iter().filter(|v| v.home == p).flat_map(|v| [v.timer, v.boots]);
        own.into_iter().chain(host).chain(of_vcpus).flatten().min()
    }

    /// Does what is due on pCPU `p`. O(vCPUs).
    pub(crate) fn expire(&mut self, p: u32) {
        let now = self.clock.now();
        let over = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        let pcpu = &mut self.pcpus[p as usize];
        if over(pcpu.postponed) {
            pcpu.postponed = None;
            pcpu.resched = true;
        }
        if over(pcpu.slice) {
            pcpu.slice = None;
            pcpu.slice_over = true;
            self.timer(now, p, TimerId::Slice(PcpuId(p)));
        }
        if over(self.pcpus[p as usize].tick) {
            self.pcpus[p as usize].tick = None;
            self.timer(now, p, TimerId::Tick(PcpuId(p)));
        }
        if let Some(v) = self.pcpus[p as usize].current
            && let Some(ticks) = &mut self.vcpus[v as usize].ticks
            && ticks.take(now)
        {
            let before = self.page(v).pending.fetch_or(event::TICK, Ordering::SeqCst);
            self.vcpus[v as usize].ticked += u64::from(before & event::TICK == 0);
        }
        if p == 0 && over(self.accounting) {
            self.accounting = None;
            self.timer(now, p, TimerId::Accounting);
        }
        while p == 0
            && let Some(event) = self.events.front().copied()
            && nanos(self.scenario.events[event].at) <= now
        {
            self.events.pop_front();
            self.carry_out(now, event);
        }
        for v in 0..self.vcpus.len() as u32 {
            let vcpu = &mut self.vcpus[v as usize];
            if vcpu.home != p {
                continue;
            }
            if over(vcpu.boots) {
                vcpu.boots = None;
                self.boot(now, p, v);
            }
            if over(self.vcpus[v as usize].timer) {
                self.vcpus[v as usize].timer = None;
                self.send(now, Some(p), v, event::TIMER);
            }
        }
    }

    fn timer(&mut self, now: Nanos, p: u32, timer: TimerId) {
        self.hypervisor(Some(p), |h, out| h.timer(now, timer, out));
    }

    fn carry_out(&mut self, now: Nanos, event: usize) {
        let mut administrator = self.administrator.clone();
        let all = Arc::clone(&self.scenario);
        self.hypervisor(Some(0), |h, out| {
            administrator.carry_out(&all, event, h, picos(now), out);
        });
        self.administrator = administrator;
        self.tell(now, Moment::Change { event: event as u32 });
        for v in 0..self.vcpus.len() as u32 {
            self.show(now, v);
        }
    }

    /// Sets the one-shot timer of a vCPU to the time that its page states.
    pub(crate) fn arm(&mut self, from: Option<u32>, v: u32) {
        let deadline = self.page(v).deadline.load(Ordering::Relaxed);
        // What does not fit into the clock's 63 bits never comes.
        self.vcpus[v as usize].timer = i64::try_from(deadline).ok().map(Nanos);
        let (home, timer) = (self.vcpus[v as usize].home, self.vcpus[v as usize].timer);
        self.looked_after(from, home, timer);
    }
}
