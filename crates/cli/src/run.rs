//! `overspin run` and `overspin sweep`: one scenario, with one seed or many, or along axes.

use crate::args::{Global, PageArgs, RunArgs, SweepCommandArgs};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress::{Meter, RunsMeter};
use crate::report::{self as page, Page};
use crate::show::{self, Outputs};
use crate::world;
use overspin_lab::catalog::{AnyWorld, catalog};
use overspin_lab::parallel::ParallelError;
use overspin_lab::perfetto::PerfettoSink;
use overspin_lab::record::{self, Again, Record};
use overspin_lab::results::{Manifest, Plan, Results};
use overspin_lab::scenario_file::{AxisArgument, Loaded, Sweep};
use overspin_lab::seeds;
use overspin_lab::sweep::{self, Narrow, SweepError};
use overspin_lab::way::Way;
use overspin_report::Block;
use overspin_scenario::{Ending, Scenario, Stopped};
use std::cell::LazyCell;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let (outputs, way, again) = begin(args, None, global)?;
    let what = What { args, page: None, global, outputs: &outputs, again: &again, way };
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

/// `overspin sweep`: the same for a scenario with at least one axis.
pub(crate) fn sweep(command: &SweepCommandArgs, global: &Global) -> Result<Verdict, Failure> {
    let args = &command.run;
    let (outputs, way, again) = begin(args, command.page.report.as_ref(), global)?;
    let page = Some(&command.page);
    let what = What { args, page, global, outputs: &outputs, again: &again, way };
    match &again.loaded {
        Loaded::Sweep(sweep) => what.many(sweep),
        Loaded::One(_) | Loaded::Seeds(..) => Err(Failure::usage(
            format!("{}: nothing is varied", name(args)),
            "add an axis, for example -L domain.0.lock=ticket,mcs or -P domain.0.vcpus=2..16:2, or use \
             `overspin run`",
        )),
    }
}

/// Opens what a command needs, before it works.
fn begin(
    args: &RunArgs,
    page: Option<&PathBuf>,
    global: &Global,
) -> Result<(Outputs, Way, Again), Failure> {
    let wanted = &args.record;
    let files = [
        page,
        wanted.json.as_ref(),
        wanted.csv.as_ref(),
        args.trace.as_ref(),
        args.markdown.as_ref(),
        args.sweep.svg.as_ref(),
    ];
    let outputs = Outputs::new(global, &files)?;
    let list = |text: &String| AxisArgument::List(text.clone());
    let range = |text: &String| AxisArgument::Range(text.clone());
    let axes = args.sweep.lists.iter().map(list).chain(args.sweep.ranges.iter().map(range));
    let again = record::load(&args.scenario, &args.set, &axes.collect::<Vec<_>>())?;
    let world = args.world.as_deref().or(again.world.as_deref());
    let mut way = world::way(world, args.max_wall)?;
    if let Some(file) = &args.guest {
        way.world = guest_of(file, &way)?;
    }
    Ok((outputs, way, again))
}

/// The world `hv` with the program in `file`.
fn guest_of(file: &Path, way: &Way) -> Result<AnyWorld, Failure> {
    if way.world.name() != "hv" {
        let what = format!("the world `{}` runs no guest programs", way.world.name());
        return Err(Failure::usage(what, "add `--world hv`, or leave `--guest` out"));
    }
    let named = |what: String| {
        let remedy = "a guest is linked with `-static -nostdlib -no-pie`: see docs/hv.md";
        Failure::usage(format!("{}: {what}", file.display()), remedy)
    };
    let program = std::fs::read(file).map_err(|error| named(error.to_string()))?;
    catalog().world_of_guest(program).map_err(named)
}

/// The scenario to run, and the wanted outputs.
struct What<'a> {
    args: &'a RunArgs,
    /// The page of `overspin sweep`.
    page: Option<&'a PageArgs>,
    global: &'a Global,
    outputs: &'a Outputs,
    again: &'a Again,
    way: Way,
}

