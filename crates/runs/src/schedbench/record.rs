//! Records of a `.bench` file's complete runs. The file itself keeps schedbench's format.

use crate::record::{Kind, Record, Run, next_number};
use crate::schedbench::metrics as metric;
use crate::schedbench::summary::fair_workers;
use crate::schedbench::{BenchFile, Origin, RunSummary, summarize};

/// The record of the complete runs of `file`; `name` is the file's name.
#[must_use]
pub fn record(file: &BenchFile, name: &str) -> Record {
    let mut record = Record::new(Kind::Schedbench, name);
    let all: Vec<RunSummary> = file.runs.iter().filter_map(summarize).collect();
    let origins: Vec<&Origin> = all.iter().filter_map(|r| r.origin.as_ref()).collect();
    if let Some(first) = origins.first() {
        record.version.clone_from(&first.version);
        record.model_version = first.model_version;
        if origins.iter().all(|o| o.seed == first.seed) {
            record.seed = Some(first.seed);
        }
        record.machine = Some(first.machine.name.clone());
        record.world.clone_from(&first.world);
        record.command = Some(first.command.clone());
        record.environment = Some(first.environment.clone());
        if origins.len() < all.len() || origins.iter().any(|o| !o.comparable(first)) {
            record
                .warnings
                .push("the runs are not all of one world, one machine and one model".into());
        }
    }
    for run in &all {
        of_run(&mut record, run, &all);
    }
    record
}

/// A place is the run's label, then a set of workers, then a worker in schedbench's numbering: `A 2 + B
/// 2.1:0`. The samples of a worker are its reports, in order.
fn of_run(record: &mut Record, run: &RunSummary, all: &[RunSummary]) {
    let number = next_number(&record.runs);
    record.runs.push(Run {
        number,
        place: run.label.clone(),
        seed: run.origin.as_ref().map(|o| o.seed),
        ..Run::default()
    });
    let fair = fair_workers(run, all);
    for (i, set) in run.sets.iter().enumerate() {
        let place = format!("{}.{i}", run.label);
        record.push(number, &place, &metric::TOTAL, set.throughput.total);
        record.push(number, &place, &metric::DEVIATION, set.throughput.stddev);
        record.push(number, &place, &metric::UTILIZATION_TOTAL, set.utilization.total);
        record.push(number, &place, &metric::LATE_MAX, set.max_delta_ms);
        let later = set.max_delta_later_ms.unwrap_or(f64::NAN);
        record.push(number, &place, &metric::LATE_MAX_LATER, later);
        for worker in fair.iter().flat_map(|sets| &sets[i]) {
            record.push(number, &place, &metric::FAIR, worker.of_share);
            record.push(number, &place, &metric::OF_ALONE, worker.of_alone);
        }
        for w in &set.workers {
            let place = format!("{}.{}:{}", run.label, w.set, w.id);
            if w.deadlines > 0 {
                record.push(number, &place, &metric::DEADLINES, w.deadlines as f64);
                record.push(number, &place, &metric::MISSED, w.missed as f64);
            }
            for window in &w.windows {
                record.push(number, &place, &metric::AT, window.at_s);
                record.push(number, &place, &metric::THROUGHPUT, window.throughput);
                record.push(number, &place, &metric::UTILIZATION, window.utilization);
                record.push(number, &place, &metric::LATE, window.max_delta_ms);
            }
        }
    }
}
