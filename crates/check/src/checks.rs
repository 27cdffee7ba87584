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
use crate::schedules::{self, Plan, SchedulePlatform, Strategy};
use crate::threads::StdPlatform;
use crate::{Mutation, Profile, Report, abort, panic_message, special, suite};

/// CPUs of the random schedules, and by what [`Limits::schedules`] is divided for them: a schedule of
/// more CPUs takes longer.
const SCHEDULES: [(usize, usize); 3] = [(4, 1), (8, 3), (16, 10)];

/// The same for the ones that only ask whether all CPUs are served: just more than one word of a mask has bits,
/// and than two. With priorities, and not with each CPU as likely as any other: where waiters come back again
/// and again, as those do that time out, such a schedule takes seconds.
const CROWDS: [(usize, usize); 2] = [(33, 50), (65, 100)];

/// A lock for no more CPUs than this is tried with as many as it serves.
const FULL_HOUSE: usize = 256;

/// The same as a divisor, where what all CPUs share is made for the largest system that the lock serves.
const OF_LARGEST: usize = 500;

/// Acquisitions, or other things to do, of each CPU in a random schedule.
const ROUNDS: usize = 3;

/// Where a check runs.
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
    /// As it is called in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Schedules => "schedules",
            Self::Threads => "threads",
        }
    }
}

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs, acquisitions of each, and preemptions of one model in place of the usual three; what is
    /// left out is 2, 2, and the lock's own.
    pub cpus: Option<usize>,
    /// See `cpus`.
    pub pairs: Option<usize>,
    /// See `cpus`.
    pub preemptions: Option<usize>,
    /// Schedules of 4 CPUs, of each kind; fewer of more CPUs.
    pub schedules: usize,
    /// Seed of the random schedules.
    pub seed: u64,
    /// How long one model may take. What was not reached by then is not covered.
    pub time_limit: Duration,
}

impl Limits {
    /// Most CPUs of a model: loom has room for so many threads.
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

/// What no check here covers, in a line each; `docs/model-checking.md` says more.
pub const NOT_COVERED: &[&str] = &[
    "more CPUs, acquisitions or preemptions than stated; schedules that were not drawn",
    "interleavings that loom takes for equal: it remembers one access of a cell, not one of each CPU",
    "in models, stores that take effect late or cut a release sequence: weak schedules only sample them",
    "weak memory with four CPUs and more is sampled; loads that come after a later store of their CPU are not",
    "starvation: a lock that always lets the same CPU in passes, unless it promises an order",
    "in models, interrupts at other points than the three stated (in schedules they strike anywhere)",
    "lost kicks, which are the platform's bug, and time, which is the simulator's subject",
];

/// What a report means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was found, and all that the bound asks for was explored.
    Passes,
    /// Nothing was found before the time limit.
    Unfinished,
    /// The lock is known to have this flaw, and it was found.
    KnownFlaw,
    /// Something was found, or a known flaw was not.
    Fails,
}

impl Verdict {
    /// As it is called in reports.
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
    /// What is checked.
    pub name: &'static str,
    /// Where.
    pub world: World,
    /// CPUs.
    pub cpus: usize,
    /// How far: acquisitions, preemptions, strategy; in words.
    pub bound: String,
    known_flaw: bool,
    run: Run,
}

/// Does the check, and counts executions as they begin.
type Run = Arc<dyn Fn(&Arc<AtomicUsize>) -> Report + Send + Sync>;

/// How long one execution may take. The longest of a lock that ends takes milliseconds, and on threads seconds;
/// what is stuck in any way that the worlds know ends by itself long before.
const ENDLESS: Duration = Duration::from_secs(60);

