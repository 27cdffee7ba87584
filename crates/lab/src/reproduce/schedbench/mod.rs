//! schedbench under several schedulers.

mod claims;

use super::{
    Compared, Judged, Progress, ReproduceError, Reproduction, Runs, Settings, all, grade, seeds,
    spread,
};
use crate::experiment::{BenchFigure, Schedbench};
use crate::schedbench::{self, RunError, RunSummary, SetSummary, Window, summarize};
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

/// Runs `experiment`.
pub(super) fn reproduce(
    experiment: &Schedbench,
    settings: Settings,
    progress: Progress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let seeds = seeds(experiment.scenario.seed, settings.seeds.unwrap_or(experiment.seeds));
    let names = experiment.run_names();
    let mut jobs = Vec::new();
    for (i, run) in experiment.plan.runs.iter().enumerate() {
        let name = &names[i % names.len()];
        let policy = &experiment.policies[i / names.len()];
        jobs.extend(seeds.iter().map(|seed| (run, name, policy, *seed)));
    }
    let runs = all(jobs, settings.threads, progress, |(run, name, policy, seed)| {
        let plan = &experiment.plan;
        let (done, _, outcome) = schedbench::simulate(plan, run, &experiment.machine, seed, None)
            .map_err(|e| match e {
            RunError::File(e) => ReproduceError::Plan(e),
            RunError::Sim { label, cause } => ReproduceError::Sim { run: label, cause },
        })?;
        let alone = experiment
            .workers
            .iter()
            .filter(|w| name.strip_prefix("baseline-").is_some_and(|l| l == w.name.to_lowercase()));
        let workers: Vec<String> = match alone.map(|w| w.name.clone()).next() {
            Some(name) => vec![name],
            None => experiment.workers.iter().map(|w| w.name.clone()).collect(),
        };
        Ok(summarize(&done).map(|summary| BenchSample {
            run: name.clone(),
            scheduler: policy.name.clone(),
            seed,
            workers,
            summary,
            trace_hash: outcome.trace_hash,
        }))
    })?;
    let runs: Vec<BenchSample> = runs.into_iter().flatten().collect();
    Ok(assemble(experiment, seeds, runs))
}

fn assemble(experiment: &Schedbench, seeds: Vec<u64>, runs: Vec<BenchSample>) -> Reproduction {
    let measured = Measured { runs: &runs };
    let figures = experiment.figures.iter().map(|f| compare(f, &measured)).collect();
    let claims = experiment
        .claims
        .iter()
        .map(|claim| {
            let (holds, evidence) = claims::judge(claim.id, &measured);
            Judged { id: claim.id, text: claim.text.clone(), holds, evidence }
        })
        .collect();
    Reproduction {
        schema: "overspin-reproduction/1",
        version: env!("CARGO_PKG_VERSION"),
        experiment: experiment.id.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        scale: 1,
        limit_s: experiment.scenario.limit as f64 / overspin_scenario::SEC as f64,
        seeds,
        figures,
        claims,
        parameters: experiment.parameters.clone(),
        runs: Runs::Schedbench(runs),
    }
}

fn compare(figure: &BenchFigure, measured: &Measured<'_>) -> Compared {
    let summary = measured.figure(figure);
    let error = summary.map(|s| s.mean / figure.mean - 1.0);
    Compared {
        metric: format!("{} [{}]", figure.metric, figure.unit),
        place: figure.place(),
        published: Some(figure.mean),
        published_stddev: None,
        simulated: summary.map(|s| s.mean),
        simulated_stddev: spread(summary),
        error,
        role: figure.role,
        grade: grade(error),
        note: summary.is_none().then(|| "not computed: no run gives this figure".into()),
    }
}

/// The runs, ready to be asked.
pub(super) struct Measured<'a> {
    runs: &'a [BenchSample],
}

impl<'a> Measured<'a> {
    /// Runs under a scheduler, or under any.
    fn of(&self, run: &str, scheduler: &str) -> impl Iterator<Item = &'a BenchSample> {
        self.runs
            .iter()
            .filter(move |r| r.run == run && (scheduler == "any" || r.scheduler == scheduler))
    }

    /// A value of each run's workers of this name, over the runs.
    fn over_runs(
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
    fn total(&self, run: &str, scheduler: &str, worker: &str) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |s| Some(s.throughput.total / 1000.0))
    }

    /// Mean utilisation of workers in percent.
    fn utilization(&self, run: &str, scheduler: &str, worker: &str) -> Option<Summary> {
        self.over_runs(run, scheduler, worker, |s| Some(100.0 * s.utilization.mean))
    }

    /// Something about each worker's lateness: the worst of its reports, in ms.
    fn delta(
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
    fn windows(&self, run: &str, scheduler: &str, worker: &str) -> Vec<Window> {
        self.of(run, scheduler)
            .filter_map(|r| r.set(worker))
            .flat_map(|s| &s.workers)
            .flat_map(|w| w.windows.iter().copied())
            .collect()
    }

    /// The simulated counterpart of a published figure.
    fn figure(&self, f: &BenchFigure) -> Option<Summary> {
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
const OVERCOMMITTED: [&str; 3] = ["4a+4b", "8a+8b", "16a+16b"];
