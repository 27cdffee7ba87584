//! `overspin schedbench run`: a plan in a world that runs scenarios.

use super::plan::{list, save, to_run};
use super::report::print;
use crate::args::{Global, RecordArgs, wall};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use crate::{progress, world};
use clap::Args;
use overspin_experiment as experiment;
use overspin_host::{Observer, Refused};
use overspin_record::output::Output;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::{self, Loaded};
use overspin_runs::schedbench::{self, BenchFile, Machine, Origin, RunError};
use overspin_scenario::Scenario;
use overspin_watch::perfetto::PerfettoSink;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// .bench file, to which the results are added
    pub(crate) file: PathBuf,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only the run of this name, even if it has been run
    #[arg(long, value_name = "LABEL")]
    pub(crate) only: Option<String>,
    /// Scenario that provides the host, and the rate (of its first schedbench worker), instead of the 2016
    /// experiment
    #[arg(long, value_name = "SCENARIO.toml")]
    pub(crate) machine: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev (with --only)
    #[arg(long, value_name = "FILE.pftrace", requires = "only")]
    pub(crate) trace: Option<PathBuf>,
    /// Show what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Stop after this much real time, for example 90s or 10min; complete runs are kept
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
    /// World to run in, instead of `sim`: docs/worlds.md tells what each can do. `xen` is this machine, if it is the
    /// dom0 of a Xen host (docs/xen.md)
    #[arg(long, value_name = "NAME")]
    pub(crate) world: Option<String>,
    /// Kernel of the guests, with --world xen, instead of the running one: a Linux for paravirtual guests
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,
}

pub(super) fn run(
    args: &RunArgs,
    mut file: BenchFile,
    outputs: &Outputs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let path = &args.file;
    if args.kernel.is_some() {
        return Err(Failure::usage(
            "--kernel names the kernel of Xen's guests",
            "leave it out, or add --world xen",
        ));
    }
    let machine = machine(args.machine.as_ref())?;
    let todo = to_run(&file, path, args.only.as_deref())?;
    // All of them are checked before the first one takes any time.
    let scenario = |i: &usize| schedbench::scenario(&file, &file.runs[*i], &machine);
    let scenarios: Vec<Scenario> = todo.iter().map(scenario).collect::<Result<_, _>>()?;
    if args.dry_run {
        return list(&file, &todo);
    }
    let (runner, command) = (world::runner(args.world.as_deref(), args.max_wall)?, show::command());
    let world = world::in_world(&runner, &scenarios, global);
    let bar = progress::progress(global, todo.len() as u64, progress::RUNS);
    let mut stopped = None;
    for i in todo {
        let run = &file.runs[i];
        let done = match &args.trace {
            Some(trace) => traced(&file, i, &machine, args, trace, runner)?,
            None => {
                schedbench::run_in(&file, run, &machine, args.seed, None, runner)
                    .map_err(|e| refused(path, e))?
                    .0
            }
        };
        if !done.completed {
            stopped = runner.until.over();
            break;
        }
        let origin = Some(Origin::now(&machine, &world, args.seed, &command));
        file.runs[i] = schedbench::Run { origin, ..done };
        // Complete runs are kept, whatever happens later.
        save(&file, path)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = print(path, 0, &args.record, outputs)?;
    Ok(stopped.map_or(report, world::stopped))
}

fn traced(
    file: &BenchFile,
    run: usize,
    machine: &Machine,
    args: &RunArgs,
    trace: &Path,
    runner: Runner,
) -> Result<schedbench::Run, Failure> {
    let (path, seed) = (&args.file, args.seed);
    let run = &file.runs[run];
    let scenario = schedbench::scenario(file, run, machine)?;
    let error = |cause| Failure::cannot_write(trace, cause);
    let mut sink = PerfettoSink::new(&scenario, seed, Output::create(trace)?).map_err(error)?;
    let sink_ref: &mut dyn Observer = &mut sink;
    let (done, _, outcome) = schedbench::run_in(file, run, machine, seed, Some(sink_ref), runner)
        .map_err(|e| refused(path, e))?;
    sink.finish(outcome.elapsed).map_err(error)?.commit()?;
    Ok(done)
}

/// The machine that a scenario describes, or that of the 2016 experiment.
fn machine(scenario: Option<&PathBuf>) -> Result<Machine, Failure> {
    let Some(path) = scenario else {
        return Ok(experiment::schedbench_machine()?);
    };
    let no_worker = || {
        Failure::usage(
            format!("{}: no domain runs schedbench, which would define the rate", path.display()),
            "add a domain whose workload has kind = \"schedbench\" and a rate",
        )
    };
    match scenario_file::load(path, &[])? {
        Loaded::One(scenario) | Loaded::Seeds(scenario, _) => {
            let machine = Machine::of(&scenario).ok_or_else(no_worker)?;
            Ok(Machine { name: path.display().to_string(), ..machine })
        }
        Loaded::Sweep(_) => Err(Failure::usage(
            format!("{}: this is a sweep of machines", path.display()),
            "remove the [[vary]] tables",
        )),
    }
}

fn refused(path: &Path, error: RunError) -> Failure {
    let said = format!("{}: {error}", path.display());
    match error {
        RunError::File(error) => error.into(),
        RunError::Sim { cause: Refused::Machine { remedy, .. }, .. } => {
            Failure::environment(said, remedy)
        }
        RunError::Sim { .. } => {
            Failure::usage(said, "change the run, or the machine with --machine")
        }
    }
}
