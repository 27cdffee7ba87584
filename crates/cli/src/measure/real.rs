//! Measures real benchmarks: locks by name, rounds, progress, files.

use crate::args::{Global, RecordArgs, wall};
use crate::catalog::unknown_lock;
use crate::exec::find_library;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress::Doing;
use crate::show::{self, Outputs};
use crate::world;
use clap::Args;
use overspin_lab::real;
use overspin_real::packets::FASTEST;
use overspin_real::preload::{Locks, NONE};
use overspin_real::{
    Benchmark, Earlier, Failed, Hears, Measured, Plan, Progress, Run, Steps, told,
};
use overspin_record::output::Output;
use overspin_record::results::Claim;
use overspin_report::Block;
use overspin_runs::record::{Record, RunSeconds};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// How often to run, and what to keep: options of all real benchmarks.
#[derive(Debug, Args)]
pub(crate) struct RealArgs {
    /// Runs of each place; default: 10 for pgbench, else 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Instead of a number of runs: begin no new round after this long, for example 10min; one round is always made
    #[arg(long, value_name = "TIME", value_parser = wall, conflicts_with = "runs")]
    time: Option<Duration>,
    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    max_wall: Option<Duration>,
    /// Folder for working files, which are removed at the end; default: that for temporary files
    #[arg(long, value_name = "DIR")]
    pub(super) scratch: Option<PathBuf>,
    /// Run once in each of these places, and print their figures as lines: so a benchmark runs inside a guest
    #[arg(long, value_name = "PLACE", hide = true)]
    only: Vec<String>,
    /// Write what the machine did in each second of each run as CSV (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    seconds: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Locks for programs.
#[derive(Debug, Default, Args)]
pub(crate) struct LockArgs {
    /// Compare these locks in place of the pthread mutexes of the programs; `none` is the program as it is, and the
    /// first name is the base: for example none,mutex,mcs-tp (`overspin list locks`)
    #[arg(long = "lock", value_name = "NAMES", value_delimiter = ',')]
    locks: Vec<String>,
}

/// Packets beside a benchmark.
#[derive(Debug, Args)]
pub(crate) struct PacketArgs {
    /// Packets a second beside the runs, from a process's own network namespaces; needs root. 0 is none: for example
    /// 0,100,1000,10000
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(FASTEST)))]
    pub(super) packets: Vec<u32>,
}

/// The locks that the user named, by their own names.
pub(super) fn locks(args: &LockArgs) -> Result<Locks, Failure> {
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

pub(crate) fn failure(failed: &Failed) -> Failure {
    match failed {
        Failed::Usage { .. } => Failure::usage(failed.to_string(), failed.remedy()),
        Failed::Needs { .. } | Failed::Stopped => {
            Failure::environment(failed.to_string(), failed.remedy())
        }
    }
}

impl RealArgs {
    /// So many runs, kept as `record` says; all else is what it is if the user says nothing.
    pub(crate) fn of(runs: u32, record: RecordArgs) -> Self {
        let runs = Some(runs);
        let (time, max_wall, scratch, only, seconds) = (None, None, None, Vec::new(), None);
        Self { runs, time, seed: 1, max_wall, scratch, only, seconds, record }
    }
}

/// A benchmark as the user wants it.
pub(crate) struct Prepared<'a> {
    pub(crate) benchmark: Box<dyn Benchmark>,
    pub(crate) locks: Locks,
    pub(crate) real: &'a RealArgs,
    /// Runs of each place, if the user does not say.
    pub(crate) runs: u32,
}

/// Measures, prints the report and writes the files.
pub(super) fn run(prepared: Prepared<'_>, global: &Global) -> Result<Verdict, Failure> {
    let Prepared { mut benchmark, locks, real, runs } = prepared;
    match &real.only[..] {
        [] => run_with(&mut *benchmark, &locks, real, runs, &|_| Vec::new(), global),
        only => once(&mut *benchmark, only, real),
    }
}

/// Runs once in each of these places, after its warm-up, and prints what each gave.
fn once(
    benchmark: &mut dyn Benchmark,
    only: &[String],
    args: &RealArgs,
) -> Result<Verdict, Failure> {
    let until = world::until(args.max_wall);
    let cancel = &|| until.over().is_some();
    benchmark.prepare(cancel).map_err(|failed| failure(&failed))?;
    let (places, warm_up) = (benchmark.places(), benchmark.warm_up());
    let mut run = |place: &str| {
        let Some(index) = places.iter().position(|known| known == place) else {
            let remedy = format!("places are: {}", places.join(", "));
            return Err(Failed::usage(format!("`{place}` is no place"), remedy));
        };
        if warm_up.contains(&index) {
            benchmark.run(index, true, cancel)?;
        }
        benchmark.run(index, false, cancel)
    };
    for place in only {
        match (run(place), until.over()) {
            // It is what was asked for, which --quiet does not silence.
            (Ok(outcome), _) => show::bytes(told::lines(place, &outcome).as_bytes())?,
            (Err(Failed::Stopped), Some(by)) => return Ok(world::stopped(by)),
            (Err(failed), _) => return Err(failure(&failed)),
        }
    }
    Ok(Verdict::Fine)
}

