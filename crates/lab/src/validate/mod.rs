//! Validation: a set of scenarios in the simulator and on this machine, side by side.
//!
//! `cases.rs` says what runs, `figure.rs` what is compared. `plan.rs` chooses worlds and schedulers and shuffles
//! the measured runs, `measure.rs` makes the runs of both sides, and `load.rs` looks at what else the machine did
//! meanwhile. `compare.rs` decides; `report.rs` and `picture.rs` show.

mod cases;
mod compare;
mod costs;
mod figure;
mod measure;
mod picture;
mod plan;
mod record;
mod report;

pub use cases::{Case, Family, LOCKS, cases};
pub use costs::{Costs, costs};
pub use figure::TABLES;
pub(crate) use figure::{OTHERS, STEAL};
pub use measure::{Side, SideRun, measurable, probe};
pub use picture::picture;
pub use plan::{Measurable, Plan, Schedulers, Subject, worlds};
pub use record::record;
pub use report::{answer, report};

pub use overspin_record::validation::{
    Agreement, Compared, Comparison, Disturbance, FigureKind, Goals, Load, Order,
};

use overspin_located::LocatedError;
use overspin_runs::parallel::ParallelError;
use overspin_runs::runner::Until;
use overspin_scenario::Stopped;

/// What to validate, and how thoroughly.
#[derive(Clone, Debug)]
pub struct Settings {
    /// pCPUs of all cases: CPUs of this machine.
    pub pcpus: u32,
    /// Only cases whose names contain one of these; all if empty.
    pub cases: Vec<String>,
    /// Only these schedulers; all if empty.
    pub schedulers: Vec<String>,
    /// The short form: few cases.
    pub quick: bool,
    /// Measured runs of each case.
    pub repeats: u32,
    /// Simulated runs of each case.
    pub seeds: u32,
    /// The first seed of both sides, and the seed of the order of the measured runs.
    pub seed: u64,
    /// Threads for simulated runs (0: one for each CPU).
    pub threads: usize,
    /// How far apart the sides may be.
    pub goals: Goals,
}

impl Settings {
    /// The full set on this many pCPUs.
    #[must_use]
    pub fn new(pcpus: u32) -> Self {
        Self {
            pcpus,
            cases: Vec::new(),
            schedulers: Vec::new(),
            quick: false,
            repeats: 4,
            seeds: 8,
            seed: 1,
            threads: 0,
            goals: Goals::FULL,
        }
    }
}

/// Why nothing was validated.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// No case has this in its name.
    #[error("no case has `{asked}` in its name")]
    NoCase {
        /// What was asked for.
        asked: String,
        /// All cases.
        names: Vec<String>,
    },
    /// There is no such world to measure.
    #[error("no world that can be measured is called `{asked}`")]
    NoWorld {
        /// What was asked for.
        asked: String,
        /// All such worlds.
        names: Vec<String>,
    },
    /// A case is no valid scenario with these settings.
    #[error("case {name}: {error}")]
    Case {
        /// The case.
        name: String,
        /// The reason.
        error: Box<LocatedError>,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] ParallelError),
}

/// Everything that was run, and what comes out.
#[derive(Clone, Debug)]
pub struct Validation {
    /// What was run.
    pub plan: Plan,
    /// Every run.
    pub runs: Vec<SideRun>,
    /// What comes out.
    pub result: Comparison,
    /// The reason why it ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// Which half of the work is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Simulated runs.
    Simulates,
    /// Measured runs.
    Measures,
}

/// Makes all runs of `plan` and compares them. Calls `progress` with the runs done and all runs of a stage.
///
/// # Errors
/// If a run fails.
pub fn validate(
    plan: &Plan,
    settings: &Settings,
    until: Until,
    progress: &(dyn Fn(Stage, usize, usize) + Sync),
) -> Result<Validation, ValidateError> {
    let tell = |done, all| progress(Stage::Simulates, done, all);
    let mut runs = measure::simulate(plan, settings, until, &tell)?;
    let tell = |done, all| progress(Stage::Measures, done, all);
    runs.extend(measure::measure(plan, settings, until, &tell)?);
    Ok(measure::judge(plan, settings, runs, until.over()))
}
