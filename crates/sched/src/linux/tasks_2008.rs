//! The policy of Linux 2.6.26 for the tasks of a guest: which task runs on a vCPU. The guest's kernel has the rest: ticks,
//! wake-ups, placement, balancing.
//!
//! The task with the least virtual runtime runs. All tasks have nice 0, so virtual runtime is CPU time.
//!
//! ```text
//!   a tick preempts      if the running task is more than a slice ahead of the one that has waited longest
//!   a wake-up preempts   if the running task is more than the granularity ahead of the one that wakes
//! ```
//!
//! A task that slept is owed at most four slices (the scheduling latency over four tasks), a new one nothing. A task that
//! moves to another queue keeps its distance from the least virtual runtime there. Source: kernel/sched_fair.c of 2.6.26.

use crate::time::Nanos;
use alloc::vec::Vec;

/// The most slices that a task is owed after a sleep.
const SLEEPER_SLICES: i64 = 4;

/// The tasks of a guest on the run queues of its vCPUs. Tasks and vCPUs have numbers from 0. The running task of a vCPU
/// belongs to its queue. Costs are those of a search among the tasks of a queue, which are few.
#[derive(Debug)]
pub struct Cfs2008Queues {
    slice: Nanos,
    granularity: Nanos,
    tasks: Vec<Task>,
    queues: Vec<Queue>,
}

#[derive(Debug, Default)]
struct Task {
    vruntime: Nanos,
    /// The queue to whose time its virtual runtime refers; none before it is first queued.
    queue: Option<u32>,
}

#[derive(Debug, Default)]
struct Queue {
    /// In order of arrival.
    waiting: Vec<u32>,
    current: Option<u32>,
    /// New and woken tasks start near this virtual runtime. It never falls.
    least: Nanos,
}

impl Cfs2008Queues {
    /// Those of a kernel on `cpus` vCPUs, with this slice, and with this granularity of wake-ups.
    #[must_use]
    pub fn new(cpus: u32, slice: Nanos, granularity: Nanos) -> Self {
        let queues = (0..cpus).map(|_| Queue::default()).collect();
        Self { slice, granularity, tasks: Vec::new(), queues }
    }

    /// A new task, which is on no queue. Returns its number.
    pub fn add(&mut self) -> u32 {
        self.tasks.push(Task::default());
        self.tasks.len() as u32 - 1
    }

    fn vruntime(&self, task: u32) -> Nanos {
        self.tasks[task as usize].vruntime
    }

    /// The least virtual runtime of the waiting tasks of `cpu`.
    fn least_waiting(&self, cpu: u32) -> Option<Nanos> {
        self.queues[cpu as usize].waiting.iter().map(|task| self.vruntime(*task)).min()
    }

    /// Puts `task`, which is on no queue and is owed no more than `credit`, on that of `cpu`.
    fn join(&mut self, cpu: u32, task: u32, credit: Nanos) {
        let here = self.queues[cpu as usize].least;
        let moved = self.tasks[task as usize].queue.replace(cpu).map(|from| {
            let there = self.queues[from as usize].least;
            (self.vruntime(task) + here - there).max(here - credit)
        });
        self.tasks[task as usize].vruntime = moved.unwrap_or(here);
        self.queues[cpu as usize].waiting.push(task);
    }

    /// Puts `task`, which is new or slept, on the queue of `cpu`, whose running task is charged.
    pub fn enqueue(&mut self, cpu: u32, task: u32) {
        self.join(cpu, task, SLEEPER_SLICES * self.slice);
    }

    /// Puts `task`, which waited on another queue and left it, on that of `cpu`.
    pub fn arrive(&mut self, cpu: u32, task: u32) {
        self.join(cpu, task, Nanos(i64::MAX / 2));
    }

    /// Takes `task`, which waits or runs, off the queue of `cpu`; it is charged.
    pub fn leave(&mut self, cpu: u32, task: u32) {
        let queue = &mut self.queues[cpu as usize];
        queue.waiting.retain(|waiting| *waiting != task);
        queue.current = queue.current.filter(|current| *current != task);
    }

    /// Charges the running task of `cpu` for `time`.
    pub fn charge(&mut self, cpu: u32, time: Nanos) {
        let Some(current) = self.queues[cpu as usize].current else { return };
        self.tasks[current as usize].vruntime += time;
        let here = self.vruntime(current);
        let least = self.least_waiting(cpu).map_or(here, |waiting| waiting.min(here));
        let queue = &mut self.queues[cpu as usize];
        queue.least = queue.least.max(least);
    }

