//! Runs an experiment and puts the results beside the published ones.

use crate::catalog::catalog;
use crate::claims::Samples;
use crate::experiment::{Experiment, Head, Parameter, Role};
use crate::experiment::{claim, figure};
use crate::record::Sample;
use crate::report::Block;
use crate::results::Outcomes;
use crate::scenario_file::ScenarioError;
use crate::way::Until;
use overspin_host::Refused;
use overspin_scenario::{Ending, Outcome, Picos, Scenario};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a> {
    /// Runs of each configuration; `None` means the experiment's own number.
    pub seeds: Option<u32>,
    /// Whether to run the published length instead of the experiment's scale.
    pub full: bool,
    /// Threads; 0 means one for each CPU.
    pub threads: usize,
    /// Where outcomes of runs are kept, and found again.
    pub outcomes: Option<&'a Outcomes>,
    /// When to give up.
    pub until: Until,
}

/// Why an experiment could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The simulator refused the scenario.
    #[error("{run}: {cause}")]
    Sim {
        /// The run, in words.
        run: String,
        /// The reason.
        #[source]
        cause: Refused,
    },
    /// A plan of schedbench is not legal.
    #[error(transparent)]
    Plan(#[from] Box<ScenarioError>),
    /// No worker threads.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// How many.
        threads: usize,
        /// The reason.
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
    /// [`Settings::until`] came first.
    #[error("the experiment was stopped before its end")]
    Stopped,
    /// Locks cannot be measured on threads.
    #[error("cannot measure locks on threads: {0}")]
    Native(#[from] overspin_native::bench::PlanError),
}

/// How near a simulated figure is to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Within 10 %.
    Good,
    /// Within 25 %.
    Fair,
    /// Farther away, or not computable.
    Missed,
}

/// A published figure and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What was measured, with its unit.
    pub metric: String,
    /// The place.
    #[serde(rename = "where")]
    pub place: String,
    /// Published mean; null if the publication says that it never ended.
    pub published: Option<f64>,
    /// Published standard deviation, if any.
    pub published_stddev: Option<f64>,
    /// Simulated mean, scaled up to the published length; null if it could not be computed.
    pub simulated: Option<f64>,
    /// Simulated standard deviation.
    pub simulated_stddev: Option<f64>,
    /// Simulated / published - 1.
    pub error: Option<f64>,
    /// The permitted use of the figure.
    pub role: Role,
    /// How near the simulated figure is.
    pub grade: Grade,
    /// A remark, for example how many runs did not finish.
    pub note: Option<String>,
}

/// A claim and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Number.
    pub id: u32,
    /// The claim, in words.
    pub text: String,
    /// Whether it holds; null if that could not be decided.
    pub holds: Option<bool>,
    /// The numbers that decide it, in a sentence. Records of versions before it existed have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_words: Option<String>,
    /// All figures that decide it, with their formulas.
    pub evidence: String,
}

/// The results of a kind of experiment.
#[derive(Debug)]
pub struct Found {
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// The measurements in long form, which figures and claims refer to. Runs are numbered as in `runs`.
    pub samples: Samples,
    /// Every run.
    pub runs: Vec<serde_json::Value>,
    /// The output of the benchmark itself.
    pub details: Vec<Block>,
}

/// All results of an experiment. [`record::reproductions`](crate::record::reproductions) writes them.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// Experiment.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs were 1/scale of the published length.
    pub scale: u32,
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Published figures and simulated ones.
    pub figures: Vec<Compared>,
    /// Claims.
    pub claims: Vec<Judged>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Every run.
    pub runs: Vec<serde_json::Value>,
    /// The measurements in long form. Runs are numbered as in `runs`.
    pub samples: Vec<Sample>,
    /// The output of the benchmark itself.
    pub details: Vec<Block>,
}

impl Reproduction {
    /// Whether the claims hold.
    #[must_use]
    pub fn verdict(&self) -> Option<bool> {
        verdict(&self.claims)
    }

    /// Numbers of figures of a role that are good, fair and missed.
    #[must_use]
    pub fn tally(&self, role: Role) -> [usize; 3] {
        let count =
            |grade| self.figures.iter().filter(|f| f.role == role && f.grade == grade).count();
        [Grade::Good, Grade::Fair, Grade::Missed].map(count)
    }
}

