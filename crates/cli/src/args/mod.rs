//! The command line.

mod measure;

pub(crate) use measure::{
    CommandArgs, CountArgs, DbenchArgs, KernbenchArgs, LockArgs, MeasureArgs, MeasureNoiseArgs,
    Measurement, PftArgs, PgbenchArgs, RealArgs, Transaction,
};

use crate::built::version;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use overspin_lab::advise::Work;
use overspin_lab::sweep::{Narrow, Shard};
use overspin_native::bench::Case;
use overspin_scenario::Picos;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  it ran to the end
  1  a check failed, something got worse (compare --better), or with --strict a claim does not hold or a run deadlocked
  2  wrong usage or input
  3  the environment prevents it (output cannot be written, disk full)
  4  undecided (a model ran out of time, --max-wall expired, or with --strict a claim needs runs that did not finish)
  130  interrupted (Ctrl-C); finished results are kept
A benchmark that ran ends with 0, whatever its figures are.

Environment:
  NO_COLOR                no colours
  COLUMNS                 width of tables and text, instead of the terminal's
  LC_ALL, LC_CTYPE, LANG  the first that is set: with C or POSIX, the output is ASCII only";

/// What locks and CPU schedulers do to each other when there are more vCPUs than CPUs.
#[derive(Debug, Parser)]
#[command(name = "overspin", version = version(), after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    /// Print only errors and the output of --json, --trace, --markdown or --svg
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Show no progress: neither bars on terminals, nor lines elsewhere about runs that take more than
    /// seconds
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// Output files for measurements.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct RecordArgs {
    /// Write the record, with all measurements, as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the samples as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the result as a directory, with samples as Parquet. Runs are written as they end; after an
    /// interruption the same command goes on where it stopped
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The report page of `reproduce` and `sweep`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct PageArgs {
    /// Write the report page there, instead of as report.html in the directory of --out, or in the current
    /// directory under the name of the experiment or scenario (`-`: standard output)
    #[arg(long, value_name = "FILE.html", conflicts_with = "no_report")]
    pub(crate) report: Option<PathBuf>,
    /// Write no report page
    #[arg(long)]
    pub(crate) no_report: bool,
}

/// Axes, and the part of the runs to make.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct SweepArgs {
    /// Add an axis of numbers, for example domain.guest.vcpus=2..16:2, =1..16:x2 or
    /// domain.guest.workload.section=1us..9us:2us; it replaces a `[[vary]]` of the same key
    #[arg(long = "parameter-scan", short = 'P', value_name = "KEY=FROM..TO[:STEP]")]
    pub(crate) ranges: Vec<String>,
    /// Add an axis of values, for example domain.guest.lock=ticket,mcs; `every lock`, `every scheduler` and
    /// `every machine` are such values
    #[arg(long = "parameter-list", short = 'L', value_name = "KEY=A,B,...")]
    pub(crate) lists: Vec<String>,
    /// Run more seeds where half of the 95 % interval of the throughput is wider than this part of its mean,
    /// at most 1000
    #[arg(long, value_name = "PERCENT", value_parser = str::parse::<Narrow>)]
    pub(crate) until_interval: Option<Narrow>,
    /// Make only the I-th of N parts of the runs, for job arrays; `overspin merge` joins them
    #[arg(long, value_name = "I/N", value_parser = str::parse::<Shard>)]
    pub(crate) shard: Option<Shard>,
    /// Say how many runs there would be, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Draw the curves of a sweep as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a published experiment and put its figures beside the published ones
    Reproduce(ReproduceArgs),
    /// Run a scenario
    Run(RunArgs),
    /// Run a scenario along axes: every combination of its `[[vary]]` tables, -L and -P
    Sweep(SweepCommandArgs),
    /// Join the directories that the parts of a sweep or of many seeds wrote (`--shard`)
    Merge(MergeArgs),
    /// Explain why a run is slow: which locks, which causes, whose vCPUs, and the longest waits
    Explain(ExplainArgs),
    /// Plan, run and report schedbench's .bench files
    Schedbench(SchedbenchArgs),
    /// Run a .bench file on real Xen in an emulated machine, from Debian's packages, without root (in builds with the
    /// feature `xen`)
    XenEmulated(XenEmulatedArgs),
    /// Convert another tool's workload to a scenario
    Import(ImportArgs),
    /// Write a page that shows results: an HTML file for a browser, with charts, tables and a timeline
    Report(ReportArgs),
    /// Compare results: files of samples, each with the first one
    Compare(CompareArgs),
    /// Run a program with a lock in place of its pthread mutexes
    Exec(ExecArgs),
    /// Say what other locks, and overcommit, would do to a program that `exec --record` recorded
    Fit(FitArgs),
    /// Show the names that scenarios can use, and the experiments
    List(ListArgs),
    /// Check a lock: model checker, random schedules, threads, and bugs inserted on purpose (in builds with the feature
    /// `check`)
    Check(CheckArgs),
    /// Measure the speed of overspin itself
    Bench(BenchArgs),
    /// Measure this machine: real benchmarks, and what interrupts its threads
    Measure(MeasureArgs),
    /// Measure what operations of this machine cost, and write a machine profile that scenarios can name
    Calibrate(CalibrateArgs),
    /// Say how far a host can be overcommitted with guests of one kind: where it breaks, and what moves it most
    Advise(AdviseArgs),
    /// Compare the simulator with this machine: locks, sleepers, weights and caps, simulated and measured
    Validate(ValidateArgs),
    /// Show a run as xentop shows a host: pCPUs, domains, vCPUs, locks, steal. Keys: q quits, space pauses, + and
    /// - or the arrows change the speed
    Top(TopArgs),
    /// Look at this machine: what the commands lack here, what each missing thing costs, and the remedy
    Doctor(DoctorArgs),
    /// Write shell completions to standard output
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page to standard output, or all of them to a folder
    Man(ManArgs),
}

