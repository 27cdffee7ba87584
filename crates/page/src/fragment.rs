//! A result as a part of another page, such as a notebook: its charts, without a script and without the timeline.

use super::{CHARTS, COLOURS, panels};
use maud::{PreEscaped, html};
use overspin_report::short;
use overspin_runs::record::{Kind, Record};
use overspin_scenario::{Ending, Outcome};

/// The charts of a record as HTML. Its style concerns nothing else on the page.
#[must_use]
pub fn fragment(record: &Record) -> String {
    let outcome = record.runs.first().and_then(|run| run.outcome.as_deref());
    let body = match (record.kind, outcome) {
        (Kind::Run, Some(outcome)) => Some(html! {
            p { (headline(record, outcome)) }
            (panels::run_states(outcome))
            @if let Some(waits) = panels::waits_by_lock(outcome) { (waits) }
        }),
        (Kind::Sweep, _) => panels::curves(record),
        (Kind::Reproduction, _) => {
            Some(html! { @for experiment in &record.experiments { (panels::claims(experiment)) } })
        }
        (Kind::Validation, _) => panels::validation(record),
        _ => panels::samples(record),
    };
    // Inside one rule, the rules of the page concern this element only.
    let colours = COLOURS.replace(":root", ".overspin");
    let style = format!(
        "\n{colours}.overspin {{ background: var(--surface); color: var(--text); padding: 4px 12px;\n{CHARTS}}}\n"
    );
    let fragment = html! {
        div class="overspin" {
            // The style sheets of this crate, which end no element.
            style { (PreEscaped(style)) }
            "\n" h4 { (record.name) }
            @if let Some(body) = body { "\n" (body) }
        }
        "\n"
    };
    fragment.0
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
    let counts = record.scenario.as_ref().map(|s| overspin_runs::run::counts(s, outcome));
    let (after, counts) = (short(outcome.elapsed.seconds()), counts.unwrap_or_default());
    format!("{ending} {after} s.{counts} Seed {}. {world}.", outcome.seed)
}
