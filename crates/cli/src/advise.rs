//! `overspin advise`.

use crate::args::{AdviseArgs, Global};
use crate::failure::{Failure, Verdict};
use crate::progress;
use crate::show::{self, Outputs};
use crate::world;
use overspin_lab::advise::{self, AdviceError, Question};
use overspin_lab::parallel::ParallelError;
use serde_json::json;

/// The name of the scenario in the commands that repeat a number, if it was not written.
const FILE: &str = "advise.toml";

pub(crate) fn advise(args: &AdviseArgs, global: &Global) -> Result<Verdict, Failure> {
    let all =
        [args.json.as_ref(), args.markdown.as_ref(), args.svg.as_ref(), args.scenario.as_ref()];
    let outputs = Outputs::new(global, &all)?;
    let [json, markdown, svg, scenario] = all.map(|path| outputs.open(path));
    let (json, markdown, svg, scenario) = (json?, markdown?, svg?, scenario?);
    let question = question(args);
    let way = world::way(None, args.max_wall)?;
    let bar = progress::progress(
        global,
        0,
        "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left",
    );
    let tell = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let result = advise::ask(&question, args.threads, way, &tell);
    bar.finish_and_clear();
    let advice = result.map_err(failure)?;
    if let Some(scenario) = scenario {
        scenario.finish_with(&advice.scenario)?;
    }
    let file =
        args.scenario.as_ref().map_or_else(|| FILE.into(), |path| path.display().to_string());
    let blocks = advise::report(&advice, &file);
    if let Some(json) = json {
        let record = json!({
            "schema": "overspin-advice/1", "version": env!("CARGO_PKG_VERSION"),
            "question": advice.question, "scenario": advice.scenario,
            "breaks": question.schedulers.iter()
                .map(|s| json!({ "scheduler": s, "break": advice.breaks(s) })).collect::<Vec<_>>(),
            "effects": advice.effects(), "doubts": advice.doubts(), "points": advice.points,
        });
        show::made_here(json, &record)?;
    }
    if let Some(svg) = svg {
        svg.finish_with(&advise::picture(&advice))?;
    }
    if let Some(markdown) = markdown {
        markdown.finish_with(&overspin_report::markdown(&blocks))?;
    }
    outputs.report(&blocks)?;
    Ok(advice.stopped().map_or(Verdict::Fine, world::stopped))
}

fn question(args: &AdviseArgs) -> Question {
    Question {
        machine: args.machine.clone(),
        pcpus: args.pcpus,
        guests: args.guests,
        vcpus: args.vcpus,
        work: args.work.work(),
        schedulers: args.schedulers.clone(),
        lock: args.lock.clone(),
        seeds: args.seeds,
        length_ms: args.length.map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
    }
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