/// What guests do, in operators' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuestWork {
    /// A parallel compile
    Build,
    /// A database in memory
    Database,
    /// Servers that answer requests and are idle in between
    Web,
    /// Threads that fight for one kernel lock: the hardest case
    Locks,
}

impl GuestWork {
    pub(crate) fn work(self) -> Work {
        match self {
            Self::Build => Work::Build,
            Self::Database => Work::Database,
            Self::Web => Work::Web,
            Self::Locks => Work::Locks,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AdviseArgs {
    /// Machine of the host (`overspin list machines`), or the file of a profile (`overspin calibrate`)
    #[arg(long, value_name = "NAME", default_value = "skylake-sp")]
    pub(crate) machine: String,
    /// pCPUs of the host
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) pcpus: u32,
    /// Number of guests, all alike
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) guests: u32,
    /// vCPUs of each guest
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) vcpus: u32,
    /// What the guests do
    #[arg(long, default_value = "build")]
    pub(crate) work: GuestWork,
    /// Schedulers to compare, the host's own first (`overspin list schedulers`)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "credit,credit2")]
    pub(crate) schedulers: Vec<String>,
    /// Lock of the guests' kernels (`overspin list locks`)
    #[arg(long, value_name = "NAME", default_value = "pv-qspinlock")]
    pub(crate) lock: String,
    /// Runs of each point, from which the intervals come
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: u32,
    /// Simulated time of each run, for example 2s; default: so that the whole takes some 20 s on two cores
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) length: Option<Duration>,
    /// Threads; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) threads: usize,
    /// Stop after this much real time, for example 90s, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
    /// Write the scenario, with which `overspin run` repeats every number (`-`: standard output)
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) scenario: Option<PathBuf>,
    /// Draw work and waits against the overcommit ratio as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
    /// Write everything as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the page as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct TopArgs {
    /// Scenario file (`-`: standard input), or the record of a run, which is run again
    pub(crate) scenario: PathBuf,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Replace a value of the scenario, for example domain.0.lock=xen-pv
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print one frame of the whole run as plain text
    #[arg(long)]
    pub(crate) once: bool,
    /// Print N frames of equal simulated time as plain text; without a terminal, 5
    #[arg(long, value_name = "N", conflicts_with = "once",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: Option<u32>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Show the page of this command instead of the overview; a command within a command is two words, for
    /// example `bench locks`
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder, which is created if it is missing
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReproduceArgs {
    /// Name of an experiment (`overspin list experiments`), or a changed copy of its .toml file; without it,
    /// all experiments run, with a table at the end
    pub(crate) experiment: Option<String>,
    /// Run at the published length instead of the experiment's scale
    #[arg(long)]
    pub(crate) full: bool,
    /// Runs of each configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: Option<u32>,
    /// Threads; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Write the whole report, of all experiments one after another, as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Draw the figures of one experiment, published beside simulated, as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE", requires = "experiment")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw what one experiment measured as curves, with 95 % intervals over seeds, as SVG (`-`: standard
    /// output)
    #[arg(long, value_name = "FILE", requires = "experiment")]
    pub(crate) curves: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Print each claim as it was published, and every comparison that decides it, with its formula
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// End with 1 if a claim does not hold, with 4 if one cannot be decided
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A plausible number of threads.
fn threads(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if n <= 1024 => Ok(n),
        _ => Err("a whole number from 0 (one for each CPU) to 1024".into()),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ValidateArgs {
    /// Measure in this world alone: `threads` (against this kernel's scheduler) or `hv` (against the project's
    /// own schedulers); default: in all that this machine can run
    #[arg(long, value_name = "NAME")]
    pub(crate) world: Option<String>,
    /// The short form, for CI: a few cases in less than a minute, with wide bounds instead of the goals
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only cases whose names contain one of these texts (`--dry-run` lists them)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Only these schedulers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) schedulers: Vec<String>,
    /// The machine whose costs the simulator has: a name of `overspin list machines`, or a profile that `overspin
    /// calibrate` wrote; default: this machine, calibrated at the start
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub(crate) machine: Option<String>,
    /// pCPUs of all cases; default: as many as this process may use, at most 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) pcpus: Option<u32>,
    /// Measured runs of each case; default: 4, or 2 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: Option<u32>,
    /// Simulated runs of each case; default: 8, or 3 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: Option<u32>,
    /// First seed of both sides, and seed of the order of the measured runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads for the simulated runs; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) threads: usize,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
    /// Say what there would be to do, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Write the report, with every figure, as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Draw simulated beside measured as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// End with 1 if a figure misses its goal or locks have another order, with 4 if that is unclear
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// Scenario file (`-`: standard input), as in docs/scenario.md; or the record of a run, of seeds or of a
    /// sweep, which is run again
    pub(crate) scenario: PathBuf,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run with N consecutive seeds, and print means with 95 % intervals; warns if the seeds fall into two
    /// groups
    #[arg(long, value_name = "N", conflicts_with = "trace",
          value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Replace a value of the scenario, for example domain.0.lock=xen-pv
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) sweep: SweepArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Write a trace for ui.perfetto.dev (of a single run)
    #[arg(long, value_name = "FILE.pftrace")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Threads for a sweep or many seeds; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    pub(crate) threads: usize,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
    /// World to run in, instead of that of the record, or else `sim`: docs/worlds.md tells what each can do
    #[arg(long, value_name = "NAME")]
    pub(crate) world: Option<String>,
    /// Program of all guests in the world `hv`, instead of the one that comes with it: a static ELF file, as in
    /// docs/hv.md
    #[arg(long, value_name = "FILE")]
    pub(crate) guest: Option<PathBuf>,
    /// End with 1 if a run deadlocked
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `overspin sweep`: what `run` takes, and the page.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SweepCommandArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct MergeArgs {
    /// Directories that --out wrote
    #[arg(required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Directory for the whole
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Write the record, with all measurements, as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the samples as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw the curves of a sweep as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExplainArgs {
    /// Record that --json wrote, .bench file, or scenario to run (`-`: standard input)
    pub(crate) result: PathBuf,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReportArgs {
    /// Records that --json wrote, directories that --out wrote, and .bench files (`-`: standard input)
    #[arg(required = true, num_args = 1.., value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// HTML file to write (`-`: standard output)
    #[arg(long, short, value_name = "FILE.html", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Make no run again: no timeline, no waits by length, and of seeds and sweeps no run in detail
    #[arg(long)]
    pub(crate) no_timeline: bool,
    /// Most slices and marks of a timeline
    #[arg(long, value_name = "N", default_value_t = overspin_lab::page::MOST_SLICES, value_parser = slices)]
    pub(crate) slices: usize,
}

/// A number of slices that a browser can hold.
fn slices(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if (1000..=4_000_000).contains(&n) => Ok(n),
        _ => Err("a whole number from 1000 to 4000000".into()),
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Records that --json wrote, .bench files, hyperfine's records, or columns of numbers (`-`: standard
    /// input)
    #[arg(required = true, num_args = 2..)]
    pub(crate) files: Vec<PathBuf>,
    /// Column of numbers, from 1
    #[arg(long, short = 'C', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) column: u16,
    /// Compare this metric, instead of the main ones of the kind of record; repeat it for several, `all` for
    /// all
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Compare only places whose names contain this text; repeat it for several
    #[arg(long = "where", value_name = "TEXT")]
    pub(crate) places: Vec<String>,
    /// Confidence in percent
    #[arg(long, short, value_name = "PERCENT", default_value_t = 95.0, value_parser = confidence)]
    pub(crate) confidence: f64,
    /// The good direction: a proven change in the other direction gives exit code 1
    #[arg(long)]
    pub(crate) better: Option<Direction>,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// A meaningful confidence.
fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (50.0..=99.99).contains(&percent) => Ok(percent),
        _ => Err("a number from 50 to 99.99".into()),
    }
}

/// A direction of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    /// Less is better, as for times
    Lower,
    /// More is better, as for rates
    Higher,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// The format of the file
    pub(crate) format: Format,
    /// The file
    pub(crate) file: PathBuf,
    /// Scenario to write (`-`: standard output, which is the default without --compare)
    #[arg(long, short, value_name = "SCENARIO.toml")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
}

/// Options for recordings.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Options for perf-sched")]
pub(crate) struct RecordingArgs {
    /// Begin this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    pub(crate) from: Option<Picos>,
    /// End this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    pub(crate) to: Option<Picos>,
    /// Run the scenario, and print its figures beside those of the recording
    #[arg(long)]
    pub(crate) compare: bool,
    /// World to compare in, instead of `sim`
    #[arg(long, value_name = "WORLD", requires = "compare")]
    pub(crate) world: Option<String>,
    /// Change the scenario before it is compared, for example host.scheduler=cfs
    #[arg(long, value_name = "KEY=VALUE", requires = "compare")]
    pub(crate) set: Vec<String>,
}

/// Workloads that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// rt-app's JSON
    RtApp,
    /// The text of `perf sched script` or `perf script`: what a kernel scheduled
    PerfSched,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct SchedbenchArgs {
    #[command(subcommand)]
    pub(crate) verb: SchedbenchVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedbenchVerb {
    /// Fill in the runs that a file's Input expands to
    Plan {
        /// .bench file, which is written
        file: PathBuf,
        /// File to read the Input from instead
        #[arg(long, short, value_name = "FILE")]
        template: Option<PathBuf>,
    },
    /// Run the remaining runs on a simulated machine; each run is saved when it is complete
    Run(SchedbenchRunArgs),
    /// Print the results: throughput in kops/s, utilisation in CPUs, lateness
    Report {
        /// .bench file
        file: PathBuf,
        /// 0: a line for each set of workers, 1: also for each worker, 2: also for each report
        #[arg(long, short, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
        verbosity: u8,
        #[command(flatten)]
        record: RecordArgs,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SchedbenchRunArgs {
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

/// The time of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmulatedClock {
    /// Each instruction takes the same time: time does not depend on the load of this machine
    Instructions,
    /// This machine's time, with a thread for each pCPU
    Host,
}

/// Time of an instruction of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Instruction {
    /// A nanosecond
    #[value(name = "1ns")]
    One,
    /// Two: a CPU half as fast
    #[value(name = "2ns")]
    Two,
    /// Four
    #[value(name = "4ns")]
    Four,
}

#[cfg(feature = "xen")]
impl Instruction {
    /// The logarithm of the nanoseconds, to base 2.
    pub(crate) fn shift(self) -> u8 {
        self as u8
    }
}

/// Work that wants locks of the guests' kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpinlockWork {
    /// Duplicate file descriptors and close them
    Dup,
    /// Touch fresh pages
    Pft,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct XenEmulatedArgs {
    /// .bench file, to which the results are added
    #[arg(required_unless_present_any = ["spinlocks", "fetch"], conflicts_with = "spinlocks")]
    pub(crate) file: Option<PathBuf>,
    /// Instead of a file, run this work with and without paravirtual spinlocks in the guests' kernels
    #[arg(long, value_name = "WORK,...", value_delimiter = ',')]
    pub(crate) spinlocks: Vec<SpinlockWork>,
    /// Only the run of this name, even if it has been run
    #[arg(long, value_name = "LABEL", conflicts_with = "spinlocks")]
    pub(crate) only: Option<String>,
    /// Seed of the workers' random start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Time of the emulated machine
    #[arg(long, value_enum, default_value_t = EmulatedClock::Instructions)]
    pub(crate) clock: EmulatedClock,
    /// Time of an instruction, with --clock instructions
    #[arg(long, value_enum, value_name = "TIME", default_value_t = Instruction::One)]
    pub(crate) instruction: Instruction,
    /// Schedulers to compare, with --spinlocks
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "credit,credit2")]
    pub(crate) schedulers: Vec<String>,
    /// Guests, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) guests: u32,
    /// vCPUs of each guest, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) vcpus: u32,
    /// pCPUs of the guests' pool, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) cpus: u32,
    /// Length of a run in seconds of the emulated machine, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Keep the emulated machine's files, among them Xen's console, in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Fetch the packages, if they are not there, and run nothing
    #[arg(long)]
    pub(crate) fetch: bool,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Stop after this much real time, for example 90s or 10min; complete runs are kept
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "It becomes the program, and so ends as the program ends. If the program cannot be started:

Exit codes:
  2  wrong usage or input, or no such program
  3  the environment prevents it (no preload library)

Environment:
  OVERSPIN_PRELOAD  the preload library, if it is neither beside this command nor in ../lib"
)]
pub(crate) struct ExecArgs {
    /// Name of a lock (`overspin list locks`)
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: String,
    /// When the program ends, print the most acquired mutexes on standard error
    #[arg(long)]
    pub(crate) stats: bool,
    /// When the program ends, write how long each mutex was held, waited for and left alone, as JSON for `overspin
    /// fit`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct FitArgs {
    /// Recording, written by `overspin exec --record`
    pub(crate) file: PathBuf,
    /// Scenario to write, with `[[vary]]` tables as comments (`-`: standard output)
    #[arg(long, short, value_name = "SCENARIO.toml")]
    pub(crate) output: Option<PathBuf>,
    /// Number of the mutex in the list, from 0, instead of the one whose sections and waits took most time
    #[arg(long, value_name = "NUMBER")]
    pub(crate) mutex: Option<usize>,
    /// Locks to try
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_values = overspin_lab::fit::LOCKS)]
    pub(crate) locks: Vec<String>,
}

