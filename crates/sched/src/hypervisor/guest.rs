//! Operations of vCPUs (block, yield) and on vCPUs (up and down, pauses, wake-ups).

use super::{Change, Hypervisor};
use crate::ids::{Action, DomainId, VcpuId};
use crate::machine::{RunState, flags};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec::Vec;

impl Hypervisor {
    /// Starts a vCPU that is down. No effect on a removed one.
    pub fn up(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        if !self.machine.vcpu(v).removed {
            self.machine.vcpu_mut(v).flags &= !flags::DOWN;
            self.changes.note(now, Change::Up(v));
            self.wake(now, v, out);
        }
    }

    /// Sets the home of a vCPU that has not been up yet to one of the pCPUs that it may use: `number`, modulo how many
    /// these are. No effect with a scheduler whose rules say where each vCPU begins.
    pub fn set_first_home(&mut self, v: VcpuId, number: u64) {
        if !self.scheduler.runs_threads() || self.machine.vcpu(v).flags & flags::DOWN == 0 {
            return;
        }
        let may = self.machine.affinity(v).hard();
        let nth = number % u64::from(may.len().max(1));
        let home = may.iter().nth(nth as usize);
        if let Some(home) = home {
            let vcpu = self.machine.vcpu_mut(v);
            (vcpu.home, vcpu.on) = (home, home);
        }
    }

    /// Takes a vCPU offline.
    pub fn down(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.machine.vcpu_mut(v).flags |= flags::DOWN;
        self.changes.note(now, Change::Down(v));
        self.sleep(now, v, out);
    }

    /// Blocks `v`, which runs, until an event comes. The world must have found no event pending.
    pub fn block(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        self.machine.vcpu_mut(v).flags |= flags::BLOCKED;
        if self.machine.runstate(v) == RunState::Running {
            out.push(Action::Resched(self.machine.vcpu(v).on));
        } else {
            self.sleep_blocked(now, v, out);
        }
    }

    /// Unblocks `v`, for which an event came. Returns false, and does nothing, if `v` was not
    /// blocked.
    pub fn unblock(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) -> bool {
        let r = self.machine.vcpu_mut(v);
        if r.flags & flags::BLOCKED == 0 {
            return false;
        }
        r.flags &= !flags::BLOCKED;
        self.wake(now, v, out);
        true
    }

    /// Keeps `v` from running until a matching [`Self::unpause`]. Pauses nest.
    pub fn pause(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.machine.vcpu_mut(v).pauses += 1;
        self.changes.note(now, Change::Paused(v));
        self.sleep(now, v, out);
    }

    /// Ends one [`Self::pause`]. No effect without one.
    pub fn unpause(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        let r = self.machine.vcpu_mut(v);
        if r.pauses > 0 {
            r.pauses -= 1;
            self.changes.note(now, Change::Unpaused(v));
            self.wake(now, v, out);
        }
    }

    /// Keeps all vCPUs of `d` from running until a matching [`Self::unpause_domain`]. O(its vCPUs).
    pub fn pause_domain(&mut self, now: Nanos, d: DomainId, out: &mut Vec<Action>) {
        self.machine.domain_pauses[d.index()] += 1;
        self.changes.note(now, Change::DomainPaused(d));
        for i in 0..self.domains[d.index()].vcpus.len() {
            let v = self.domains[d.index()].vcpus[i];
            self.sleep(now, v, out);
        }
    }

    /// Ends one [`Self::pause_domain`]. No effect without one. O(its vCPUs).
    pub fn unpause_domain(&mut self, now: Nanos, d: DomainId, out: &mut Vec<Action>) {
        let pauses = &mut self.machine.domain_pauses[d.index()];
        if *pauses == 0 {
            return;
        }
        *pauses -= 1;
        self.changes.note(now, Change::DomainUnpaused(d));
        for i in 0..self.domains[d.index()].vcpus.len() {
            let v = self.domains[d.index()].vcpus[i];
            self.wake(now, v, out);
        }
    }

    /// `v`, which runs, yields and stays runnable. No effect if it does not run.
    pub fn yield_now(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        if self.machine.runstate(v) != RunState::Running {
            return;
        }
        let p = self.machine.vcpu(v).on;
        self.scheduler.yield_now(cx!(self, now, p, out), v);
        out.push(Action::Resched(p));
    }

    /// `v`, which runs, yields to `to`, which waits. This is a directed yield, as a host does for a
    /// vCPU that spins. Returns false, and does nothing, if one of them is in another state, or if
    /// the scheduler does not allow it; the caller can then use [`Self::yield_now`].
    pub fn yield_to(&mut self, now: Nanos, v: VcpuId, to: VcpuId, out: &mut Vec<Action>) -> bool {
        self.tell(now);
        let states = (self.machine.runstate(v), self.machine.runstate(to));
        if states != (RunState::Running, RunState::Runnable) {
            return false;
        }
        let p = self.machine.vcpu(v).on;
        let yields = self.scheduler.yield_to(cx!(self, now, p, out), v, to);
        if yields {
            out.push(Action::Resched(p));
        }
        yields
    }
}