impl Check {
    /// Runs it. Panics of what is checked are caught, and printed unless [`quietly`](crate::quietly).
    ///
    /// It always ends. A lock that loops without a look at a cell would stop any world; after a minute in one
    /// execution that is the fault, and the thread that loops is left behind.
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
            // None yet: it waits for another model to end.
            if now != seen || now == 0 {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() >= ENDLESS {
                model::leave_behind();
                let seconds = ENDLESS.as_secs();
                let fault = format!(
                    "an execution has not ended for {seconds} s: it loops and looks at nothing"
                );
                let time = start.elapsed();
                return Report { runs: now, time, complete: false, fault: Some(fault) };
            }
        }
    }

    /// What the report of this check means.
    pub fn verdict(&self, report: &Report) -> Verdict {
        match &report.fault {
            Some(fault) if self.known_flaw && fault.contains(FREED_MESSAGE) => Verdict::KnownFlaw,
            Some(_) => Verdict::Fails,
            // Only the model is sure to find it.
            None if self.known_flaw && self.world == World::Model => Verdict::Fails,
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
            known_flaw: false,
            run: Arc::new(move |count| model.explore_counting(Mutation::None, count)),
        }
    }

    fn plan(name: &'static str, plan: Plan, strategy: Strategy, count: usize, seed: u64) -> Self {
        Self {
            name,
            world: World::Schedules,
            cpus: plan.cpus,
            bound: format!("{count} {} schedules", strategy.name()),
            known_flaw: false,
            run: Arc::new(move |counter| {
                plan.explore_counting(strategy, count, seed, Mutation::None, counter)
            }),
        }
    }

    /// What a lock says of descheduled CPUs and of its waiters' looks.
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
            check("a CPU stops, for ever", descheduled::CPUS, stops),
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
        Self { name, world, cpus, bound, known_flaw: false, run: Arc::new(run) }
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

/// All checks of one lock, which is given as it is in each world, from the most telling to the least.
/// Run them in this order: what fails first tells most.
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
    add("exchanges that fail for no reason", "1 pair each", model::weak_failures::<L>());
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
        add("sleeps that end for no reason", "1 pair each", model::spurious_wakes::<L>());
    }
    let freed =
        Check::model("access after release", "1 pair each", model::last_user_frees::<L>(), limits);
    checks.push(Check { known_flaw: profile.touches_after_release, ..freed });
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
    let serves = |cpus: usize| L::INFO.check_capacity(cpus).is_ok();
    for (cpus, divisor) in SCHEDULES.into_iter().filter(|&(cpus, _)| serves(cpus)) {
        let order = if L::INFO.fair { "pairs, in order of arrival" } else { "pairs" };
        add(order, schedules::pairs::<L>(cpus, ROUNDS, 2), divisor, false);
        add("tries, nesting, interrupts", schedules::mixed::<L>(cpus, ROUNDS), divisor, false);
        let freed = schedules::last_user_frees::<L>(cpus);
        add("access after release", freed, divisor, profile.touches_after_release);
        if let Some(plan) = abort::plan::<L>(cpus, ROUNDS) {
            add("giving up", plan, divisor, false);
        }
    }
    let (few, divisor) = SCHEDULES[0];
    if serves(few) {
        let out = schedules::out_of_nodes::<L>(few, ROUNDS);
        add("pairs, CPUs out of nodes", out.clone(), 3 * divisor, false);
        let weak = schedules::pairs::<L>(few, ROUNDS, 2).weak();
        add("pairs, weak memory", weak, divisor, false);
        if serves(2 * few) {
            let weak = schedules::pairs::<L>(2 * few, 2, 2).weak();
            add("pairs, weak memory", weak, 3 * divisor, false);
        }
        let weak = schedules::mixed::<L>(few, ROUNDS).weak();
        add("tries, nesting, weak memory", weak, 2 * divisor, false);
        add("out of nodes, weak memory", out.weak(), 3 * divisor, false);
        add("several of six locks", schedules::several::<L>(few, ROUNDS), 3 * divisor, false);
    }
    let mut add = |name, plan: Plan, divisor| {
        let count = limits.schedules.div_ceil(divisor);
        checks.push(Check::plan(name, plan, Strategy::Pct, count, limits.seed));
    };
    for (cpus, divisor) in CROWDS.into_iter().filter(|&(cpus, _)| serves(cpus)) {
        add("pairs", schedules::pairs::<L>(cpus, 1, 2), divisor);
        add("one holds it, the others come", schedules::crowd::<L>(cpus), 4 * divisor);
    }
    let most = L::INFO.max_cpus as usize;
    if most > few {
        let last = schedules::pairs::<L>(few, 2, 2).last_of(most);
        add("pairs, the last CPUs of the most", last, OF_LARGEST);
    }
    if most <= FULL_HOUSE {
        add("as many CPUs as it serves", schedules::crowd::<L>(most), OF_LARGEST);
    }
    checks
}
