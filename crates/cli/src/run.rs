//! `overspin run`: one scenario, with one seed or many, or a map of many.

use crate::args::{Global, RunArgs};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Meter, Outputs};
use overspin_lab::explain::{RUN_SCHEMA, RunRecord};
use overspin_lab::map::{self, MapError, Measured};
use overspin_lab::perfetto::PerfettoSink;
use overspin_lab::report::{self, Block};
use overspin_lab::scenario_file::{self, Loaded, Map};
use overspin_lab::seeds;
use overspin_scenario::{Ending, Scenario, Stopped};
use serde::Serialize;
use std::borrow::Cow;

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let files = [args.json.as_ref(), args.trace.as_ref(), args.markdown.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    match scenario_file::load(&args.scenario, &args.set)? {
        Loaded::One(scenario) => match args.seeds {
            None => one(&scenario, args, global, &outputs),
            Some(_) => over_seeds(&scenario, &[], args, global, &outputs),
        },
        // --seed alone asks for one run.
        Loaded::Seeds(scenario, _) if args.seed.is_some() && args.seeds.is_none() => {
            one(&scenario, args, global, &outputs)
        }
        Loaded::Seeds(scenario, seeds) => over_seeds(&scenario, &seeds, args, global, &outputs),
        Loaded::Map(map) => many(&map, args, global, &outputs),
    }
}

/// The seeds are those of the command line, or else these of the file.
fn over_seeds(
    scenario: &Scenario,
    seeds: &[u64],
    args: &RunArgs,
    global: &Global,
    outputs: &Outputs,
) -> Result<Verdict, Failure> {
    no_trace(args, "of many seeds", "choose one with --seed")?;
    let first = args.seed.unwrap_or(scenario.seed);
    let seeds = args.seeds.map_or_else(|| seeds.to_vec(), |n| seeds::seeds_from(first, n));
    let json = outputs.open(args.json.as_ref())?;
    let bar = many_runs(global);
    let tell = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let result =
        seeds::run(scenario, &seeds, &args.set, (args.threads, show::until(args.max_wall)), &tell);
    bar.finish_and_clear();
    let over = result.map_err(|e| map_failure(args, &e))?;
    if let Some(json) = json {
        show::made_here(json, &over)?;
    }
    print(args, outputs, &report::seeds(&over))?;
    if let Some(by) = over.runs.iter().find_map(|r| stopped(&r.ending)) {
        return Ok(show::stopped(by));
    }
    let deadlock = over.runs.iter().any(|r| matches!(r.ending, Ending::Deadlock { .. }));
    Ok(if deadlock { Verdict::Finding } else { Verdict::Fine })
}

/// What stopped a run that ended so.
fn stopped(ending: &Ending) -> Option<Stopped> {
    match ending {
        Ending::Stopped { by } => Some(*by),
        _ => None,
    }
}

fn no_trace(args: &RunArgs, what: &str, remedy: &str) -> Result<(), Failure> {
    if args.trace.is_none() {
        return Ok(());
    }
    let name = args.scenario.display();
    Err(Failure::usage(format!("{name}: a trace is of one run, and this is {what}"), remedy))
}

fn many_runs(global: &Global) -> indicatif::ProgressBar {
    show::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left")
}

fn map_failure(args: &RunArgs, error: &MapError) -> Failure {
    match error {
        MapError::Sim { .. } => Failure::refused(&name(args), error),
        MapError::TooMany { .. } => {
            Failure::usage(format!("{}: {error}", name(args)), "vary less, or lower --seeds")
        }
        MapError::Threads { .. } => {
            Failure::environment(error.to_string(), "ask for fewer with --threads")
        }
    }
}

fn print(args: &RunArgs, outputs: &Outputs, blocks: &[Block]) -> Result<(), Failure> {
    if let Some(markdown) = outputs.open(args.markdown.as_ref())? {
        markdown.finish_with(&report::markdown(blocks))?;
    }
    outputs.print(&report::text(blocks))
}

fn name(args: &RunArgs) -> String {
    args.scenario.display().to_string()
}

/// A map with what was asked for.
#[derive(Serialize)]
struct MapRecord<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    scenario: String,
    set: &'a [String],
    seed: Option<u64>,
}

fn many(map: &Map, args: &RunArgs, global: &Global, outputs: &Outputs) -> Result<Verdict, Failure> {
    let remedy = "take the [[vary]] tables out, and use --set for the run that you want to see";
    no_trace(args, "a map", remedy)?;
    let json = outputs.open(args.json.as_ref())?;
    let bar = many_runs(global);
    let tell = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let until = show::until(args.max_wall);
    let settings =
        map::Settings { seed: args.seed, seeds: args.seeds, threads: args.threads, until };
    let result = map::run(map, settings, &tell);
    bar.finish_and_clear();
    let measured = result.map_err(|e| map_failure(args, &e))?;
    if let Some(json) = json {
        let record = MapRecord {
            measured: &measured,
            scenario: name(args),
            set: &args.set,
            seed: args.seed,
        };
        show::made_here(json, &record)?;
    }
    print(args, outputs, &report::map(&measured))?;
    if let Some(by) = measured.cells.iter().find_map(|c| stopped(&c.ending)) {
        return Ok(show::stopped(by));
    }
    let deadlock = measured.cells.iter().any(|c| matches!(c.ending, Ending::Deadlock { .. }));
    Ok(if deadlock { Verdict::Finding } else { Verdict::Fine })
}

fn one(
    scenario: &Scenario,
    args: &RunArgs,
    global: &Global,
    outputs: &Outputs,
) -> Result<Verdict, Failure> {
    let seed = args.seed.unwrap_or(scenario.seed);
    let json = outputs.open(args.json.as_ref())?;
    let trace = outputs.open(args.trace.as_ref())?;
    let trace_name = args.trace.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let trace_error = |cause| {
        Failure::from(overspin_lab::output::OutputError {
            action: "write to",
            path: trace_name.clone(),
            cause,
        })
    };
    let mut sink = match trace {
        Some(output) => Some(PerfettoSink::new(scenario, output).map_err(trace_error)?),
        None => None,
    };
    let meter = Meter::new(global, scenario.limit);
    let result = show::until(args.max_wall).simulate(scenario, seed, &mut sink, &|at| meter.at(at));
    meter.end();
    let outcome = result.map_err(|e| Failure::refused(&name(args), &e))?;
    if let Some(sink) = sink {
        sink.finish(outcome.elapsed).map_err(trace_error)?.commit()?;
    }
    if let Some(json) = json {
        let record = RunRecord {
            schema: RUN_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            seed,
            set: args.set.as_slice().into(),
            trace: args.trace.as_ref().map(|_| trace_name),
            scenario: Cow::Borrowed(scenario),
            outcome: Cow::Borrowed(&outcome),
        };
        show::json(json, &record)?;
    }
    print(args, outputs, &report::run(scenario, &outcome))?;
    Ok(match outcome.ending {
        Ending::Deadlock { .. } => Verdict::Finding,
        Ending::Stopped { by } => show::stopped(by),
        Ending::Finished | Ending::Limit => Verdict::Fine,
    })
}
