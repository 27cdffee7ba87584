//! All checks of one lock, as a list.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use overspin_locks::RawLock;

use crate::descheduled::{self, Away};
use crate::model::{self, FREED_MESSAGE, LoomPlatform, Model, Point};
use crate::schedules::{self, Plan, STARVES, SchedulePlatform, Strategy};
use crate::threads::StdPlatform;
use crate::{Mutation, Profile, Report, abort, panic_message, special, suite};

/// CPUs of the random schedules, each with a divisor of [`Limits::schedules`]. Schedules of more CPUs take
/// longer, so fewer are run.
const SCHEDULES: [(usize, usize); 3] = [(4, 1), (8, 3), (16, 10)];

/// CPUs of the schedules that repeat a loop.
const LASSOS: [usize; 2] = [2, 3];

/// A CPU that each other one overtakes more often than this is never let in, in a schedule that repeats itself. Where waiters take a
/// place in a queue by an exchange that can fail, up to 400 were seen.
const ALWAYS_OVERTAKEN: usize = 1_000;

/// CPUs and divisors of plans that only check that all CPUs are served. The CPU counts just exceed the bits of one mask
/// word and of two. These plans use PCT priorities only: uniformly random schedules take seconds each where
/// waiters return again and again, as those that time out do.
const CROWDS: [(usize, usize); 2] = [(33, 50), (65, 100)];

/// A lock that serves at most this many CPUs is tried with as many as it serves.
const FULL_HOUSE: usize = 256;

/// The divisor where the shared state is made for the largest system that the lock serves.
const OF_LARGEST: usize = 500;

/// Acquisitions, or other operations, of each CPU in a random schedule.
const ROUNDS: usize = 3;

/// The world in which a check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// The model checker: exhaustive up to the bound, weak memory.
    Model,
    /// Random schedules: more CPUs, memory that is sequentially consistent or weak.
    Schedules,
    /// Operating system threads.
    Threads,
}

impl World {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Schedules => "schedules",
            Self::Threads => "threads",
        }
    }
}

/// Limits on the extent of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs of one model, which replaces the usual three. If any of `cpus`, `pairs` and `preemptions` is set,
    /// the others default to 2, 2, and the lock's own bound.
    pub cpus: Option<usize>,
    /// Acquisitions of each CPU; see `cpus`.
    pub pairs: Option<usize>,
    /// Preemptions; see `cpus`.
    pub preemptions: Option<usize>,
    /// Schedules of each kind with 4 CPUs. Larger systems get fewer.
    pub schedules: usize,
    /// Seed of the random schedules.
    pub seed: u64,
    /// Time limit of one model. Executions not reached by then are not covered.
    pub time_limit: Duration,
}

impl Limits {
    /// The largest model: loom has room for this many threads.
    pub const MAX_CPUS: usize = 4;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpus: None,
            pairs: None,
            preemptions: None,
            schedules: 10_000,
            seed: 1,
            time_limit: Duration::from_secs(60),
        }
    }
}

/// What no check here covers, one line each. `docs/model-checking.md` says more.
pub const NOT_COVERED: &[&str] = &[
    "more CPUs, acquisitions or preemptions than stated; schedules that were not drawn",
    "interleavings that loom considers equal: it remembers one access of a cell, not one of each CPU",
    "in models, stores that take effect late or cut a release sequence: weak schedules only sample them",
    "weak memory with four CPUs and more is sampled; a load delayed past a later store of its CPU is not",
    "starvation by longer stems and loops than those of the lassos, and milder unfairness",
    "in models, interrupts at points other than the three stated (in schedules they strike anywhere)",
    "lost kicks, which are a bug of the platform, and time, which the simulator measures",
];

/// The meaning of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No fault was found, and everything within the bound was explored.
    Passes,
    /// No fault was found before the time limit.
    Unfinished,
    /// The lock is known to have this flaw, and the check found it.
    KnownFlaw,
    /// The check found a fault, or missed a known flaw.
    Fails,
}

