//! The record of one scenario with many seeds.

use super::OverSeeds as Results;
use crate::record::{Kind, OverSeeds, Record, Run, next_number};
use crate::run::{add, of_scenario};
use overspin_scenario::Scenario;

/// The record of one scenario with many seeds.
#[must_use]
pub fn record(over: &Results, set: &[String]) -> Record {
    let mut record = record_head(&over.scenario, set);
    for (run, figures) in &over.runs {
        let number = next_number(&record.runs);
        if run.ending.as_ref().is_some_and(overspin_scenario::Ending::is_sound) {
            add(&mut record, number, figures);
        }
        record.runs.push(Run { number, ..run.clone() });
    }
    record.over_seeds = over
        .results
        .iter()
        .map(|m| OverSeeds {
            place: m.of.clone(),
            metric: m.quantity.metric.name.into(),
            unit: m.quantity.metric.unit.into(),
            seeds: m.seeds.clone(),
            spread: m.spread.clone(),
        })
        .collect();
    record
}

/// The record of a run with many seeds without the runs, which may not have been made yet.
#[must_use]
pub fn record_head(scenario: &Scenario, set: &[String]) -> Record {
    of_scenario(Kind::Seeds, scenario, set, None)
}
