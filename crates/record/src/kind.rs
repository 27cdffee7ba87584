//! Kinds of records: what was measured, and the metrics that a reader asks for first.

use serde::{Deserialize, Serialize};

/// The subject of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One simulated run.
    Run,
    /// One scenario with many seeds.
    Seeds,
    /// Every combination of a scenario's `[[vary]]` tables. Earlier records say `map`.
    #[serde(alias = "map")]
    Sweep,
    /// Experiments beside the published results.
    Reproduction,
    /// The speed of the program itself.
    Bench,
    /// Locks on threads.
    BenchLocks,
    /// Runs of a `.bench` file.
    Schedbench,
    /// What interrupts threads of this machine.
    Noise,
    /// What operations of this machine cost.
    Calibration,
    /// A real benchmark on a real machine.
    Real,
    /// Scenarios in the simulator and on this machine.
    Validation,
}

impl Kind {
    /// In words, with an article if possible.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Seeds => "runs with many seeds",
            Self::Sweep => "a sweep",
            Self::Reproduction => "a reproduction",
            Self::Bench => "a benchmark of the program",
            Self::BenchLocks => "a benchmark of locks",
            Self::Schedbench => "runs of schedbench",
            Self::Noise => "a measurement of noise",
            Self::Calibration => "a calibration of a machine",
            Self::Real => "a real benchmark",
            Self::Validation => "a validation",
        }
    }

    /// The metrics by which two records of this kind are compared, unless others are asked for: what a person
    /// would call the result of such work. Empty means all of them.
    #[must_use]
    pub fn main_metrics(self) -> &'static [&'static str] {
        match self {
            Self::Run | Self::Seeds => &["elapsed", "items", "acquisitions", "wait-p99.9"],
            Self::Sweep => &["throughput", "wait-p99.9"],
            // For each experiment its own: builds and counts, page faults, database, schedbench, pairs on
            // threads.
            Self::Reproduction => &["elapsed", "faults", "rate", "throughput", "ratio"],
            Self::Bench => &[],
            Self::BenchLocks => &["acquisitions"],
            Self::Schedbench => &["throughput"],
            Self::Noise => &["gaps", "time"],
            Self::Calibration => &["cost"],
            // Programs, dbench, pgbench with its latencies, page faults.
            Self::Real => {
                &["elapsed", "throughput", "rate", "latency-mean", "latency-p99", "faults", "pairs"]
            }
            Self::Validation => &["throughput", "work-share", "wake-p50", "wake-p99"],
        }
    }

    /// Whether it is of runs of scenarios, which are simulated unless the record names another world.
    #[must_use]
    pub fn is_of_scenarios(self) -> bool {
        match self {
            Self::Run | Self::Seeds | Self::Sweep | Self::Reproduction | Self::Schedbench => true,
            Self::Bench
            | Self::BenchLocks
            | Self::Noise
            | Self::Calibration
            | Self::Real
            | Self::Validation => false,
        }
    }
}
