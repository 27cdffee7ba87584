//! The record of one run, and what records of several runs have of it.

use crate::record::{Kind, Record, Run};
use crate::seeds::{Figure, figures};
use overspin_scenario::{Outcome, Scenario};

/// The record of one run. `set` has the arguments of `--set`, `trace` names the trace that was written beside
/// it.
#[must_use]
pub fn record(
    scenario: &Scenario,
    set: &[String],
    trace: Option<String>,
    outcome: &Outcome,
) -> Record {
    let mut record = of_scenario(Kind::Run, scenario, set, Some(outcome.seed));
    record.trace = trace;
    // A run that deadlocked or was cut off has the figures of a shorter run; they are in its outcome only.
    if outcome.ending.is_sound() {
        add(&mut record, 0, &figures(outcome));
    }
    record.runs = vec![Run { outcome: Some(Box::new(outcome.clone())), ..Run::of(outcome) }];
    record
}

/// The begin of a record of runs of `scenario`.
pub(crate) fn of_scenario(
    kind: Kind,
    scenario: &Scenario,
    set: &[String],
    seed: Option<u64>,
) -> Record {
    let mut record = Record::new(kind, scenario.name.clone());
    record.description.clone_from(&scenario.description);
    record.set = set.to_vec();
    record.seed = seed;
    record.machine = Some(scenario.host.machine.clone());
    record.scenario = Some(Box::new(scenario.clone()));
    record
}

/// Adds the figures of a run.
pub(crate) fn add(record: &mut Record, run: u32, figures: &[Figure]) {
    for figure in figures {
        record.push(run, &figure.of, figure.quantity.metric, figure.value);
    }
}