impl Verdict {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Unfinished => "unfinished",
            Self::KnownFlaw => "known flaw",
            Self::Fails => "FAILS",
        }
    }
}

/// One check of one lock.
pub struct Check {
    /// The thing that is checked.
    pub name: &'static str,
    /// The world it runs in.
    pub world: World,
    /// The number of CPUs.
    pub cpus: usize,
    /// The extent in words: acquisitions, preemptions, strategy.
    pub bound: String,
    /// What it says if it finds a flaw that the lock is known to have.
    known_flaw: Option<&'static str>,
    run: Run,
}

/// Runs the check and counts executions as they begin.
type Run = Arc<dyn Fn(&Arc<AtomicUsize>) -> Report + Send + Sync>;

/// Time limit of one execution. The longest execution of a correct lock takes milliseconds, and seconds on
/// threads. The worlds themselves end any execution whose kind of blocking they recognise long before.
const ENDLESS: Duration = Duration::from_secs(60);

impl Check {
    /// Runs the check. It catches panics of the checked code, and prints them unless
    /// [`quietly`](crate::quietly) is used.
    ///
    /// It always ends. A lock that loops without accessing a cell would block any world. If one execution lasts
    /// a minute, this reports that as the fault and leaves the looping thread behind.
    pub fn run(&self) -> Report {
        let executions = Arc::new(AtomicUsize::new(0));
        let (done, report) = mpsc::channel();
        let (run, count) = (Arc::clone(&self.run), Arc::clone(&executions));
        let start = Instant::now();
        thread::spawn(move || _ = done.send(run(&count)));
        let (mut seen, mut since) = (0, start);
        loop {
            match report.recv_timeout(Duration::from_millis(100)) {
                Ok(report) => return report,
                Err(RecvTimeoutError::Disconnected) => unreachable!("panics are caught"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = executions.load(Ordering::Relaxed);
            // None yet: the check waits for another model to end.
            if now != seen || now == 0 {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() >= ENDLESS {
                model::leave_behind();
                let seconds = ENDLESS.as_secs();
                let fault = format!(
                    "an execution has not ended for {seconds} s: it loops without accessing a cell"
                );
                let time = start.elapsed();
                return Report { runs: now, time, complete: false, fault: Some(fault) };
            }
        }
    }

    /// Interprets the report of this check.
    pub fn verdict(&self, report: &Report) -> Verdict {
        match &report.fault {
            Some(fault) if self.known_flaw.is_some_and(|flaw| fault.contains(flaw)) => {
                Verdict::KnownFlaw
            }
            Some(_) => Verdict::Fails,
            // Only the model is certain to find the flaw.
            None if self.known_flaw.is_some() && self.world == World::Model => Verdict::Fails,
            None if !report.complete => Verdict::Unfinished,
            None => Verdict::Passes,
        }
    }

    fn model(name: &'static str, pairs: &str, model: Model, limits: &Limits) -> Self {
        let model = model.time_limit(limits.time_limit);
        Self {
            name,
            world: World::Model,
            cpus: model.cpus,
            bound: format!("{pairs}, preemptions: {}", model.preemptions),
            known_flaw: None,
            run: Arc::new(move |count| model.explore_counting(Mutation::None, count)),
        }
    }

    fn plan(name: &'static str, plan: Plan, strategy: Strategy, count: usize, seed: u64) -> Self {
        Self {
            name,
            world: World::Schedules,
            cpus: plan.cpus,
            bound: format!("{count} {} schedules", strategy.name()),
            known_flaw: None,
            run: Arc::new(move |counter| {
                plan.explore_counting(strategy, count, seed, Mutation::None, counter)
            }),
        }
    }

    /// Checks what a lock claims about descheduled CPUs and about its waiters' looks.
    pub(crate) fn descheduled<L>() -> [Self; 2]
    where
        L: RawLock<Away> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        let check =
            |name, cpus, test| Self { world: World::Schedules, cpus, ..Self::test(name, test) };
        let stops = Box::new(descheduled::holder_and_waiters::<L>);
        let looks = Box::new(descheduled::local_spin::<L>);
        [
            check("a CPU stops for ever", descheduled::CPUS, stops),
            check("cells that waiters look at", descheduled::CPUS_THAT_LOOK, looks),
        ]
    }

    fn test(name: &'static str, test: suite::Test) -> Self {
        let run = move |count: &Arc<AtomicUsize>| {
            count.store(1, Ordering::Relaxed);
            let start = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(&test));
            Report {
                runs: 1,
                time: start.elapsed(),
                complete: true,
                fault: result.err().map(|panic| panic_message(&*panic)),
            }
        };
        let bound = "once".into();
        let (world, cpus) = (World::Threads, suite::CPUS);
        Self { name, world, cpus, bound, known_flaw: None, run: Arc::new(run) }
    }
}

impl Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .field("world", &self.world)
            .field("cpus", &self.cpus)
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

/// All checks of one lock, given its type in each world, from the most telling to the least. Run them in this
/// order: the first failure tells most.
pub fn checks<M, S, T>(profile: Profile, limits: &Limits) -> Vec<Check>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
    T: RawLock<StdPlatform> + Sync + 'static,
    T::Shared: Sync,
{
    let mut checks = models::<M>(profile, limits);
    checks.extend(plans::<S>(profile, limits));
    checks.extend(
        suite::all::<T>(profile.records_waiters).map(|(name, test)| Check::test(name, test)),
    );
    checks.extend(abort::test::<T>().map(|test| Check::test("giving up", test)));
    checks
}

fn models<L: RawLock<LoomPlatform> + 'static>(profile: Profile, limits: &Limits) -> Vec<Check> {
    let Limits { cpus, pairs, preemptions, .. } = *limits;
    let sizes = if cpus.or(pairs).or(preemptions).is_some() {
        let preemptions = preemptions.unwrap_or(profile.preemptions[0]);
        vec![(cpus.unwrap_or(2), pairs.unwrap_or(2), preemptions)]
    } else {
        let [p, q, r] = profile.preemptions;
        vec![(2, 2, p), (3, 1, q), (3, 2, r)]
    };
    let mut checks = Vec::new();
    let mut add = |name, pairs: &str, model| checks.push(Check::model(name, pairs, model, limits));
    for (cpus, pairs, preemptions) in sizes {
        let words = if pairs == 1 { "1 pair each" } else { &format!("{pairs} pairs each") };
        add("pairs", words, Model::pairs::<L>(cpus, pairs, preemptions));
    }
    add("tries", "2 pairs, 2 tries", model::tries::<L>());
    add("weak exchanges that fail spuriously", "1 pair each", model::weak_failures::<L>());
    for (name, point) in [
        ("interrupt while spinning", Point::Spin),
        ("interrupt before the latch is cleared", Point::Clear),
        ("interrupt before the sleep", Point::Poll),
    ] {
        // The other points are on the way to sleep.
        if point == Point::Spin || L::INFO.blocks {
            add(name, "1 pair each + handler", model::irqsave::<L>(point));
        }
    }
    if L::INFO.blocks {
        add("spurious wake-ups", "1 pair each", model::spurious_wakes::<L>());
    }
    let freed =
        Check::model("access after release", "1 pair each", model::last_user_frees::<L>(), limits);
    checks.push(Check {
        known_flaw: profile.touches_after_release.then_some(FREED_MESSAGE),
        ..freed
    });
    let aborts = abort::models::<L>(profile.preemptions).into_iter();
    checks.extend(aborts.map(|(name, words, model)| Check::model(name, words, model, limits)));
    let of_lock = special::of(L::INFO.name).into_iter();
    checks.extend(of_lock.map(|it| Check::model(it.name, it.bound, it.model, limits)));
    checks
}

