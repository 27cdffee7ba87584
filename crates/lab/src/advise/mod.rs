//! Advice for an operator: how much a host can be overcommitted with guests of one kind, where it breaks, and
//! which lock or knob matters most there.
//!
//! A question becomes a scenario (`template.rs`) and a list of points, each of which is that scenario with some
//! `--set` arguments (`plan.rs`). Every point runs with several seeds (`measure.rs`). What the numbers mean is
//! decided in `verdict.rs`; `report.rs` makes the page and `picture.rs` the pictures. So every number of the
//! page belongs to a command that repeats it.

mod measure;
mod picture;
mod plan;
mod report;
mod template;
mod verdict;
mod work;

pub use measure::{Advice, AdvisedPoint, ask};
pub use picture::picture;
pub use plan::{Group, Point};
pub use report::report;
pub use template::template;
pub use verdict::{Break, Effect};
pub use work::Work;

use overspin_located::LocatedError;
use overspin_runs::parallel::ParallelError;
use serde::Serialize;

/// Most seeds of a point.
pub const MOST_SEEDS: u32 = 100;

/// What the operator has and wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The machine: a name of `overspin list machines`.
    pub machine: String,
    /// pCPUs of the host.
    pub pcpus: u32,
    /// Number of guests, which are all alike.
    pub guests: u32,
    /// vCPUs of each guest.
    pub vcpus: u32,
    /// What the guests do.
    pub work: Work,
    /// Schedulers to compare; the first is the one that the host has.
    pub schedulers: Vec<String>,
    /// The lock of the guests' kernels.
    pub lock: String,
    /// Seeds of each point, from 1 on.
    pub seeds: u32,
    /// Least work of a pCPU, in percent of that at the lowest ratio: less is a break.
    pub least_work_percent: u32,
    /// Longest p99.9 wait, in multiples of that at the lowest ratio: more is a break, if it is noticeable at all.
    pub longest_wait_times: u32,
    /// Simulated time of each run, in milliseconds; `None`: as long as the work needs for steady figures.
    pub length_ms: Option<u64>,
}

impl Question {
    /// vCPUs of all guests.
    #[must_use]
    pub fn all_vcpus(&self) -> u32 {
        self.guests.saturating_mul(self.vcpus)
    }

    /// Simulated time of each run, in milliseconds.
    #[must_use]
    pub fn milliseconds(&self) -> u64 {
        self.length_ms.unwrap_or_else(|| self.work.milliseconds(self.all_vcpus()))
    }

    /// vCPUs for each pCPU of a host with this many.
    #[must_use]
    pub fn ratio(&self, pcpus: u32) -> f64 {
        f64::from(self.all_vcpus()) / f64::from(pcpus.max(1))
    }
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// The question has a name or a number that no scenario can have.
    #[error("{0}")]
    Question(Box<LocatedError>),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] ParallelError),
}

#[cfg(test)]
mod tests;
