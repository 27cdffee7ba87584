//! The policy of `eevdf` and `eevdf-6.18` for the tasks of a guest: which task runs on a vCPU. The guest's kernel has the
//! rest: ticks, wake-ups, placement, balancing.
//!
//! One class serves hosts and guests: a task is what a vCPU is to the host, a vCPU what a pCPU is. All tasks have nice 0.

use super::class::{Arrival, Class, Entity, NICE_0, RunQueue};
use super::eevdf::{Eevdf, Queue};
use super::params;
use crate::ids::VcpuId;
use crate::params::Params;
use crate::time::Nanos;
use alloc::string::String;
use alloc::vec::Vec;

/// The tasks of a guest on the run queues of its vCPUs. Tasks and vCPUs have numbers from 0. The running task of a vCPU
/// belongs to its queue.
///
/// Costs, for n tasks on a queue: O(log n), and a pick O(1 + tasks with an earlier deadline that are not eligible).
#[derive(Debug)]
pub struct TaskQueues {
    class: Eevdf,
    entities: Vec<Entity>,
    queues: Vec<RunQueue<Queue>>,
}

impl TaskQueues {
    /// Those of a kernel of release 6.6, or 6.18, on `cpus` vCPUs that tick with this period.
    #[must_use]
    pub fn new(is_6_18: bool, cpus: u32, tick: Nanos) -> Self {
        let class = if is_6_18 { params::eevdf_6_18 } else { params::eevdf };
        let mut class = class(&Params::default(), tick);
        class.start(cpus);
        let queues = (0..cpus).map(|_| RunQueue::default()).collect();
        Self { class, entities: Vec::new(), queues }
    }

    /// A new task, which is on no queue. Returns its number.
    pub fn add(&mut self) -> u32 {
        self.entities.push(Entity { weight: NICE_0, ..Entity::default() });
        self.entities.len() as u32 - 1
    }

    /// Puts `task`, which is on no queue, on that of `cpu`, whose running task is charged. `new`: for the first time.
    pub fn enqueue(&mut self, cpu: u32, task: u32, new: bool) {
        self.join(cpu, task, if new { Arrival::New } else { Arrival::Woken });
    }

    /// Puts `task`, which waited on another queue and left it, on that of `cpu`, whose running task is charged.
    pub fn arrive(&mut self, cpu: u32, task: u32) {
        self.join(cpu, task, Arrival::Moved);
    }

    fn join(&mut self, cpu: u32, task: u32, arrival: Arrival) {
        let queue = &mut self.queues[cpu as usize];
        self.class.join(queue, &mut self.entities, VcpuId(task), arrival);
    }

    /// Takes `task`, which waits or runs, off the queue of `cpu`; it is charged.
    pub fn leave(&mut self, cpu: u32, task: u32) {
        self.class.leave(&mut self.queues[cpu as usize], &mut self.entities, VcpuId(task));
    }

    /// Charges the running task of `cpu` for `time`. Returns whether it must give way.
    pub fn charge(&mut self, cpu: u32, time: Nanos) -> bool {
        time > Nanos::ZERO
            && self.class.charge(&mut self.queues[cpu as usize], &mut self.entities, time)
    }

    /// Chooses the task that runs on `cpu` from now on; the one that ran so far, which is charged, may go on if it is
    /// still on the queue.
    pub fn pick(&mut self, cpu: u32) -> Option<u32> {
        let queue = &mut self.queues[cpu as usize];
        let next = self.class.choose(queue, &mut self.entities, queue.current);
        self.class.begin(queue, &mut self.entities, next);
        next.map(|v| v.0)
    }

    /// Ends the turn of the running task of `cpu`, which is charged: none runs there until the next pick.
    pub fn stop(&mut self, cpu: u32) {
        let queue = &mut self.queues[cpu as usize];
        if let Some(current) = queue.current.take() {
            let entity = &mut self.entities[current.index()];
            queue.link(entity, current, self.class.key(entity));
        }
    }

    /// Whether `new`, which has just joined the queue of `cpu`, preempts the running task, which is charged.
    pub fn preempts(&mut self, cpu: u32, new: u32) -> bool {
        let queue = &mut self.queues[cpu as usize];
        match queue.current {
            None => true,
            Some(current) => self.class.preempts(queue, &self.entities, current, VcpuId(new)),
        }
    }

    /// Makes the running task of `cpu`, which is charged, give way (`sched_yield`).
    pub fn yield_now(&mut self, cpu: u32) {
        let queue = &mut self.queues[cpu as usize];
        if let Some(current) = queue.current {
            self.class.yield_now(queue, &mut self.entities, current);
        }
    }

    /// Checks the state of all queues.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.queues.iter().try_for_each(|queue| self.class.check(queue, &self.entities))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hogs on one vCPU: each runs for a request of 0.75 ms, or longer by a tick, in turn.
    #[test]
    fn hogs_take_turns() {
        for is_6_18 in [false, true] {
            let mut queues = TaskQueues::new(is_6_18, 1, Nanos::MS);
            for task in 0..3 {
                assert_eq!(queues.add(), task);
                queues.enqueue(0, task, true);
            }
            let mut ran = [0; 3];
            let mut now = queues.pick(0).unwrap();
            for _ in 0..300 {
                ran[now as usize] += 1;
                if queues.charge(0, Nanos::MS) {
                    now = queues.pick(0).unwrap();
                }
                queues.check().unwrap();
            }
            assert!(ran.iter().all(|ms| (99..=101).contains(ms)), "{ran:?}");
        }
    }

    /// A task that slept while another ran for long is owed no more than its lag when it left: nothing.
    #[test]
    fn a_sleeper_is_owed_nothing_that_it_did_not_want() {
        let mut queues = TaskQueues::new(true, 1, Nanos::MS);
        let (hog, sleeper) = (queues.add(), queues.add());
        queues.enqueue(0, hog, true);
        queues.enqueue(0, sleeper, true);
        queues.pick(0);
        queues.leave(0, sleeper);
        for _ in 0..100 {
            queues.charge(0, Nanos::MS);
        }
        queues.enqueue(0, sleeper, false);
        let mut ran = [0; 2];
        let mut now = queues.pick(0).unwrap();
        for _ in 0..100 {
            ran[now as usize] += 1;
            if queues.charge(0, Nanos::MS) {
                now = queues.pick(0).unwrap();
            }
        }
        assert!(ran.iter().all(|ms| (49..=51).contains(ms)), "{ran:?}");
    }

    /// A task whose turn was ended waits like the others: each is picked once, and can leave.
    #[test]
    fn a_task_that_is_stopped_stays_on_its_queue() {
        let mut queues = TaskQueues::new(true, 2, Nanos::MS);
        let (one, other) = (queues.add(), queues.add());
        queues.enqueue(0, one, true);
        queues.enqueue(0, other, true);
        let first = queues.pick(0).unwrap();
        queues.charge(0, Nanos::MS);
        queues.stop(0);
        queues.check().unwrap();
        queues.stop(0);
        queues.leave(0, first);
        queues.arrive(1, first);
        assert_eq!(queues.pick(1), Some(first));
        assert_eq!(queues.pick(0), Some(one + other - first));
        queues.check().unwrap();
    }
}
