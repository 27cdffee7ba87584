//! Real benchmarks: options to a benchmark, progress, files.

use crate::args::{
    CommandArgs, CountArgs, DbenchArgs, Global, KernbenchArgs, LockArgs, PftArgs, PgbenchArgs,
    RealArgs, Transaction,
};
use crate::catalog::unknown_lock;
use crate::exec::find_library;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use crate::world;
use overspin_lab::output::Output;
use overspin_lab::real;
use overspin_real::command::AnyCommand;
use overspin_real::count::Count;
use overspin_real::dbench::Dbench;
use overspin_real::kernbench::{Kernbench, Load};
use overspin_real::pft::Pft;
use overspin_real::pgbench::{Pgbench, Script};
use overspin_real::preload::{Locks, NONE};
use overspin_real::{Benchmark, Failed, Measured, Plan, Progress, Run, SourceOf};
use std::fmt::Write as _;
use std::path::Path;

/// Runs of each place, if the user does not say.
const RUNS: u32 = 5;
/// Runs of pgbench, as published.
const RUNS_OF_PGBENCH: u32 = 10;

pub(crate) fn kernbench(args: &KernbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    let source = match &args.tree {
        Some(tree) => SourceOf::Tree(tree.clone()),
        None => SourceOf::Debian { fetch: args.fetch },
    };
    let left_out = |load: &Load| match load {
        Load::Half => args.no_half,
        Load::Optimal => args.no_optimal,
        Load::Maximal => args.no_maximal,
        Load::Jobs(_) => false,
    };
    let loads: Vec<Load> = args.loads.iter().filter(|load| !left_out(load)).copied().collect();
    if loads.is_empty() {
        return Err(Failure::usage("no load is left to measure", "leave out fewer of -H, -O, -M"));
    }
    let locks = locks(&args.locks)?;
    let mut kernbench = Kernbench::new(source, loads);
    kernbench.target.clone_from(&args.target);
    kernbench.locks = locks.clone();
    kernbench.scratch.clone_from(&args.real.scratch);
    run(&mut kernbench, &locks, &args.real, RUNS, global)
}

pub(crate) fn dbench(args: &DbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    let locks = locks(&args.locks)?;
    let mut dbench = Dbench::new(args.clients.clone(), args.length);
    dbench.loadfile.clone_from(&args.loadfile);
    dbench.locks = locks.clone();
    dbench.scratch.clone_from(&args.real.scratch);
    run(&mut dbench, &locks, &args.real, RUNS, global)
}

pub(crate) fn pgbench(args: &PgbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    let locks = locks(&args.locks)?;
    let mut pgbench = Pgbench::new(args.clients.clone(), args.length);
    pgbench.scale = args.scale;
    pgbench.script = match args.script {
        Transaction::Select => Script::Select,
        Transaction::Update => Script::Update,
        Transaction::TpcB => Script::TpcB,
    };
    pgbench.buffers.clone_from(&args.buffers);
    pgbench.latencies = args.latencies;
    pgbench.user.clone_from(&args.user);
    pgbench.locks = locks.clone();
    pgbench.scratch.clone_from(&args.real.scratch);
    run(&mut pgbench, &locks, &args.real, RUNS_OF_PGBENCH, global)
}

pub(crate) fn pft(args: &PftArgs, global: &Global) -> Result<Verdict, Failure> {
    let mut pft = Pft::new(args.workers.clone());
    pft.bytes = (args.memory as usize) << 20;
    pft.repeats = args.repeats;
    pft.rates.clone_from(&args.packets.packets);
    run(&mut pft, &Locks::default(), &args.real, RUNS, global)
}

pub(crate) fn count(args: &CountArgs, global: &Global) -> Result<Verdict, Failure> {
    let mut count = Count::new(args.to, args.packets.packets.clone());
    run(&mut count, &Locks::default(), &args.real, RUNS, global)
}

pub(crate) fn command(args: &CommandArgs, global: &Global) -> Result<Verdict, Failure> {
    let locks = locks(&args.locks)?;
    let scratch = args.real.scratch.clone();
    let mut command = AnyCommand::new(args.command.clone(), locks.clone(), scratch);
    run(&mut command, &locks, &args.real, RUNS, global)
}

