//! Parts that only some kinds of records have.

use crate::experiment::Parameter;
use crate::reproduce::{Compared, Judged};
use crate::seeds::Spread;
use serde::{Deserialize, Serialize};

/// What the samples of one metric in one place come to over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverSeeds {
    /// Where.
    #[serde(rename = "where")]
    pub place: String,
    /// What.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Seeds whose runs have it: those that deadlocked or were stopped have none.
    pub seeds: Vec<u64>,
    /// What is known of the samples.
    #[serde(flatten)]
    pub spread: Spread,
}

/// An experiment: what was published, what came out, and what that says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Name; the places of its runs and samples begin with it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs were 1/scale of the published length.
    pub scale: u32,
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// Seeds of the runs of each configuration.
    pub seeds: Vec<u64>,
    /// Published figures beside simulated ones.
    pub figures: Vec<Compared>,
    /// Claims.
    pub claims: Vec<Judged>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
}

/// What a benchmark should reach on a machine of the stated class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Which benchmark.
    #[serde(rename = "where")]
    pub place: String,
    /// Which of its metrics.
    pub metric: String,
    /// The bound.
    pub value: f64,
    /// It is an upper bound, not a lower one.
    pub at_most: bool,
}

/// How the noise of a machine was measured, and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseConditions {
    /// The clock that was read.
    pub clock_source: Option<String>,
    /// Length of a quantum that was asked for, nanoseconds.
    pub quantum_ns: u64,
    /// How long each CPU was to be measured, nanoseconds.
    pub duration_ns: u64,
    /// Whether the kernel's count of stolen time and the gaps agree: `agrees`, `counts-less`,
    /// `counts-more` or `unknown`.
    pub steal: String,
    /// The `[host.noise]` table, as `--toml` writes it.
    pub toml: String,
}
