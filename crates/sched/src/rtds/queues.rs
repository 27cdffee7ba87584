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

    /// Puts `v` into the replenishment queue, at its new place if it is there already: behind all
    /// earlier and equal deadlines. With `as_is` it goes before the first vCPU whose priority *now*
    /// is lower. Levels change while vCPUs wait, so that queue need not be sorted. O(vCPUs that go
    /// behind `v`), with `as_is` O(vCPUs that go before it).
    pub(super) fn await_deadline(&mut self, v: VcpuId) {
        self.forget_deadline(v);
        let vcpu = |x: u32| &self.vcpus[x as usize];
        let mut queue = self.replenishments;
        let before = if self.profile.as_is {
            let priority = vcpu(v.0).priority();
            self.deadline_links.iter(&queue).find(|x| priority < vcpu(*x).priority())
        } else {
            let deadline = vcpu(v.0).deadline;
            let later = |x: &u32| vcpu(*x).deadline > deadline;
            self.deadline_links.backwards(&queue).take_while(later).last()
        };
        self.deadline_links.insert_before(&mut queue, v.0, before);
        self.replenishments = queue;
    }

    pub(super) fn forget_deadline(&mut self, v: VcpuId) {
        if self.deadline_links.is_linked(v.0) {
            self.deadline_links.remove(&mut self.replenishments, v.0);
        }
    }

    /// Sets the timer to the deadline of the first vCPU in the replenishment queue.
    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        let first = self.replenishments.head().map(|x| self.vcpus[x as usize].deadline);
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

    /// Replenishes all vCPUs at the head of the replenishment queue whose deadline has passed, and
    /// moves them to `replenished`. The caller puts them back.
    pub(super) fn replenish(&mut self, now: Nanos) {
        while let Some(x) = self.replenishments.head()
            && self.vcpus[x as usize].deadline <= now
        {
            let v = VcpuId(x);
            self.forget_deadline(v);
            let depleted = self.vcpus[v.index()].depleted;
            self.vcpus[v.index()].update(now);
            if self.dequeue(v) {
                self.enqueue(v);
            }
            self.replenished.push((v, depleted));
        }
    }
}
