//! The run queue, the depleted list, the replenishment queue and its timer; and the choice of the
//! pCPU that is told about a newcomer.

use super::Rtds;
use crate::ids::{PcpuId, TimerId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;

impl Rtds {
    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Puts `v` into the run queue behind all vCPUs of its priority, or on the depleted list if it
    /// has no budget.
    pub(super) fn enqueue(&mut self, v: VcpuId) {
        let arrival = self.arrival();
        let vcpu = &mut self.vcpus[v.index()];
        if vcpu.left > Nanos::ZERO {
            let key = (vcpu.level, vcpu.deadline, arrival);
            vcpu.queued = Some(key);
            self.run_queue.insert((key, v));
        } else {
            vcpu.depleted = true;
        }
    }

    /// Takes `v` off the run queue or the depleted list. Returns whether it was on one.
    pub(super) fn dequeue(&mut self, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        if let Some(key) = vcpu.queued.take() {
            return self.run_queue.remove(&(key, v));
        }
        core::mem::take(&mut vcpu.depleted)
    }

    /// Puts `v` into the replenishment queue, at its new place if it is there already.
    pub(super) fn await_deadline(&mut self, v: VcpuId) {
        self.forget_deadline(v);
        let arrival = self.arrival();
        let vcpu = &mut self.vcpus[v.index()];
        let level = if self.profile.as_is { vcpu.level } else { 0 };
        let key = (level, vcpu.deadline, arrival);
        vcpu.replenishes = Some(key);
        self.replenishments.insert((key, v));
    }

    pub(super) fn forget_deadline(&mut self, v: VcpuId) {
        if let Some(key) = self.vcpus[v.index()].replenishes.take() {
            self.replenishments.remove(&(key, v));
        }
    }

    /// Sets the timer to the first deadline.
    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        let first = self.replenishments.first().map(|((_, deadline, _), _)| *deadline);
        if self.profile.polls || self.timer == first {
            return;
        }
        self.timer = first;
        match first {
            Some(at) => cx.set_timer(TimerId::Accounting, at),
            None => cx.stop_timer(TimerId::Accounting),
        }
    }

    /// Asks a pCPU on which `new` should run to pass: an idle one, or the one with the lowest
    /// priority if that is below the priority of `new`. Searches from the home on, and skips pCPUs
    /// that were told already.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, new: VcpuId) {
        let (home, hard) = (cx.home(new), cx.affinity(new).hard());
        let found = self.idle.toc_and(home, hard).or_else(|| {
            let priority = |v: VcpuId| self.vcpus[v.index()].priority();
            let end = cx.pcpus();
            let around = (home.0..end).chain(0..home.0).map(PcpuId);
            let mut lowest = None;
            for p in around.filter(|p| hard.contains(*p) && !self.told.contains(*p)) {
                let running = cx.current(p).map(priority);
                if lowest.is_none_or(|(low, _)| running > low) {
                    lowest = Some((running, p));
                }
            }
            lowest.filter(|(low, _)| Some(priority(new)) < *low).map(|(_, p)| p)
        });
        if let Some(p) = found {
            self.idle.remove(p);
            self.told.insert(p);
            cx.resched(p);
        }
    }

    /// Replenishes all vCPUs whose deadline has passed, and fills `replenished` in the order of
    /// deadlines.
    pub(super) fn replenish(&mut self, now: Nanos) {
        while let Some(&((_, deadline, _), v)) = self.replenishments.first()
            && deadline <= now
        {
            let depleted = self.vcpus[v.index()].depleted;
            self.vcpus[v.index()].update(now);
            if self.dequeue(v) {
                self.enqueue(v);
            }
            self.await_deadline(v);
            self.replenished.push((v, depleted));
        }
    }
}
