//! The runs, and their figures over seeds.

use super::plan::{self, Group, Point};
use super::{AdviceError, Question, template};
use overspin_runs::parallel::{ParallelError, in_parallel};
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::{Loaded, load_text};
use overspin_runs::seeds::seeds_from;
use overspin_scenario::{Ending, Outcome, Picos, Scenario, Stopped};
use overspin_stats::Spread;
use serde::Serialize;
use std::path::Path;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Its hash: a repeated run with the same model has the same.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
    /// How it ended.
    pub ending: Ending,
    /// Units of work of all guests in a simulated second.
    pub work_per_s: f64,
    /// The wait that 99 % did not exceed, in microseconds.
    pub wait_p99_us: f64,
    /// The wait that 99.9 % did not exceed, in microseconds.
    pub wait_p999_us: f64,
    /// Part of the vCPUs' running time in which they waited for locks.
    pub burned: f64,
    /// Part of the vCPUs' time in which they wanted a pCPU and had none.
    pub steal: f64,
}

/// A point and its figures. There are none if a run deadlocked or was stopped.
#[derive(Clone, Debug, Serialize)]
pub struct AdvisedPoint {
    /// The point.
    pub point: Point,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Units of work of all guests in a simulated second, over seeds.
    pub work_per_s: Option<Spread>,
    /// The wait that 99 % did not exceed, in microseconds, over seeds.
    pub wait_p99_us: Option<Spread>,
    /// The wait that 99.9 % did not exceed, in microseconds, over seeds.
    pub wait_p999_us: Option<Spread>,
    /// Part of the vCPUs' running time in which they waited for locks, over seeds.
    pub burned: Option<Spread>,
    /// Part of the vCPUs' time in which they wanted a pCPU and had none, over seeds.
    pub steal: Option<Spread>,
}

impl AdvisedPoint {
    fn of(point: &Point, runs: &[Run]) -> Self {
        let sound = runs.iter().all(|run| run.ending.is_sound());
        let seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        let spread = |of: fn(&Run) -> f64| {
            let samples: Vec<f64> = runs.iter().map(of).collect();
            sound.then(|| Spread::of(&seeds, &samples)).flatten()
        };
        Self {
            work_per_s: spread(|run| run.work_per_s),
            wait_p99_us: spread(|run| run.wait_p99_us),
            wait_p999_us: spread(|run| run.wait_p999_us),
            burned: spread(|run| run.burned),
            steal: spread(|run| run.steal),
            point: point.clone(),
            runs: runs.to_vec(),
        }
    }
}

/// The answer to a question.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// The scenario from which all points are made.
    pub scenario: String,
    /// All points.
    pub points: Vec<AdvisedPoint>,
}

impl Advice {
    /// The points of a group.
    pub fn of(&self, group: Group) -> impl Iterator<Item = &AdvisedPoint> {
        self.points.iter().filter(move |m| m.point.group == group)
    }

    /// The point of this scheduler on a host with this many pCPUs.
    #[must_use]
    pub fn on_curve(&self, scheduler: &str, pcpus: u32) -> Option<&AdvisedPoint> {
        self.of(Group::Curve).find(|m| m.point.scheduler == scheduler && m.point.pcpus == pcpus)
    }

    /// The operator's own host and guests, as they are.
    #[must_use]
    pub fn here(&self) -> Option<&AdvisedPoint> {
        self.on_curve(self.question.schedulers.first()?, self.question.pcpus)
    }

    /// The reason why runs were stopped, if they were.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.points.iter().flat_map(|m| &m.runs).find_map(|run| match run.ending {
            Ending::Stopped { by } => Some(by),
            _ => None,
        })
    }
}

/// Answers a question: runs every point with every seed, on as many threads as asked for (0: one for each CPU).
/// Calls `progress` with the runs done and the runs in all. The answer does not depend on the threads.
///
/// # Errors
/// If the question has a name or a number that no scenario can have, or a run fails.
pub fn ask(
    question: &Question,
    threads: usize,
    runner: Runner,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Advice, AdviceError> {
    let text = template(question);
    let points = plan::points(question);
    let scenarios: Vec<Scenario> =
        points.iter().map(|point| scenario(&text, &point.sets)).collect::<Result<_, _>>()?;
    let seeds = seeds_from(1, question.seeds);
    let jobs: Vec<(&Point, &Scenario, u64)> = points
        .iter()
        .zip(&scenarios)
        .flat_map(|(point, scenario)| seeds.iter().map(move |seed| (point, scenario, *seed)))
        .collect();
    let runs = in_parallel(threads, &jobs, progress, |(point, scenario, seed)| {
        let outcome = runner
            .run(scenario, *seed, &mut (), &|_| {})
            .map_err(|cause| ParallelError::Sim { set: point.sets.clone(), cause })?;
        Ok::<_, ParallelError>(run(question, scenario, &outcome))
    })?;
    let measured = points.iter().zip(runs.chunks(seeds.len().max(1)));
    Ok(Advice {
        question: question.clone(),
        scenario: text,
        points: measured.map(|(point, runs)| AdvisedPoint::of(point, runs)).collect(),
    })
}

/// The template with these settings.
fn scenario(text: &str, sets: &[String]) -> Result<Scenario, AdviceError> {
    match load_text(Path::new("advise.toml"), text, sets, &[]).map_err(AdviceError::Question)? {
        Loaded::One(scenario) | Loaded::Seeds(scenario, _) => Ok(*scenario),
        Loaded::Sweep(_) => unreachable!("the template has no [[vary]] tables"),
    }
}

fn run(question: &Question, scenario: &Scenario, outcome: &Outcome) -> Run {
    let vcpus = || outcome.domains.iter().flat_map(|d| &d.vcpus);
    let running: Picos = vcpus().map(|v| v.running).sum();
    let waiting: Picos = vcpus().map(|v| v.waiting).sum();
    let stolen: Picos = vcpus().map(|v| v.runnable).sum();
    let all = outcome.counted().saturating_mul(vcpus().count() as u64);
    let part = |a: Picos, of: Picos| if of == Picos::ZERO { 0.0 } else { a.ratio(of).min(1.0) };
    let [wait_p99_us, wait_p999_us] = question.work.waits(scenario, outcome);
    Run {
        seed: outcome.seed,
        trace_hash: outcome.trace_hash,
        ending: outcome.ending.clone(),
        work_per_s: question.work.rate(scenario, outcome),
        wait_p99_us,
        wait_p999_us,
        burned: part(waiting, running),
        steal: part(stolen, all),
    }
}
