//! What the dom0 of an emulated host is told, and what it tells.

use crate::{Images, Job, Reports};
use serde::{Deserialize, Serialize};

/// What a dom0 does from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The runs, in their order.
    pub jobs: Vec<Job>,
    /// What its guests boot.
    pub images: Images,
    /// Guests do not work but switch themselves off, and their consoles are what comes out.
    pub watch: bool,
}

/// A line that a dom0 sends, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The dom0 is up.
    Up {
        /// Version of Xen.
        xen: String,
    },
    /// A step of a run has begun.
    Step {
        /// Number of the job.
        job: usize,
        /// The step in words.
        step: String,
    },
    /// A run is complete.
    Done {
        /// Number of the job.
        job: usize,
        /// What its guests reported, in their order.
        reports: Vec<Reports>,
    },
    /// A run whose guests are only watched is complete.
    Watched {
        /// Number of the job.
        job: usize,
        /// What the consoles of its guests said, in their order.
        consoles: Vec<String>,
    },
    /// A run failed. The dom0 goes on with the next one.
    Failed {
        /// Number of the job; `None` if the dom0 itself failed.
        job: Option<usize>,
        /// The reason.
        message: String,
    },
    /// All runs are over.
    End,
}
