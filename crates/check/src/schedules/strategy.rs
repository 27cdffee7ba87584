//! Runs a plan under many schedules.

use std::fmt::{self, Debug};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use overspin_locks::CpuId;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use super::cpus::catch;
use super::lasso::Lassos;
use super::memory::Consistency;
use super::world::World;
use crate::{Mutation, Report};

/// Steps of one execution, for each CPU. The longest execution of a correct lock takes some thousand.
const MAX_STEPS: usize = 200_000;

/// The message of shuttle after that many steps.
const EXHAUSTED: &str = "exceeded max_steps bound";

/// The number of priority changes of a [`Strategy::Pct`] schedule, plus one. Nearly all known bugs of concurrent
/// programs need three or fewer (Burckhardt and others, ASPLOS 2010).
const PCT_DEPTH: usize = 3;

/// How schedules are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// At each access, all CPUs that can go on are equally likely.
    Random,
    /// Probabilistic concurrency testing: strict random priorities with a few random changes, so that one CPU can be
    /// far behind the others. Burckhardt and others, ASPLOS 2010.
    Pct,
    /// Of two CPUs or three: short stems and loops, each once, until there are no more. See `lasso.rs`.
    Lasso,
}

impl Strategy {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Pct => "PCT",
            Self::Lasso => "lasso",
        }
    }
}

/// What the CPUs do in one execution.
#[derive(Clone)]
pub struct Plan {
    pub(crate) cpus: usize,
    first: CpuId,
    consistency: Consistency,
    body: Arc<dyn Fn() + Send + Sync>,
}

impl Plan {
    /// Creates a plan. The calling thread runs `body` as the first of `cpus` CPUs; see [`on_cpus`](super::on_cpus).
    pub fn new(cpus: usize, body: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cpus, first: 0, consistency: Consistency::Sequential, body: Arc::new(body) }
    }

    /// Has the plan use weak memory.
    pub fn weak(self) -> Self {
        Self { consistency: Consistency::Weak, ..self }
    }

    /// Has the last CPUs of a system of `cpus` run.
    pub fn last_of(self, cpus: usize) -> Self {
        Self { first: cpus - self.cpus, ..self }
    }

    /// Runs up to `schedules` schedules with `mutation`, until one fails.
    pub fn explore(
        &self,
        strategy: Strategy,
        schedules: usize,
        seed: u64,
        mutation: Mutation,
    ) -> Report {
        let count = Arc::new(AtomicUsize::new(0));
        self.explore_counting(strategy, schedules, seed, mutation, &count)
    }

    /// Runs schedules as [`Plan::explore`] does. Counts executions as they begin.
    pub(crate) fn explore_counting(
        &self,
        strategy: Strategy,
        schedules: usize,
        seed: u64,
        mutation: Mutation,
        count: &Arc<AtomicUsize>,
    ) -> Report {
        let (counter, body) = (Arc::clone(count), Arc::clone(&self.body));
        let Self { cpus, first, consistency, .. } = *self;
        let execution = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            World::install(cpus, first, consistency, mutation);
            catch(&*body);
        };
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::None;
        config.max_steps = MaxSteps::FailAfter(MAX_STEPS * cpus);
        World::forget();
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| match strategy {
            Strategy::Random => {
                let scheduler = RandomScheduler::new_from_seed(seed, schedules);
                Runner::new(Awake(ManuallyDrop::new(scheduler)), config).run(execution)
            }
            Strategy::Pct => {
                let scheduler = PctScheduler::new_from_seed(seed, PCT_DEPTH, schedules);
                Runner::new(Awake(ManuallyDrop::new(scheduler)), config).run(execution)
            }
            Strategy::Lasso => {
                let scheduler = Lassos::new(cpus, schedules, seed);
                Runner::new(Awake(ManuallyDrop::new(scheduler)), config).run(execution)
            }
        }));
        let panic = result.err().map(|panic| crate::panic_message(&*panic));
        // The execution was long but not stuck: the world would have noticed that.
        let exhausted = panic.as_ref().is_some_and(|words| words.contains(EXHAUSTED));
        Report {
            runs: count.load(Ordering::Relaxed),
            time: start.elapsed(),
            complete: !exhausted,
            fault: World::latest_fault().or(panic.filter(|_| !exhausted)),
        }
    }
}

impl Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("cpus", &self.cpus).finish_non_exhaustive()
    }
}

/// A scheduler that stops at the first fault and never wakes a parked CPU. shuttle may end any park, as the standard
/// library may. Here a CPU would only look again and park again, and most steps of 16 CPUs would be such looks. Where
/// a lock must tolerate spurious wake-ups, the world makes them.
///
/// The inner scheduler is never dropped, because shuttle's random scheduler would then print its seed to standard
/// error.
#[derive(Debug)]
struct Awake<S>(ManuallyDrop<S>);

impl<S: Scheduler> Scheduler for Awake<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        if World::latest_fault().is_some() { None } else { self.0.new_execution() }
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        if World::latest_fault().is_some() {
            return None;
        }
        let awake: Vec<&Task> =
            runnable.iter().copied().filter(|task| !task.can_spuriously_wakeup()).collect();
        self.0.next_task(if awake.is_empty() { runnable } else { &awake }, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}
