//! Summaries of reports: throughput and utilisation of workers and of sets of workers, and the fairness of a
//! run.

use super::file::{Report, Run, WorkerId};
use super::origin::Origin;
use serde::Serialize;
use std::collections::BTreeMap;

/// A worker's activity between two reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// End, in seconds since the start of the run.
    pub at_s: f64,
    /// Throughput in kops/s.
    pub throughput: f64,
    /// CPU time over time; above 1 for several vCPUs.
    pub utilization: f64,
    /// Largest lateness of an item, in milliseconds.
    pub max_delta_ms: f64,
}

/// A worker's activity. Throughput is in kops/s.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerSummary {
    /// Its set.
    pub set: usize,
    /// Its place in the set.
    pub id: usize,
    /// Work done, in kops.
    pub kops: u64,
    /// From its first report to its last, in seconds.
    pub time_s: f64,
    /// CPU time in between, in seconds.
    pub cpu_s: f64,
    /// Mean throughput.
    pub throughput: f64,
    /// Mean utilisation.
    pub utilization: f64,
    /// Largest lateness of an item, in milliseconds.
    pub max_delta_ms: f64,
    /// Items with a deadline.
    pub deadlines: u64,
    /// Items that finished after their deadline.
    pub missed: u64,
    /// The windows between its reports.
    pub windows: Vec<Window>,
}

/// Minimum and maximum of some figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let all = Self { min: f64::INFINITY, max: f64::NEG_INFINITY };
        let range = values.fold(all, |r, v| Self { min: r.min.min(v), max: r.max.max(v) });
        if range.min > range.max { Self { min: 0.0, max: 0.0 } } else { range }
    }
}

/// A figure over the workers of a set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Sum of the workers' means.
    pub total: f64,
    /// Mean of them.
    pub mean: f64,
    /// Standard deviation of all of them (divisor n), as schedbench computes it.
    pub stddev: f64,
    /// Minimum and maximum of them.
    pub means: Range,
    /// Minimum and maximum over all windows.
    pub windows: Range,
}

impl Spread {
    fn of(means: &[f64], windows: impl Iterator<Item = f64>) -> Self {
        let n = means.len().max(1) as f64;
        let total: f64 = means.iter().sum();
        let mean = total / n;
        let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
        Self {
            total,
            mean,
            stddev: (squares / n).sqrt(),
            means: Range::of(means.iter().copied()),
            windows: Range::of(windows),
        }
    }
}

/// The activity of a set of workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetSummary {
    /// Command line.
    pub args: String,
    /// Throughput in kops/s.
    pub throughput: Spread,
    /// Utilisation.
    pub utilization: Spread,
    /// Largest lateness of an item, in milliseconds.
    pub max_delta_ms: f64,
    /// The same without the first second; `None` if there is no later one.
    pub max_delta_later_ms: Option<f64>,
    /// Its workers.
    pub workers: Vec<WorkerSummary>,
}

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Name.
    pub label: String,
    /// Scheduler, if the run names one.
    pub scheduler: Option<String>,
    /// pCPUs, if the run names them.
    pub cpus: Option<usize>,
    /// The origin of the run, if recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Sets of workers.
    pub sets: Vec<SetSummary>,
}