/// Things to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Lock algorithms
    Locks,
    /// Schedulers and their profiles
    Schedulers,
    /// Workloads
    Workloads,
    /// Published experiments
    Experiments,
    /// Machines and their costs
    Machines,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// What to list; without it, everything
    pub(crate) what: Option<What>,
    /// Only the machine of this name, with the source of each cost (after `machines`)
    pub(crate) name: Option<String>,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = EXIT_CODES,
    override_usage = "overspin check [OPTIONS] <LOCK>\n       overspin check [OPTIONS] --all"
)]
pub(crate) struct CheckArgs {
    /// Name of a lock (`overspin list locks`); `--all` checks all locks instead
    #[arg(required_unless_present = "all")]
    pub(crate) lock: Option<String>,
    /// Check all locks
    #[arg(long, conflicts_with = "lock")]
    pub(crate) all: bool,
    /// CPUs of one model, instead of the usual three models
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub(crate) cpus: Option<u8>,
    /// Acquisitions of each CPU in that model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) pairs: Option<u8>,
    /// Most times that, in one execution of that model, a CPU may be stopped although it could go on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) preemptions: Option<u8>,
    /// Random schedules of each kind for 4 CPUs; fewer for more CPUs
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(crate) schedules: u32,
    /// Seed of the random schedules
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Most seconds that one model may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) time_limit: u32,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[command(subcommand)]
    pub(crate) what: Benchmark,
}

