//! How far models and random schedules are explored.
//!
//! By default a model stops after at least twice as many executions as any seeded bug takes that it must find, or any
//! fault of `faults`, by the tables of `docs/model-checking.md` and `docs/faults.md`. With `OVERSPIN_DEEP=1`, which CI
//! sets, and in `overspin check`, models go on to their bounds on preemptions. Likewise for random schedules. With
//! `OVERSPIN_FURTHER=2` too, models go two preemptions further, for [`FURTHER`] at most each.

use std::env;
use std::sync::Once;
use std::time::Duration;

use overspin_check::model::Model;
use overspin_check::schedules::{Plan, Strategy};
use overspin_check::seeded::Caught;
use overspin_check::{Mutation, seeded_by_name_within};
use overspin_testing::{deep, skip};

/// Executions of a model. The latest bug that needs no line below is P6, at 761.
pub const EXECUTIONS: usize = 1_600;

/// The time for a model whose bound on preemptions is raised.
const FURTHER: Duration = Duration::from_secs(300);

/// Models with later bugs or faults: the lock, the model, executions.
const LATER: &[(&str, &str, usize)] = &[
    // V1, at 792, and V3, at 881.
    ("pv-qspinlock-4.2", "a waiter becomes the first", 2_500),
    ("pv-qspinlock-4.5", "a waiter becomes the first", 2_500),
    ("pv-qspinlock", "a waiter becomes the first", 2_500),
    // E1, at 879.
    ("mutexee", "pairs, three of them", 2_500),
    // mutex-2, at 1,071.
    ("mutex", "three CPUs once", 2_500),
    // qspinlock-3, at 1,442.
    ("qspinlock", "three CPUs once", 3_000),
    // pv-qspinlock-4.5-2, at 5,433 of 9,147.
    ("pv-qspinlock-4.5", "two CPUs twice", 12_000),
    // V4, at 15,241 of 21,817.
    ("pv-qspinlock-4.5", "made the first, spurious wake-up", 40_000),
    ("pv-qspinlock", "made the first, spurious wake-up", 40_000),
    // C1, at 1,705.
    ("hemlock", "a word used again", 3_500),
    // flexguard-1, at 2,585.
    ("flexguard", "preempted now and then", 6_000),
    // Z3, at 1,430.
    ("hapax", "a value drawn again", 3_500),
    // O8, at 4,365.
    ("mutex", "holders pay for their sections", 10_000),
];

/// Schedules of each kind with 4 CPUs; larger systems get fewer.
const SCHEDULES: usize = 200;

/// Schedules where a fault of `faults` takes more than half of them.
const MORE_SCHEDULES: &[(&str, usize)] = &[
    // shfllock-1, at 90 of 8 CPUs, which get a third.
    ("shfllock", 600),
    // qspinlock-unfair-3, at 167.
    ("qspinlock-unfair", 500),
    // pv-ticket-2012-1, at 6,937: as many as with `OVERSPIN_DEEP`.
    ("pv-ticket-2012", 500),
    // A queue that ends with a relaxed exchange, as it once did, shows at 324, in a plan that gets half.
    ("pv-qspinlock", 700),
];

/// A model with the number of executions by default.
pub struct Bounded {
    model: Model,
    executions: usize,
}

impl Bounded {
    pub fn new(model: Model) -> Self {
        Self::within(model, EXECUTIONS)
    }

    pub fn within(model: Model, executions: usize) -> Self {
        Self { model, executions }
    }

    /// The model of this name, or test, of a lock of the registry.
    pub fn of(lock: &str, name: &str, model: Model) -> Self {
        let later = LATER.iter().find(|(of, it, _)| *of == lock && *it == name);
        Self::within(model, later.map_or(EXECUTIONS, |(_, _, executions)| *executions))
    }

    fn model(&self) -> Model {
        if let Ok(preemptions) = env::var("OVERSPIN_FURTHER") {
            let preemptions = preemptions.parse().expect("a number of preemptions");
            return self.model.clone().further(preemptions).time_limit(FURTHER);
        }
        if deep() {
            return self.model.clone();
        }
        say();
        self.model.clone().at_most(self.executions)
    }

    /// Asserts that the unmodified lock passes.
    pub fn passes(&self) {
        self.model().passes();
    }

    /// Asserts that the unmodified lock has a flaw, with a message that contains `words`.
    pub fn fails(&self, words: &str) {
        self.finds(Mutation::None, words);
    }

    /// Asserts that the bug fails with a message that contains `words`, in half of the executions by default. If it does
    /// not, the model needs more executions.
    pub fn finds(&self, bug: Mutation, words: &str) {
        self.model.clone().at_most(self.executions / 2).fails_with(bug, words);
    }
}

/// Schedules for this lock.
pub fn schedules(lock: &str) -> usize {
    let more = MORE_SCHEDULES.iter().find(|(of, _)| *of == lock).map(|(_, schedules)| *schedules);
    if deep() {
        return more.unwrap_or_default().max(500);
    }
    say();
    more.unwrap_or(SCHEDULES)
}

/// Asserts that so many schedules of a plan pass, or ten times as many.
pub fn passes(plan: &Plan, strategies: &[Strategy], schedules: usize) {
    let schedules = if deep() { 10 * schedules } else { schedules };
    for strategy in strategies {
        let report = plan.explore(*strategy, schedules, 1, Mutation::None);
        let is_fine = report.complete && report.fault.is_none();
        assert!(is_fine, "{} schedules of {plan:?}: {report:?}", strategy.name());
    }
}

/// Looks for a bug in the lock of this name, by default with fewer executions of the models.
pub fn hunt(lock: &str, bug: Mutation) -> Option<Caught> {
    let executions = if deep() { usize::MAX } else { EXECUTIONS };
    let caught = seeded_by_name_within(lock, bug, executions).expect("the lock is in the registry");
    if let Some(Caught { by, runs, .. }) = &caught {
        println!("{lock}: {bug:?} is caught by {by}, at {runs}");
    }
    caught
}

/// Says once that there are bounds.
fn say() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        skip("models after some thousand executions, and most random schedules: OVERSPIN_DEEP=1");
    });
}

/// A line of the tables with an unknown name would have no effect.
#[test]
fn tables_name_locks_and_their_models() {
    let tests = ["two CPUs twice", "three CPUs once", "three CPUs twice"];
    for (lock, name, _) in LATER {
        let special = overspin_check::special::of(lock);
        assert!(
            tests.contains(name) || special.iter().any(|it| it.name == *name),
            "{lock}, {name}"
        );
    }
    for lock in
        LATER.iter().map(|(lock, ..)| lock).chain(MORE_SCHEDULES.iter().map(|(lock, _)| lock))
    {
        assert!(overspin_locks::infos().iter().any(|info| info.name == *lock), "{lock}");
    }
}