/// Whether all claims of several experiments hold.
#[must_use]
pub fn verdict_of_all(results: &[Reproduction]) -> Option<bool> {
    verdict(results.iter().flat_map(|e| &e.claims))
}

/// `Some(true)`: all claims hold; `Some(false)`: one does not; `None`: undecided.
pub(crate) fn verdict<'a>(claims: impl IntoIterator<Item = &'a Judged>) -> Option<bool> {
    let mut verdict = Some(true);
    for claim in claims {
        match claim.holds {
            Some(true) => {}
            Some(false) => return Some(false),
            None => verdict = None,
        }
    }
    verdict
}

/// Runs `experiment`. Calls `progress` with the number of finished runs and the number of all runs.
///
/// # Errors
/// If the simulator refuses a scenario.
pub fn reproduce(
    experiment: &Experiment,
    settings: Settings<'_>,
    progress: Progress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let head = experiment.head();
    let found = experiment.run(settings, progress)?;
    Ok(Reproduction {
        experiment: head.id.clone(),
        title: head.title.clone(),
        source: head.source.clone(),
        scale: settings.scale(head),
        limit_s: found.limit_s,
        seeds: settings.seeds(head),
        figures: figure::compared(&head.figures, &found.samples),
        claims: claim::judged(&head.claims, &found.samples),
        parameters: head.parameters.clone(),
        runs: found.runs,
        samples: found.samples.rows,
        details: found.details,
    })
}

/// Called with the number of finished runs and the number of all runs.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Settings<'_> {
    /// Makes one run of an experiment, unless it has been made before; `run` names it in words.
    pub(crate) fn simulate(
        &self,
        scenario: &Scenario,
        seed: u64,
        run: impl FnOnce() -> String,
    ) -> Result<Outcome, ReproduceError> {
        let stop = |_: Picos| self.until.over();
        let make = || overspin_host::run(catalog().simulator(), scenario, seed, &mut (), &stop);
        let outcome = match self.outcomes {
            Some(outcomes) => outcomes.get(scenario, seed, make),
            None => make(),
        };
        match outcome {
            Ok(Outcome { ending: Ending::Stopped { .. }, .. }) => Err(ReproduceError::Stopped),
            Ok(outcome) => Ok(outcome),
            Err(cause) => Err(ReproduceError::Sim { run: run(), cause }),
        }
    }

    /// Runs are 1/scale of the published length.
    pub(crate) fn scale(&self, head: &Head) -> u32 {
        if self.full { 1 } else { head.scale }
    }

    /// The seeds: as many as asked for, beginning with the scenario's.
    pub(crate) fn seeds(&self, head: &Head) -> Vec<u64> {
        let count = self.seeds.unwrap_or(head.seeds).max(1);
        (0..u64::from(count)).map(|i| head.scenario.seed.wrapping_add(i)).collect()
    }
}

/// The runs, as they are written to records.
pub(crate) fn raw<R: Serialize>(runs: &[R]) -> Vec<serde_json::Value> {
    // They have only numbers, texts, lists and structs, which JSON can express.
    runs.iter().map(|run| serde_json::to_value(run).unwrap_or_default()).collect()
}

/// Does all jobs on all threads. Results are in the order of the jobs, so that the record does not depend on
/// which thread was faster.
pub(crate) fn all<J: Send, R: Send>(
    jobs: Vec<J>,
    threads: usize,
    progress: Progress<'_>,
    one: impl Fn(J) -> Result<R, ReproduceError> + Sync,
) -> Result<Vec<R>, ReproduceError> {
    let total = jobs.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    progress(0, total);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| ReproduceError::Threads { threads, cause })?;
    pool.install(|| {
        // One run at a time per thread.
        jobs.into_par_iter()
            .with_max_len(1)
            .map(|job| {
                let result = one(job)?;
                // This counter is only for a progress display; no other memory depends on it.
                let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                progress(done, total);
                Ok(result)
            })
            .collect()
    })
}

impl Grade {
    /// The grade of a figure with this error.
    pub(crate) fn of(error: Option<f64>) -> Self {
        match error {
            Some(e) if e.abs() <= 0.10 => Self::Good,
            Some(e) if e.abs() <= 0.25 => Self::Fair,
            _ => Self::Missed,
        }
    }
}
