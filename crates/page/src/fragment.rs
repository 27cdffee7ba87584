//! A result as a part of another page, such as a notebook: its charts, without a script and without the timeline.

use super::html::escape;
use super::{CHARTS, COLOURS, panels};
use overspin_report::short;
use overspin_runs::record::{Kind, Record};
use overspin_scenario::{Ending, Outcome};
use std::fmt::Write;

/// The charts of a record as HTML. Its style concerns nothing else on the page.
#[must_use]
pub fn fragment(record: &Record) -> String {
    let mut body = format!("<h4>{}</h4>\n", escape(&record.name));
    let outcome = record.runs.first().and_then(|run| run.outcome.as_deref());
    match (record.kind, outcome) {
        (Kind::Run, Some(outcome)) => {
            // Writing to a String cannot fail.
            let _ = writeln!(body, "<p>{}</p>", escape(&headline(record, outcome)));
            body += &panels::run_states(outcome);
            body += &panels::waits_by_lock(outcome).unwrap_or_default();
        }
        (Kind::Sweep, _) => body += &panels::curves(record).unwrap_or_default(),
        (Kind::Reproduction, _) => {
            body.extend(record.experiments.iter().map(panels::claims));
        }
        (Kind::Validation, _) => body += &panels::validation(record),
        _ => body += &panels::samples(record),
    }
    // Inside one rule, the rules of the page concern this element only.
    let colours = COLOURS.replace(":root", ".overspin");
    format!(
        "<div class=\"overspin\"><style>\n{colours}.overspin {{ background: var(--surface); color: var(--text); \
         padding: 4px 12px;\n{CHARTS}}}\n</style>\n{body}</div>\n"
    )
}

/// How a run ended, and what made it.
fn headline(record: &Record, outcome: &Outcome) -> String {
    let ending = match &outcome.ending {
        Ending::Finished => "All tasks ended after".to_owned(),
        Ending::Limit => "The limit came after".into(),
        Ending::Deadlock { .. } => "DEADLOCK after".into(),
        Ending::Stopped { by } => format!("STOPPED BEFORE THE END ({}), after", by.words()),
    };
    let world = match (&record.world, &record.scenario) {
        (Some(world), _) => format!("World {world}"),
        (None, Some(scenario)) => {
            format!("Scheduler {}, {} pCPUs", scenario.host.scheduler, scenario.host.pcpus())
        }
        (None, None) => String::new(),
    };
    format!("{ending} {} s. Seed {}. {world}.", short(outcome.elapsed.seconds()), outcome.seed)
}
