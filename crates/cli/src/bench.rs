//! `overspin bench`.

use crate::args::{BenchArgs, BenchLocksArgs, Benchmark, Global, RecordArgs};
use crate::bench_world;
use crate::built::above_figures;
use crate::catalog::Parts;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use overspin_lab::bench;
use overspin_lab::bench::BenchResult;
use overspin_native::bench::{Case, Plan, PlanError, Point, measure};
use overspin_report::{Block, Grid, short};

pub(crate) fn bench(args: &BenchArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    match &args.what {
        Benchmark::Sim(args) => {
            speed("sim", &args.record, global, |tell| bench::sim(tell).map_err(fault))
        }
        Benchmark::Sched(args) => {
            speed("sched", &args.record, global, |tell| bench::sched(tell).map_err(fault))
        }
        Benchmark::Hv(args) => speed("hv", &args.record, global, |tell| {
            bench::hv(tell).map_err(|refused| Failure::refused("bench hv", &refused))
        }),
        Benchmark::Locks(args) => match &args.world {
            Some(world) => bench_world::locks(args, world, global),
            None => locks(args, global, parts),
        },
    }
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::environment(error.to_string(), "this is a fault in overspin")
}

fn speed(
    name: &str,
    wanted: &RecordArgs,
    global: &Global,
    measure: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<Vec<BenchResult>, Failure>,
) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[wanted.json.as_ref(), wanted.csv.as_ref()])?;
    let files = RecordFiles::open(&outputs, wanted)?;
    let bar = progress::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed");
    let mut tell = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let results = measure(&mut tell);
    bar.finish_and_clear();
    let results = results?;
    files.write(|| show::made(overspin_lab::bench::record(name, &results)))?;
    outputs.report(&[above_figures(global), Block::Grid(bench::table(&results))])?;
    // A slower machine is not a fault: the table shows which targets were missed.
    Ok(Verdict::Fine)
}

fn locks(args: &BenchLocksArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let outputs = Outputs::new(global, &[wanted.json.as_ref(), wanted.csv.as_ref()])?;
    let files = RecordFiles::open(&outputs, wanted)?;
    let bar = progress::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed");
    let mut tell = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
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
        blocks
            .push(Block::Text(format!("Without a condition variable, and left out: {left_out}.")));
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
