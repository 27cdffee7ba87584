//! What a world that is not simulated says about a run besides its outcome.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A key of a scenario that a world cannot honour and ignores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unhonoured {
    /// The key, as scenario files write it.
    pub key: String,
    /// Why the world cannot honour it.
    pub reason: String,
}

/// How a run was measured on a real machine. Simulated runs have none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the world.
    pub world: String,
    /// The CPUs of this machine that the run used: as many as the scenario has pCPUs.
    pub cpus: Vec<u32>,
    /// Steps of the loop that stands for work, in a microsecond of an undisturbed CPU.
    pub steps_per_us: f64,
    /// Parts of the outcome that this world cannot measure, in words; they are 0 or empty there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Reasons to doubt the figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// What others had of the CPUs meanwhile; `None` if the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// Why the figures cannot be right, in words; `None` if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
}

impl Measurement {
    /// Whether the run should be made again: others disturbed it, or its figures cannot be right.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.impossible.is_some() || self.disturbance.is_some_and(Disturbance::is_loud)
    }
}

/// What others had of the CPUs during a run, in percent of the time of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Time that the hypervisor below kept for itself or others.
    pub steal: f64,
    /// Time of other programs and of the kernel's own threads.
    pub others: f64,
}

impl Disturbance {
    /// Others may have this much of the CPUs during a run that counts as quiet, in percent.
    pub const QUIET: f64 = 5.0;

    /// Whether a run with this is disturbed.
    #[must_use]
    pub fn is_loud(self) -> bool {
        self.sum() > Self::QUIET
    }

    /// Both together.
    #[must_use]
    pub fn sum(self) -> f64 {
        self.steal + self.others
    }
}
