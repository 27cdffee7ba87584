//! Runs an experiment and puts what came out beside what was published.

mod claims;
mod measure;

pub use measure::{Measured, Sample};

use crate::experiment::{Experiment, Figure, Parameter, Role};
use crate::stats::Summary;
use overspin_sim::{Options, SimError};
use rayon::prelude::*;
use serde::Serialize;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Runs of each configuration; `None` is the experiment's own number.
    pub seeds: Option<u32>,
    /// The published length instead of the experiment's scale.
    pub full: bool,
    /// Threads; 0 is one for each CPU.
    pub threads: usize,
}

/// Why an experiment could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The simulator refused the scenario.
    #[error("{lock}, {load} load: {cause}")]
    Sim {
        /// Lock of the run.
        lock: String,
        /// Load of the run.
        load: String,
        /// Why.
        #[source]
        cause: SimError,
    },
    /// No worker threads.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
}

/// How near a simulated figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Within 10 %.
    Good,
    /// Within 25 %.
    Fair,
    /// Farther away, or it could not be computed.
    Missed,
}

/// A published figure and the simulated one.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What was measured, with its unit.
    pub metric: String,
    /// Where.
    #[serde(rename = "where")]
    pub place: String,
    /// Published mean; null if it was published that it never ended.
    pub published: Option<f64>,
    /// Published standard deviation, if any.
    pub published_stddev: Option<f64>,
    /// Simulated mean, multiplied up to the published length; null if nothing could be computed.
    pub simulated: Option<f64>,
    /// Simulated standard deviation.
    pub simulated_stddev: Option<f64>,
    /// Simulated / published - 1.
    pub error: Option<f64>,
    /// What the figure may be used for.
    pub role: Role,
    /// How near it is.
    pub grade: Grade,
    /// What else there is to say, for example how many runs did not finish.
    pub note: Option<String>,
}

/// A claim and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Number.
    pub id: u32,
    /// What was claimed.
    pub text: String,
    /// Whether it holds; null if that could not be decided.
    pub holds: Option<bool>,
    /// The figures that decide it.
    pub evidence: String,
}

/// Everything that came out of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    /// Layout of this record.
    pub schema: &'static str,
    /// Program version.
    pub version: &'static str,
    /// Experiment.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs were 1/scale of the published length.
    pub scale: u32,
    /// Simulated seconds after which a run counted as not finished.
    pub limit_s: f64,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Published figures and simulated ones.
    pub figures: Vec<Compared>,
    /// Claims.
    pub claims: Vec<Judged>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Every run.
    pub runs: Vec<Sample>,
}

impl Reproduction {
    /// `Some(true)`: all claims hold; `Some(false)`: one does not; `None`: undecided.
    #[must_use]
    pub fn verdict(&self) -> Option<bool> {
        if self.claims.iter().any(|c| c.holds == Some(false)) {
            Some(false)
        } else if self.claims.iter().any(|c| c.holds.is_none()) {
            None
        } else {
            Some(true)
        }
    }

    /// Numbers of figures of a role that are good, fair and missed.
    #[must_use]
    pub fn tally(&self, role: Role) -> [usize; 3] {
        let count =
            |grade| self.figures.iter().filter(|f| f.role == role && f.grade == grade).count();
        [Grade::Good, Grade::Fair, Grade::Missed].map(count)
    }
}

/// Runs `experiment`; `progress` is called with the number of runs that are done and that there
/// are.
///
/// # Errors
/// If the simulator refuses a scenario.
pub fn reproduce(
    experiment: &Experiment,
    settings: Settings,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let scale = if settings.full { 1 } else { experiment.scale };
    let count = u64::from(settings.seeds.unwrap_or(experiment.seeds).max(1));
    let first = experiment.scenario.seed;
    let seeds: Vec<u64> = (0..count).map(|i| first.wrapping_add(i)).collect();
    let mut jobs = Vec::new();
    for lock in &experiment.locks {
        for load in &experiment.loads {
            jobs.extend(seeds.iter().map(|seed| (lock, load, *seed)));
        }
    }
    let total = jobs.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    progress(0, total);
    let one = |(lock, load, seed): (&String, &crate::experiment::Load, u64)| {
        let scenario = experiment.variant(lock, load, scale);
        let outcome = overspin_sim::run(&scenario, seed, Options::default()).map_err(|cause| {
            ReproduceError::Sim { lock: lock.clone(), load: load.name.clone(), cause }
        })?;
        // Counts for a progress display: no other memory depends on it.
        let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        progress(done, total);
        Ok(Sample::new(lock, &load.name, &outcome, f64::from(scale)))
    };
    let threads = settings.threads;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| ReproduceError::Threads { threads, cause })?;
    // One run at a time per thread, and results in the order of the jobs: the record does not
    // depend on who was faster.
    let runs: Result<Vec<Sample>, ReproduceError> =
        pool.install(|| jobs.into_par_iter().with_max_len(1).map(one).collect());
    Ok(assemble(experiment, scale, seeds, runs?))
}

/// Puts the runs beside the published figures.
fn assemble(
    experiment: &Experiment,
    scale: u32,
    seeds: Vec<u64>,
    runs: Vec<Sample>,
) -> Reproduction {
    let measured = Measured::new(experiment, &runs);
    let figures = experiment.figures.iter().map(|f| compare(f, &measured)).collect();
    let claims = experiment
        .claims
        .iter()
        .map(|claim| {
            let (holds, evidence) = claims::judge(&experiment.id, claim.id, &measured);
            Judged { id: claim.id, text: claim.text.clone(), holds, evidence }
        })
        .collect();
    Reproduction {
        schema: "overspin-reproduction/1",
        version: env!("CARGO_PKG_VERSION"),
        experiment: experiment.id.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        scale,
        limit_s: measure::seconds(experiment.scenario.limit) / f64::from(scale),
        seeds,
        figures,
        claims,
        parameters: experiment.parameters.clone(),
        runs,
    }
}

fn compare(figure: &Figure, measured: &Measured<'_>) -> Compared {
    let (summary, unfinished) = measured.figure(figure);
    let mut note = unfinished.note();
    let error = figure.mean.zip(summary).map(|(published, s)| s.mean / published - 1.0);
    let grade = if figure.never {
        note = Some(format!(
            "{} of {} runs finished",
            unfinished.runs - unfinished.unfinished,
            unfinished.runs
        ));
        if unfinished.runs > 0 && unfinished.unfinished == unfinished.runs {
            Grade::Good
        } else {
            Grade::Missed
        }
    } else {
        match error {
            // The runs that finished may be the lucky ones.
            _ if unfinished.unfinished > 0 => Grade::Missed,
            Some(e) if e.abs() <= 0.10 => Grade::Good,
            Some(e) if e.abs() <= 0.25 => Grade::Fair,
            _ => Grade::Missed,
        }
    };
    Compared {
        metric: figure.metric.clone(),
        place: figure.place(),
        published: figure.mean,
        published_stddev: figure.stddev,
        simulated: summary.map(|s: Summary| s.mean),
        simulated_stddev: summary.filter(|s| s.n > 1).map(|s| s.stddev),
        error,
        role: figure.role,
        grade,
        note,
    }
}

#[cfg(test)]
mod tests;
