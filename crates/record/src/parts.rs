//! Parts that only some kinds of records have.

use overspin_scenario::Second;
use overspin_stats::Spread;
use serde::{Deserialize, Serialize};

/// The summary of the samples of one metric in one place over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverSeeds {
    /// The place.
    #[serde(rename = "where")]
    pub place: String,
    /// The metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Seeds whose runs have the metric; runs that deadlocked or were stopped do not have it.
    pub seeds: Vec<u64>,
    /// Statistics of the samples.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A benchmark's target on a machine of the stated class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The benchmark.
    #[serde(rename = "where")]
    pub place: String,
    /// Its metric.
    pub metric: String,
    /// The bound.
    pub value: f64,
    /// It is an upper bound, not a lower one.
    pub at_most: bool,
}

/// How the noise of a machine was measured, and the resulting table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseConditions {
    /// The clock that was read.
    pub clock_source: Option<String>,
    /// Requested length of a quantum, in nanoseconds.
    pub quantum_ns: u64,
    /// Requested time for each CPU, in nanoseconds.
    pub duration_ns: u64,
    /// Whether the kernel's count of stolen time and the gaps agree: `agrees`, `counts-less`,
    /// `counts-more` or `unknown`.
    pub steal: String,
    /// The `[host.noise]` table that `--toml` writes.
    pub toml: String,
}

/// The plan of a benchmark of locks: every combination was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocksPlan {
    /// Locks.
    pub locks: Vec<String>,
    /// Cases: what the threads did.
    pub cases: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the section, nanoseconds.
    pub section_ns: Vec<u64>,
    /// Mean lengths of the work between two sections, nanoseconds.
    pub outside_ns: Vec<u64>,
    /// Length of the long holder's sections, nanoseconds.
    pub long_ns: u64,
    /// Length of a run, nanoseconds.
    pub time_ns: u64,
    /// Runs of each combination.
    pub runs: usize,
    /// CPUs that were asked for; empty for all.
    pub cpus: Vec<usize>,
    /// Locks that a case left out: they lack its condition variable or reader-writer lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// How a real benchmark was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RealConditions {
    /// Locks that took the place of pthread mutexes, the base of comparisons first; empty if none was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
    /// All places, in the order of the benchmark; some may have no run.
    pub places: Vec<String>,
    /// What the machine did in each second of each run.
    pub seconds: Vec<RunSeconds>,
}

/// The seconds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSeconds {
    /// Number of the run.
    pub run: u32,
    /// When it began, in seconds since the first run began.
    pub began_s: f64,
    /// Its seconds.
    pub seconds: Vec<Second>,
}
