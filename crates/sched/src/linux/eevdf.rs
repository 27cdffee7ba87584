//! The earliest eligible virtual deadline class (Linux 6.6 and 6.18).
//!
//! Each vCPU asks for one *request* r after the other. It is eligible while it has had no more than
//! its share: while its virtual runtime v is not after V, the average of all, by weight. Of the
//! eligible the one with the earliest virtual deadline (where r ends at its rate) runs. What it was
//! owed when it left (its lag, V - v) it is owed again when it comes back.
//!
//! V is never computed to test this: v ≤ V ⇔ Σ w·v_j ≥ v·Σ w. The sums are exact, in 128 bits.
//!
//! With run to parity (the default) what runs goes on until it has had its request or is not
//! eligible any more; a wake-up preempts only then.
//!
//! A directed yield is two things: the target becomes the *buddy* of its queue, and whoever asked
//! yields. Kernels of 6.6 to 6.13 look at the buddy only with the feature NEXT_BUDDY, which is off by
//! default: what is left is the yield. Since 6.14 (commit 2a77e4be12cb) the feature PICK_BUDDY, on by
//! default, has an eligible buddy picked before all others. Neither makes a target eligible that has had
//! more than its share.
//!
//! A yield moves the deadline by a request. In 6.6 that is all: a vCPU that is the only eligible one is
//! picked again at once, and its deadline runs away if it goes on yielding. Since commit 79104becf42b
//! (6.19, and 6.18.2) an eligible vCPU also forfeits what its request had left: its virtual runtime
//! becomes the old deadline. One that is not eligible loses nothing, not even its deadline.
//!
//! What moves to another pCPU asks anew in 6.6; since 6.12 it keeps how far its deadline is off
//! (PLACE_REL_DEADLINE).
//!
//! Invariants: some vCPU is always eligible; the lag of always-runnable vCPUs that do not yield stays
//! within a request and a tick. Source: schedulers specification §9.2, where it is silent the kernel (a
//! yield without anybody else on the queue has no effect). Not built: that enabled NEXT_BUDDY makes each
//! wake-up a nomination, too; and of kernels after 6.6 the delayed dequeue (a sleeper with negative lag
//! stays until it has made up for it: here it keeps the lag while it sleeps) and requests of tasks' own
//! (with them preemption for the sake of short ones, and shorter protection).

use super::class::{self, Arrival, Class, Entity, RunQueue};
use crate::ids::VcpuId;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;

/// The class. `base_slice` in ns, on one pCPU: it grows with the logarithm of their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eevdf {
    pub name: &'static str,
    pub base_slice: Nanos,
    pub run_to_parity: bool,
    /// An eligible buddy is picked first: NEXT_BUDDY, later PICK_BUDDY.
    pub pick_buddy: bool,
    /// A yield forfeits the rest of the request.
    pub yield_forfeits: bool,
    /// What moves keeps how far its deadline is off.
    pub deadline_moves: bool,
    /// The tick, ns: a lag cannot be meant to be smaller.
    pub tick: Nanos,
}

/// What it keeps for each pCPU.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Σ weight × vruntime of all on the queue, the running one included.
    weighted: i128,
    /// V when the queue was last left empty.
    last_average: i64,
    /// Was yielded to; is on the queue.
    next: Option<VcpuId>,
}

impl Queue {
    fn forget(&mut self, v: VcpuId) {
        if self.next == Some(v) {
            self.next = None;
        }
    }
}

/// V: the average virtual runtime by weight, rounded down.
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
    /// How far a request takes a vCPU in virtual time.
    fn request(&self, entity: &Entity) -> i64 {
        entity.virtual_time(self.base_slice)
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
            if self.run_to_parity && entity.picked == entity.deadline {
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
        // Lags, not virtual times, are taken along.
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
        // Its coming moves V: without this factor it would be owed less than it was.
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
        // `load` is without it already; V is that of before.
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
        // Keeps what it is owed in run time, and how far it is in its request: both are virtual
        // times, and run slower for a greater weight.
        let v_average = average(queue);
        let entity = &mut entities[v.index()];
        let scale =
            |t: i64| (i128::from(t) * i128::from(entity.weight) / i128::from(weight)) as i64;
        let vruntime = v_average - scale(v_average - entity.vruntime);
        let deadline = vruntime + scale(entity.deadline - entity.vruntime);
        queue.class.weighted -= weighted(entity);
        if entity.picked == entity.deadline {
            entity.picked = deadline;
        }
        (entity.vruntime, entity.deadline, entity.weight) = (vruntime, deadline, weight);
        queue.class.weighted += weighted(entity);
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
        // A request that is over ends the turn when it is charged.
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

    /// A vCPU that has 1 ms left of its request of 3 goes to an empty queue at 10.
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
                yield_forfeits: true,
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
