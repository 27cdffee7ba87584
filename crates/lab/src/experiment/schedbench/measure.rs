//! What a run comes to.

use crate::schedbench::{RunSummary, Window};
use serde::Serialize;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchSample {
    /// Which run: `baseline-a`, .., `2a+2b`.
    pub run: String,
    /// Scheduler, as figures call it.
    pub scheduler: String,
    /// Seed.
    pub seed: u64,
    /// Names of the workers, a set each.
    pub workers: Vec<String>,
    /// What came out.
    pub summary: RunSummary,
    /// Hash of the run's events: equal for equal runs.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
}

impl BenchSample {
    /// Name of the worker of a set.
    #[must_use]
    pub fn set_name(&self, set: usize) -> &str {
        self.workers.get(set).map_or("", String::as_str)
    }

    /// How late the wake-ups of a set were, report by report, those of all its workers.
    pub(super) fn lateness(&self, set: usize) -> Vec<f64> {
        let workers = self.summary.sets.get(set).map_or(&[][..], |set| &set.workers);
        workers.iter().flat_map(|w| &w.windows).map(lateness).collect()
    }
}

/// A report's throughput in Mops/s.
pub(super) fn mops(report: &Window) -> f64 {
    report.throughput / 1000.0
}

/// A report's part of a CPU in percent.
pub(super) fn percent(report: &Window) -> f64 {
    100.0 * report.utilization
}

/// How late the latest wake-up of a report was, in ms: schedbench's `MaxDelta`.
pub(super) fn lateness(report: &Window) -> f64 {
    report.max_delta_ms
}
