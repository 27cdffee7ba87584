//! `overspin reproduce`.

use crate::args::{Global, ReproduceArgs};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use overspin_lab::experiment::{self, Experiment};
use overspin_lab::reproduce::{ReproduceError, Settings, reproduce as run};
use overspin_lab::{report, scenario_file};
use std::path::Path;

pub(crate) fn reproduce(args: &ReproduceArgs, global: &Global) -> Result<Verdict, Failure> {
    let experiment = find(&args.experiment)?;
    let outputs =
        Outputs::new(global, &[args.json.as_ref(), args.markdown.as_ref(), args.svg.as_ref()])?;
    let json = outputs.open(args.json.as_ref())?;
    let markdown = outputs.open(args.markdown.as_ref())?;
    let svg = outputs.open(args.svg.as_ref())?;
    let bar =
        show::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left");
    let tell = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let settings = Settings { seeds: args.seeds, full: args.full, threads: args.threads };
    let result = run(&experiment, settings, &tell);
    bar.finish_and_clear();
    let result = result.map_err(|e| match e {
        ReproduceError::Sim { .. } => {
            Failure::usage(e.to_string(), "change the scenario in the experiment's file")
        }
        ReproduceError::Plan(e) => Failure::Scenario(e),
        ReproduceError::Native(_) => {
            Failure::environment(e.to_string(), "this is a fault of the program")
        }
        ReproduceError::Threads { .. } => {
            Failure::environment(e.to_string(), "ask for fewer with --threads")
        }
    })?;
    if let Some(json) = json {
        show::json(json, &result)?;
    }
    let blocks = report::reproduction(&result);
    if let Some(markdown) = markdown {
        markdown.finish_with(&report::markdown(&blocks))?;
    }
    if let Some(svg) = svg {
        let (metric, words) = experiment.picture();
        let title = format!("{}: {words}", result.experiment);
        svg.finish_with(&report::bars(&result, metric, &title))?;
    }
    outputs.print(&report::text(&blocks))?;
    Ok(match result.verdict() {
        Some(true) => Verdict::Fine,
        Some(false) => Verdict::Finding,
        None => Verdict::Undecided,
    })
}

/// An experiment by name, or from a file that changes one.
fn find(name: &str) -> Result<Experiment, Failure> {
    if let Some(experiment) = experiment::built_in(name) {
        return experiment.map_err(|e| Failure::Scenario(Box::new(e)));
    }
    if !name.ends_with(".toml") {
        let guess = experiment::nearest_name(name)
            .map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        return Err(Failure::usage(
            format!("there is no experiment `{name}`"),
            format!(
                "{guess}experiments are: {}; or name a .toml file",
                experiment::names().join(", ")
            ),
        ));
    }
    let text = scenario_file::read_text(Path::new(name))?;
    experiment::parse(name, &text).map_err(|e| Failure::Scenario(Box::new(e)))
}
