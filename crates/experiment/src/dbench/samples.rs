//! The metrics of dbench, in long form. Places are the names of the kernels.

use super::Dbench;
use super::measure::{Sample, of_trace};
use overspin_claims::{Samples, Vocabulary};
use overspin_record::metric::{Metric, Table};
use overspin_scenario::LineOutcome;

static FINISHED: Metric = Metric::new("finished", "", "1 if all clients came to their end, else 0");
static WRITING: Metric =
    Metric::new("writing", "s", "time in which something is written, by the tenth of a second");
static HOLD: Metric = Metric::new("hold", "us", "mean hold time of the locks that lie among data");
static HOLD_DATA: Metric =
    Metric::new("hold-data", "us", "of this, the time in which the holder gets at its data");
static WAITING_SHARE: Metric = Metric::new(
    "waiting-share",
    "%",
    "waits for locks in parts of the time of all CPUs: these locks only spin",
);
static LOST: Metric = Metric::new(
    "lost-lines",
    "%",
    "part of the holders' accesses that were to a line that they had had and lost",
);
static SYSTEM_SHARE: Metric =
    Metric::new("system-share", "%", "system time in parts of the CPU time that is not idle");

/// Metrics computed from the lines of `vmstat`, with their names in `of_trace`.
static OF_TRACE: [(&str, Metric); 10] = [
    ("elapsed_s", Metric::new("elapsed", "s", "from the beginning of dbench to its end")),
    ("make_s", Metric::new("make", "s", "busy time before the first user work: files are made")),
    (
        "remove_s",
        Metric::new("remove", "s", "busy time after the last user work: files are removed"),
    ),
    ("idle_s", Metric::new("idle", "s", "idle time between the first and the last line")),
    ("user_cpu_s", Metric::new("user", "s", "user time of all CPUs")),
    ("system_cpu_s", Metric::new("system", "s", "system time of all CPUs")),
    (
        "user_share_percent",
        Metric::new("user-share", "%", "user time in parts of the CPU time that is not idle"),
    ),
    ("written_kib", Metric::new("written", "KiB", "what is written to the disk")),
    (
        "writing_s",
        Metric::new(
            "writing-seconds",
            "s",
            "whole seconds in which something is written, as published lines tell",
        ),
    ),
    ("most_written_kib", Metric::new("most-written", "KiB", "most that is written in one second")),
];
/// The other metrics.
static OTHERS: [&Metric; 6] = [&WRITING, &HOLD, &HOLD_DATA, &WAITING_SHARE, &LOST, &SYSTEM_SHARE];

/// What is measured, for the reference.
pub(crate) static TABLES: [Table; 1] = [Table {
    heading: "A kernel",
    places: "The place is the name of the kernel: `\"2.4.10\"`.",
    metrics: || {
        let traced = OF_TRACE.iter().map(|(_, metric)| metric);
        [&FINISHED].into_iter().chain(OTHERS).chain(traced).collect()
    },
}];

pub(super) fn vocabulary(experiment: &Dbench) -> Vocabulary {
    let mut names = Vocabulary::default();
    for kernel in &experiment.kernels {
        names.measured(&[&kernel.name], &[&FINISHED]);
        names.measured(&[&kernel.name], &OTHERS);
        for (_, metric) in &OF_TRACE {
            names.measured(&[&kernel.name], &[metric]);
        }
    }
    names
}

pub(super) fn samples(runs: &[Sample]) -> Samples {
    let mut samples = Samples::default();
    for run in runs {
        let place = [run.kernel.as_str()];
        let mut of = samples.run(Some(run.seed));
        of.add(&place, &FINISHED, f64::from(u8::from(run.finished)));
        if !run.finished {
            continue;
        }
        let trace = |metric| of_trace(&run.rows, run.interval_s, metric);
        for (figure, metric) in &OF_TRACE {
            of.add(&place, metric, trace(figure));
        }
        let writing = run.rows.iter().filter(|row| row.bo > 0.0).count() as f64 * run.interval_s;
        let lines =
            |count: fn(&LineOutcome) -> u64| run.domain.lines.iter().map(count).sum::<u64>() as f64;
        of.add(&place, &SYSTEM_SHARE, trace("user_share_percent").map(|user| 100.0 - user))
            .add(&place, &WRITING, writing)
            .add(&place, &HOLD, run.hold_us)
            .add(&place, &HOLD_DATA, run.hold_data_us)
            .add(&place, &WAITING_SHARE, run.spinning_percent)
            .add(&place, &LOST, 100.0 * lines(|l| l.lost) / lines(|l| l.accesses).max(1.0));
    }
    samples
}
