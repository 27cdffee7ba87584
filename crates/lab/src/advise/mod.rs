//! Advice for an operator: how much a host can be overcommitted with guests of one kind, where it breaks, and
//! which lock or knob matters most there.
//!
//! The guests are alike, or those of a host that exists (`host/`). A question becomes a scenario (`template.rs`) and a list of points, each of which is that scenario with some
//! `--set` arguments (`plan.rs`). Every point runs with several seeds (`measure.rs`). What the numbers mean is
//! decided in `verdict.rs`; `report.rs` makes the page and `picture.rs` the pictures. So every number of the
//! page belongs to a command that repeats it.

pub mod host;
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

/// Most guests of a question.
pub const MOST_GUESTS: usize = 256;
/// Most vCPUs of a guest.
pub const MOST_VCPUS: u32 = 64;

/// A guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guest {
    /// Its name, in which a scenario has no fault.
    pub name: String,
    /// Its vCPUs.
    pub vcpus: u32,
    /// Its weight; 256 is usual.
    pub weight: u32,
    /// Most CPU time, in percent of a pCPU; 0 is no limit.
    pub cap: u32,
}

impl Guest {
    /// So many guests that are all alike.
    #[must_use]
    pub fn alike(count: u32, vcpus: u32) -> Vec<Self> {
        let guest = |number| Self { name: format!("guest{number}"), vcpus, weight: 256, cap: 0 };
        (0..count).map(guest).collect()
    }
}

/// What the operator has and wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The machine: a name of `overspin list machines`.
    pub machine: String,
    /// pCPUs of the host.
    pub pcpus: u32,
    /// The guests.
    pub guests: Vec<Guest>,
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
        self.guests.iter().map(|guest| guest.vcpus).sum()
    }

    /// The guests in words: `4 guests of 4 vCPUs`, or `5 guests of 1 to 8 vCPUs (19 in all)`.
    #[must_use]
    pub fn guests_in_words(&self) -> String {
        let vcpus = || self.guests.iter().map(|guest| guest.vcpus);
        let (least, most) = (vcpus().min().unwrap_or(0), vcpus().max().unwrap_or(0));
        let of = match least == most {
            true => format!("{} vCPUs", least),
            false => format!("{least} to {most} vCPUs ({} in all)", self.all_vcpus()),
        };
        let one = if self.guests.len() == 1 { "guest" } else { "guests" };
        format!("{} {one} of {of}", self.guests.len())
    }

    /// Whose work is compared along a curve: that of a pCPU, or that of all guests, if they leave pCPUs idle at 1:1.
    #[must_use]
    pub fn whose_work(&self) -> &'static str {
        if self.saturates() { "a pCPU" } else { "all guests" }
    }

    /// Whether the guests want more CPU time than there is at any ratio from 1:1 on.
    #[must_use]
    pub fn saturates(&self) -> bool {
        self.work.saturates() && self.guests.iter().all(|guest| guest.cap == 0)
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
