//! What `run` and `sweep` do with any scenario: its outputs and its world, opened before the work, and its end.

use crate::args::{EXIT_CODES, Global, PageArgs, RecordArgs, threads, wall};
use crate::failure::{Failure, Verdict};
use crate::progress::RunsMeter;
use crate::report::into_directory;
use crate::show::{self, Outputs};
use crate::world;
use clap::Args;
use overspin_record::results::{Manifest, Plan, Results};
use overspin_report::Block;
use overspin_runs::catalog::{AnyWorld, catalog};
use overspin_runs::record::{self, Again, Record};
use overspin_runs::run::{self, Beside};
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::{AxisArgument, Sweep};
use overspin_runs::sweep::{Narrow, Shard};
use overspin_scenario::{Ending, Outcome, Scenario, Stopped};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// Scenario file (`-`: standard input), as in docs/scenario.md; or the record of a run, of seeds or of a
    /// sweep, which is run again
    pub(super) scenario: PathBuf,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Run with N consecutive seeds, and print means with 95 % intervals; warns if the seeds fall into two
    /// groups
    #[arg(long, value_name = "N", conflicts_with = "trace",
          value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(super) seeds: Option<u32>,
    /// Replace a value of the scenario, for example domain.0.lock=xen-pv
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    #[command(flatten)]
    pub(super) sweep: SweepArgs,
    #[command(flatten)]
    pub(super) record: RecordArgs,
    /// Write a trace for ui.perfetto.dev (of a single run)
    #[arg(long, value_name = "FILE.pftrace")]
    pub(super) trace: Option<PathBuf>,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Threads for a sweep or many seeds; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(super) threads: usize,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(super) max_wall: Option<Duration>,
    /// World to run in, instead of that of the record, or else `sim`: docs/worlds.md tells what each can do
    #[arg(long, value_name = "NAME")]
    pub(super) world: Option<String>,
    /// Program of all guests in the world `hv`, instead of the one that comes with it: a static ELF file, as in
    /// docs/hv.md
    #[arg(long, value_name = "FILE")]
    pub(super) guest: Option<PathBuf>,
    /// Print all tables of a run
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// End with 1 if a run deadlocked
    #[arg(long)]
    pub(super) strict: bool,
}

/// Axes, and the part of the runs to make.
#[derive(Debug, Default, Args)]
pub(super) struct SweepArgs {
    /// Add an axis of numbers, for example domain.guest.vcpus=2..16:2, =1..16:x2 or
    /// domain.guest.workload.section=1us..9us:2us; it replaces a `[[vary]]` of the same key
    #[arg(long = "parameter-scan", short = 'P', value_name = "KEY=FROM..TO[:STEP]")]
    pub(super) ranges: Vec<String>,
    /// Add an axis of values, for example domain.guest.lock=ticket,mcs; `every lock`, `every scheduler` and
    /// `every machine` are such values
    #[arg(long = "parameter-list", short = 'L', value_name = "KEY=A,B,...")]
    pub(super) lists: Vec<String>,
    /// Run more seeds where half of the 95 % interval of the throughput is wider than this part of its mean,
    /// at most 1000
    #[arg(long, value_name = "PERCENT", value_parser = str::parse::<Narrow>)]
    pub(super) until_interval: Option<Narrow>,
    /// Make only the I-th of N parts of the runs, for job arrays; `overspin merge` joins them
    #[arg(long, value_name = "I/N", value_parser = str::parse::<Shard>)]
    pub(super) shard: Option<Shard>,
    /// Say how many runs there would be, and make none
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Draw the curves of a sweep as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// The scenario to run, where, and the wanted outputs.
pub(super) struct Job<'a> {
    pub(super) args: &'a RunArgs,
    /// The page of `overspin sweep`.
    pub(super) page: Option<&'a PageArgs>,
    pub(super) global: &'a Global,
    pub(super) outputs: Outputs,
    pub(super) again: Again,
    pub(super) runner: Runner,
}

