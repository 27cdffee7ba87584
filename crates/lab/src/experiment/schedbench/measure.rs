//! What the runs say about each published figure.

use super::BenchFigure;
use crate::schedbench::{self, RunSummary, SetSummary, Window};
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
    #[serde(with = "overspin_scenario::hash_text")]
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

    /// Something about each worker's lateness: the worst of its reports, in ms.
    pub(super) fn delta(
        &self,
        run: &str,
        scheduler: &str,
        worker: &str,
        pick: fn(f64, f64) -> f64,
    ) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |s| {
            let worst = |w: &schedbench::WorkerSummary| {
                w.windows.iter().map(|w| w.max_delta_ms).reduce(f64::max)
            };
            s.workers.iter().filter_map(worst).reduce(pick)
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
        let sample = |value: fn(&Window) -> f64, pick: fn(&[f64]) -> f64| {
            let mut all: Vec<f64> =
                self.windows(run, scheduler, worker).iter().map(value).collect();
            all.sort_by(f64::total_cmp);
            (!all.is_empty()).then(|| pick(&all)).and_then(|v| Summary::of(&[v]))
        };
        let throughput: fn(&Window) -> f64 = |w| w.throughput / 1000.0;
        let utilization: fn(&Window) -> f64 = |w| 100.0 * w.utilization;
        let middle: fn(&[f64]) -> f64 = |all| all[all.len() / 2];
        let most: fn(&[f64]) -> f64 = |all| all[all.len() - 1];
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
            "sample_throughput" => sample(throughput, middle),
            "sample_utilization" => sample(utilization, middle),
            "sample_utilization_min" => sample(utilization, |all| all[0]),
            "sample_utilization_max" => sample(utilization, most),
            "sample_throughput_max" => sample(throughput, most),
            "max_delta" | "max_delta_high" => self.delta(run, scheduler, worker, f64::max),
            "max_delta_low" => self.delta(run, scheduler, worker, f64::min),
            _ => None,
        }
    }
}

/// Runs with more workers than threads.
pub(super) const OVERCOMMITTED: [&str; 3] = ["4a+4b", "8a+8b", "16a+16b"];