/// Measures, prints the report, which begins with `first`, and writes the files, also of a measurement that ended early.
pub(crate) fn run_with(
    benchmark: &mut dyn Benchmark,
    locks: &Locks,
    args: &RealArgs,
    runs: u32,
    first: &dyn Fn(&Record) -> Vec<Block>,
    global: &Global,
) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files = [args.seconds.as_ref(), wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    let seconds = outputs.open(args.seconds.as_ref())?;
    let mut records = RecordFiles::open(&outputs, wanted)?;
    let until = world::until(args.max_wall);
    let before = overspin_native::bench::warnings();
    let earlier = records.claim().and_then(Claim::take_earlier);
    if let Some(found) = earlier.as_ref().filter(|_| !global.quiet) {
        eprintln!("goes on after {} runs of an earlier command", found.runs.len());
    }
    let measuring = Measuring {
        plan: Plan { runs: args.runs.unwrap_or(runs), time: args.time, seed: args.seed },
        of: real::Of { before: &before, locks: &locks.names, seed: args.seed },
        earlier: earlier.as_ref().map_or_else(Earlier::default, runs_of),
        cancel: &|| until.over().is_some(),
        global,
    };
    let measured = measuring.with_progress(benchmark, records.claim());
    let measured = match (measured, until.over()) {
        // Nothing was measured yet.
        (Err(Failed::Stopped), Some(by)) => return Ok(world::stopped(by)),
        (Err(failed), _) => return Err(failure(&failed)),
        (Ok(measured), _) => measured,
    };
    let complete = measured.failed.is_none();
    let record = show::made(real::record(&measured, earlier, measuring.of));
    let report = [first(&record), real::report(&record)].concat();
    // An earlier result is worth more than one without any run. After SIGHUP nobody reads the report, so the files come
    // first.
    if record.runs.is_empty() {
        not_written(&[files[0], files[1], files[2], wanted.out.as_ref()], global);
    } else {
        if let Some(file) = seconds {
            file.finish_with(&real::csv(&record))?;
        }
        records.write_part(|| record, complete)?;
    }
    outputs.report(&report)?;
    match (measured.failed, until.over()) {
        (Some(Failed::Stopped), Some(by)) => Ok(world::stopped(by)),
        (Some(failed), _) => Err(failure(&failed)),
        (None, _) => Ok(Verdict::Fine),
    }
}

/// Says which files have nothing new.
fn not_written(files: &[Option<&PathBuf>], global: &Global) {
    let names: Vec<String> =
        files.iter().flatten().map(|file| format!("`{}`", file.display())).collect();
    if !names.is_empty() && !global.quiet {
        eprintln!("no run ended: nothing is written to {}", names.join(", "));
    }
}

/// The runs of a record that is not complete.
fn runs_of(record: &Record) -> Earlier {
    let seconds = record.real.as_ref().map_or(&[][..], |real| &real.seconds);
    let end = |run: &RunSeconds| run.began_s + run.seconds.last().map_or(0.0, |s| s.until_s);
    let lasted = seconds.iter().map(end).fold(0.0, f64::max);
    Earlier {
        places: record.runs.iter().map(|run| run.place.clone()).collect(),
        lasted: Duration::try_from_secs_f64(lasted).unwrap_or_default(),
    }
}

/// A measurement that is about to begin.
struct Measuring<'a> {
    plan: Plan,
    of: real::Of<'a>,
    earlier: Earlier,
    cancel: &'a dyn Fn() -> bool,
    global: &'a Global,
}

impl Measuring<'_> {
    /// Measures with a line of progress. Each run that ends is kept in the directory, also as a text with what the program
    /// printed.
    fn with_progress(
        &self,
        benchmark: &mut dyn Benchmark,
        mut directory: Option<&mut Claim>,
    ) -> Result<Measured, Failed> {
        let doing = Doing::new(self.global);
        let now = Rc::new(RefCell::new(format!("{}: getting ready", benchmark.name())));
        doing.say(now.borrow().clone());
        let (told, of) = (doing.clone(), Rc::clone(&now));
        benchmark.tell_steps(Steps::to(move |step| told.say(format!("{}, {step}", of.borrow()))));
        let mut progress = |progress: &Progress<'_>| {
            let Progress { place, warm_up, done, of } = progress;
            let what = match (warm_up, of) {
                (true, _) => format!("warm-up: {place}"),
                (false, Some(of)) => format!("run {} of {of}: {place}", done + 1),
                (false, None) => format!("run {}: {place}", done + 1),
            };
            now.replace(what.clone());
            doing.say(what);
        };
        let mut ended = |so_far: &Measured| {
            let number = self.earlier.places.len() + so_far.runs.len() - 1;
            match &mut directory {
                Some(directory) => self.keep(so_far, number, directory),
                None => Ok(()),
            }
        };
        let mut hears = Hears { progress: &mut progress, ended: &mut ended };
        let (plan, earlier) = (&self.plan, &self.earlier);
        let measured = overspin_real::measure(benchmark, plan, earlier, self.cancel, &mut hears);
        doing.end();
        measured
    }

    /// Keeps the last run, whose number is this.
    fn keep(&self, so_far: &Measured, number: usize, directory: &mut Claim) -> Result<(), Failed> {
        // The raw output comes first: a kill in between leaves output that the next command overwrites, and never a run
        // that lacks its output.
        if let Some(run) = so_far.runs.last() {
            keep_raw(run, number, directory.dir());
        }
        let kept = directory.keep(real::of_last(so_far, number, self.of), show::made);
        kept.map_err(|e| Failed::Needs { cause: e.to_string(), remedy: e.remedy().into() })
    }
}

/// Writes the figures of a run, and what the program printed, into `out/raw`.
fn keep_raw(run: &Run, number: usize, out: &Path) {
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
