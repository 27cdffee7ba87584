//! The record: every measurement writes it, and every reader reads it. Beside it, directories of results, output files, and
//! the machine at hand.
//!
//! One type serves for all: a run, many seeds, a sweep, an experiment, a benchmark. Parts that all have are
//! required. Parts that only some have are optional, and are left out of the text if they are empty. The
//! numbers are in [`Record::samples`], in long form, whatever was measured. So a reader that knows nothing of
//! locks can still compare two records. `docs/json.md` describes the text.

#![forbid(unsafe_code)]

mod again;
mod changes;
pub mod environment;
mod experiment;
mod groups;
mod kind;
pub mod metric;
pub mod output;
mod parts;
mod read;
pub mod results;
mod run;
mod sample;
mod shell;
pub mod validation;
mod world;
mod write;

pub use again::{Again, LoadError, json, read_text};
pub use changes::Changes;
pub use experiment::{Compared, Experiment, Grade, Judged, Parameter, Role};
pub use groups::Group;
pub use kind::Kind;
pub use parts::{LocksPlan, NoiseConditions, OverSeeds, RealConditions, RunSeconds, Target};
pub use read::{json_error, read};
pub use run::{Point, Run, vcpu_time, wait_causes};
pub use sample::Sample;
pub use shell::shell_words;
pub use world::InWorld;
pub use write::{csv, pretty, rows};

use environment::Environment;
use metric::Metric;
use overspin_scenario::{Scenario, Unhonoured};
use overspin_scenario_file::Axis;
use serde::{Deserialize, Serialize};
use validation::Comparison;

/// Layout of [`Record`]. It changes when a reader of the old layout could misread the new one.
pub const SCHEMA: &str = "overspin-record/1";

/// What was measured, and how.
///
/// For simulated runs, everything is the same each time the record is made, except [`Self::command`] and
/// [`Self::environment`]. The record of a single run has neither, so that equal runs give equal bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// Version of its model of hosts and guests.
    pub model_version: u32,
    /// Kind of measurement.
    pub kind: Kind,
    /// Name of the scenario, the experiment, the benchmark or the `.bench` file.
    pub name: String,
    /// Its question or its description; may be empty.
    pub description: String,
    /// `--set` arguments of all runs. `scenario` includes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The seed that was asked for, or the scenario's; null if each run has its own.
    pub seed: Option<u64>,
    /// The world of its runs, if it is not the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// Keys of the scenario that this world could not honour and ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhonoured: Vec<Unhonoured>,
    /// The simulated machine by name: a machine of `overspin list machines`, or the machine of a `.bench`
    /// file's runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Name of the trace that was written in the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Reasons to doubt the figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The scenario as it ran, including all defaults and `set`; for a sweep, the scenario of its first point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Box<Scenario>>,
    /// Axes of a sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Points of a sweep, with the differences of their scenarios from `scenario`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// Every run, in the order of its number.
    pub runs: Vec<Run>,
    /// Summaries of samples over seeds, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_seeds: Vec<OverSeeds>,
    /// Experiments with their figures and claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// Targets of a benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// The plan of a benchmark of locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<LocksPlan>,
    /// How noise was measured, and the resulting table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseConditions>,
    /// A real benchmark: the locks that were compared, and what the machine did in each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealConditions>,
    /// A validation: every figure, simulated and measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Comparison>,
    /// Every number that was measured.
    pub samples: Vec<Sample>,
    /// The command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

impl Record {
    /// An empty record, by this program.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model_version: overspin_host::MODEL_VERSION,
            kind,
            name: name.into(),
            description: String::new(),
            set: Vec::new(),
            seed: None,
            world: None,
            unhonoured: Vec::new(),
            machine: None,
            trace: None,
            warnings: Vec::new(),
            scenario: None,
            axes: Vec::new(),
            points: Vec::new(),
            runs: Vec::new(),
            over_seeds: Vec::new(),
            experiments: Vec::new(),
            targets: Vec::new(),
            locks: None,
            noise: None,
            real: None,
            validation: None,
            samples: Vec::new(),
            command: None,
            environment: None,
        }
    }

    /// Adds that it was made on the machine at hand by this command.
    #[must_use]
    pub fn made_here(self, command: String) -> Self {
        let environment = Environment::here();
        Self { command: Some(command), environment: Some(environment), ..self }
    }

    /// Notes that the runs were made in this world.
    #[must_use]
    pub fn in_world(self, made: &InWorld) -> Self {
        Self { world: made.name.clone(), unhonoured: made.unhonoured.clone(), ..self }
    }

    /// Whether its numbers are of a simulated world, and so do not depend on the machine.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.world.is_none() && self.kind.is_of_scenarios()
    }

    /// Why no run of it can be made again, in words; `None` if each can.
    #[must_use]
    pub fn unrepeatable(&self) -> Option<String> {
        let world = self.world.as_ref()?;
        Some(format!(
            "its runs were measured in the world `{world}`, and a run on a real machine never happens twice"
        ))
    }

    /// Adds a number. A number that is not finite could not be measured and gets no sample.
    pub fn push(&mut self, run: u32, place: &str, metric: &Metric, value: f64) {
        self.push_as(run, place, metric.name, metric.unit, value);
    }

    /// Adds a sample of a metric that has several units, or a definition of another kind.
    pub fn push_as(&mut self, run: u32, place: &str, metric: &str, unit: &str, value: f64) {
        if value.is_finite() {
            self.samples.push(Sample {
                run,
                place: place.into(),
                metric: metric.into(),
                unit: unit.into(),
                value,
            });
        }
    }
}

/// The number of the next run after `runs`.
#[must_use]
pub fn next_number(runs: &[Run]) -> u32 {
    // No record has so many runs that their number does not fit.
    u32::try_from(runs.len()).unwrap_or(u32::MAX)
}
