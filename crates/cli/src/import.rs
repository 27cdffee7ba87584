//! `overspin import`.

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::progress::Meter;
use crate::show::Outputs;
use crate::world;
use clap::{Args, ValueEnum};
use overspin_lab::perf_lock::{self, Measurement};
use overspin_lab::perf_sched::{self, Choice, Part, Recording, Remedies, TraceFigures, Watch};
use overspin_lab::rt_app::{self, Imported};
use overspin_lab::runqlat;
use overspin_runs::scenario_file;
use overspin_scenario::{Ending, Picos, Scenario};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// The format of the file
    format: Format,
    /// The file (`-`: standard input)
    file: PathBuf,
    /// Scenario to write (`-`: standard output, which is the default without --compare)
    #[arg(long, short, value_name = "SCENARIO.toml")]
    output: Option<PathBuf>,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    latency: LatencyArgs,
}

/// Options for recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for perf-sched")]
struct RecordingArgs {
    /// Begin this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    from: Option<Picos>,
    /// End this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    to: Option<Picos>,
    /// Take only tasks with this name, in which * stands for any text
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// Take only these tasks, or the threads of these processes
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Take only tasks of this control group: its path in the recording, or its file cgroup.procs or cgroup.threads
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<String>,
    /// Run the scenario, and print its figures beside those of the recording
    #[arg(long)]
    compare: bool,
    /// World to compare in, instead of `sim`
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
    /// Change the scenario before it is compared, for example host.scheduler=cfs
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Options for tables of waits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for perf-lock")]
struct LockArgs {
    /// How long perf measured
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    elapsed: Option<Picos>,
    /// Tasks that want the lock
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=1024))]
    tasks: Option<u32>,
    /// The caller or symbol to take, instead of the spin lock with the longest waits
    #[arg(long, value_name = "CALLER")]
    lock: Option<String>,
}

/// Options for histograms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for runqlat")]
struct LatencyArgs {
    /// Run this scenario, and print the delays of its vCPUs beside the histogram
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// rt-app's JSON
    RtApp,
    /// The text of `perf sched script`, `perf script` or `trace-cmd report`: what a kernel scheduled
    PerfSched,
    /// The table of `perf lock contention`: where a kernel waited for locks
    PerfLock,
    /// The histogram of `runqlat`: how long tasks waited for a CPU. It makes no scenario
    Runqlat,
}

impl Format {
    /// What to do with a recording.
    fn remedies(self) -> Remedies {
        match self {
            Self::PerfSched => Remedies::PERF_SCHED,
            // perf writes the table to standard error, unless it is told otherwise.
            Self::PerfLock => Remedies {
                perf: "write its table, and give that: perf lock contention -i FILE > table.txt 2>&1",
                ..Remedies::reads("give the table that `perf lock contention` prints")
            },
            Self::RtApp => Remedies::reads("give a file that `rt-app` runs, in JSON"),
            Self::Runqlat => Remedies::reads("give the histogram that `runqlat 2 1` prints"),
        }
    }
}

impl ImportArgs {
    /// Refuses options of other formats.
    fn check(&self) -> Result<(), Failure> {
        let (recording, lock) = (&self.recording, &self.lock);
        let runs = recording.world.is_some() || !recording.set.is_empty();
        let choice = [&recording.task, &recording.cgroup].iter().any(|all| !all.is_empty());
        let given = [
            ("--from", recording.from.is_some(), Format::PerfSched),
            ("--to", recording.to.is_some(), Format::PerfSched),
            ("--task, --pid and --cgroup", choice || !recording.pid.is_empty(), Format::PerfSched),
            ("--compare", recording.compare, Format::PerfSched),
            ("--elapsed", lock.elapsed.is_some(), Format::PerfLock),
            ("--tasks", lock.tasks.is_some(), Format::PerfLock),
            ("--lock", lock.lock.is_some(), Format::PerfLock),
            ("--scenario", self.latency.scenario.is_some(), Format::Runqlat),
        ];
        for (option, given, of) in given {
            if given && self.format != of {
                let of = of.to_possible_value().map(|v| v.get_name().to_owned());
                let of = of.unwrap_or_default();
                let remedy = format!("leave it out, or import `{of}`");
                return Err(Failure::usage(format!("{option} is for `{of}`"), remedy));
            }
        }
        if runs && !recording.compare && self.latency.scenario.is_none() {
            let remedy = "give --compare, or --scenario for `runqlat`";
            return Err(Failure::usage(
                "--world and --set change a run, and nothing is run",
                remedy,
            ));
        }
        if self.format == Format::Runqlat && self.output.is_some() {
            let remedy = "a histogram does not say when tasks waited: give --scenario, and leave --output out";
            return Err(Failure::usage("`runqlat` makes no scenario", remedy));
        }
        Ok(())
    }
}