/// Things to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// The simulator
    Sim(BenchSpeedArgs),
    /// The schedulers
    Sched(BenchSpeedArgs),
    /// The micro-hypervisor, beside what the machine itself takes; needs /dev/kvm
    Hv(BenchSpeedArgs),
    /// Locks on threads: ours, and others in use
    Locks(Box<BenchLocksArgs>),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct BenchSpeedArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct BenchLocksArgs {
    /// Locks: names of `overspin list locks`, and std, parking_lot, usync, spin, pthread, pthread-adaptive,
    /// pthread-spin, and mutex-dynamic, which is `mutex` as `exec` and C use it
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "mutex,mutexee,std,parking_lot,usync,pthread,pthread-adaptive"
    )]
    pub(crate) locks: Vec<String>,
    /// What the threads do
    #[arg(long = "case", value_name = "CASES", value_delimiter = ',', default_value = "plain", value_parser = Cases)]
    pub(crate) cases: Vec<Case>,
    /// Numbers of threads
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,4,8")]
    pub(crate) threads: Vec<usize>,
    /// Lengths of the critical section
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = time,
          default_value = "100ns")]
    pub(crate) section: Vec<Duration>,
    /// Mean lengths of the work between two sections of a thread
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = time,
          default_value = "200ns")]
    pub(crate) outside: Vec<Duration>,
    /// Length of the first thread's sections in the cases long-holder and sleeping
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    pub(crate) long: Duration,
    /// Length of one run, after a warm-up of a tenth
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "200ms")]
    pub(crate) time: Duration,
    /// Runs of each combination, in a random order among all
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// CPUs to run on, for example 0,2-3; default: all
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = cpus)]
    pub(crate) cpus: Vec<RangeInclusive<usize>>,
    /// Seed of the order of runs and of the random draws in them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measure in this world instead: as many vCPUs as threads, on as many pCPUs as CPUs; --runs are seeds then
    #[arg(long, value_name = "NAME")]
    pub(crate) world: Option<String>,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CalibrateArgs {
    /// Time to measure, in rounds; at least three rounds are made
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "20s")]
    pub(crate) time: Duration,
    /// Write the machine profile, for `host.machine` of scenarios and `advise --machine` (`-`: standard output)
    #[arg(long, short, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
    /// Seed of the order of the measurements
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