    /// A tick of `cpu`, whose running task is charged. Returns whether that task must give way.
    #[must_use]
    pub fn tick(&self, cpu: u32) -> bool {
        let current = self.queues[cpu as usize].current;
        let ahead = current.zip(self.least_waiting(cpu));
        ahead.is_some_and(|(current, least)| self.vruntime(current) > least + self.slice)
    }

    /// Chooses the task that runs on `cpu` from now on; the one that ran so far, which is charged, may go on if it is
    /// still on the queue.
    pub fn pick(&mut self, cpu: u32) -> Option<u32> {
        let queue = &mut self.queues[cpu as usize];
        queue.waiting.extend(queue.current.take());
        let all = self.queues[cpu as usize].waiting.iter().copied();
        let next = all.min_by_key(|task| self.vruntime(*task));
        let queue = &mut self.queues[cpu as usize];
        queue.waiting.retain(|waiting| Some(*waiting) != next);
        queue.current = next;
        next
    }

    /// Whether `new`, which has just joined the queue of `cpu`, preempts the running task, which is charged.
    #[must_use]
    pub fn preempts(&self, cpu: u32, new: u32) -> bool {
        let current = self.queues[cpu as usize].current;
        current.is_none_or(|current| self.vruntime(current) - self.vruntime(new) > self.granularity)
    }

    /// Puts the running task of `cpu`, which is charged, behind the others (`sched_yield`). Returns whether there are any.
    pub fn yield_now(&mut self, cpu: u32) -> bool {
        let queue = &self.queues[cpu as usize];
        let last = queue.waiting.iter().map(|task| self.vruntime(*task)).max();
        let (Some(current), Some(last)) = (queue.current, last) else { return false };
        let vruntime = &mut self.tasks[current as usize].vruntime;
        *vruntime = (*vruntime).max(last + Nanos(1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Nanos = Nanos(15_000_000);

    fn queues(cpus: u32, tasks: u32) -> Cfs2008Queues {
        let mut queues = Cfs2008Queues::new(cpus, SLICE, 2 * SLICE);
        for task in 0..tasks {
            assert_eq!(queues.add(), task);
            queues.enqueue(0, task);
        }
        queues
    }

    /// Three hogs on one vCPU. A tick preempts one that is more than 15 ms ahead; so all have a third, within a slice and
    /// a tick on each side.
    #[test]
    fn hogs_take_turns() {
        let mut queues = queues(1, 3);
        let mut ran = [0; 3];
        let mut now = queues.pick(0).unwrap();
        for _ in 0..3_000 {
            ran[now as usize] += 1;
            queues.charge(0, Nanos::MS);
            if queues.tick(0) {
                now = queues.pick(0).unwrap();
            }
        }
        assert!(ran.iter().all(|ms| (984..=1016).contains(ms)), "{ran:?}");
    }

    /// A task that slept for a second is owed four slices, which is more than the granularity of wake-ups.
    #[test]
    fn a_sleeper_is_owed_four_slices() {
        let mut queues = queues(1, 2);
        assert_eq!(queues.pick(0), Some(0));
        queues.leave(0, 1);
        queues.charge(0, Nanos::SEC);
        queues.enqueue(0, 1);
        assert!(queues.preempts(0, 1));
        assert_eq!(queues.vruntime(0) - queues.vruntime(1), 4 * SLICE);
        assert_eq!(queues.pick(0), Some(1));
        queues.charge(0, 4 * SLICE);
        assert!(!queues.tick(0), "they are equal");
        queues.charge(0, SLICE + Nanos(1));
        assert!(queues.tick(0));
    }

    /// A task that moves keeps its distance from the least virtual runtime.
    #[test]
    fn a_moved_task_keeps_its_distance() {
        let mut queues = queues(2, 2);
        queues.pick(0);
        queues.charge(0, Nanos::SEC);
        queues.leave(0, 0);
        queues.arrive(1, 0);
        assert_eq!(queues.pick(1), Some(0));
        assert_eq!(queues.vruntime(0), Nanos::SEC, "task 1 still waits where its time is 0");
    }

    #[test]
    fn a_yield_lets_all_others_run() {
        let mut queues = queues(1, 3);
        let first = queues.pick(0).unwrap();
        assert!(queues.yield_now(0));
        let others = [queues.pick(0).unwrap(), {
            queues.charge(0, Nanos(2));
            queues.pick(0).unwrap()
        }];
        assert!(!others.contains(&first), "{others:?}");
    }
}
