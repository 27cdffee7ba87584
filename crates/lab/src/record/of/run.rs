//! Records of simulated scenarios: one run, many seeds, a sweep.

use crate::metric::{Metric, simulated};
use crate::record::again::json;
use crate::record::{Changes, Kind, OverSeeds, Point, Record, Run, next_number};
use crate::scenario_file::Sweep;
use crate::seeds::{Figure, OverSeeds as Result, Spread, figures};
use crate::sweep::{Cell, Measured};
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
    let mut record = of_scenario(Kind::Seeds, &over.scenario, set, None);
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
            metric: m.metric.name.into(),
            unit: m.metric.unit.into(),
            seeds: m.seeds.clone(),
            spread: m.spread.clone(),
        })
        .collect();
    record
}

/// The record of a sweep. `seed` is the argument of `--seed`.
#[must_use]
pub fn sweep(sweep: &Sweep, measured: &Measured, set: &[String], seed: Option<u64>) -> Record {
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
    let each = measured.cells.len() / sweep.points.len().max(1);
    for (i, cell) in measured.cells.iter().enumerate() {
        let number = next_number(&record.runs);
        let place = place(cell);
        if cell.run.ending.as_ref().is_some_and(overspin_scenario::Ending::is_sound) {
            for (metric, value) in measures(cell) {
                record.push(number, &place, metric, value);
            }
        }
        let point = u32::try_from(i / each.max(1)).ok();
        record.runs.push(Run { number, place, point, ..cell.run.clone() });
    }
    if each > 1 {
        record.over_seeds = measured.cells.chunks(each).flat_map(over_seeds).collect();
    }
    record
}

/// The words of a sweep's cell.
fn place(cell: &Cell) -> String {
    cell.at.join(".")
}

/// The measures of each cell of a sweep.
fn measures(cell: &Cell) -> [(&'static Metric, f64); 4] {
    [
        (&simulated::THROUGHPUT, cell.throughput),
        (&simulated::WORST_WAIT_P999, cell.wait_p999.micros()),
        (&simulated::BURNED, 100.0 * cell.burned),
        (&simulated::FAIRNESS, 100.0 * cell.fairness),
    ]
}

/// The summaries over the cells of one point.
fn over_seeds(cells: &[Cell]) -> Vec<OverSeeds> {
    let sound: Vec<&Cell> = cells.iter().filter(|c| c.is_sound()).collect();
    let Some(first) = sound.first() else { return Vec::new() };
    let seeds: Vec<u64> = sound.iter().filter_map(|c| c.run.seed).collect();
    let one = |(i, (metric, _)): (usize, (&Metric, f64))| {
        let samples: Vec<f64> = sound.iter().map(|c| measures(c)[i].1).collect();
        Some(OverSeeds {
            place: place(first),
            metric: metric.name.into(),
            unit: metric.unit.into(),
            seeds: seeds.clone(),
            spread: Spread::of(&seeds, &samples)?,
        })
    };
    measures(first).into_iter().enumerate().filter_map(one).collect()
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
        record.push(run, &figure.of, figure.metric, figure.value);
    }
}