impl What<'_> {
    fn one(&self, scenario: &Scenario) -> Result<Verdict, Failure> {
        let (args, outputs) = (self.args, self.outputs);
        for (given, option) in [
            (args.sweep.svg.is_some(), "--svg draws the curves"),
            (args.sweep.shard.is_some(), "--shard takes a part"),
            (args.sweep.until_interval.is_some(), "--until-interval adds seeds to the points"),
        ] {
            if given {
                let cause = format!("{}: {option} of a sweep, but this is one run", name(args));
                return Err(Failure::usage(cause, "add an axis with -L or -P, or leave it out"));
            }
        }
        if args.sweep.dry_run {
            return self.dry("1 run", None);
        }
        let made = world::in_world(&self.way, [scenario], self.global);
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
        let trace = args.trace.as_ref().map(|_| trace_name);
        files.write(|| {
            let record = overspin_lab::run::record(scenario, &self.again.set, trace, &outcome)
                .in_world(&made);
            // That of a simulated run contains no command and no machine, so that equal runs give equal bytes.
            if record.unrepeatable().is_some() { show::made(record) } else { record }
        })?;
        print(args, outputs, &overspin_lab::run::report(scenario, &outcome))?;
        Ok(verdict(std::iter::once(&outcome.ending), args.strict))
    }

    /// Runs many seeds: those of the command line, or else these seeds of the file.
    fn over_seeds(&self, scenario: &Scenario, seeds: &[u64]) -> Result<Verdict, Failure> {
        let args = self.args;
        no_trace(args, "of many seeds", "choose one with --seed")?;
        if args.sweep.svg.is_some() || args.sweep.until_interval.is_some() {
            let cause = format!(
                "{}: --svg and --until-interval are for sweeps, but nothing except the seed is varied",
                name(args)
            );
            return Err(Failure::usage(cause, "add an axis with -L or -P, or leave them out"));
        }
        let first = args.seed.unwrap_or(scenario.seed);
        let seeds = args.seeds.map_or_else(|| seeds.to_vec(), |n| seeds::seeds_from(first, n));
        let words = format!("{} runs, one for each seed", seeds.len());
        if args.sweep.dry_run {
            return self.dry(&words, None);
        }
        let files = RecordFiles::files(self.outputs, &args.record)?;
        let made = world::in_world(&self.way, [scenario], self.global);
        let head = || overspin_lab::seeds::record_head(scenario, &self.again.set).in_world(&made);
        let plan = Plan { list: seeds.clone(), ..Plan::default() };
        let results = self.results(plan, head)?;
        let meter = self.meter(&words, results.as_ref());
        let settings = seeds::Settings {
            shard: args.sweep.shard,
            threads: args.threads,
            way: self.way,
            results: results.as_ref(),
        };
        let result = seeds::run(scenario, &seeds, settings, &|done, all| meter.at(done, all));
        meter.end();
        let over = result.map_err(|e| parallel_failure(args, &e))?;
        let record = LazyCell::new(|| {
            show::made(overspin_lab::seeds::record(&over, &self.again.set).in_world(&made))
        });
        if let Some(results) = results {
            let complete =
                args.sweep.shard.is_none() && over.endings().all(|e| stopped(e).is_none());
            self.keep(results, &record, complete)?;
        }
        files.write(|| record.clone())?;
        print(args, self.outputs, &overspin_lab::seeds::report(&over))?;
        Ok(verdict(over.endings(), args.strict))
    }

    fn many(&self, sweep: &Sweep) -> Result<Verdict, Failure> {
        let args = self.args;
        let remedy = "remove the axes, and use --set for the run that you want to see";
        no_trace(args, "a sweep", remedy)?;
        let mut settings = sweep::Settings {
            seed: args.seed,
            seeds: args.seeds.or(self.again.seeds.filter(|_| args.seed.is_none())),
            until: args.sweep.until_interval,
            shard: args.sweep.shard,
            threads: args.threads,
            way: self.way,
            results: None,
        };
        let words = words(sweep, &settings);
        if args.sweep.dry_run {
            return self.dry(&words, Some(sweep));
        }
        let world =
            world::in_world(&self.way, sweep.points.iter().map(|p| &p.scenario), self.global);
        let files = RecordFiles::files(self.outputs, &args.record)?;
        let svg = self.outputs.open(args.sweep.svg.as_ref())?;
        let seed = args.seed.or(self.again.seed);
        let plan = Plan {
            seed: settings.seed,
            seeds: settings.seeds,
            until: settings.until.map(Narrow::part),
            list: Vec::new(),
        };
        let results = self.results(plan, || {
            overspin_lab::sweep::record_head(sweep, &self.again.set, seed).in_world(&world)
        })?;
        let page = match self.page {
            Some(page) => Page::open(page, args.record.out.as_ref(), &sweep.name)?,
            None => None,
        };
        settings.results = results.as_ref();
        let meter = self.meter(&words, results.as_ref());
        let result = sweep::run(sweep, settings, &|done, all| meter.at(done, all));
        meter.end();
        let outcome = result.map_err(|e| sweep_failure(args, &e))?;
        let record = LazyCell::new(|| {
            show::made(
                overspin_lab::sweep::record(sweep, &outcome, &self.again.set, seed)
                    .in_world(&world),
            )
        });
        if let Some(results) = results {
            let stopped =
                outcome.cells().filter_map(sweep::Cell::ending).any(|e| stopped(e).is_some());
            self.keep(results, &record, args.sweep.shard.is_none() && !stopped)?;
        }
        files.write(|| record.clone())?;
        if let Some(svg) = svg {
            svg.finish_with(&overspin_lab::sweep::curves(sweep, &outcome))?;
        }
        print(args, self.outputs, &overspin_lab::sweep::report(&outcome))?;
        if let Some(page) = page {
            self.outputs.print(&page.write(record.clone())?)?;
        }
        Ok(verdict(outcome.cells().filter_map(sweep::Cell::ending), args.strict))
    }

    /// Opens the directory of --out for runs that are written as they end.
    fn results(&self, plan: Plan, head: impl Fn() -> Record) -> Result<Option<Results>, Failure> {
        let Some(dir) = &self.args.record.out else { return Ok(None) };
        Ok(Some(Results::open(dir, Manifest::of(&show::made(head()), plan))?))
    }

    fn meter(&self, words: &str, results: Option<&Results>) -> RunsMeter {
        let found = results.map_or(0, Results::found);
        let words = match found {
            0 => words.to_owned(),
            n => format!("{words}; {n} are there already"),
        };
        RunsMeter::new(self.global, &words, found)
    }

    /// Writes what the directory of --out is still without, and says where it is.
    fn keep(&self, results: Results, record: &Record, complete: bool) -> Result<(), Failure> {
        let place = results.dir().to_owned();
        results.finish(record, complete)?;
        if self.page.is_none() {
            page::into_directory(&place, record.clone())?;
        }
        let dir = place.display();
        let more = match (complete, self.args.sweep.shard) {
            (true, _) => "",
            (false, Some(_)) => ", a part of the whole: join all parts with `overspin merge`",
            (false, None) => ", without the runs under way: the same command goes on with it",
        };
        if !self.global.quiet {
            eprintln!("the result is in {dir}{more}");
        }
        Ok(())
    }

    /// Says what there would be to do. `sweep` lists its axes.
    fn dry(&self, words: &str, sweep: Option<&Sweep>) -> Result<Verdict, Failure> {
        let mut text = format!("{words}\n");
        for axis in sweep.map_or(&[][..], |s| &s.axes) {
            text += &format!("{}: {}\n", axis.name, axis.values.join(", "));
        }
        self.outputs.print(&text)?;
        Ok(Verdict::Fine)
    }
}

