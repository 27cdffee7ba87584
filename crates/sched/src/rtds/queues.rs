//! The run queue, the depleted list, the replenishment queue and its timer; and the choice of the
//! pCPU that is told about a newcomer.

use super::Rtds;
use crate::ids::{PcpuId, TimerId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;

impl Rtds {
    /// The order of a vCPU that is queued now among vCPUs of its priority: behind them, in 4.5 before them.
    fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        if self.profile.polls { u64::MAX - self.arrivals } else { self.arrivals }
    }

    /// Puts `v` into the run queue, or on the depleted list if it has no budget.
    pub(super) fn enqueue(&mut self, v: VcpuId) {
        let arrival = self.arrival();
        let vcpu = &mut self.vcpus[v.index()];
        if vcpu.left > Nanos::ZERO {
            let key = (vcpu.level, vcpu.deadline, arrival);
            vcpu.queued = Some(key);
            self.run_queue.insert((key, v));
        } else {
            vcpu.depleted = true;
            self.depleted_links.push_front(&mut self.depleted, v.0);
        }
    }

    /// Takes `v` off the run queue or the depleted list. Returns whether it was on one.
    pub(super) fn dequeue(&mut self, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        if let Some(key) = vcpu.queued.take() {
            return self.run_queue.remove(&(key, v));
        }
        let depleted = core::mem::take(&mut vcpu.depleted);
        if depleted {
            self.depleted_links.remove(&mut self.depleted, v.0);
        }
        depleted
    }

    /// Puts `v` into the replenishment queue, at its new place if it is there already: behind all
    /// earlier and equal deadlines. With `as_is` it goes before the first vCPU whose priority *now*
    /// is lower. Levels change while vCPUs wait, so that queue need not be sorted. O(vCPUs that go
    /// behind `v`), with `as_is` O(vCPUs that go before it).
    pub(super) fn await_deadline(&mut self, v: VcpuId) {
        if self.profile.polls {
            return;
        }
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

    /// The pCPU that 4.5 tells about `new`: its home if that idles, told or not; else the first that was
    /// not told and idles or, if none does, runs the vCPU with the latest deadline, if that is later.
    fn whom_to_tell_early(&self, cx: &Context<'_>, new: VcpuId) -> Option<PcpuId> {
        let (home, hard) = (cx.home(new), cx.affinity(new).hard());
        if cx.current(home).is_none() {
            return Some(home);
        }
        let mut latest = None;
        for p in hard.iter().filter(|p| !self.told.contains(*p)) {
            let Some(v) = cx.current(p) else { return Some(p) };
            let deadline = self.vcpus[v.index()].deadline;
            if latest.is_none_or(|(most, _)| deadline > most) {
                latest = Some((deadline, p));
            }
        }
        latest.filter(|(most, _)| self.vcpus[new.index()].deadline < *most).map(|(_, p)| p)
    }

    /// What 4.5 does after it has queued a vCPU: refills the queued vCPUs whose deadline has passed, then
    /// tells a pCPU about the first of the queue.
    pub(super) fn look_around(&mut self, cx: &mut Context<'_>) {
        self.refill_queued(cx.now());
        let first = self.run_queue.first().map(|(_, v)| *v);
        if let Some(p) = first.and_then(|first| self.whom_to_tell_early(cx, first)) {
            self.idle.remove(p);
            self.told.insert(p);
            cx.resched(p);
        }
    }

    /// Refills, in 4.5, the queued vCPUs whose deadline has passed: those of the run queue in order, then
    /// those of the depleted list, the last depleted first. A running vCPU is refilled only once it is
    /// queued again.
    pub(super) fn refill_queued(&mut self, now: Nanos) {
        while let Some(&((_, deadline, _), v)) = self.run_queue.first()
            && deadline <= now
        {
            self.refill(now, v);
        }
        let mut at = self.depleted.head();
        while let Some(x) = at {
            at = self.depleted_links.next(x);
            if self.vcpus[x as usize].deadline <= now {
                self.refill(now, VcpuId(x));
            }
        }
    }

    fn refill(&mut self, now: Nanos, v: VcpuId) {
        self.dequeue(v);
        self.vcpus[v.index()].update(now);
        self.enqueue(v);
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
