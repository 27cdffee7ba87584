//! `overspin merge`: joins the directories that the parts of a sweep or of many seeds wrote.

use crate::args::{EXIT_CODES, Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::show::{self, Outputs};
use clap::Args;
use overspin_record::results::{self, Merged, ResultsError};
use overspin_report::{Block, Markup};
use overspin_runs::parallel::ParallelError;
use overspin_runs::record::{InWorld, Record};
use overspin_runs::runner::{Runner, Until};
use overspin_runs::scenario_file::{Loaded, Sweep};
use overspin_runs::seeds;
use overspin_runs::sweep;
use overspin_scenario::{Ending, Scenario};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct MergeArgs {
    /// Directories that --out wrote
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Directory for the whole
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Write the record, with all measurements, as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the samples as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the curves of a sweep as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub(crate) fn merge(args: &MergeArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = [args.json.as_ref(), args.csv.as_ref(), args.svg.as_ref(), args.markdown.as_ref()];
    let outputs = Outputs::new(global, &wanted)?;
    let files = RecordArgs { json: args.json.clone(), csv: args.csv.clone(), out: None };
    let files = RecordFiles::files(&outputs, &files)?;
    let merged = results::merge(&args.dirs, &args.output)?;
    let loaded = merged.manifest.record.clone().into_loaded().map_err(|what| {
        Failure::usage(
            format!("{}: {what}", args.dirs[0].display()),
            "merge directories of sweeps or of many seeds",
        )
    })?;
    let whole = match &loaded {
        Loaded::Sweep(sweep) => of_sweep(sweep, &merged)?,
        Loaded::Seeds(scenario, _) | Loaded::One(scenario) => of_seeds(scenario, &merged)?,
    };
    let missing = whole.missing;
    merged.results.finish(&whole.record, missing == 0)?;
    if let Some(svg) = outputs.open(args.svg.as_ref())? {
        let Some(curves) = whole.curves else {
            let cause = "--svg draws the curves of a sweep, but nothing except the seed is varied";
            return Err(Failure::usage(cause, "leave --svg out"));
        };
        svg.finish_with(&curves.0)?;
    }
    let record = whole.record;
    files.write(|| record)?;
    outputs.report_with_markdown(&whole.report, args.markdown.as_ref())?;
    if missing > 0 {
        eprintln!(
            "{missing} runs are missing: merge the other parts too, or make the runs with the command of one \
             part, without --shard and with --out {}",
            args.output.display()
        );
        return Ok(Verdict::Undecided);
    }
    Ok(Verdict::Fine)
}

/// What the parts are together.
struct Whole {
    record: Record,
    report: Vec<Block>,
    /// As SVG, for a sweep.
    curves: Option<Markup>,
    /// Runs that are in no part.
    missing: usize,
}

/// A way that makes no run: what has not been kept is missing.
fn no_more() -> Runner {
    Runner {
        until: Until { deadline: Some(Instant::now()), interrupted: None },
        ..Runner::default()
    }
}

fn of_sweep(sweep: &Sweep, merged: &Merged) -> Result<Whole, Failure> {
    let plan = &merged.manifest.plan;
    let settings = sweep::Settings {
        seed: plan.seed,
        seeds: plan.seeds,
        until: plan.until.and_then(sweep::Narrow::of),
        runner: no_more(),
        results: Some(&merged.results),
        ..sweep::Settings::default()
    };
    let outcome = sweep::run(sweep, settings, &|_, _| {}).map_err(|e| refused(&e))?;
    let head = &merged.manifest.record;
    let record =
        overspin_runs::sweep::record(sweep, &outcome, &head.set, head.seed).in_world(&world(head));
    Ok(Whole {
        record: show::made(record),
        report: overspin_runs::sweep::report(&outcome),
        curves: Some(overspin_runs::sweep::curves(sweep, &outcome)),
        missing: missing(outcome.cells().filter_map(sweep::Cell::ending)),
    })
}

fn of_seeds(scenario: &Scenario, merged: &Merged) -> Result<Whole, Failure> {
    let (list, head) = (&merged.manifest.plan.list, &merged.manifest.record);
    let settings = seeds::Settings {
        runner: no_more(),
        results: Some(&merged.results),
        ..seeds::Settings::default()
    };
    let over = seeds::run(scenario, list, settings, &|_, _| {});
    let over = over.map_err(|e: ParallelError| refused(&e))?;
    Ok(Whole {
        record: show::made(overspin_runs::seeds::record(&over, &head.set).in_world(&world(head))),
        report: overspin_runs::seeds::report(&over),
        curves: None,
        missing: missing(over.endings()),
    })
}

/// The world of all parts: directories of different worlds are not merged.
fn world(head: &Record) -> InWorld {
    InWorld { name: head.world.clone(), unhonoured: head.unhonoured.clone() }
}

fn missing<'a>(endings: impl Iterator<Item = &'a Ending>) -> usize {
    endings.filter(|e| matches!(e, Ending::Stopped { .. })).count()
}

fn refused(error: &dyn std::fmt::Display) -> Failure {
    Failure::environment(error.to_string(), ResultsError::NEXT)
}
