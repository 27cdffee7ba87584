//! Lassos: schedules that repeat a loop for ever after a stem.
//!
//! A livelock, or the starvation of one CPU, needs an endless schedule. Where a few CPUs repeat themselves, so does the schedule that
//! keeps one of them out; so a search through all short stems and loops finds it, if it is short. Each CPU occurs in each loop, and so
//! the schedule is fair: whatever then waits for ever does so through the lock's fault, and not through the scheduler's.

use std::mem::ManuallyDrop;

use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};

/// Schedules are taken in steps of this many, so that a part of them has all loops and all stems in it.
const STRIDE: usize = 7_919;

/// Runs stems and loops of a few CPUs, one pair in each execution.
#[derive(Debug)]
pub(super) struct Lassos {
    cpus: usize,
    stem_steps: u32,
    loops: Vec<Vec<usize>>,
    /// Executions begun.
    begun: usize,
    /// The stem of this execution, as a number with a digit for each step, and its loop.
    lasso: (usize, usize),
    /// The next step of this execution; none until all CPUs exist.
    step: Option<usize>,
    /// For what a plan draws, such as whether a weak exchange fails. Never dropped: it would print its seed.
    draws: ManuallyDrop<RandomScheduler>,
}

impl Lassos {
    /// Up to `most` lassos: stems of 10 steps and loops of 2 to 6 for two CPUs; stems of 4 steps and loops of 3 to 6 for three.
    ///
    /// # Panics
    /// With fewer or more CPUs.
    pub(super) fn new(cpus: usize, most: usize, seed: u64) -> Self {
        let stem_steps = match cpus {
            2 => 10,
            3 => 4,
            _ => panic!("lassos are for two CPUs, or three"),
        };
        let loops: Vec<_> = (cpus..=6).flat_map(|steps| loops(cpus, steps)).collect();
        let draws =
            RandomScheduler::new_from_seed(seed, most.min(cpus.pow(stem_steps) * loops.len()));
        let draws = ManuallyDrop::new(draws);
        Self { cpus, stem_steps, loops, begun: 0, lasso: (0, 0), step: None, draws }
    }

    /// The CPU whose turn it is in this step.
    fn turn(&self, step: usize) -> usize {
        let ((stem, repeats), stem_steps) = (self.lasso, self.stem_steps as usize);
        let repeats = &self.loops[repeats];
        match step < stem_steps {
            true => stem / self.cpus.pow(step as u32) % self.cpus,
            false => repeats[(step - stem_steps) % repeats.len()],
        }
    }
}

/// The loops of so many steps in which each CPU has one at least: of those that are one loop begun elsewhere, one; none that
/// repeats a shorter one.
fn loops(cpus: usize, steps: usize) -> impl Iterator<Item = Vec<usize>> {
    let all = 0..cpus.pow(steps as u32);
    let words = all.map(move |n| (0..steps).map(|at| n / cpus.pow(at as u32) % cpus).collect());
    words.filter(move |word: &Vec<usize>| {
        let is_first = (1..steps).all(|at| *word < [&word[at..], &word[..at]].concat());
        is_first && (0..cpus).all(|cpu| word.contains(&cpu))
    })
}

impl Scheduler for Lassos {
    fn new_execution(&mut self) -> Option<Schedule> {
        let next = self.begun * STRIDE;
        let (stems, loops) = (self.cpus.pow(self.stem_steps), self.loops.len());
        self.lasso = (next / loops % stems, next % loops);
        self.begun += 1;
        self.step = None;
        self.draws.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        _current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        let can_run =
            |cpu| runnable.iter().map(|task| task.id()).find(|id| usize::from(*id) == cpu);
        // CPU 0 makes the others.
        if self.step.is_none() && can_run(self.cpus - 1).is_none() {
            return can_run(0);
        }
        // A CPU that cannot run forgoes its turn.
        let mut step = self.step.unwrap_or(0);
        let next = loop {
            step += 1;
            if let Some(task) = can_run(self.turn(step - 1)) {
                break task;
            }
        };
        self.step = Some(step);
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        self.draws.next_u64()
    }
}
