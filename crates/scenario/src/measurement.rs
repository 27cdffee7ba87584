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
}
