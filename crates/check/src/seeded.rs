//! Deliberate bugs in locks, which the checks must catch. Seeing the checks fail is a reason to trust
//! them.
//!
//! This module has the bugs that the usual models and plans reach. Bugs that need a world of their own,
//! such as tickets of two bits or three locks in a certain order, are with their [special] models.

use std::time::Duration;

use overspin_locks::{Bug, RawLock};

use crate::model::{self, LoomPlatform, Model};
use crate::schedules::{self, Plan, SchedulePlatform, Strategy};
use crate::{Mutation, Profile, Report, abort, special};

/// Schedules of each strategy. The best hidden bug takes some 700 schedules of `pairs`, or some 4,000 if
/// it needs interrupts. The limits are an order of magnitude higher, so that no seed misses a bug.
const SCHEDULES_OF_PAIRS: usize = 5_000;
const SCHEDULES_OF_NESTING: usize = 100_000;

/// Each plan is tried with this many schedules before the next one, and then with all. Most bugs show in one plan only, and
/// early.
const SCHEDULES_AT_FIRST: usize = 1_500;

/// Seed of the schedules.
const SEED: u64 = 1;

/// Bugs of each lock, besides those of [`EVERY`].
const BUGS: &[(&str, Mutation)] = &[
    ("lock-byte", Mutation::SplitSwap),
    ("lock-byte", Mutation::Seeded(Bug::B3LockByteGivesUpAndStaysCounted)),
    ("i-spinlock", Mutation::Seeded(Bug::I1InformedLearnsAfterRelease)),
    ("qspinlock", Mutation::Seeded(Bug::Q1QspinlockPendingNotUndone)),
    ("qspinlock", Mutation::Seeded(Bug::Q2QspinlockDropsTheTail)),
    ("qspinlock", Mutation::Seeded(Bug::Q4QspinlockResetAfterPublication)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U1QspinlockUnfairFirstTakesBlindly)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U2QspinlockUnfairMissesItsGrant)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U3QspinlockUnfairLeavesItsLink)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U4QspinlockUnfairKeepsThePredecessor)),
    ("mcs-tp", Mutation::Seeded(Bug::Y2McsTpReusesTheNodeLeftBehind)),
    ("mcs-tp", Mutation::Seeded(Bug::Y3McsTpGivesUpThoughGranted)),
    ("mcs-tp", Mutation::Seeded(Bug::Y4McsTpTellsEachAtOnce)),
    ("mutex", Mutation::Seeded(Bug::O10MutexGivesUpWithoutASuccessor)),
    ("shfllock", Mutation::Seeded(Bug::S1ShflLockMovesTheTail)),
    ("shfllock", Mutation::Seeded(Bug::S2ShflLockHeadPublishedRelaxed)),
];

/// Bugs that any lock can have.
const EVERY: [Mutation; 2] = [Mutation::NoRelease, Mutation::NoAcquire];

/// Lists the bugs that are tried on the lock of this name.
pub fn bugs(lock: &str) -> Vec<Mutation> {
    let of_lock = BUGS.iter().filter(|(name, _)| *name == lock).map(|(_, bug)| *bug);
    let special = special::of(lock).into_iter().flat_map(|it| it.bugs).map(|(bug, _)| bug);
    let plans = special::plans_of(lock).into_iter().flat_map(|it| it.bugs).map(|(bug, _)| bug);
    let mut bugs = Vec::new();
    for bug in EVERY.into_iter().chain(of_lock).chain(special).chain(plans) {
        if !bugs.contains(&bug) {
            bugs.push(bug);
        }
    }
    bugs
}

/// Names of the locks that have bugs of their own here.
pub(crate) fn locks() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|(name, _)| *name)
}

/// The name of a bug in reports, as in the code.
pub fn name(bug: Mutation) -> String {
    match bug {
        Mutation::Seeded(bug) => format!("{bug:?}"),
        other => format!("{other:?}"),
    }
}