/// The locks that the user named, by their own names.
fn locks(args: &LockArgs) -> Result<Locks, Failure> {
    let name = |name: &String| match name.as_str() {
        NONE => Ok(NONE.to_owned()),
        name => overspin_locks::find(name)
            .map(|lock| lock.name.to_owned())
            .ok_or_else(|| unknown_lock(name)),
    };
    let names = args.locks.iter().map(name).collect::<Result<Vec<String>, Failure>>()?;
    let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    if let Some((_, name)) = twice {
        let cause = format!("the lock `{name}` is named twice");
        return Err(Failure::usage(cause, "name each lock once"));
    }
    let library = names.iter().any(|n| n != NONE).then(find_library).transpose()?;
    Ok(Locks { names, library })
}

fn failure(failed: &Failed) -> Failure {
    match failed {
        Failed::Usage { .. } => Failure::usage(failed.to_string(), failed.remedy()),
        Failed::Needs { .. } | Failed::Stopped => {
            Failure::environment(failed.to_string(), failed.remedy())
        }
    }
}

/// Measures, prints the report and writes the files, also of a measurement that ended early.
fn run(
    benchmark: &mut dyn Benchmark,
    locks: &Locks,
    args: &RealArgs,
    runs: u32,
    global: &Global,
) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files = [args.seconds.as_ref(), wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    let seconds = outputs.open(args.seconds.as_ref())?;
    let records = RecordFiles::open(&outputs, wanted)?;
    let until = world::until(args.max_wall);
    let before = overspin_native::bench::warnings();
    let cancel = || until.over().is_some();
    let plan = Plan { runs: args.runs.unwrap_or(runs), time: args.time, seed: args.seed };
    let measured = with_progress(benchmark, &plan, wanted.out.as_deref(), &cancel, global);
    let measured = match (measured, until.over()) {
        // Nothing was measured yet.
        (Err(Failed::Stopped), Some(by)) => return Ok(world::stopped(by)),
        (Err(failed), _) => return Err(failure(&failed)),
        (Ok(measured), _) => measured,
    };
    let record =
        show::made(overspin_lab::real::record(&measured, &before, &locks.names, args.seed));
    if let Some(file) = seconds {
        file.finish_with(&real::csv(&record))?;
    }
    outputs.report(&real::report(&record))?;
    records.write(|| record)?;
    match (measured.failed, until.over()) {
        (Some(Failed::Stopped), Some(by)) => Ok(world::stopped(by)),
        (Some(failed), _) => Err(failure(&failed)),
        (None, _) => Ok(Verdict::Fine),
    }
}

/// Measures with a line of progress. Each run that ends is kept as a text in `out`, with what the program printed.
fn with_progress(
    benchmark: &mut dyn Benchmark,
    plan: &Plan,
    out: Option<&Path>,
    cancel: &dyn Fn() -> bool,
    global: &Global,
) -> Result<Measured, Failed> {
    let bar = progress::progress(global, 0, "{spinner} {msg} ({elapsed} elapsed)");
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar.set_message(format!("{}: getting ready", benchmark.name()));
    let mut tell = |progress: &Progress<'_>| {
        let Progress { place, warm_up, done, of, last } = progress;
        bar.set_message(match (warm_up, of) {
            (true, _) => format!("warm-up: {place}"),
            (false, Some(of)) => format!("run {} of {of}: {place}", done + 1),
            (false, None) => format!("run {}: {place}", done + 1),
        });
        if let (Some(run), Some(out)) = (last, out) {
            keep(run, done.saturating_sub(1), out);
        }
    };
    let measured = overspin_real::measure(benchmark, plan, cancel, &mut tell);
    bar.finish_and_clear();
    if let (Ok(measured), Some(out)) = (&measured, out) {
        // The last run is told by nothing that follows.
        if let Some(run) = measured.runs.last() {
            keep(run, measured.runs.len() - 1, out);
        }
    }
    measured
}

/// Writes the figures of a run, and what the program printed, into `out/raw`.
fn keep(run: &Run, number: usize, out: &Path) {
    let raw = out.join("raw");
    let mut text = String::new();
    for figure in &run.outcome.figures {
        let part = if figure.part.is_empty() { String::new() } else { format!("/{}", figure.part) };
        let (name, unit) = (figure.metric.name, figure.metric.unit);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {}{part} {name} {} {unit}", run.place, figure.value);
    }
    text += &run.outcome.output;
    let name = format!("{number:03}-{}", run.place.replace('/', "-"));
    // The record is what counts, and its own errors are told.
    let _ = std::fs::create_dir_all(&raw);
    let write = |file: String, text: &str| {
        if let Ok(output) = Output::create(&raw.join(file)) {
            let _ = output.finish_with(text);
        }
    };
    write(format!("{name}.txt"), &text);
    if let Some(lock_stat) = &run.lock_stat {
        write(format!("{name}.lock_stat"), lock_stat);
    }
}
