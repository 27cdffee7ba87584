//! `overspin run`: one scenario, with one seed or many, or a sweep of many.

use crate::args::{Global, RunArgs};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Meter, Outputs, RecordFiles};
use overspin_lab::perfetto::PerfettoSink;
use overspin_lab::record::{self, Again};
use overspin_lab::report::{self, Block};
use overspin_lab::scenario_file::{Loaded, Sweep};
use overspin_lab::seeds;
use overspin_lab::sweep::{self, SweepError};
use overspin_lab::way::Way;
use overspin_scenario::{Ending, Scenario, Stopped};

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files =
        [wanted.json.as_ref(), wanted.csv.as_ref(), args.trace.as_ref(), args.markdown.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    let way = show::way(&args.world, args.max_wall)?;
    let again = record::load(&args.scenario, &args.set)?;
    let what = What { args, global, outputs: &outputs, again: &again, way };
    match &again.loaded {
        Loaded::One(scenario) => match args.seeds {
            None => what.one(scenario),
            Some(_) => what.over_seeds(scenario, &[]),
        },
        // --seed alone asks for one run.
        Loaded::Seeds(scenario, _) if args.seed.is_some() && args.seeds.is_none() => {
            what.one(scenario)
        }
        Loaded::Seeds(scenario, seeds) => what.over_seeds(scenario, seeds),
        Loaded::Sweep(sweep) => what.many(sweep),
    }
}

/// The scenario to run, and the wanted outputs.
struct What<'a> {
    args: &'a RunArgs,
    global: &'a Global,
    outputs: &'a Outputs,
    again: &'a Again,
    way: Way,
}

impl What<'_> {
    fn one(&self, scenario: &Scenario) -> Result<Verdict, Failure> {
        let (args, outputs) = (self.args, self.outputs);
        let seed = args.seed.unwrap_or(scenario.seed);
        let files = RecordFiles::open(outputs, &args.record)?;
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
            Some(output) => Some(PerfettoSink::new(scenario, seed, output).map_err(trace_error)?),
            None => None,
        };
        let meter = Meter::new(self.global, scenario.limit);
        let result = self.way.run(scenario, seed, &mut sink, &|at| meter.at(at));
        meter.end();
        let outcome = result.map_err(|e| Failure::refused(&name(args), &e))?;
        if let Some(sink) = sink {
            sink.finish(outcome.elapsed).map_err(trace_error)?.commit()?;
        }
        // It contains no command and no machine, so that equal runs give equal bytes.
        let trace = args.trace.as_ref().map(|_| trace_name);
        files.write(|| record::one(scenario, &self.again.set, trace, &outcome))?;
        print(args, outputs, &report::run(scenario, &outcome))?;
        Ok(verdict(std::iter::once(&outcome.ending), args.strict))
    }

    /// Runs many seeds: those of the command line, or else these seeds of the file.
    fn over_seeds(&self, scenario: &Scenario, seeds: &[u64]) -> Result<Verdict, Failure> {
        let args = self.args;
        no_trace(args, "of many seeds", "choose one with --seed")?;
        let first = args.seed.unwrap_or(scenario.seed);
        let seeds = args.seeds.map_or_else(|| seeds.to_vec(), |n| seeds::seeds_from(first, n));
        let files = RecordFiles::open(self.outputs, &args.record)?;
        let bar = many_runs(self.global);
        let tell = |done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        };
        let result = seeds::run(scenario, &seeds, (args.threads, self.way), &tell);
        bar.finish_and_clear();
        let over = result.map_err(|e| sweep_failure(args, &e))?;
        files.write(|| record::seeds(&over, &self.again.set).made_here(show::command()))?;
        print(args, self.outputs, &report::seeds(&over))?;
        Ok(verdict(over.endings(), args.strict))
    }

    fn many(&self, sweep: &Sweep) -> Result<Verdict, Failure> {
        let args = self.args;
        let remedy = "remove the [[vary]] tables, and use --set for the run that you want to see";
        no_trace(args, "a sweep", remedy)?;
        let files = RecordFiles::open(self.outputs, &args.record)?;
        let bar = many_runs(self.global);
        let tell = |done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        };
        let settings = sweep::Settings {
            seed: args.seed,
            seeds: args.seeds.or(self.again.seeds.filter(|_| args.seed.is_none())),
            threads: args.threads,
            way: self.way,
        };
        let result = sweep::run(sweep, settings, &tell);
        bar.finish_and_clear();
        let measured = result.map_err(|e| sweep_failure(args, &e))?;
        let seed = args.seed.or(self.again.seed);
        let record = || record::sweep(sweep, &measured, &self.again.set, seed);
        files.write(|| record().made_here(show::command()))?;
        print(args, self.outputs, &report::sweep(&measured))?;
        Ok(verdict(measured.cells.iter().filter_map(sweep::Cell::ending), args.strict))
    }
}

/// The exit of a command whose runs ended like this. A deadlock is a result like others, unless the user is `strict`.
fn verdict<'a>(endings: impl Iterator<Item = &'a Ending>, strict: bool) -> Verdict {
    let endings: Vec<&Ending> = endings.collect();
    if let Some(by) = endings.iter().find_map(|ending| stopped(ending)) {
        return show::stopped(by);
    }
    match strict && endings.iter().any(|ending| matches!(ending, Ending::Deadlock { .. })) {
        true => Verdict::Finding,
        false => Verdict::Fine,
    }
}

/// The reason why a run was stopped, if it was.
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
    Err(Failure::usage(format!("{name}: a trace is of one run, but this is {what}"), remedy))
}

fn many_runs(global: &Global) -> indicatif::ProgressBar {
    show::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left")
}

fn sweep_failure(args: &RunArgs, error: &SweepError) -> Failure {
    match error {
        SweepError::Sim { .. } => Failure::refused(&name(args), error),
        SweepError::TooMany { .. } => {
            Failure::usage(format!("{}: {error}", name(args)), "vary less, or lower --seeds")
        }
        SweepError::Threads { .. } => {
            Failure::environment(error.to_string(), "ask for fewer with --threads")
        }
    }
}

fn print(args: &RunArgs, outputs: &Outputs, blocks: &[Block]) -> Result<(), Failure> {
    if let Some(markdown) = outputs.open(args.markdown.as_ref())? {
        markdown.finish_with(&report::markdown(blocks))?;
    }
    outputs.report(blocks)
}

fn name(args: &RunArgs) -> String {
    args.scenario.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_decides_the_exit_code_only_of_a_strict_user() {
        let deadlock = Ending::Deadlock { waits: Vec::new() };
        let endings = [Ending::Finished, deadlock, Ending::Limit];
        assert_eq!(verdict(endings.iter(), true), Verdict::Finding);
        assert_eq!(verdict(endings.iter(), false), Verdict::Fine);
        let stopped = [Ending::Stopped { by: Stopped::MaxWall }];
        assert_eq!(verdict(stopped.iter(), false), Verdict::Stopped(Stopped::MaxWall));
    }
}
