//! Runs a scenario along axes.

use super::job::{Job, RunArgs, stopped, verdict};
use crate::args::{EXIT_CODES, Global, PageArgs};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::report::Page;
use crate::{show, world};
use clap::Args;
use overspin_record::results::Plan;
use overspin_runs::scenario_file::{Loaded, Sweep};
use overspin_runs::sweep::{self, Narrow, SweepError};
use std::cell::LazyCell;

/// `overspin sweep`: what `run` takes, and the page.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SweepCommandArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// `overspin sweep`: `overspin run` for a scenario with at least one axis.
pub(crate) fn sweep(command: &SweepCommandArgs, global: &Global) -> Result<Verdict, Failure> {
    let job = Job::open(&command.run, Some(&command.page), global)?;
    match &job.again.loaded {
        Loaded::Sweep(sweep) => many(&job, sweep),
        Loaded::One(_) | Loaded::Seeds(..) => Err(Failure::usage(
            format!("{}: nothing is varied", job.name()),
            "add an axis, for example -L domain.0.lock=ticket,mcs or -P domain.0.vcpus=2..16:2, or use \
             `overspin run`",
        )),
    }
}

pub(super) fn many(job: &Job<'_>, sweep: &Sweep) -> Result<Verdict, Failure> {
    let args = job.args;
    let remedy = "remove the axes, and use --set for the run that you want to see";
    job.no_trace("a sweep", remedy)?;
    let mut settings = sweep::Settings {
        seed: args.seed,
        seeds: args.seeds.or(job.again.seeds.filter(|_| args.seed.is_none())),
        until: args.sweep.until_interval,
        shard: args.sweep.shard,
        threads: args.threads,
        runner: job.runner,
        results: None,
    };
    let words = words(sweep, &settings);
    if args.sweep.dry_run {
        return job.dry(&words, Some(sweep));
    }
    let world = world::in_world(&job.runner, sweep.points.iter().map(|p| &p.scenario), job.global);
    let files = RecordFiles::files(&job.outputs, &args.record)?;
    let svg = job.outputs.open(args.sweep.svg.as_ref())?;
    let seed = args.seed.or(job.again.seed);
    let plan = Plan {
        seed: settings.seed,
        seeds: settings.seeds,
        until: settings.until.map(Narrow::part),
        list: Vec::new(),
    };
    let results =
        job.results(plan, || sweep::record_head(sweep, &job.again.set, seed).in_world(&world))?;
    let page = match job.page {
        Some(page) => Page::open(page, args.record.out.as_ref(), &sweep.name)?,
        None => None,
    };
    settings.results = results.as_ref();
    let meter = job.meter(&words, results.as_ref());
    let result = sweep::run(sweep, settings, &|done, all| meter.at(done, all));
    meter.end();
    let outcome = result.map_err(|e| sweep_failure(job, &e))?;
    let record = LazyCell::new(|| {
        show::made(sweep::record(sweep, &outcome, &job.again.set, seed).in_world(&world))
    });
    if let Some(results) = results {
        let stopped = outcome.cells().filter_map(sweep::Cell::ending).any(|e| stopped(e).is_some());
        job.keep(results, &record, args.sweep.shard.is_none() && !stopped)?;
    }
    files.write(|| record.clone())?;
    if let Some(svg) = svg {
        svg.finish_with(&sweep::curves(sweep, &outcome).0)?;
    }
    job.print(&sweep::report(&outcome))?;
    if let Some(page) = page {
        job.outputs.print(&page.write(record.clone())?)?;
    }
    Ok(verdict(outcome.cells().filter_map(sweep::Cell::ending), args.strict))
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

fn sweep_failure(job: &Job<'_>, error: &SweepError) -> Failure {
    match error {
        SweepError::TooMany { .. } => {
            Failure::usage(format!("{}: {error}", job.name()), "vary less, or lower --seeds")
        }
        SweepError::Run(error) => Failure::parallel(&job.name(), error),
    }
}
