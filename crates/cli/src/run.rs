//! `overspin run`.

use crate::args::{Global, RunArgs};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use overspin_lab::perfetto::PerfettoSink;
use overspin_lab::{report, scenario_file};
use overspin_scenario::{Ending, Outcome, Picos, Scenario, TraceSink};
use serde::Serialize;

/// What `--json` writes. No wall-clock time in it: the same run gives the same bytes.
#[derive(Serialize)]
struct Record<'a> {
    schema: &'static str,
    version: &'static str,
    seed: u64,
    set: &'a [String],
    scenario: &'a Scenario,
    outcome: &'a Outcome,
}

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let scenario = scenario_file::load(&args.scenario, &args.set)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let outputs = Outputs::new(global, &[args.json.as_ref(), args.trace.as_ref()])?;
    let json = outputs.open(args.json.as_ref())?;
    let trace = outputs.open(args.trace.as_ref())?;
    let trace_name = args.trace.as_ref().map_or_else(String::new, |p| p.display().to_string());
    let trace_error = |cause| {
        Failure::from(overspin_lab::output::OutputError {
            action: "write to",
            path: trace_name.clone(),
            cause,
        })
    };
    let mut sink = match trace {
        Some(output) => Some(PerfettoSink::new(&scenario, output).map_err(trace_error)?),
        None => None,
    };
    // The bar counts simulated milliseconds: `u64` picoseconds would do, but nobody reads those.
    let milli = overspin_scenario::MS;
    let bar = show::progress(
        global,
        scenario.limit / milli,
        "{bar:40} {pos} of {len} simulated ms, {elapsed} elapsed",
    );
    let mut tell = |at: Picos| bar.set_position(at / milli);
    let options = overspin_sim::Options {
        trace: sink.as_mut().map(|s| s as &mut dyn TraceSink),
        progress: Some(&mut tell),
    };
    let result = overspin_sim::run(&scenario, seed, options);
    bar.finish_and_clear();
    let outcome = result.map_err(|e| {
        Failure::usage(
            format!("{}: {e}", args.scenario.display()),
            "change the scenario; docs/scenario.md says what it can hold",
        )
    })?;
    if let Some(sink) = sink {
        sink.finish(outcome.elapsed).map_err(trace_error)?.commit()?;
    }
    if let Some(json) = json {
        let record = Record {
            schema: "overspin-run/1",
            version: env!("CARGO_PKG_VERSION"),
            seed,
            set: &args.set,
            scenario: &scenario,
            outcome: &outcome,
        };
        show::json(json, &record)?;
    }
    outputs.print(&report::text(&report::run(&scenario, &outcome)))?;
    Ok(match outcome.ending {
        Ending::Deadlock { .. } => Verdict::Finding,
        Ending::Finished | Ending::Limit => Verdict::Fine,
    })
}