pub(crate) fn import(args: &ImportArgs, global: &Global) -> Result<Verdict, Failure> {
    args.check()?;
    let recording = &args.recording;
    let standard = PathBuf::from("-");
    let writes = !recording.compare && args.format != Format::Runqlat;
    let output = args.output.as_ref().or(writes.then_some(&standard));
    let outputs = Outputs::new(global, &[output])?;
    let name = args.file.display().to_string();
    if args.file.is_dir() {
        let remedy = "name a file of this format; `overspin import --help` lists the formats";
        return Err(Failure::usage(format!("`{name}` is a directory"), remedy));
    }
    let bytes = scenario_file::read_bytes(&args.file)?;
    let text = perf_sched::text(&name, &bytes, args.format.remedies())?;
    match args.format {
        Format::RtApp => {
            let imported = rt_app::import(&name, &text)?;
            write(&imported, output, &outputs, global)?;
            Ok(Verdict::Fine)
        }
        Format::PerfSched => {
            let part = Part { from: recording.from.unwrap_or_default(), to: recording.to };
            let imported = perf_sched::import(&name, &text, part, &choice(recording)?)?;
            write(&imported.imported, output, &outputs, global)?;
            if recording.compare {
                return compare(&imported, args, &outputs, global);
            }
            outputs.report(&perf_sched::measured(&imported.measured))?;
            Ok(Verdict::Fine)
        }
        Format::PerfLock => {
            let (Some(elapsed), Some(tasks)) = (args.lock.elapsed, args.lock.tasks) else {
                let remedy =
                    "for example --elapsed 10s --tasks 4, for 4 CPUs that all want the lock";
                return Err(Failure::usage(
                    "the table does not say how long perf measured, nor how many tasks want a lock",
                    remedy,
                ));
            };
            let lock = args.lock.lock.clone();
            let measurement = Measurement { elapsed_ns: elapsed.0 / 1_000, tasks, lock };
            let fitted = perf_lock::import(&name, &text, &measurement)?;
            write(&fitted.imported, output, &outputs, global)?;
            outputs.report(&perf_lock::report(&fitted))?;
            Ok(Verdict::Fine)
        }
        Format::Runqlat => {
            let latencies = runqlat::read(&name, &text)?;
            let Some(file) = &args.latency.scenario else {
                outputs.report(&runqlat::report(&latencies, None))?;
                return Ok(Verdict::Fine);
            };
            let (text, name) = (scenario_file::read_text(file)?, file.display().to_string());
            let scenario = scenario_file::parse(&name, &name, &text, &recording.set)?;
            let (run, how, ending) = run(&name, &scenario, recording, global)?;
            let how = format!("`{name}` {how}");
            outputs.report(&runqlat::report(&latencies, Some((&run.delays, &how))))?;
            // Work without an end ends with the limit.
            Ok(if ending == Ending::Limit { Verdict::Fine } else { verdict(&ending) })
        }
    }
}

/// The tasks that were asked for. A control group that is a file is a list of processes.
fn choice(args: &RecordingArgs) -> Result<Choice, Failure> {
    let mut choice =
        Choice { names: args.task.clone(), pids: args.pid.clone(), groups: Vec::new() };
    for group in &args.cgroup {
        let file = PathBuf::from(group);
        if file.is_file() {
            choice.pids.extend(perf_sched::numbers(group, &scenario_file::read_text(&file)?)?);
        } else {
            choice.groups.push(group.clone());
        }
    }
    Ok(choice)
}

fn write(
    imported: &Imported,
    output: Option<&PathBuf>,
    outputs: &Outputs,
    global: &Global,
) -> Result<(), Failure> {
    if let Some(file) = outputs.open(output)? {
        file.finish_with(&imported.scenario)?;
    }
    if !global.quiet {
        for dropped in &imported.dropped {
            eprintln!("dropped: {dropped}");
        }
    }
    Ok(())
}

fn compare(
    recording: &Recording,
    args: &ImportArgs,
    outputs: &Outputs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let wanted = &args.recording;
    let name = args.file.display().to_string();
    let scenario = scenario_file::parse(&name, &name, &recording.imported.scenario, &wanted.set)?;
    let (run, how, ending) = run(&name, &scenario, wanted, global)?;
    let how = format!("its scenario {how}");
    outputs.report(&perf_sched::beside(&recording.names, &recording.measured, &run, &how))?;
    Ok(verdict(&ending))
}

fn verdict(ending: &Ending) -> Verdict {
    match ending {
        Ending::Finished => Verdict::Fine,
        Ending::Stopped { by } => Verdict::Stopped(*by),
        Ending::Limit | Ending::Deadlock { .. } => {
            eprintln!("the run did not come to its end: {ending:?}");
            Verdict::Finding
        }
    }
}

/// Runs a scenario; returns its figures, and how it was run.
fn run(
    name: &str,
    scenario: &Scenario,
    wanted: &RecordingArgs,
    global: &Global,
) -> Result<(TraceFigures, String, Ending), Failure> {
    let runner = world::runner(wanted.world.as_deref(), None)?;
    world::in_world(&runner, [scenario], global);
    let mut watch = Watch::default();
    let run = |tell: &dyn Fn(Picos)| runner.run(scenario, scenario.seed, &mut watch, tell);
    let outcome =
        Meter::during(global, scenario.limit, run).map_err(|e| Failure::refused(name, &e))?;
    let run = watch.finish(&outcome, scenario.host.pcpus() as usize);
    let how = format!("under `{}` in `{}`", scenario.host.scheduler, runner.world.name());
    Ok((run, how, outcome.ending))
}
