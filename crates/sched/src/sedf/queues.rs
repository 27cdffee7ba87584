//! The queues of a pCPU: by deadline, by begin of the period, and by score.

use super::share::Share;
use super::{PENALTY, Sedf, UTILISATION};
use crate::ids::{PcpuId, VcpuId};
use crate::list::List;
use crate::time::Nanos;

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub share: Share,
    /// End of its period; 0 if it has never woken.
    pub deadline: Nanos,
    /// Used part of its slice in this period.
    pub used: Nanos,
    /// When it was dispatched last.
    pub started: Nanos,
    pub has_blocked: bool,
    /// Slice lost by blocking, to be compensated; 0 if none.
    pub lost: Nanos,
    pub score: [i64; 2],
    /// The queue from which it runs, if it runs in extra time.
    pub extra: Option<usize>,
    /// Whether it is on the wait queue rather than the run queue; meaningless if on neither.
    pub waits: bool,
}

impl Vcpu {
    pub fn begin(&self) -> Nanos {
        self.deadline - self.share.period
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pcpu {
    pub run: List,
    pub wait: List,
    pub extra: [List; 2],
    /// When the slice of the latest pass ends.
    pub slice_end: Nanos,
}

impl Sedf {
    /// Queues `v`, behind its equals: on the wait queue of `p` if its period begins later than now,
    /// else on the run queue.
    pub(super) fn enqueue(&mut self, now: Nanos, p: PcpuId, v: VcpuId) {
        let waits = self.vcpus[v.index()].begin() > now;
        self.vcpus[v.index()].waits = waits;
        let pcpu = &mut self.pcpus[p.index()];
        let list = if waits { &mut pcpu.wait } else { &mut pcpu.run };
        let key = |x: u32| {
            let vcpu = &self.vcpus[x as usize];
            if waits { vcpu.begin() } else { vcpu.deadline }
        };
        let before = self.links.iter(list).find(|x| key(*x) > key(v.0));
        self.links.insert_before(list, v.0, before);
    }

    pub(super) fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        let waits = self.vcpus[v.index()].waits;
        self.links.remove(if waits { &mut pcpu.wait } else { &mut pcpu.run }, v.0);
    }

    /// Queues `v` for extra time by its score, behind its equals. First lowers the scores of all
    /// others there by `discount`, the price that `v` has just paid for its turn.
    pub(super) fn enqueue_extra(&mut self, p: PcpuId, q: usize, v: VcpuId, discount: i64) {
        if self.extra_links[q].is_linked(v.0) {
            return;
        }
        let list = &mut self.pcpus[p.index()].extra[q];
        let links = &mut self.extra_links[q];
        for x in links.iter(list) {
            self.vcpus[x as usize].score[q] -= discount;
        }
        let score = self.vcpus[v.index()].score[q];
        let before = links.iter(list).find(|x| self.vcpus[*x as usize].score[q] > score);
        links.insert_before(list, v.0, before);
    }

    pub(super) fn dequeue_extra(&mut self, p: PcpuId, q: usize, v: VcpuId) {
        if self.extra_links[q].is_linked(v.0) {
            self.extra_links[q].remove(&mut self.pcpus[p.index()].extra[q], v.0);
        }
    }

    pub(super) fn dequeue_all(&mut self, p: PcpuId, v: VcpuId) {
        if self.links.is_linked(v.0) {
            self.dequeue(p, v);
        }
        self.dequeue_extra(p, PENALTY, v);
        self.dequeue_extra(p, UTILISATION, v);
    }

    /// Moves vCPUs whose period has begun to the run queue. Heads of the run queue that have no
    /// slice left, or missed their deadline, move to a later period.
    pub(super) fn update_queues(&mut self, now: Nanos, p: PcpuId) {
        while let Some(v) = self.pcpus[p.index()].wait.head().map(VcpuId)
            && self.vcpus[v.index()].begin() <= now
        {
            self.dequeue(p, v);
            self.enqueue(now, p, v);
        }
        while let Some(v) = self.pcpus[p.index()].run.head().map(VcpuId) {
            let vcpu = &self.vcpus[v.index()];
            let empty = vcpu.share.slice == Nanos::ZERO;
            // `used` reaches the slice here only if the slice was made smaller.
            if !empty && vcpu.deadline >= now && vcpu.used < vcpu.share.slice {
                break;
            }
            self.dequeue(p, v);
            let vcpu = &mut self.vcpus[v.index()];
            let period = vcpu.share.period;
            vcpu.deadline += period;
            // The new deadline is in the future, at a period boundary; with an empty slice so is
            // the begin.
            let late = if empty { now + Nanos(1) - vcpu.begin() } else { now - vcpu.deadline };
            if late > Nanos::ZERO {
                vcpu.deadline += (late + period - Nanos(1)) / period * period;
            }
            if !empty {
                vcpu.used = Nanos::ZERO;
            }
            self.enqueue(now, p, v);
        }
    }
}
