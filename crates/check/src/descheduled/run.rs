//! Runs a lock in the world where one CPU stops.

use std::rc::Rc;
use std::sync::Arc;

use overspin_locks::{RawLock, Tuning};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, Runner};

use super::platform::Away;
use super::world::{Stop, VICTIM, World, here, world};

/// Steps of a run with a lock that promises to bound a wait: the longest patience is 10 ms.
pub(super) const LONG: u64 = 150_000;
/// The victim starts at this step, because some locks first learn how long a section takes.
const LATE: u64 = 2_000;

/// Draws the CPU that makes the next step.
struct Draw {
    state: u64,
    started: bool,
}

impl Draw {
    fn draw(&mut self) -> u64 {
        // Xorshift, Marsaglia 2003.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Scheduler for Draw {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.started, true)).then(|| Schedule::new(self.state))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let world = world();
        let steps = world.steps.get();
        if world.stopped_at.get().is_some_and(|at| steps > at + world.limit) || steps > 12 * LONG {
            return None;
        }
        // Time also passes while all CPUs are asleep.
        world.step();
        let runs = |task: &&&Task| {
            let cpu = &world.cpus[usize::from(task.id())];
            !cpu.stopped.get() && !cpu.asleep.get()
        };
        let awake: Vec<TaskId> = runnable.iter().filter(runs).map(|task| task.id()).collect();
        if awake.is_empty() {
            return None;
        }
        let which = self.draw() as usize % awake.len();
        Some(awake[which])
    }

    fn next_u64(&mut self) -> u64 {
        self.draw()
    }
}

/// The work of a CPU.
type Work = Arc<dyn Fn() + Send + Sync>;

/// All CPUs take the lock again and again, and one stops. `None` if it never stopped.
pub(super) fn run<L>(
    cpus: usize,
    stop: Stop,
    told: bool,
    tuning: Tuning,
    limit: u64,
) -> Option<Rc<World>>
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let work = move || -> Work {
        let (lock, shared) = (L::new(), L::shared(cpus, tuning).expect("few CPUs"));
        Arc::new(move || {
            for round in 0.. {
                let me = &world().cpus[here()];
                me.in_lock.set(true);
                world().gives_way();
                let token = lock.lock(&shared);
                me.in_lock.set(false);
                me.acquired_at.set(world().steps.get());
                if here() == VICTIM && stop == Stop::Holder(round) {
                    world().stop();
                }
                (0..3).for_each(|_| shuttle::thread::yield_now());
                lock.unlock(&shared, token);
                (0..2).for_each(|_| shuttle::thread::yield_now());
            }
        })
    };
    run_work(cpus, stop, told, limit, Box::new(work))
}

/// What [`run`] does, compiled once for all locks. `work` makes the lock.
fn run_work(
    cpus: usize,
    stop: Stop,
    told: bool,
    limit: u64,
    work: Box<dyn Fn() -> Work + Send + Sync>,
) -> Option<Rc<World>> {
    World::install(cpus, stop, told, limit);
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::None;
    let scheduler = Draw { state: 0x9e37_79b9_7f4a_7c15, started: false };
    Runner::new(scheduler, config).run(move || {
        let work = work();
        let late = move || {
            while here() == VICTIM && world().steps.get() < LATE {
                shuttle::thread::yield_now();
            }
            work();
        };
        for _ in 1..cpus {
            shuttle::thread::spawn(late.clone());
        }
        late();
    });
    let world = World::take();
    world.stopped_at.get().is_some().then_some(world)
}
