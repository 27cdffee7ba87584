//! Records of simulated scenarios: one run, many seeds, a sweep.

use crate::record::again::json;
use crate::record::{Changes, Kind, OverSeeds, Point, Record, Run, next_number};
use crate::scenario_file::Sweep;
use crate::seeds::{Figure, OverSeeds as Result, figures};
use crate::sweep::{MEASURES, Measured, Outcome as Swept};
use overspin_scenario::{Outcome, Scenario};

/// The record of one run. `set` has the arguments of `--set`, `trace` names the trace that was written beside
/// it.
#[must_use]
pub fn one(
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

/// The record of one scenario with many seeds.
#[must_use]
pub fn seeds(over: &Result, set: &[String]) -> Record {
    let mut record = seeds_head(&over.scenario, set);
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
            metric: m.quantity.metric.into(),
            unit: m.quantity.unit.into(),
            seeds: m.seeds.clone(),
            spread: m.spread.clone(),
        })
        .collect();
    record
}

/// The record of a run with many seeds without the runs, which may not have been made yet.
#[must_use]
pub fn seeds_head(scenario: &Scenario, set: &[String]) -> Record {
    of_scenario(Kind::Seeds, scenario, set, None)
}

/// The record of a sweep. `seed` is the argument of `--seed`.
#[must_use]
pub fn sweep(sweep: &Sweep, outcome: &Swept, set: &[String], seed: Option<u64>) -> Record {
    let mut record = sweep_head(sweep, set, seed);
    for (i, point) in outcome.points.iter().enumerate() {
        let place = point.at.join(".");
        for cell in &point.cells {
            let number = next_number(&record.runs);
            for (measure, value) in cell.samples() {
                record.push_as(number, &place, measure.metric, measure.unit, value);
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
pub fn sweep_head(sweep: &Sweep, set: &[String], seed: Option<u64>) -> Record {
    let first = sweep.points.first().map(|p| &p.scenario);
    let mut record = match first {
        Some(scenario) => of_scenario(Kind::Sweep, scenario, set, seed),
        None => Record::new(Kind::Sweep, sweep.name.clone()),
    };
    record.description.clone_from(&sweep.description);
    record.axes.clone_from(&sweep.axes);
    let base = json(first);
    let point = |p: &crate::scenario_file::Point| Point {
        at: p.at.iter().zip(&sweep.axes).map(|(i, axis)| axis.values[*i].clone()).collect(),
        set: p.sets.clone(),
        changes: Changes::between(&base, &json(Some(&p.scenario))),
    };
    record.points = sweep.points.iter().map(point).collect();
    record
}

/// The summaries over the runs of one point.
fn over_seeds(point: &Measured) -> Vec<OverSeeds> {
    let one = |(i, measure): (usize, &crate::sweep::Measure)| {
        Some(OverSeeds {
            place: point.at.join("."),
            metric: measure.metric.into(),
            unit: measure.unit.into(),
            seeds: point.samples(i).0,
            spread: point.spread(i)?,
        })
    };
    MEASURES.iter().enumerate().filter_map(one).collect()
}

fn of_scenario(kind: Kind, scenario: &Scenario, set: &[String], seed: Option<u64>) -> Record {
    let mut record = Record::new(kind, scenario.name.clone());
    record.description.clone_from(&scenario.description);
    record.set = set.to_vec();
    record.seed = seed;
    record.machine = Some(scenario.host.machine.clone());
    record.scenario = Some(Box::new(scenario.clone()));
    record
}

fn add(record: &mut Record, run: u32, figures: &[Figure]) {
    for figure in figures {
        record.push_as(run, &figure.of, figure.quantity.metric, figure.quantity.unit, figure.value);
    }
}
