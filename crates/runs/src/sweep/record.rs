//! The record of a sweep.

use super::{MEASURES, Measure, Measured, Outcome};
use crate::record::{Changes, Kind, OverSeeds, Point, Record, Run, json, next_number};
use crate::run::of_scenario;
use crate::scenario_file::{self, Sweep};

/// The record of a sweep. `seed` is the argument of `--seed`.
#[must_use]
pub fn record(sweep: &Sweep, outcome: &Outcome, set: &[String], seed: Option<u64>) -> Record {
    let mut record = record_head(sweep, set, seed);
    for (i, point) in outcome.points.iter().enumerate() {
        let place = point.at.join(".");
        for cell in &point.cells {
            let number = next_number(&record.runs);
            for (measure, value) in cell.samples() {
                record.push(number, &place, measure.metric, value);
            }
            let point = u32::try_from(i).ok();
            record.runs.push(Run { number, place: place.clone(), point, ..cell.run.clone() });
        }
    }
    if outcome.most_seeds() > 1 {
        record.over_seeds = outcome.points.iter().flat_map(over_seeds).collect();
    }
    record
}

/// The record of a sweep without the runs, which may not have been made yet.
#[must_use]
pub fn record_head(sweep: &Sweep, set: &[String], seed: Option<u64>) -> Record {
    let first = sweep.points.first().map(|p| &p.scenario);
    let mut record = match first {
        Some(scenario) => of_scenario(Kind::Sweep, scenario, set, seed),
        None => Record::new(Kind::Sweep, sweep.name.clone()),
    };
    record.description.clone_from(&sweep.description);
    record.axes.clone_from(&sweep.axes);
    let base = json(first);
    let point = |p: &scenario_file::Point| Point {
        at: p.at.iter().zip(&sweep.axes).map(|(i, axis)| axis.values[*i].clone()).collect(),
        set: p.sets.clone(),
        changes: Changes::between(&base, &json(Some(&p.scenario))),
    };
    record.points = sweep.points.iter().map(point).collect();
    record
}

/// The summaries over the runs of one point.
fn over_seeds(point: &Measured) -> Vec<OverSeeds> {
    let one = |(i, measure): (usize, &Measure)| {
        Some(OverSeeds {
            place: point.at.join("."),
            metric: measure.metric.name.into(),
            unit: measure.metric.unit.into(),
            seeds: point.samples(i).0,
            spread: point.spread(i)?,
        })
    };
    MEASURES.iter().enumerate().filter_map(one).collect()
}
