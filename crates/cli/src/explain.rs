//! `overspin explain`.

use crate::args::{ExplainArgs, Global};
use crate::failure::{Failure, Verdict};
use crate::show::{Meter, Outputs};
use overspin_lab::explain::{self, Record};
use overspin_lab::report::{self, Block};
use overspin_lab::scenario_file::{self, Loaded};
use overspin_lab::until::Until;

pub(crate) fn explain(args: &ExplainArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.markdown.as_ref()])?;
    let text = scenario_file::read_text(&args.result)?;
    let name = args.result.display().to_string();
    // No scenario begins like this, and every record does.
    let blocks = if text.trim_start().starts_with('{') {
        match explain::read(&name, &text).map_err(|e| Failure::Scenario(Box::new(e)))? {
            Record::Run(r) => explain::run(&r.scenario, &r.outcome, r.trace.as_deref()),
            Record::Reproduction(r) => explain::reproduction(&r),
        }
    } else {
        scenario(args, &text, global)?
    };
    if let Some(markdown) = outputs.open(args.markdown.as_ref())? {
        markdown.finish_with(&report::markdown(&blocks))?;
    }
    outputs.print(&report::text(&blocks))?;
    Ok(Verdict::Fine)
}

/// Runs a scenario, with its own seed or the first of several, and explains it.
fn scenario(args: &ExplainArgs, text: &str, global: &Global) -> Result<Vec<Block>, Failure> {
    let name = args.result.display().to_string();
    let loaded = scenario_file::load_text(&args.result, text, &[]).map_err(Failure::Scenario)?;
    let scenario = match loaded {
        Loaded::One(scenario) => scenario,
        // One run is explained, that of the first seed; the report says which it is.
        Loaded::Seeds(mut scenario, seeds) => {
            scenario.seed = seeds.first().copied().unwrap_or(scenario.seed);
            scenario
        }
        Loaded::Map(_) => {
            return Err(Failure::usage(
                format!("{name}: this is a map of many runs"),
                "run the one that you want to know about with `overspin run --set ... --json FILE`, \
                 and explain the record",
            ));
        }
    };
    let meter = Meter::new(global, scenario.limit);
    let result = Until::default().simulate(&scenario, scenario.seed, &mut (), &|at| meter.at(at));
    meter.end();
    let outcome = result.map_err(|e| Failure::refused(&name, &e))?;
    Ok(explain::run(&scenario, &outcome, None))
}
