//! What the runs say about each published figure.

use super::{BenchFigure, Statistic};
use crate::schedbench::{RunSummary, SetSummary, Window};
use crate::stats::Summary;
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
    pub trace_hash: u64,
}

impl BenchSample {
    /// Name of the worker of a set.
    #[must_use]
    pub fn set_name(&self, set: usize) -> &str {
        self.workers.get(set).map_or("", String::as_str)
    }

    /// The workers of this name.
    fn set(&self, worker: &str) -> Option<&SetSummary> {
        let at = self.workers.iter().position(|w| w == worker)?;
        self.summary.sets.get(at)
    }
}

/// The runs, ready to be asked.
pub(super) struct Measured<'a> {
    pub(super) runs: &'a [BenchSample],
}

impl<'a> Measured<'a> {
    /// Runs under a scheduler, or under any.
    fn of(&self, run: &str, scheduler: &str) -> impl Iterator<Item = &'a BenchSample> {
        self.runs
            .iter()
            .filter(move |r| r.run == run && (scheduler == "any" || r.scheduler == scheduler))
    }

    /// A value of each run's workers of this name, over the runs.
    pub(super) fn over_runs(
        &self,
        run: &str,
        scheduler: &str,
        worker: &str,
        value: impl Fn(&SetSummary) -> Option<f64>,
    ) -> Option<Summary> {
        let all: Option<Vec<f64>> =
            self.of(run, scheduler).map(|r| r.set(worker).and_then(&value)).collect();
        Summary::of(&all?)
    }

    /// Total throughput of workers in Mops/s.
    pub(super) fn total(&self, run: &str, scheduler: &str, worker: &str) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |s| Some(s.throughput.total / 1000.0))
    }

    /// Mean utilisation of workers in percent.
    pub(super) fn utilization(&self, run: &str, scheduler: &str, worker: &str) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |s| Some(100.0 * s.utilization.mean))
    }

    /// A value of each report, and of each run's reports one statistic, over the runs.
    ///
    /// The published figures are of one run, so each seed gives one value: extremes over all seeds
    /// together would lie further out than those of a run.
    pub(super) fn reports(
        &self,
        run: &str,
        scheduler: &str,
        worker: &str,
        value: fn(&Window) -> f64,
        statistic: Statistic,
    ) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |set| {
            let mut all: Vec<f64> =
                set.workers.iter().flat_map(|w| &w.windows).map(value).collect();
            all.sort_by(f64::total_cmp);
            match statistic {
                Statistic::Run => None,
                Statistic::Middle => median(&all),
                Statistic::Lowest => all.first().copied(),
                Statistic::Highest => all.last().copied(),
            }
        })
    }

    /// All reports of all workers of this name.
    pub(super) fn windows(&self, run: &str, scheduler: &str, worker: &str) -> Vec<Window> {
        self.of(run, scheduler)
            .filter_map(|r| r.set(worker))
            .flat_map(|s| &s.workers)
            .flat_map(|w| w.windows.iter().copied())
            .collect()
    }

    /// The simulated counterpart of a published figure.
    pub(super) fn figure(&self, f: &BenchFigure) -> Option<Summary> {
        let (run, scheduler, worker) = (f.run.as_str(), f.scheduler.as_str(), f.worker.as_str());
        let baseline = format!("baseline-{}", worker.to_lowercase());
        let run = if run == "baseline" { &baseline } else { run };
        if f.statistic != Statistic::Run {
            let value = match f.metric.as_str() {
                "throughput" => mops,
                "utilization" => percent,
                "max_delta" => lateness,
                _ => return None,
            };
            return self.reports(run, scheduler, worker, value, f.statistic);
        }
        match f.metric.as_str() {
            "throughput_total" if run == "overcommitted" => {
                let means: Option<Vec<f64>> = OVERCOMMITTED
                    .iter()
                    .map(|run| self.total(run, scheduler, worker).map(|s| s.mean))
                    .collect();
                Summary::of(&means?)
            }
            "throughput" | "throughput_total" => self.total(run, scheduler, worker),
            "throughput_all" => {
                let all: Vec<f64> = self
                    .of(run, scheduler)
                    .map(|r| r.summary.sets.iter().map(|s| s.throughput.total / 1000.0).sum())
                    .collect();
                Summary::of(&all)
            }
            "utilization" => self.utilization(run, scheduler, worker),
            _ => None,
        }
    }
}

/// A report's throughput in Mops/s.
pub(super) fn mops(report: &Window) -> f64 {
    report.throughput / 1000.0
}

/// A report's part of a CPU in percent.
fn percent(report: &Window) -> f64 {
    100.0 * report.utilization
}

/// How late the latest wake-up of a report was, in ms: schedbench's `MaxDelta`.
pub(super) fn lateness(report: &Window) -> f64 {
    report.max_delta_ms
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get((sorted.len().max(1) - 1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Runs with more workers than threads.
pub(super) const OVERCOMMITTED: [&str; 3] = ["4a+4b", "8a+8b", "16a+16b"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 3.0, 9.0]), Some(3.0));
        assert_eq!(median(&[1.0, 3.0, 5.0, 9.0]), Some(4.0));
    }
}