/// A caught bug.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The model or plan that caught it, in words.
    pub by: String,
    /// Executions up to the catch.
    pub runs: usize,
    /// The time they took.
    pub time: Duration,
    /// The message of the failure.
    pub fault: String,
}

impl Caught {
    fn new(by: String, report: Report) -> Option<Self> {
        let Report { runs, time, fault, .. } = report;
        fault.map(|fault| Self { by, runs, time, fault })
    }
}

/// Puts `bug` into a lock and looks for it. If a special model or plan exists for this bug, only that one runs.
/// Otherwise the models of every lock run, then schedules, from small to large. Returns `None` if the bug
/// survives.
pub fn hunt<M, S>(bug: Mutation) -> Option<Caught>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
{
    hunt_within::<M, S>(bug, usize::MAX)
}

/// As [`hunt`], with at most so many executions of each model. A bug that no model shows by then is left to schedules.
pub fn hunt_within<M, S>(bug: Mutation, executions: usize) -> Option<Caught>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
{
    let explore = |model: Model| model.at_most(executions).explore(bug);
    let explore_schedules = |strategy: Strategy, name: &str, plan: &Plan, count| {
        let by = format!("{} schedules, {name}, {} CPUs", strategy.name(), plan.cpus);
        Caught::new(by, plan.explore(strategy, count, SEED, bug))
    };
    for special in special::of(M::INFO.name) {
        if let Some((_, words)) = special.bugs.iter().find(|(known, _)| *known == bug) {
            let caught = Caught::new(special.name.into(), explore(special.model.clone()))?;
            return caught.fault.contains(words).then_some(caught);
        }
    }
    for special in special::plans_of(M::INFO.name) {
        if let Some((_, words)) = special.bugs.iter().find(|(known, _)| *known == bug) {
            let (name, plan) = (special.name, &special.plan);
            let caught = [Strategy::Random, Strategy::Pct]
                .into_iter()
                .find_map(|it| explore_schedules(it, name, plan, SCHEDULES_OF_PAIRS))?;
            return caught.fault.contains(words).then_some(caught);
        }
    }
    let profile = Profile::of(&M::INFO);
    // No more preemptions with three CPUs than the lock can afford.
    let [_, three_once, _] = profile.preemptions;
    for (cpus, pairs, preemptions) in [(2, 1, 2), (3, 1, three_once.min(2)), (2, 2, 3)] {
        let report = explore(Model::pairs::<M>(cpus, pairs, preemptions));
        let by = format!("model, {cpus} CPUs x {pairs}, {preemptions} preemptions");
        if let Some(caught) = Caught::new(by, report) {
            return Some(caught);
        }
    }
    let freed = model::last_user_frees::<M>();
    // If the lock has this flaw anyway, the model says nothing about the bug.
    if !profile.touches_after_release {
        let by = "model, last user frees, 2 CPUs".into();
        if let Some(caught) = Caught::new(by, explore(freed)) {
            return Some(caught);
        }
    }
    if let Some((by, report)) = abort::hunt::<M, S>(bug, profile.preemptions, executions, SEED) {
        return Caught::new(by, report);
    }
    for most in [SCHEDULES_AT_FIRST, usize::MAX] {
        let drawn = &[Strategy::Random, Strategy::Pct][..];
        for (name, plan, count, strategies) in [
            ("pairs", schedules::pairs::<S>(4, 3, 2), SCHEDULES_OF_PAIRS, drawn),
            (
                "pairs, weak memory",
                schedules::pairs::<S>(8, 2, 2).weak(),
                SCHEDULES_OF_PAIRS,
                drawn,
            ),
            ("pairs", schedules::pairs::<S>(3, 3, 2), SCHEDULES_OF_PAIRS, &[Strategy::Lasso]),
            ("nesting", schedules::mixed::<S>(4, 4), SCHEDULES_OF_NESTING, drawn),
        ] {
            for &strategy in strategies {
                let caught = explore_schedules(strategy, name, &plan, count.min(most));
                if caught.is_some() {
                    return caught;
                }
            }
        }
    }
    None
}
