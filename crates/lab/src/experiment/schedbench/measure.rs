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

    /// A value of each report, in order, for each run: those of all workers of this name.
    ///
    /// The published figures are of one run. Runs are kept apart, since extremes over all seeds together
    /// would lie further out than those of a run, and what differs between runs would look as if it
    /// changed within one.
    pub(super) fn reports(
        &self,
        run: &str,
        scheduler: &str,
        worker: &str,
        value: fn(&Window) -> f64,
    ) -> Vec<Vec<f64>> {
        self.of(run, scheduler)
            .filter_map(|r| r.set(worker))
            .map(|set| {
                let mut all: Vec<f64> =
                    set.workers.iter().flat_map(|w| &w.windows).map(value).collect();
                all.sort_by(f64::total_cmp);
                all
            })
            .collect()
    }

    /// A statistic of the reports of each run, over the runs.
    pub(super) fn statistic(
        &self,
        run: &str,
        scheduler: &str,
        worker: &str,
        value: fn(&Window) -> f64,
        statistic: Statistic,
    ) -> Option<Summary> {
        let of = |all: Vec<f64>| {
            let reports = Summary::of(&all)?;
            match statistic {
                Statistic::Run => None,
                Statistic::Middle => Some(reports.median),
                Statistic::Lowest => Some(reports.min),
                Statistic::Highest => Some(reports.max),
            }
        };
        let each: Option<Vec<f64>> =
            self.reports(run, scheduler, worker, value).into_iter().map(of).collect();
        Summary::of(&each?)
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
            return self.statistic(run, scheduler, worker, value, f.statistic);
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
pub(super) fn percent(report: &Window) -> f64 {
    100.0 * report.utilization
}

/// How late the latest wake-up of a report was, in ms: schedbench's `MaxDelta`.
pub(super) fn lateness(report: &Window) -> f64 {
    report.max_delta_ms
}

/// Runs with more workers than threads.
pub(super) const OVERCOMMITTED: [&str; 3] = ["4a+4b", "8a+8b", "16a+16b"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedbench::{BenchFile, summarize};

    /// A run of two workers that report these latenesses, in ms, at the ends of two seconds.
    fn run_of(seed: u64, late: [[u64; 2]; 2]) -> BenchSample {
        let raw: Vec<_> = (0..3_usize)
            .flat_map(|second| (0..2).map(move |id| (second, id)))
            .map(|(second, id)| {
                // What a worker says at its start is of no second, and must not count.
                let late = if second == 0 { 99 } else { late[id][second - 1] };
                serde_json::json!({
                    "Id": { "Set": 0, "Id": id }, "Now": second as u64 * 1_000_000_000,
                    "Kops": second * 100, "MaxDelta": late * 1_000_000, "Cputime": 0
                })
            })
            .collect();
        let run = serde_json::json!({
            "Label": "x", "RuntimeSeconds": 2, "Completed": true, "Results": { "Raw": raw },
            "WorkerSets": [{ "Params": { "Args": ["burnwait", "1", "1"] }, "Count": 2 }]
        });
        let text = serde_json::json!({ "Runs": [run] }).to_string();
        let file = BenchFile::parse("t.bench", &text).unwrap();
        BenchSample {
            run: "2a".into(),
            scheduler: "credit".into(),
            seed,
            workers: vec!["A".into()],
            summary: summarize(&file.runs[0]).unwrap(),
            trace_hash: 0,
        }
    }

    #[test]
    fn a_statistic_is_of_the_reports_of_one_run_and_the_runs_have_a_mean() {
        let runs = [run_of(1, [[1, 2], [3, 8]]), run_of(2, [[5, 5], [5, 7]])];
        let m = Measured { runs: &runs };
        let of = |s| m.statistic("2a", "credit", "A", lateness, s).map(|s| (s.mean, s.n));
        assert_eq!(of(Statistic::Lowest), Some((3.0, 2)));
        assert_eq!(of(Statistic::Middle), Some((3.75, 2)));
        assert_eq!(of(Statistic::Highest), Some((7.5, 2)));
        assert_eq!(of(Statistic::Run), None);
        assert_eq!(m.statistic("2a", "credit2", "A", lateness, Statistic::Middle), None);
    }
}
