//! The completely fair class: the least virtual runtime runs (Linux 2.6.23 to 6.5).
//!
//! Virtual runtime grows with run time, slower for greater weights. The `min_vruntime` of a queue
//! never decreases. A waking vCPU is placed at most half a latency before it, so that sleeping earns
//! a small, bounded advantage. Within a latency every vCPU should run once: the next tick preempts a
//! vCPU that has run for its share of the latency.
//!
//! Invariants: always-runnable vCPUs of one pCPU differ by at most a slice and a tick in virtual
//! runtime; no starvation. Source: schedulers specification §9.1. Decisions where it is silent: a
//! buddy may be ahead of the first by the wakeup granularity at the *first's* weight; a preempting
//! vCPU becomes the next buddy, and the preempted one the last buddy if the queue has at least as
//! many vCPUs as the latency is made for (8); a yield counts until its vCPU is picked or leaves.

use super::class::{self, Arrival, Class, Entity, RunQueue};
use crate::ids::VcpuId;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;

/// Up to this many vCPUs share the latency; with more, each gets the minimum granularity.
const LATENCY_COUNT: i64 = 8;

/// The cfs class. Times are in ns, for one pCPU; they grow with the logarithm of the number of
/// pCPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cfs {
    pub latency: Nanos,
    pub min_granularity: Nanos,
    pub wakeup_granularity: Nanos,
}

/// The state of the class for each pCPU. Buddies are on the queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    min_vruntime: i64,
    /// The vCPU that yielded.
    skip: Option<VcpuId>,
    /// The vCPU that a wake-up preempted.
    last: Option<VcpuId>,
    /// The vCPU that another yielded to, or that preempted by its wake-up.
    next: Option<VcpuId>,
}

impl Queue {
    fn forget(&mut self, v: VcpuId) {
        for buddy in [&mut self.skip, &mut self.last, &mut self.next] {
            if *buddy == Some(v) {
                *buddy = None;
            }
        }
    }
}

impl Cfs {
    /// The share of the latency for `weight`, on a queue of `count` vCPUs.
    fn slice(&self, count: i64, load: i64, weight: i64) -> Nanos {
        let enough = count <= LATENCY_COUNT;
        let period = if enough { self.latency } else { count * self.min_granularity };
        period * weight / load
    }

    fn granularity(&self, entity: &Entity) -> i64 {
        entity.virtual_time(self.wakeup_granularity)
    }

    /// Moves `min_vruntime` up to the least virtual runtime on the queue.
    fn advance(queue: &mut RunQueue<Queue>, entities: &[Entity]) {
        let vruntime = |v: VcpuId| entities[v.index()].vruntime;
        let least = queue.current.into_iter().chain(queue.first()).map(vruntime).min();
        if let Some(least) = least {
            queue.class.min_vruntime = queue.class.min_vruntime.max(least);
        }
    }
}

impl Class for Cfs {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        "cfs"
    }

    fn start(&mut self, pcpus: u32) {
        let factor = class::scale(pcpus);
        self.latency *= factor;
        self.min_granularity *= factor;
        self.wakeup_granularity *= factor;
    }

    fn key(&self, entity: &Entity) -> i64 {
        entity.vruntime
    }

    fn base(&self, queue: &RunQueue<Queue>) -> i64 {
        queue.class.min_vruntime
    }

    fn charge(&self, queue: &mut RunQueue<Queue>, entities: &mut [Entity], time: Nanos) -> bool {
        if let Some(v) = queue.current {
            let entity = &mut entities[v.index()];
            entity.vruntime += entity.virtual_time(time);
            entity.ran += time;
            Self::advance(queue, entities);
        }
        false
    }

    fn place(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    ) {
        let entity = &mut entities[v.index()];
        let min = queue.class.min_vruntime;
        match arrival {
            Arrival::New => {
                let load = queue.load + entity.weight;
                let slice = self.slice(queue.count() + 1, load, entity.weight);
                entity.vruntime = min + entity.virtual_time(slice);
            }
            Arrival::Woken => entity.vruntime = entity.vruntime.max(min - (self.latency / 2).0),
            Arrival::Moved => {}
        }
    }

    fn left(&self, queue: &mut RunQueue<Queue>, entities: &mut [Entity], v: VcpuId) {
        queue.class.forget(v);
        Self::advance(queue, entities);
    }

    fn reweigh(
        &self,
        _queue: &mut RunQueue<Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        weight: i64,
    ) {
        entities[v.index()].weight = weight;
    }

    fn pick(
        &self,
        queue: &RunQueue<Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId> {
        let vruntime = |v: VcpuId| entities[v.index()].vruntime;
        // The candidate queues behind its equals.
        let before = |v: Option<VcpuId>| match (candidate, v) {
            (Some(c), Some(v)) => vruntime(c) < vruntime(v),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let first = queue.first();
        let left = if before(first) { candidate } else { first }?;
        let limit = vruntime(left) + self.granularity(&entities[left.index()]);
        let fair = |v: &VcpuId| vruntime(*v) <= limit;
        let mut next = left;
        if queue.class.skip == Some(left) {
            let second = if candidate == Some(left) {
                first
            } else {
                let second = queue.tree.iter().nth(1).map(|(_, v)| *v);
                if before(second) { candidate } else { second }
            };
            next = second.filter(fair).unwrap_or(left);
        }
        let buddy = queue.class.next.filter(fair).or(queue.class.last.filter(fair));
        Some(buddy.unwrap_or(next))
    }

    fn picked(&self, queue: &mut RunQueue<Queue>, v: VcpuId) {
        queue.class.forget(v);
    }

    fn tick(&self, queue: &RunQueue<Queue>, entities: &[Entity], current: VcpuId) -> bool {
        let Some(first) = queue.first() else { return false };
        let entity = &entities[current.index()];
        let slice = self.slice(queue.count(), queue.load, entity.weight);
        let lead = entity.vruntime - entities[first.index()].vruntime;
        entity.ran > slice || entity.ran >= self.min_granularity && lead > slice.0
    }

    fn preempts(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &[Entity],
        current: VcpuId,
        new: VcpuId,
    ) -> bool {
        let (now, then) = (&entities[current.index()], &entities[new.index()]);
        let preempts = now.vruntime - then.vruntime > self.granularity(then);
        if preempts {
            queue.class.next = Some(new);
            if queue.count() >= LATENCY_COUNT {
                queue.class.last = Some(current);
            }
        }
        preempts
    }

    fn yield_now(&self, queue: &mut RunQueue<Queue>, _entities: &mut [Entity], current: VcpuId) {
        queue.class.forget(current);
        if queue.count() > 1 {
            queue.class.skip = Some(current);
        }
    }

    fn favour(&self, queue: &mut RunQueue<Queue>, v: VcpuId) {
        queue.class.next = Some(v);
    }

    fn check(&self, queue: &RunQueue<Queue>, entities: &[Entity]) -> Result<(), String> {
        let class = &queue.class;
        for v in [class.skip, class.last, class.next].into_iter().flatten() {
            if queue.current != Some(v) && entities[v.index()].key.is_none() {
                return Err(format!("{v:?} is a buddy on a queue that it left: {queue:?}"));
            }
        }
        Ok(())
    }
}
