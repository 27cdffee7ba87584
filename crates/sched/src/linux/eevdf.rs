//! The earliest eligible virtual deadline class (Linux 6.6 and 6.18).
//!
//! Each vCPU makes one *request* r after another. It is eligible while it has had no more than its
//! share: while its virtual runtime v is not after V, the average of all, by weight. Of the eligible
//! vCPUs, the one with the earliest virtual deadline runs; the deadline is where r ends at the vCPU's
//! rate. A vCPU that leaves keeps its lag, V - v, which is the time owed to it, and gets it back when it
//! returns.
//!
//! The test does not compute V: v ≤ V ⇔ Σ w·v_j ≥ v·Σ w. The sums are exact, in 128 bits.
//!
//! With run to parity (the default) the running vCPU goes on until it has had its request or is no
//! longer eligible; a wake-up preempts only then. In 6.6 another deadline ends this protection, so that a yield does; since
//! 6.17 it lasts up to the deadline with which the vCPU was picked.
//!
//! A directed yield has two effects: the target becomes the *buddy* of its queue, and the caller yields.
//! Kernels 6.6 to 6.13 consider the buddy only with the feature NEXT_BUDDY, which is off by default;
//! only the yield remains. Since 6.14 (commit 2a77e4be12cb) the feature PICK_BUDDY, on by default, makes
//! the pick prefer an eligible buddy. Neither makes a target eligible that has had more than its share.
//!
//! A yield moves the deadline by a request. In 6.6 that is all: if the caller is the only eligible vCPU,
//! it is picked again at once, and its deadline runs away while it keeps yielding. Since commit
//! 79104becf42b (6.19, and 6.18.2) an eligible vCPU also forfeits the rest of its request: its virtual
//! runtime becomes the old deadline. For a vCPU that is not eligible, a yield changes nothing, not even
//! the deadline.
//!
//! A vCPU that moves to another pCPU makes a new request in 6.6; since 6.12 it keeps the distance to its
//! deadline (PLACE_REL_DEADLINE).
//!
//! Two parameters choose what a directed yield costs: `yield_forfeits`, the commit above, and `debooster`, a penalty that
//! was proposed for the kernel ([`debooster`](super::debooster)).
//!
//! Invariants: some vCPU is always eligible; the lag of always-runnable vCPUs that do not yield stays
//! within a request and a tick. Source: schedulers specification §9.2; where it is silent, the kernel (a
//! yield has no effect if no other vCPU is on the queue). Not built: an enabled NEXT_BUDDY also
//! nominates each waking vCPU. Of kernels after 6.6 two things are not built: the delayed dequeue (a
//! sleeper with negative lag stays queued until it has made up for it; here it keeps the lag while it
//! sleeps), and requests that tasks set for themselves (with preemption in favour of short requests, and
//! shorter protection).

use super::class::{self, Arrival, Class, Entity, RunQueue};
use super::debooster::Memory;
use crate::ids::VcpuId;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;

/// The eevdf class. `base_slice` is in ns, for one pCPU; it grows with the logarithm of the number of
/// pCPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eevdf {
    pub name: &'static str,
    pub base_slice: Nanos,
    pub run_to_parity: bool,
    /// Whether an eligible buddy is picked first: NEXT_BUDDY, later PICK_BUDDY.
    pub pick_buddy: bool,
    /// Whether what runs stays protected up to the deadline with which it was picked, even if a yield moves its deadline on
    /// (6.17: `vprot`). Before, another deadline ended the protection.
    pub keeps_protection: bool,
    /// Whether a yield forfeits the rest of the request.
    pub yield_forfeits: bool,
    /// Whether a directed yield sets the yielder back.
    pub debooster: bool,
    /// Whether a vCPU that moves keeps the distance to its deadline.
    pub deadline_moves: bool,
    /// The tick, in ns: the limit of the lag is never smaller.
    pub tick: Nanos,
}

/// The state of the class for each pCPU.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Σ weight × vruntime of all vCPUs on the queue, including the running one.
    weighted: i128,
    /// V before the last vCPU left the queue; used while the queue is empty.
    last_average: i64,
    /// The vCPU that another yielded to; it is on the queue.
    next: Option<VcpuId>,
    deboosted: Memory,
}

impl Queue {
    fn forget(&mut self, v: VcpuId) {
        if self.next == Some(v) {
            self.next = None;
        }
    }
}

/// V: the weighted average virtual runtime, rounded down.
fn average(queue: &RunQueue<Queue>) -> i64 {
    if queue.load == 0 {
        return queue.class.last_average;
    }
    queue.class.weighted.div_euclid(queue.load.into()) as i64
}

