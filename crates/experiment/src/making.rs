//! How the runs of an experiment are made: on all threads, each once, until told to stop.

use super::Head;
use overspin_claims::Samples;
use overspin_host::Refused;
use overspin_located::LocatedError;
use overspin_record::results::Outcomes;
use overspin_report::Block;
use overspin_runs::catalog::catalog;
use overspin_runs::parallel::{ParallelError, in_parallel};
use overspin_runs::record::Run;
use overspin_runs::runner::Until;
use overspin_scenario::{Ending, Outcome, Picos, Scenario};

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
    /// A scenario or a plan of schedbench is not legal.
    #[error(transparent)]
    Plan(#[from] Box<LocatedError>),
    /// No worker threads.
    #[error(transparent)]
    Parallel(#[from] ParallelError),
    /// [`Settings::until`] came first.
    #[error("the experiment was stopped before its end")]
    Stopped,
    /// Locks cannot be measured on threads.
    #[error("cannot measure locks on threads: {0}")]
    Native(#[from] overspin_native::bench::PlanError),
}

/// The results of a kind of experiment.
#[derive(Debug)]
pub struct KindResult {
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// The measurements in long form, which figures and claims refer to. Runs are numbered as in `runs`.
    pub samples: Samples,
    /// Every run.
    pub runs: Vec<Run>,
    /// The output of the benchmark itself.
    pub details: Vec<Block>,
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

    /// Does all jobs on all threads.
    pub(crate) fn all<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        progress: Progress<'_>,
        one: impl Fn(&J) -> Result<R, ReproduceError> + Sync,
    ) -> Result<Vec<R>, ReproduceError> {
        progress(0, jobs.len());
        in_parallel(self.threads, jobs, progress, one)
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