fn plans<L>(profile: Profile, limits: &Limits) -> Vec<Check>
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let mut checks = Vec::new();
    let mut add = |name, plan: Plan, divisor, known_flaw| {
        let count = limits.schedules.div_ceil(divisor);
        for strategy in [Strategy::Random, Strategy::Pct] {
            let check = Check::plan(name, plan.clone(), strategy, count, limits.seed);
            checks.push(Check { known_flaw, ..check });
        }
    };
    let frees = profile.touches_after_release;
    let serves = |cpus: usize| L::INFO.check_capacity(cpus).is_ok();
    for (cpus, divisor) in SCHEDULES.into_iter().filter(|&(cpus, _)| serves(cpus)) {
        let order = if L::INFO.fair { "pairs, in order of arrival" } else { "pairs" };
        add(order, schedules::pairs::<L>(cpus, ROUNDS, 2), divisor, None);
        add("tries, nesting, interrupts", schedules::mixed::<L>(cpus, ROUNDS), divisor, None);
        let freed = schedules::last_user_frees::<L>(cpus);
        add("access after release", freed, divisor, frees.then_some(FREED_MESSAGE));
        if let Some(plan) = abort::plan::<L>(cpus, ROUNDS) {
            add("giving up", plan, divisor, None);
        }
    }
    let (few, divisor) = SCHEDULES[0];
    for special in special::plans_of(L::INFO.name) {
        add(special.name, special.plan, divisor, None);
    }
    if serves(few) {
        let out = schedules::out_of_nodes::<L>(few, ROUNDS);
        add("pairs, CPUs out of nodes", out.clone(), 3 * divisor, None);
        let weak = schedules::pairs::<L>(few, ROUNDS, 2).weak();
        add("pairs, weak memory", weak, divisor, None);
        if serves(2 * few) {
            let weak = schedules::pairs::<L>(2 * few, 2, 2).weak();
            add("pairs, weak memory", weak, 3 * divisor, None);
        }
        let weak = schedules::mixed::<L>(few, ROUNDS).weak();
        add("tries, nesting, weak memory", weak, 2 * divisor, None);
        add("out of nodes, weak memory", out.weak(), 3 * divisor, None);
        add("several of six locks", schedules::several::<L>(few, ROUNDS), 3 * divisor, None);
    }
    for (cpus, divisor) in SCHEDULES.into_iter().filter(|&(cpus, _)| serves(cpus)) {
        let count = limits.schedules.div_ceil(4 * divisor);
        let plan = schedules::rivals::<L>(cpus, 2, profile.overtaken);
        checks.push(Check::plan("one among rivals", plan, Strategy::Random, count, limits.seed));
    }
    for cpus in LASSOS.into_iter().filter(|&cpus| serves(cpus)) {
        let mut add = |name, plan, known_flaw| {
            let check = Check::plan(name, plan, Strategy::Lasso, limits.schedules, limits.seed);
            checks.push(Check { known_flaw, ..check });
        };
        add("no livelock", schedules::pairs::<L>(cpus, ROUNDS, 2), None);
        let rivals = schedules::rivals_that_wait::<L>(cpus, ROUNDS, ALWAYS_OVERTAKEN);
        add("one among rivals", rivals, profile.starves.then_some(STARVES));
    }
    let mut add = |name, plan: Plan, divisor| {
        let count = limits.schedules.div_ceil(divisor);
        checks.push(Check::plan(name, plan, Strategy::Pct, count, limits.seed));
    };
    for (cpus, divisor) in CROWDS.into_iter().filter(|&(cpus, _)| serves(cpus)) {
        add("pairs", schedules::pairs::<L>(cpus, 1, 2), divisor);
        add("one holds the lock, the others come", schedules::crowd::<L>(cpus), 4 * divisor);
    }
    let most = L::INFO.max_cpus as usize;
    if most > few {
        let last = schedules::pairs::<L>(few, 2, 2).last_of(most);
        add("pairs, the last CPUs of the largest system", last, OF_LARGEST);
    }
    if most <= FULL_HOUSE {
        add("as many CPUs as it serves", schedules::crowd::<L>(most), OF_LARGEST);
    }
    checks
}