fn is_eligible(queue: &RunQueue<Queue>, entity: &Entity) -> bool {
    queue.class.weighted >= i128::from(entity.vruntime) * i128::from(queue.load)
}

fn weighted(entity: &Entity) -> i128 {
    i128::from(entity.vruntime) * i128::from(entity.weight)
}

impl Eevdf {
    /// The length of a request of this vCPU in virtual time.
    fn request(&self, entity: &Entity) -> i64 {
        entity.virtual_time(self.base_slice)
    }

    /// Whether no other vCPU is picked instead of `entity`, which runs, while it is eligible.
    fn is_protected(&self, entity: &Entity) -> bool {
        self.run_to_parity
            && match self.keeps_protection {
                true => entity.vruntime < entity.picked,
                false => entity.picked == entity.deadline,
            }
    }

    /// Chooses among the tree and `candidate` without regard to the buddy.
    #[inline(always)]
    fn earliest(
        &self,
        queue: &RunQueue<Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId> {
        let eligible = |v: &VcpuId| is_eligible(queue, &entities[v.index()]);
        let candidate = candidate.filter(eligible);
        if let Some(v) = candidate {
            let entity = &entities[v.index()];
            if self.is_protected(entity) {
                return candidate;
            }
        }
        let deadline = |v: VcpuId| entities[v.index()].deadline;
        let first = queue.tree.iter().map(|(_, v)| *v).find(eligible);
        match (candidate, first) {
            (Some(c), Some(f)) if deadline(c) < deadline(f) => candidate,
            (_, None) => candidate,
            (_, first) => first,
        }
    }
}

impl Class for Eevdf {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&mut self, pcpus: u32) {
        self.base_slice *= class::scale(pcpus);
    }

    fn key(&self, entity: &Entity) -> i64 {
        entity.deadline
    }

    fn base(&self, _queue: &RunQueue<Queue>) -> i64 {
        // A vCPU takes its lag along, not its virtual time.
        0
    }

    fn charge(&self, queue: &mut RunQueue<Queue>, entities: &mut [Entity], time: Nanos) -> bool {
        let Some(v) = queue.current else { return false };
        let entity = &mut entities[v.index()];
        queue.class.weighted -= weighted(entity);
        entity.vruntime += entity.virtual_time(time);
        queue.class.weighted += weighted(entity);
        entity.ran += time;
        if entity.vruntime < entity.deadline {
            return false;
        }
        entity.deadline = entity.vruntime + self.request(entity);
        queue.count() > 1
    }

    fn place(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    ) {
        let entity = &mut entities[v.index()];
        let off = entity.deadline - entity.vruntime;
        let (there, weight) = (i128::from(queue.load), i128::from(entity.weight));
        // The arrival moves V: without this factor the vCPU would be owed less than before.
        let lag = if there > 0 { i128::from(entity.lag) * (there + weight) / there } else { 0 };
        entity.vruntime = average(queue) - lag as i64;
        let request = self.request(entity);
        let ahead = match arrival {
            Arrival::New => request / 2,
            Arrival::Moved if self.deadline_moves => off,
            _ => request,
        };
        entity.deadline = entity.vruntime + ahead;
        queue.class.weighted += weighted(entity);
    }

    fn left(&self, queue: &mut RunQueue<Queue>, entities: &mut [Entity], v: VcpuId) {
        let entity = &mut entities[v.index()];
        // `load` excludes it already; V still includes it.
        let load = i128::from(queue.load + entity.weight);
        let average = queue.class.weighted.div_euclid(load) as i64;
        let most = entity.virtual_time((2 * self.base_slice).max(self.tick));
        entity.lag = (average - entity.vruntime).clamp(-most, most);
        queue.class.weighted -= weighted(entity);
        queue.class.last_average = average;
        queue.class.forget(v);
    }

    fn reweigh(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        weight: i64,
    ) {
        // Keeps the run time owed to it and its progress in its request. Both are virtual times, which
        // pass more slowly at a greater weight.
        let v_average = average(queue);
        let entity = &mut entities[v.index()];
        let scale =
            |t: i64| (i128::from(t) * i128::from(entity.weight) / i128::from(weight)) as i64;
        let vruntime = v_average - scale(v_average - entity.vruntime);
        let deadline = vruntime + scale(entity.deadline - entity.vruntime);
        queue.class.weighted -= weighted(entity);
        if self.keeps_protection {
            entity.picked = vruntime + scale(entity.picked - entity.vruntime);
        } else if entity.picked == entity.deadline {
            entity.picked = deadline;
        }
        (entity.vruntime, entity.deadline, entity.weight) = (vruntime, deadline, weight);
        queue.class.weighted += weighted(entity);
    }