impl<'a> Job<'a> {
    /// Opens what a command needs, before it works.
    pub(super) fn open(
        args: &'a RunArgs,
        page: Option<&'a PageArgs>,
        global: &'a Global,
    ) -> Result<Self, Failure> {
        let wanted = &args.record;
        let files = [
            page.and_then(|page| page.report.as_ref()),
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
        let mut runner = world::runner(world, args.max_wall)?;
        if let Some(file) = &args.guest {
            runner.world = guest_of(file, &runner)?;
        }
        Ok(Self { args, page, global, outputs, again, runner })
    }

    /// Opens the directory of --out for runs that are written as they end.
    pub(super) fn results(
        &self,
        plan: Plan,
        head: impl Fn() -> Record,
    ) -> Result<Option<Results>, Failure> {
        let Some(dir) = &self.args.record.out else { return Ok(None) };
        Ok(Some(Results::open(dir, Manifest::of(&show::made(head()), plan))?))
    }

    pub(super) fn meter(&self, words: &str, results: Option<&Results>) -> RunsMeter {
        let found = results.map_or(0, Results::found);
        let words = match found {
            0 => words.to_owned(),
            n => format!("{words}; {n} are there already"),
        };
        RunsMeter::new(self.global, &words, found)
    }

    /// Writes what the directory of --out is still without, and says where it is.
    pub(super) fn keep(
        &self,
        results: Results,
        record: &Record,
        complete: bool,
    ) -> Result<(), Failure> {
        let place = results.dir().to_owned();
        results.finish(record, complete)?;
        if self.page.is_none() {
            into_directory(&place, record.clone())?;
        }
        let dir = place.display();
        let more = match (complete, self.args.sweep.shard) {
            (true, _) => "",
            (false, Some(_)) => ", a part of the whole: join all parts with `overspin merge`",
            (false, None) => ", without the runs under way: the same command goes on with it",
        };
        if !self.global.quiet {
            // After SIGHUP the terminal is gone, and there are files to write.
            let _ = writeln!(std::io::stderr(), "the result is in {dir}{more}");
        }
        Ok(())
    }

    /// Says what there would be to do. `sweep` lists its axes.
    pub(super) fn dry(&self, words: &str, sweep: Option<&Sweep>) -> Result<Verdict, Failure> {
        let mut text = format!("{words}\n");
        for axis in sweep.map_or(&[][..], |s| &s.axes) {
            text += &format!("{}: {}\n", axis.name, axis.values.join(", "));
        }
        self.outputs.print(&text)?;
        Ok(Verdict::Fine)
    }

    /// Refuses --trace, because this is `what`.
    pub(super) fn no_trace(&self, what: &str, remedy: &str) -> Result<(), Failure> {
        if self.args.trace.is_none() {
            return Ok(());
        }
        let cause = format!("{}: a trace is of one run, but this is {what}", self.name());
        Err(Failure::usage(cause, remedy))
    }

    pub(super) fn print(&self, blocks: &[Block]) -> Result<(), Failure> {
        self.outputs.report_with_markdown(blocks, self.args.markdown.as_ref())
    }

    /// Prints the answer of one run that took so long. --verbose and --markdown have the whole report after it.
    pub(super) fn print_run(
        &self,
        scenario: &Scenario,
        outcome: &Outcome,
        took: Duration,
    ) -> Result<(), Failure> {
        let whole = || run::report(scenario, outcome);
        if let Some(file) = self.outputs.open(self.args.markdown.as_ref())? {
            file.finish_with(&overspin_report::markdown(&whole()))?;
        }
        if self.args.verbose {
            return self.outputs.report(&whole());
        }
        if !self.outputs.prints() {
            return Ok(());
        }
        let subject = run::subject(outcome);
        let beside = Beside::of(self.runner, scenario, outcome.seed, subject, took);
        self.outputs.report(&run::answer(
            scenario,
            outcome,
            &beside,
            Some(&self.command(outcome.seed)),
        ))
    }

    /// The command that makes the run again.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("overspin run {}", self.name());
        for set in &self.args.set {
            command += &format!(" --set {set}");
        }
        if self.args.seed.is_some() {
            command += &format!(" --seed {seed}");
        }
        command
    }

    /// What the user calls the scenario.
    pub(super) fn name(&self) -> String {
        self.args.scenario.display().to_string()
    }
}

/// The world `hv` with the program in `file`.
fn guest_of(file: &Path, runner: &Runner) -> Result<AnyWorld, Failure> {
    if runner.world.name() != "hv" {
        let what = format!("the world `{}` runs no guest programs", runner.world.name());
        return Err(Failure::usage(what, "add `--world hv`, or leave `--guest` out"));
    }
    let named = |what: String| {
        let remedy = "a guest is linked with `-static -nostdlib -no-pie`: see docs/hv.md";
        Failure::usage(format!("{}: {what}", file.display()), remedy)
    };
    let program = std::fs::read(file).map_err(|error| named(error.to_string()))?;
    catalog().world_of_guest(program).map_err(named)
}

/// The exit of a command whose runs ended like this. A deadlock is a result like others, unless the user is `strict`.
pub(super) fn verdict<'a>(endings: impl Iterator<Item = &'a Ending>, strict: bool) -> Verdict {
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
pub(super) fn stopped(ending: &Ending) -> Option<Stopped> {
    match ending {
        Ending::Stopped { by } => Some(*by),
        _ => None,
    }
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
