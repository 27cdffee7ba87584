//! What the host tells our image to do. The host's crate includes this file too.

use alloc::string::String;
use overspin_scenario::Domain;
use serde::{Deserialize, Serialize};

/// The work of one domain.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The domain.
    pub domain: Domain,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Whether periodic work of tasks begins anywhere in its period.
    pub staggered: bool,
    /// Whether its tasks share vCPUs.
    pub shares: bool,
    /// Its lock, never an alias.
    pub lock: String,
}