    fn is_eligible(&self, queue: &RunQueue<Queue>, entity: &Entity) -> bool {
        is_eligible(queue, entity)
    }

    fn pick(
        &self,
        queue: &RunQueue<Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId> {
        let eligible = |v: &VcpuId| is_eligible(queue, &entities[v.index()]);
        let buddy = queue.class.next.filter(|v| self.pick_buddy && eligible(v));
        buddy.or_else(|| self.earliest(queue, entities, candidate))
    }

    fn picked(&self, queue: &mut RunQueue<Queue>, v: VcpuId) {
        queue.class.forget(v);
    }

    fn tick(&self, _queue: &RunQueue<Queue>, _entities: &[Entity], _current: VcpuId) -> bool {
        // `charge` ends the turn when a request is over.
        false
    }

    fn preempts(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &[Entity],
        current: VcpuId,
        new: VcpuId,
    ) -> bool {
        self.earliest(queue, entities, Some(current)) == Some(new)
    }

    fn yield_now(&self, queue: &mut RunQueue<Queue>, entities: &mut [Entity], current: VcpuId) {
        queue.class.forget(current);
        let eligible = is_eligible(queue, &entities[current.index()]);
        if queue.count() <= 1 || self.yield_forfeits && !eligible {
            return;
        }
        let entity = &mut entities[current.index()];
        if self.yield_forfeits {
            queue.class.weighted -= weighted(entity);
            entity.vruntime = entity.deadline;
            queue.class.weighted += weighted(entity);
        }
        entity.deadline += self.request(entity);
    }

    fn deboosts(&self) -> bool {
        self.debooster
    }

    fn deboost(
        &self,
        queue: &mut RunQueue<Queue>,
        entities: &mut [Entity],
        now: Nanos,
        (from, to, is_here): (VcpuId, VcpuId, bool),
    ) {
        // The try counts even if the target is elsewhere, as in the patch.
        if !queue.class.deboosted.may_try(now) || !is_here {
            return;
        }
        let target = entities[to.index()].vruntime;
        let count = queue.count();
        let entity = &mut entities[from.index()];
        let request = self.request(entity);
        let relation = (request, target - entity.vruntime, count);
        queue.class.weighted -= weighted(entity);
        entity.vruntime += queue.class.deboosted.penalty((from, to, now), relation);
        queue.class.weighted += weighted(entity);
        entity.deadline = entity.vruntime + request;
    }

    fn favour(&self, queue: &mut RunQueue<Queue>, v: VcpuId) {
        queue.class.next = Some(v);
    }

    fn check(&self, queue: &RunQueue<Queue>, entities: &[Entity]) -> Result<(), String> {
        let all = || queue.tree.iter().map(|(_, v)| *v).chain(queue.current);
        let sum: i128 = all().map(|v| weighted(&entities[v.index()])).sum();
        if sum != queue.class.weighted {
            return Err(format!("weighted virtual times sum to {sum}: {queue:?}"));
        }
        if queue.load > 0 && !all().any(|v| is_eligible(queue, &entities[v.index()])) {
            return Err(format!("nobody is eligible: {queue:?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vCPU with 1 ms left of its 3 ms request moves to an empty queue whose V is at 10 ms.
    #[test]
    fn what_moves_keeps_its_deadline_since_6_12() {
        for (deadline_moves, arrival, left) in [
            (false, Arrival::Moved, 3_000_000),
            (true, Arrival::Moved, 1_000_000),
            (true, Arrival::Woken, 3_000_000),
            (true, Arrival::New, 1_500_000),
        ] {
            let class = Eevdf {
                name: "test",
                base_slice: Nanos::ms(3),
                run_to_parity: true,
                pick_buddy: true,
                keeps_protection: true,
                yield_forfeits: true,
                debooster: false,
                deadline_moves,
                tick: Nanos::MS,
            };
            let mut queue = RunQueue::<Queue>::default();
            queue.class.last_average = 10_000_000;
            let gone =
                Entity { weight: 1024, vruntime: 5, deadline: 1_000_005, ..Entity::default() };
            let mut entities = [gone];
            class.place(&mut queue, &mut entities, VcpuId(0), arrival);
            let entity = &entities[0];
            assert_eq!((entity.vruntime, entity.deadline - entity.vruntime), (10_000_000, left));
        }
    }
}