/// Sums a run up; `None` if it has not been run.
#[must_use]
pub fn summarize(run: &Run) -> Option<RunSummary> {
    let raw = run.results.raw.as_ref().filter(|_| run.completed)?;
    let mut by_worker: BTreeMap<WorkerId, Vec<&Report>> = BTreeMap::new();
    for report in raw {
        by_worker.entry(report.id).or_default().push(report);
    }
    let start = raw.iter().map(|r| r.now).min().unwrap_or(0);
    let sets = run.worker_sets.iter().enumerate().map(|(set, workers)| {
        let summaries: Vec<WorkerSummary> = (0..workers.count as usize)
            .filter_map(|id| {
                by_worker.get(&WorkerId { set, id }).map(|reports| worker(set, id, reports, start))
            })
            .collect();
        let spread = |mean: fn(&WorkerSummary) -> f64, window: fn(&Window) -> f64| {
            let means: Vec<f64> = summaries.iter().map(mean).collect();
            Spread::of(&means, summaries.iter().flat_map(|w| &w.windows).map(window))
        };
        SetSummary {
            args: workers.params.args.join(" "),
            throughput: spread(|w| w.throughput, |w| w.throughput),
            utilization: spread(|w| w.utilization, |w| w.utilization),
            max_delta_ms: summaries.iter().map(|w| w.max_delta_ms).fold(0.0, f64::max),
            max_delta_later_ms: summaries
                .iter()
                .flat_map(|w| w.windows.iter().skip(1))
                .map(|window| window.max_delta_ms)
                .reduce(f64::max),
            workers: summaries,
        }
    });
    Some(RunSummary {
        label: run.label.clone(),
        scheduler: run.run_config.scheduler.clone(),
        cpus: run.run_config.cpus.as_ref().map(Vec::len),
        origin: run.origin.clone(),
        sets: sets.collect(),
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

fn worker(set: usize, id: usize, reports: &[&Report], start: u64) -> WorkerSummary {
    let between = |a: &Report, b: &Report| {
        let time = b.now.saturating_sub(a.now);
        let kops = b.kops.saturating_sub(a.kops);
        (kops, time, b.cputime.saturating_sub(a.cputime))
    };
    let (first, last) = (reports[0], reports[reports.len() - 1]);
    let (kops, time, cpu) = between(first, last);
    let windows = reports.windows(2).map(|pair| {
        let (kops, time, cpu) = between(pair[0], pair[1]);
        Window {
            at_s: (pair[1].now - start) as f64 / NS_PER_S,
            throughput: ratio(kops, time) * NS_PER_S,
            utilization: ratio(cpu, time),
            max_delta_ms: pair[1].max_delta as f64 / NS_PER_MS,
        }
    });
    WorkerSummary {
        set,
        id,
        kops,
        time_s: time as f64 / NS_PER_S,
        cpu_s: cpu as f64 / NS_PER_S,
        throughput: ratio(kops, time) * NS_PER_S,
        utilization: ratio(cpu, time),
        max_delta_ms: reports.iter().map(|r| r.max_delta).max().unwrap_or(0) as f64 / NS_PER_MS,
        deadlines: last.deadlines,
        missed: last.missed,
        windows: windows.collect(),
    }
}

/// The fairness of a run to the workers of a set, compared with their runs alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// CPU time over its fair share: objective. 1 is fair.
    pub objective: Range,
    /// Throughput over throughput when alone: subjective. 1 is as if alone.
    pub degradation: Range,
}

/// Fairness to each set of `run`. It needs a run of each worker alone, on the same number of pCPUs, under the
/// same scheduler or none, and on the same machine by the same model.
///
/// The fair share is max-min: a worker that wants less than an equal share gets what it wants, and the others
/// share the rest equally. A worker wants what it used alone.
#[must_use]
pub fn fairness(run: &RunSummary, all: &[RunSummary]) -> Option<Vec<Fairness>> {
    let of_set = |workers: Vec<FairWorker>| Fairness {
        objective: Range::of(workers.iter().map(|w| w.of_share)),
        degradation: Range::of(workers.iter().map(|w| w.of_alone)),
    };
    Some(fair_workers(run, all)?.into_iter().map(of_set).collect())
}

/// What a worker got beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FairWorker {
    /// CPU time over its fair share.
    pub(super) of_share: f64,
    /// Throughput over throughput when alone.
    pub(super) of_alone: f64,
}

/// What [`fairness`] sums up, for each worker of each set.
pub(super) fn fair_workers(run: &RunSummary, all: &[RunSummary]) -> Option<Vec<Vec<FairWorker>>> {
    let cpus = run.cpus? as f64;
    let alone = |args: &str| {
        all.iter()
            .filter(|r| r.scheduler == run.scheduler && r.cpus == run.cpus)
            .filter(|r| match (&r.origin, &run.origin) {
                (Some(a), Some(b)) => a.comparable(b),
                (a, b) => a.is_none() && b.is_none(),
            })
            .filter(|r| r.sets.len() == 1 && r.sets[0].args == args)
            .find_map(|r| <&[WorkerSummary; 1]>::try_from(&*r.sets[0].workers).ok())
            .map(|[worker]| worker)
    };
    let baselines: Vec<&WorkerSummary> =
        run.sets.iter().map(|s| alone(&s.args)).collect::<Option<_>>()?;
    let wants: Vec<(f64, usize)> =
        run.sets.iter().zip(&baselines).map(|(s, b)| (b.utilization, s.workers.len())).collect();
    let level = max_min_level(&wants, cpus);
    let fairness = run.sets.iter().zip(&baselines).map(|(set, baseline)| {
        let share = baseline.utilization.min(level);
        let of = |w: &WorkerSummary| FairWorker {
            of_share: w.utilization / share,
            of_alone: w.throughput / baseline.throughput,
        };
        set.workers.iter().map(of).collect()
    });
    Some(fairness.collect())
}

/// The largest share of a max-min division of `capacity`, where `wants` has amounts and the numbers of those
/// that want them; infinite if there is enough for all.
fn max_min_level(wants: &[(f64, usize)], capacity: f64) -> f64 {
    let mut wants: Vec<(f64, usize)> = wants.iter().copied().filter(|w| w.1 > 0).collect();
    wants.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut left, mut people) = (capacity, wants.iter().map(|w| w.1).sum::<usize>());
    for (want, count) in wants {
        if want * people as f64 >= left {
            return left / people as f64;
        }
        left -= want * count as f64;
        people -= count;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_by_hand() {
        // One wants 0.2 of 2, and three want 1 each: 1.8 / 3.
        assert!((max_min_level(&[(1.0, 3), (0.2, 1)], 2.0) - 0.6).abs() < 1e-12);
        assert_eq!(max_min_level(&[(0.5, 2)], 2.0), f64::INFINITY);
        assert_eq!(max_min_level(&[], 2.0), f64::INFINITY);
    }

    #[test]
    fn spread_divides_by_all() {
        let s = Spread::of(&[1.0, 3.0], [0.5, 4.0].into_iter());
        assert_eq!((s.total, s.mean, s.stddev), (4.0, 2.0, 1.0));
        assert_eq!((s.windows.min, s.windows.max), (0.5, 4.0));
    }

    #[test]
    fn a_worker_by_hand() {
        let report = |now, kops, cputime, max_delta| Report {
            now,
            kops,
            cputime,
            max_delta,
            ..Report::default()
        };
        let all = [report(1_000_000, 0, 10, 0), report(1_001_000_000, 500, 250_000_010, 2_000_000)];
        let w = worker(0, 0, &all.iter().collect::<Vec<_>>(), 0);
        assert_eq!((w.kops, w.time_s, w.cpu_s), (500, 1.0, 0.25));
        assert_eq!((w.throughput, w.utilization, w.max_delta_ms), (500.0, 0.25, 2.0));
        assert_eq!(w.windows.len(), 1);
    }
}
