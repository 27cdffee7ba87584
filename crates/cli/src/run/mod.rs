//! `overspin run` and `overspin sweep`: one scenario, with one seed or many, or along axes.

mod job;
mod scenario;
mod sweep;

pub(crate) use job::RunArgs;
pub(crate) use sweep::{SweepCommandArgs, sweep};

use crate::args::Global;
use crate::failure::{Failure, Verdict};
use job::Job;
use overspin_runs::scenario_file::Loaded;
use scenario::{one, over_seeds};

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let job = Job::open(args, None, global)?;
    match &job.again.loaded {
        Loaded::One(scenario) => match args.seeds {
            None => one(&job, scenario),
            Some(_) => over_seeds(&job, scenario, &[]),
        },
        // --seed alone asks for one run.
        Loaded::Seeds(scenario, _) if args.seed.is_some() && args.seeds.is_none() => {
            one(&job, scenario)
        }
        Loaded::Seeds(scenario, seeds) => over_seeds(&job, scenario, seeds),
        Loaded::Sweep(sweep) => sweep::many(&job, sweep),
    }
}
