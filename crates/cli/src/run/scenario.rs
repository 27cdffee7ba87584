//! Runs one scenario, with one seed or many.

use super::job::{Job, stopped, verdict};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress::Meter;
use crate::{show, world};
use overspin_record::results::Plan;
use overspin_runs::seeds;
use overspin_scenario::{Picos, Scenario};
use overspin_watch::perfetto::PerfettoSink;
use std::cell::LazyCell;
use std::path::Path;
use std::time::Instant;

pub(super) fn one(job: &Job<'_>, scenario: &Scenario) -> Result<Verdict, Failure> {
    let (args, outputs) = (job.args, &job.outputs);
    for (given, option) in [
        (args.sweep.svg.is_some(), "--svg draws the curves"),
        (args.sweep.shard.is_some(), "--shard takes a part"),
        (args.sweep.until_interval.is_some(), "--until-interval adds seeds to the points"),
    ] {
        if given {
            let cause = format!("{}: {option} of a sweep, but this is one run", job.name());
            return Err(Failure::usage(cause, "add an axis with -L or -P, or leave it out"));
        }
    }
    if args.sweep.dry_run {
        return job.dry("1 run", None);
    }
    let made = world::in_world(&job.runner, [scenario], job.global);
    let seed = args.seed.unwrap_or(scenario.seed);
    let files = RecordFiles::open(outputs, &args.record)?;
    let trace = outputs.open(args.trace.as_ref())?;
    let trace_name = args.trace.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let trace_error = |cause| Failure::cannot_write(Path::new(&trace_name), cause);
    let mut sink = match trace {
        Some(output) => Some(PerfettoSink::new(scenario, seed, output).map_err(trace_error)?),
        None => None,
    };
    let run = |tell: &dyn Fn(Picos)| job.runner.run(scenario, seed, &mut sink, tell);
    let begun = Instant::now();
    let result = Meter::during(job.global, scenario.limit, run);
    let outcome = result.map_err(|e| Failure::refused(&job.name(), &e))?;
    let took = begun.elapsed();
    if let Some(sink) = sink {
        sink.finish(outcome.elapsed).map_err(trace_error)?.commit()?;
    }
    let trace = args.trace.as_ref().map(|_| trace_name);
    files.write(|| {
        let record =
            overspin_runs::run::record(scenario, &job.again.set, trace, &outcome).in_world(&made);
        // That of a simulated run contains no command and no machine, so that equal runs give equal bytes.
        if record.unrepeatable().is_some() { show::made(record) } else { record }
    })?;
    job.print_run(scenario, &outcome, took)?;
    Ok(verdict(std::iter::once(&outcome.ending), args.strict))
}

/// Runs many seeds: those of the command line, or else these seeds of the file.
pub(super) fn over_seeds(
    job: &Job<'_>,
    scenario: &Scenario,
    seeds: &[u64],
) -> Result<Verdict, Failure> {
    let args = job.args;
    job.no_trace("of many seeds", "choose one with --seed")?;
    if args.sweep.svg.is_some() || args.sweep.until_interval.is_some() {
        let cause = format!(
            "{}: --svg and --until-interval are for sweeps, but nothing except the seed is varied",
            job.name()
        );
        return Err(Failure::usage(cause, "add an axis with -L or -P, or leave them out"));
    }
    let first = args.seed.unwrap_or(scenario.seed);
    let seeds = args.seeds.map_or_else(|| seeds.to_vec(), |n| seeds::seeds_from(first, n));
    let words = format!("{} runs, one for each seed", seeds.len());
    if args.sweep.dry_run {
        return job.dry(&words, None);
    }
    let files = RecordFiles::files(&job.outputs, &args.record)?;
    let made = world::in_world(&job.runner, [scenario], job.global);
    let head = || seeds::record_head(scenario, &job.again.set).in_world(&made);
    let plan = Plan { list: seeds.clone(), ..Plan::default() };
    let results = job.results(plan, head)?;
    let meter = job.meter(&words, results.as_ref());
    let settings = seeds::Settings {
        shard: args.sweep.shard,
        threads: args.threads,
        runner: job.runner,
        results: results.as_ref(),
    };
    let result = seeds::run(scenario, &seeds, settings, &|done, all| meter.at(done, all));
    meter.end();
    let over = result.map_err(|e| Failure::parallel(&job.name(), &e))?;
    let record = LazyCell::new(|| show::made(seeds::record(&over, &job.again.set).in_world(&made)));
    if let Some(results) = results {
        let complete = args.sweep.shard.is_none() && over.endings().all(|e| stopped(e).is_none());
        job.keep(results, &record, complete)?;
    }
    files.write(|| record.clone())?;
    job.print(&seeds::report(&over))?;
    Ok(verdict(over.endings(), args.strict))
}
