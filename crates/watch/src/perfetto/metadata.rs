//! Which run a trace is of: its scenario, its seed, and what made it.

use super::messages::{DebugAnnotation, TraceAttribute, TraceAttributes};
use overspin_scenario::Scenario;

/// Names and values that identify a run. Together with the program they are enough to repeat it.
pub(super) fn facts(scenario: &Scenario, seed: u64) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("scenario", scenario.name.clone()),
        ("description", scenario.description.clone()),
        ("seed", seed.to_string()),
        ("scheduler", scenario.host.scheduler.clone()),
        ("machine", scenario.host.machine.clone()),
        ("made_by", overspin_record::environment::program()),
    ];
    // A scenario is plain data; if it cannot be written, the trace is still a trace.
    facts.extend(serde_json::to_string(scenario).ok().map(|json| ("scenario_json", json)));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The facts as attributes of the trace: Perfetto's table `metadata`.
pub(super) fn attributes(facts: &[(&'static str, String)]) -> TraceAttributes {
    let attribute = |(name, value): &(&str, String)| TraceAttribute {
        key: Some(format!("overspin.{name}")),
        string_value: Some(value.clone()),
    };
    TraceAttributes { attribute: facts.iter().map(attribute).collect() }
}

/// The facts as arguments of an event, which every version of Perfetto shows.
pub(super) fn arguments(facts: Vec<(&'static str, String)>) -> Vec<DebugAnnotation> {
    let argument = |(name, value): (&str, String)| DebugAnnotation {
        name: Some(name.into()),
        string_value: Some(value),
        ..DebugAnnotation::default()
    };
    facts.into_iter().map(argument).collect()
}
