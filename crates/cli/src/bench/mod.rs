//! `overspin bench`: the speed of the simulator, the schedulers, the micro-hypervisor and of locks.

mod locks;
mod world;

use crate::args::{EXIT_CODES, Global, RecordArgs};
use crate::built::above_figures;
use crate::catalog::Parts;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use clap::{Args, Subcommand};
use locks::LocksArgs;
use overspin_experiment as experiment;
use overspin_lab::bench::{self, BenchResult};
use overspin_report::Block;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[command(subcommand)]
    what: Benchmark,
}

/// Things to measure.
#[derive(Debug, Subcommand)]
enum Benchmark {
    /// The simulator
    Sim(SpeedArgs),
    /// The schedulers
    Sched(SpeedArgs),
    /// The micro-hypervisor, beside what the machine itself takes; needs /dev/kvm
    Hv(SpeedArgs),
    /// Locks on threads: ours, and others in use
    Locks(Box<LocksArgs>),
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SpeedArgs {
    #[command(flatten)]
    record: RecordArgs,
}

pub(crate) fn bench(args: &BenchArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    match &args.what {
        Benchmark::Sim(args) => speed("sim", args, global, |tell| {
            let (_, of_2008) = experiment::kernbench_2008().map_err(fault)?;
            let half = of_2008.scenario(&["lock-byte", "half"], 4).transpose().map_err(fault)?;
            bench::sim(half, tell).map_err(fault)
        }),
        Benchmark::Sched(args) => speed("sched", args, global, |tell| {
            let of_2016 = experiment::schedbench_2016().map_err(fault)?;
            bench::sched((&of_2016.plan, &of_2016.machines[0]), tell).map_err(fault)
        }),
        Benchmark::Hv(args) => speed("hv", args, global, |tell| {
            bench::hv(tell).map_err(|refused| Failure::refused("bench hv", &refused))
        }),
        Benchmark::Locks(args) => match &args.world {
            Some(world) => world::locks(args, world, global),
            None => locks::locks(args, global, parts),
        },
    }
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::environment(error.to_string(), "this is a fault in overspin")
}

fn speed(
    name: &str,
    args: &SpeedArgs,
    global: &Global,
    measure: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<Vec<BenchResult>, Failure>,
) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let outputs = Outputs::new(global, &[wanted.json.as_ref(), wanted.csv.as_ref()])?;
    let files = RecordFiles::open(&outputs, wanted)?;
    let (bar, mut tell) =
        progress::of_runs(global, "{bar:40} {pos} of {len} runs, {elapsed} elapsed");
    let results = measure(&mut tell);
    bar.finish_and_clear();
    let results = results?;
    files.write(|| show::made(bench::record(name, &results)))?;
    outputs.report(&[above_figures(global), Block::Grid(bench::table(&results))])?;
    // A slower machine is not a fault: the table shows which targets were missed.
    Ok(Verdict::Fine)
}
