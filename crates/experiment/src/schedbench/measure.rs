//! The results of a run.

use overspin_runs::schedbench::{RunSummary, Window};

/// One run.
#[derive(Clone, Debug)]
pub struct BenchSample {
    /// The run: `baseline-a`, .., `2a+2b`.
    pub run: String,
    /// Scheduler, by its name in figures.
    pub scheduler: String,
    /// Seed.
    pub seed: u64,
    /// Names of the workers, one for each set.
    pub workers: Vec<String>,
    /// The results.
    pub summary: RunSummary,
}

impl BenchSample {
    /// Name of the worker of a set.
    #[must_use]
    pub fn set_name(&self, set: usize) -> &str {
        self.workers.get(set).map_or("", String::as_str)
    }

    /// The lateness of a set's wake-ups, in every report of all its workers.
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

/// Lateness of the latest wake-up of a report, in ms: schedbench's `MaxDelta`.
pub(super) fn lateness(report: &Window) -> f64 {
    report.max_delta_ms
}
