//! `overspin advise`.

use crate::args::{EXIT_CODES, Global, some_time, threads, wall};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use crate::{progress, world};
use clap::{Args, ValueEnum};
use overspin_lab::advise::host::{HostFound, Pressure, pressure};
use overspin_lab::advise::{self, AdviceError, Guest, Question, Work};
use overspin_runs::parallel::ParallelError;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What guests do, in operators' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GuestWork {
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
    fn work(self) -> Work {
        match self {
            Self::Build => Work::Build,
            Self::Database => Work::Database,
            Self::Web => Work::Web,
            Self::Locks => Work::Locks,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct AdviseArgs {
    /// Machine of the host (`overspin list machines`), or the file of a profile (`overspin calibrate`)
    #[arg(long, value_name = "NAME", default_value = "skylake-sp")]
    machine: String,
    /// Read the guests of a host that exists: from files of `virsh dumpxml`, `xl list -l`, `kubectl get pods -o yaml` or compose; without a file, from this machine
    #[arg(long, value_name = "FILE", num_args = 0.., conflicts_with_all = ["guests", "vcpus"])]
    host: Option<Vec<PathBuf>>,
    /// pCPUs of the host; default: 8, or with --host those of this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pcpus: Option<u32>,
    /// Number of guests, all alike
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    guests: u32,
    /// vCPUs of each guest
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    vcpus: u32,
    /// What the guests do
    #[arg(long, default_value = "build")]
    work: GuestWork,
    /// Schedulers to compare, the host's own first (`overspin list schedulers`); default: credit,credit2, or with --host the host's own
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    schedulers: Option<Vec<String>>,
    /// Lock of the guests' kernels (`overspin list locks`)
    #[arg(long, value_name = "NAME", default_value = "pv-qspinlock")]
    lock: String,
    /// Runs of each point, from which the intervals come
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Least work of a pCPU, in percent of its work at the lowest ratio: less is a break
    #[arg(long, value_name = "PERCENT", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=100))]
    least_work: u32,
    /// Longest p99.9 wait, in multiples of that at the lowest ratio: more is a break
    #[arg(long, value_name = "TIMES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    longest_wait: u32,
    /// Simulated time of each run, for example 2s; default: so that the whole takes some 20 s on two cores
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    length: Option<Duration>,
    /// Threads; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    threads: usize,
    /// Stop after this much real time, for example 90s, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    max_wall: Option<Duration>,
    /// Write the scenario, with which `overspin run` repeats every number (`-`: standard output)
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    /// Draw work and waits against the overcommit ratio as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write everything as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The name of the scenario in the commands that repeat a number, if it was not written.
const FILE: &str = "advise.toml";

pub(crate) fn advise(args: &AdviseArgs, global: &Global) -> Result<Verdict, Failure> {
    let all =
        [args.json.as_ref(), args.markdown.as_ref(), args.svg.as_ref(), args.scenario.as_ref()];
    let outputs = Outputs::new(global, &all)?;
    let [json, markdown, svg, scenario] = all.map(|path| outputs.open(path));
    let (json, markdown, svg, scenario) = (json?, markdown?, svg?, scenario?);
    let (question, host) = question(args)?;
    let runner = world::runner(None, args.max_wall)?;
    let (bar, tell) = progress::of_runs(global, progress::RUNS);
    let result = advise::ask(&question, args.threads, runner, &tell);
    bar.finish_and_clear();
    let advice = result.map_err(failure)?;
    if let Some(scenario) = scenario {
        scenario.finish_with(&advice.scenario)?;
    }
    let file =
        args.scenario.as_ref().map_or_else(|| FILE.into(), |path| path.display().to_string());
    let (words, pressure) = host.unzip();
    let blocks = advise::report(&advice, &file, words.as_deref().unwrap_or_default());
    if let Some(json) = json {
        let record = json!({
            "question": advice.question, "host": pressure, "scenario": advice.scenario,
            "breaks": question.schedulers.iter()
                .map(|s| json!({ "scheduler": s, "break": advice.breaks(s) })).collect::<Vec<_>>(),
            "effects": advice.effects(), "doubts": advice.doubts(), "points": advice.points,
        });
        show::made_here(json, "overspin-advice/1", record)?;
    }
    if let Some(svg) = svg {
        svg.finish_with(&advise::picture(&advice).0)?;
    }
    if let Some(markdown) = markdown {
        markdown.finish_with(&overspin_report::markdown(&blocks))?;
    }
    outputs.report(&blocks)?;
    Ok(advice.stopped().map_or(Verdict::Fine, world::stopped))
}

/// What was read of a host, in paragraphs, and how short of CPU time this machine is.
type Host = (Vec<String>, Pressure);

fn question(args: &AdviseArgs) -> Result<(Question, Option<Host>), Failure> {
    let pcpus = args.pcpus.unwrap_or_else(|| match args.host {
        Some(_) => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        None => 8,
    });
    let mut question = Question {
        machine: args.machine.clone(),
        pcpus,
        guests: Guest::alike(args.guests, args.vcpus),
        work: args.work.work(),
        schedulers: ["credit", "credit2"].map(Into::into).into(),
        lock: args.lock.clone(),
        seeds: args.seeds,
        least_work_percent: args.least_work,
        longest_wait_times: args.longest_wait,
        length_ms: args.length.map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
    };
    let mut host = None;
    if let Some(files) = &args.host {
        let found = HostFound::read(files, Path::new("/"), pcpus)
            .map_err(|error| Failure::usage(error.cause, error.remedy))?;
        question.schedulers = found.schedulers();
        question.guests.clone_from(&found.guests);
        let pressure = pressure(Path::new("/"));
        host = Some((found.words(&pressure), pressure));
    }
    if let Some(schedulers) = &args.schedulers {
        question.schedulers.clone_from(schedulers);
    }
    Ok((question, host))
}

fn failure(error: AdviceError) -> Failure {
    match error {
        // Its place is in a file that the user has not written; the message names what was asked for.
        AdviceError::Question(error) => Failure::usage(error.message, error.help),
        AdviceError::Run(ParallelError::Threads { .. }) => {
            Failure::environment(error.to_string(), "ask for fewer with --threads")
        }
        AdviceError::Run(error) => {
            Failure::usage(error.to_string(), "change the options; --scenario shows what they make")
        }
    }
}