/// Reads the name of a [`Case`], and lists what each of them is in the help.
#[derive(Clone, Debug)]
struct Cases;

impl TypedValueParser for Cases {
    type Value = Case;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Case, clap::Error> {
        let names = PossibleValuesParser::new(Case::ALL.iter().map(|case| case.1));
        let name = names.parse_ref(command, argument, value)?;
        // The parser before has found the name among those of all cases.
        Ok(Case::of(&name).unwrap_or(Case::Plain))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Case::ALL.iter().map(|case| PossibleValue::new(case.1).help(case.2))))
    }
}

/// A time that is not zero.
fn some_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("a time longer than 0".into()),
        some => Ok(some),
    }
}

/// A length of time with its unit.
fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    match (number.parse::<f64>(), unit) {
        // An hour: nobody waits longer for a run.
        (Ok(number), Some((_, ns))) if (0.0..=3.6e12).contains(&(number * ns)) => {
            Ok(Duration::from_nanos((number * ns) as u64))
        }
        _ => Err("a number with ns, us, ms or s, at most an hour: for example 100ns, 1.5us".into()),
    }
}

/// A length of real time to wait for.
fn wall(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    match (number.trim().parse::<f64>(), unit) {
        // A year: nobody waits longer for a result.
        (Ok(number), Some((_, s))) if (0.0..=3.2e7).contains(&(number * s)) => {
            Ok(Duration::from_secs_f64(number * s))
        }
        _ => Err("a number with ms, s, min or h: for example 90s or 10min".into()),
    }
}

/// A CPU, or a range of CPUs.
fn cpus(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last < 4096 => Ok(first..=last),
        _ => Err("numbers of CPUs, for example 0,2-3".into()),
    }
}
