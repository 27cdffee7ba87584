//! The metrics of kernbench, in long form. Places are `lock.load`, and `lock.load.v0` for a vCPU.

use super::Kernbench;
use super::measure::Sample;
use overspin_claims::{Samples, Vocabulary};
use overspin_record::metric::simulated::{BUSY, SPINNING};
use overspin_record::metric::{Metric, Table};

static FINISHED: Metric = Metric::new("finished", "", "1 if the run came to its end, else 0");
static ELAPSED: Metric = Metric::new("elapsed", "s", "elapsed time");
static USER: Metric = Metric::new("user", "s", "user time that ticks charged");
static SYSTEM: Metric = Metric::new("system", "s", "system time that ticks charged");
static CPU: Metric =
    Metric::new("cpu", "%", "(user + system) / elapsed in whole percent, truncated as by time(1)");
static SWITCHES: Metric = Metric::new("context-switches", "", "involuntary switches");
static SLEEPS: Metric = Metric::new("sleeps", "", "voluntary switches");
static VCPU_TIME: Metric = Metric::new("vcpu-time", "s", "running time of the vCPU, or of all");

/// Metrics of every run, and those of a finished run.
static ALWAYS: [&Metric; 3] = [&FINISHED, &SPINNING, &BUSY];
static FINISHED_ONLY: [&Metric; 7] =
    [&ELAPSED, &USER, &SYSTEM, &CPU, &SWITCHES, &SLEEPS, &VCPU_TIME];

/// What is measured, for the reference.
pub(crate) static TABLES: [Table; 2] = [
    Table {
        heading: "A configuration",
        places: "The place is `lock.load`: `ticket.half`. All but the first three are of finished runs only.",
        metrics: || ALWAYS.into_iter().chain(FINISHED_ONLY).collect(),
    },
    Table {
        heading: "A vCPU in it",
        places: "The place is `lock.load.v0`, `v1`, ..",
        metrics: || vec![&VCPU_TIME],
    },
];

pub(super) fn vocabulary(experiment: &Kernbench) -> Vocabulary {
    let mut names = Vocabulary::default();
    let vcpus = experiment.head.scenario.domains.first().map_or(0, |d| d.vcpus);
    for lock in &experiment.locks {
        for load in &experiment.loads {
            names.measured(&[lock, &load.name], &ALWAYS);
            names.measured(&[lock, &load.name], &FINISHED_ONLY);
            for vcpu in 0..vcpus {
                names.measured(&[lock, &load.name, &format!("v{vcpu}")], &[&VCPU_TIME]);
            }
        }
    }
    names
}

pub(super) fn samples(runs: &[Sample]) -> Samples {
    let mut samples = Samples::default();
    for run in runs {
        let place = [run.lock.as_str(), run.load.as_str()];
        let (lock, load) = (place[0], place[1]);
        let mut of = samples.run(Some(run.seed));
        of.add(&place, &FINISHED, f64::from(u8::from(run.elapsed_s.is_some())))
            .add(&place, &SPINNING, 100.0 * run.spinning)
            .add(&place, &BUSY, 100.0 * run.busy);
        if run.elapsed_s.is_none() {
            continue;
        }
        of.add(&place, &ELAPSED, run.elapsed_s)
            .add(&place, &USER, run.user_s)
            .add(&place, &SYSTEM, run.system_s)
            .add(&place, &CPU, run.percent_cpu)
            .add(&place, &SWITCHES, run.context_switches)
            .add(&place, &SLEEPS, run.sleeps)
            .add(&place, &VCPU_TIME, run.vcpu_time_s.iter().sum::<f64>());
        for (i, time) in run.vcpu_time_s.iter().enumerate() {
            of.add(&[lock, load, &format!("v{i}")], &VCPU_TIME, *time);
        }
    }
    samples
}
