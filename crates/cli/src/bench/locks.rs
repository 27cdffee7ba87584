//! `overspin bench locks`: locks on threads.

use crate::args::{EXIT_CODES, Global, RecordArgs, cpus, time};
use crate::built::above_figures;
use crate::catalog::Parts;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use overspin_native::bench::{Case, Plan, PlanError, Point, measure};
use overspin_report::{Block, Grid, short};
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct LocksArgs {
    /// Locks: names of `overspin list locks`, and std, parking_lot, usync, spin, pthread, pthread-adaptive,
    /// pthread-spin, and mutex-dynamic, which is `mutex` as `exec` and C use it
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "mutex,mutexee,std,parking_lot,usync,pthread,pthread-adaptive"
    )]
    pub(super) locks: Vec<String>,
    /// What the threads do
    #[arg(long = "case", value_name = "CASES", value_delimiter = ',', default_value = "plain", value_parser = Cases)]
    pub(super) cases: Vec<Case>,
    /// Numbers of threads
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,4,8")]
    pub(super) threads: Vec<usize>,
    /// Lengths of the critical section
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = time,
          default_value = "100ns")]
    pub(super) section: Vec<Duration>,
    /// Mean lengths of the work between two sections of a thread
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = time,
          default_value = "200ns")]
    pub(super) outside: Vec<Duration>,
    /// Length of the first thread's sections in the cases long-holder and sleeping
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    pub(super) long: Duration,
    /// Length of one run, after a warm-up of a tenth
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "200ms")]
    pub(super) time: Duration,
    /// Runs of each combination, in a random order among all
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) runs: u32,
    /// CPUs to run on, for example 0,2-3; default: all
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = cpus)]
    pub(super) cpus: Vec<RangeInclusive<usize>>,
    /// Seed of the order of runs and of the random draws in them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Measure in this world instead: as many vCPUs as threads, on as many pCPUs as CPUs; --runs are seeds then
    #[arg(long, value_name = "NAME")]
    pub(super) world: Option<String>,
    #[command(flatten)]
    pub(super) record: RecordArgs,
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

pub(super) fn locks(args: &LocksArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let outputs = Outputs::new(global, &[wanted.json.as_ref(), wanted.csv.as_ref()])?;
    let files = RecordFiles::open(&outputs, wanted)?;
    let (bar, mut tell) =
        progress::of_runs(global, "{bar:40} {pos} of {len} runs, {elapsed} elapsed");
    let plan = Plan {
        locks: args.locks.clone(),
        own: parts.measured.clone(),
        cases: args.cases.clone(),
        threads: args.threads.clone(),
        sections: args.section.clone(),
        outsides: args.outside.clone(),
        long: args.long,
        cpus: args.cpus.iter().cloned().flatten().collect(),
        time: args.time,
        runs: args.runs as usize,
        seed: args.seed,
    };
    let report = measure(&plan, &mut tell);
    bar.finish_and_clear();
    let report = report.map_err(|e| {
        let remedy = match e {
            PlanError::UnknownLock(_) => {
                "see `overspin list locks` and `overspin bench locks --help`"
            }
            PlanError::Empty => "give each of these options a value",
            PlanError::TooManyThreads { .. } => "lower --threads, or leave the lock out",
            PlanError::OneThread => "give --threads numbers from 2 on",
            PlanError::TooLong(_) => "give --section, --outside and --long a shorter time",
            PlanError::Cpus { .. } => "give --cpus CPUs that this process may use",
        };
        Failure::usage(e.to_string(), remedy)
    })?;
    files.write(|| show::made(overspin_lab::bench::record_of_locks(&report, &plan)))?;
    let mut blocks = vec![above_figures(global)];
    blocks.extend(report.warnings.iter().map(|w| Block::Text(format!("Doubtful: {w}."))));
    if !report.left_out.is_empty() {
        let left_out = report.left_out.join(", ");
        blocks.push(Block::Text(format!("Without what the case needs, and left out: {left_out}.")));
    }
    let mut situations: Vec<Situation> = Vec::new();
    for point in &report.points {
        let situation = situation(point);
        if !situations.contains(&situation) {
            situations.push(situation);
        }
    }
    // Stable: the cases stay in the order in which they were asked for.
    situations.sort_by_key(|&(_, section, outside, threads)| (section, outside, threads));
    for here in situations {
        let (case, section, outside, threads) = here;
        let case = match case {
            Case::Plain => String::new(),
            other => format!("{}: ", other.name()),
        };
        blocks.push(Block::Heading(format!(
            "{case}{threads} threads, section {section} ns, outside {outside} ns"
        )));
        let mut points: Vec<&Point> =
            report.points.iter().filter(|p| situation(p) == here).collect();
        points.sort_by(|a, b| b.throughput.total_cmp(&a.throughput));
        blocks.push(Block::Grid(locks_table(&points)));
    }
    outputs.report(&blocks)?;
    Ok(Verdict::Fine)
}

/// Case, section, outside work and threads: what the locks of one table have in common.
type Situation = (Case, u64, u64, usize);

fn situation(point: &Point) -> Situation {
    (point.case, point.section_ns, point.outside_ns, point.threads)
}

fn locks_table(points: &[&Point]) -> Grid {
    let mut grid = Grid::new(
        1,
        &[
            "lock",
            "k/s",
            "least",
            "most",
            "min/max",
            "Jain",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "max us",
            "worst us",
            "CPU ns",
            "preempted/s",
            "slept/s",
        ],
    );
    for p in points {
        let us = |ns: u64| short(ns as f64 / 1e3);
        grid.row([
            p.lock.into(),
            short(p.throughput / 1e3),
            short(p.throughput_range[0] / 1e3),
            short(p.throughput_range[1] / 1e3),
            format!("{:.2}", p.min_max_share),
            format!("{:.2}", p.jain),
            us(p.wait.p50),
            us(p.wait.p99),
            us(p.wait.p99_9),
            us(p.wait.max),
            us(p.worst_wait),
            short(p.cpu_ns),
            short(p.involuntary_switches),
            short(p.voluntary_switches),
        ]);
    }
    grid
}
