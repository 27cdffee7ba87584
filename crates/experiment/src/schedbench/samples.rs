//! The metrics of schedbench, in long form. Places are `scheduler.run.worker`, such as `credit."2a+2b".A`,
//! for all workers of one name in a run; below it is `report`, with a sample for each second of each worker.

use super::Schedbench;
use super::measure::{BenchSample, lateness, mops, percent};
use overspin_claims::{Samples, Vocabulary};
use overspin_record::metric::{Metric, Table};

static THROUGHPUT: Metric = Metric::new(
    "throughput",
    "Mops/s",
    "operations of all workers of the name, or of one in a report",
);
static DEVIATION: Metric = Metric::new(
    "throughput-stddev",
    "Mops/s",
    "standard deviation of the throughput across workers",
);
static UTILIZATION: Metric = Metric::new(
    "utilization",
    "%",
    "part of a CPU that a worker gets: the mean of the workers, or of one in a report",
);
static LATE: Metric =
    Metric::new("late", "ms", "how late the latest wake-up of a second was: MaxDelta");

static OF_RUN: [&Metric; 3] = [&THROUGHPUT, &DEVIATION, &UTILIZATION];
static OF_REPORT: [&Metric; 3] = [&THROUGHPUT, &UTILIZATION, &LATE];
/// The word of the place of a worker's reports.
const REPORT: &str = "report";

/// What is measured, for the reference.
pub(crate) static TABLES: [Table; 2] = [
    Table {
        heading: "The workers of one name",
        places: "The place is `scheduler.run.worker`: `credit.\"2a+2b\".A`.",
        metrics: || OF_RUN.to_vec(),
    },
    Table {
        heading: "Their reports",
        places: "The place is that of the workers with `.report`. It has a sample for each second of each worker.",
        metrics: || OF_REPORT.to_vec(),
    },
];

/// Names of the workers of a run.
fn workers<'a>(experiment: &'a Schedbench, run: &str) -> Vec<&'a str> {
    let alone = |name: &str| run.strip_prefix("baseline-") == Some(name.to_lowercase().as_str());
    let names = || experiment.workers.iter().map(|w| w.name.as_str());
    match names().find(|name| alone(name)) {
        Some(name) => vec![name],
        None => names().collect(),
    }
}

pub(super) fn vocabulary(experiment: &Schedbench) -> Vocabulary {
    let mut names = Vocabulary::default();
    for policy in &experiment.policies {
        for run in experiment.run_names() {
            for worker in workers(experiment, &run) {
                names.measured(&[&policy.name, &run, worker], &OF_RUN);
                names.measured(&[&policy.name, &run, worker, REPORT], &OF_REPORT);
            }
        }
    }
    names
}

pub(super) fn samples(runs: &[BenchSample]) -> Samples {
    let mut samples = Samples::default();
    for run in runs {
        let mut of = samples.run(Some(run.seed));
        for (i, set) in run.summary.sets.iter().enumerate() {
            let place = [run.scheduler.as_str(), run.run.as_str(), run.set_name(i)];
            of.add(&place, &THROUGHPUT, set.throughput.total / 1000.0)
                .add(&place, &DEVIATION, set.throughput.stddev / 1000.0)
                .add(&place, &UTILIZATION, 100.0 * set.utilization.mean);
            let place = [place[0], place[1], place[2], REPORT];
            for report in set.workers.iter().flat_map(|w| &w.windows) {
                of.add(&place, &THROUGHPUT, mops(report))
                    .add(&place, &UTILIZATION, percent(report))
                    .add(&place, &LATE, lateness(report));
            }
        }
    }
    samples
}