/// The size of a sweep: `558 runs: 31 lock x 6 vCPUs/pCPUs x 3 section, 5 seeds each`.
fn words(sweep: &Sweep, settings: &sweep::Settings<'_>) -> String {
    let axes: Vec<String> =
        sweep.axes.iter().map(|a| format!("{} {}", a.values.len(), a.name)).collect();
    let runs = sweep::count(sweep, settings);
    let seeds = match runs.checked_div(sweep.points.len()).unwrap_or(0) {
        1 => String::new(),
        n => format!(", {n} seeds each"),
    };
    let more = if settings.until.is_some() { ", more where the interval is wide" } else { "" };
    let part = if settings.shard.is_some() { ", of which this is a part" } else { "" };
    format!("{runs} runs: {}{seeds}{more}{part}", axes.join(" x "))
}

/// The exit of a command whose runs ended like this. A deadlock is a result like others, unless the user is `strict`.
fn verdict<'a>(endings: impl Iterator<Item = &'a Ending>, strict: bool) -> Verdict {
    let endings: Vec<&Ending> = endings.collect();
    if let Some(by) = endings.iter().find_map(|ending| stopped(ending)) {
        return world::stopped(by);
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

fn sweep_failure(args: &RunArgs, error: &SweepError) -> Failure {
    match error {
        SweepError::TooMany { .. } => {
            Failure::usage(format!("{}: {error}", name(args)), "vary less, or lower --seeds")
        }
        SweepError::Run(error) => parallel_failure(args, error),
    }
}

fn parallel_failure(args: &RunArgs, error: &ParallelError) -> Failure {
    match error {
        ParallelError::Sim { cause, .. } => Failure::refused_as(&name(args), cause, error),
        ParallelError::Threads { .. } => {
            Failure::environment(error.to_string(), "ask for fewer with --threads")
        }
        ParallelError::Keep(error) => Failure::environment(error.to_string(), error.remedy()),
    }
}

fn print(args: &RunArgs, outputs: &Outputs, blocks: &[Block]) -> Result<(), Failure> {
    if let Some(markdown) = outputs.open(args.markdown.as_ref())? {
        markdown.finish_with(&overspin_report::markdown(blocks))?;
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
