//! A recording by itself, and beside a run of its scenario.

use super::figures::{TaskFigures, TraceFigures};
use overspin_report::{Block, Grid, short};
use std::collections::BTreeMap;

/// Programs whose run-time shares are shown one by one.
const MOST_PROGRAMS: usize = 10;

/// A figure of both sides: name, unit, value.
type Row = (String, &'static str, fn(&TraceFigures) -> Option<f64>);

fn rows() -> Vec<Row> {
    fn us(ns: Option<u64>) -> Option<f64> {
        ns.map(|ns| ns as f64 / 1e3)
    }
    let row = |name: &str, unit: &'static str, of: fn(&TraceFigures) -> Option<f64>| {
        (name.to_owned(), unit, of)
    };
    vec![
        row("elapsed", "ms", |m| Some(m.elapsed as f64 / 1e6)),
        row("CPUs busy", "%", |m| {
            Some(100.0 * m.all_ran() as f64 / (m.elapsed.max(1) as f64 * m.cpus.max(1) as f64))
        }),
        row("switches", "1/s", |m| Some(m.switch_rate())),
        row("delay after a wake-up, p50", "us", |m| us(m.delays.percentile(50, false))),
        row("delay after a wake-up, p90", "us", |m| us(m.delays.percentile(90, false))),
        row("delay after a wake-up, p99", "us", |m| us(m.delays.percentile(99, false))),
        row("scheduling delay, p50", "us", |m| us(m.delays.percentile(50, true))),
        row("scheduling delay, p90", "us", |m| us(m.delays.percentile(90, true))),
        row("scheduling delay, p99", "us", |m| us(m.delays.percentile(99, true))),
    ]
}

/// The figures of a recording alone.
#[must_use]
pub fn measured(measured: &TraceFigures) -> Vec<Block> {
    let mut grid = Grid::new(1, &["figure", "unit", "measured"]);
    for (name, unit, of) in rows() {
        grid.row([name, unit.to_owned(), shown(of(measured))]);
    }
    vec![
        Block::Title("Recorded".into()),
        Block::Grid(grid),
        about(measured),
        Block::Heading("Programs".into()),
        Block::Grid(programs(measured)),
        Block::Text(
            "Waits for a CPU, after wake-ups and preemptions, as `perf sched latency` has them; it calls them Switches."
                .into(),
        ),
    ]
}

/// The programs with most CPU time, as `perf sched latency` shows them.
fn programs(measured: &TraceFigures) -> Grid {
    let mut by_name = BTreeMap::<&str, (u64, TaskFigures)>::new();
    for task in &measured.tasks {
        let (tasks, sum) = by_name.entry(&task.name).or_default();
        *tasks += 1;
        sum.ran += task.ran;
        sum.dispatches += task.dispatches;
        sum.delay += task.delay;
        sum.longest = sum.longest.max(task.longest);
    }
    let mut all: Vec<(&str, (u64, TaskFigures))> = by_name.into_iter().collect();
    all.sort_by_key(|(_, (_, sum))| std::cmp::Reverse(sum.ran));
    let whole = measured.all_ran().max(1) as f64;
    let mut grid =
        Grid::new(1, &["program", "tasks", "CPU ms", "share %", "waits", "mean ms", "max ms"]);
    let ms = |ns: f64| short(ns / 1e6);
    for (name, (tasks, sum)) in all.into_iter().take(MOST_PROGRAMS) {
        let waited = |of: f64| if sum.dispatches == 0 { "-".to_owned() } else { ms(of) };
        grid.row([
            name.to_owned(),
            tasks.to_string(),
            ms(sum.ran as f64),
            short(100.0 * sum.ran as f64 / whole),
            sum.dispatches.to_string(),
            waited(sum.delay as f64 / sum.dispatches.max(1) as f64),
            waited(sum.longest as f64),
        ]);
    }
    grid
}

/// The figures of a recording beside those of a run of its scenario.
#[must_use]
pub fn beside(
    names: &[String],
    measured: &TraceFigures,
    run: &TraceFigures,
    how: &str,
) -> Vec<Block> {
    let mut grid = Grid::new(1, &["figure", "unit", "measured", "run", "gap"]);
    for (name, unit, of) in rows() {
        let (was, is) = (of(measured), of(run));
        let gap = match (was, is, unit) {
            // A part in percent differs by points.
            (Some(was), Some(is), "%") => format!("{:+.1} points", is - was),
            (Some(was), Some(is), _) if was > 0.0 => format!("{:+.0} %", 100.0 * (is - was) / was),
            _ => "-".to_owned(),
        };
        grid.row([name, unit.to_owned(), shown(was), shown(is), gap]);
    }
    let of_run: BTreeMap<String, f64> = all_shares(names, run).into_iter().collect();
    for (program, was) in shares(names, measured) {
        let is = of_run.get(&program).copied().unwrap_or_default();
        let gap = format!("{:+.1} points", is - was);
        grid.row([share_of(&program), "%".to_owned(), short(was), short(is), gap]);
    }
    let title = Block::Title(format!("Recorded, and {how}"));
    vec![title, Block::Grid(grid), about(measured)]
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), short)
}

fn share_of(program: &str) -> String {
    format!("share of `{program}`")
}

fn about(measured: &TraceFigures) -> Block {
    let (ran, accounted) = (measured.all_ran() as f64, measured.accounted as f64);
    let account = match measured.accounted {
        0 => String::new(),
        _ => format!(
            " The kernel's own account of the recorded CPU time (sched_stat_runtime) differs by {:+.1} %.",
            100.0 * (accounted - ran) / ran.max(1.0)
        ),
    };
    Block::Text(format!(
        "A scheduling delay is the time from a wake-up or a preemption to the switch to the task. A share is the part of all CPU \
         time that the tasks of a program had.{account}"
    ))
}

/// The programs with the largest parts of all CPU time, and their parts in percent.
fn shares(names: &[String], measured: &TraceFigures) -> Vec<(String, f64)> {
    let mut all = all_shares(names, measured);
    all.truncate(MOST_PROGRAMS);
    all
}

fn all_shares(names: &[String], measured: &TraceFigures) -> Vec<(String, f64)> {
    let mut by_program: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, ran) in names.iter().zip(&measured.ran) {
        let program = name.rsplit_once('-').map_or(name.as_str(), |(program, _)| program);
        *by_program.entry(program).or_default() += ran;
    }
    let whole = measured.all_ran().max(1) as f64;
    let mut all: Vec<(String, f64)> = by_program
        .into_iter()
        .map(|(program, ran)| (program.to_owned(), 100.0 * ran as f64 / whole))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}
