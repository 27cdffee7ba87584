//! `time`: what time(1) prints of the domain's tasks; and `vcpus`: what `xm vcpu-list` prints.

use super::{Has, Instrument, Row, Subject, row};
use overspin_record::metric::Metric;
use overspin_scenario::{Picos, TaskOutcome};

pub(super) static TIME: Instrument = Instrument {
    name: "time",
    places: "What time(1) prints of the domain's tasks. Only finished runs have it.",
    metrics: || TIME.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |_| true,
};

pub(super) static VCPUS: Instrument = Instrument {
    name: "vcpus",
    places: "What `xm vcpu-list` prints. The place of a vCPU is below the domain's: `ticket.half.v0`. Only finished \
             runs have it.",
    metrics: || VCPUS.all(),
    rows: || {
        vec![row!(&VCPU_TIME, Finished, |s| Some(
            s.domain().vcpus.iter().map(|v| v.running.seconds() * s.scale).sum::<f64>()
        ))]
    },
    of_vcpu: Some((&VCPU_TIME, |s, vcpu| vcpu.running.seconds() * s.scale)),
    fits: |_| true,
};

static VCPU_TIME: Metric = Metric::new("vcpu-time", "s", "running time of the vCPU, or of all");

static ROWS: [Row; 5] = [
    row!("user", "s", "user time that ticks charged", Finished, |s| Some(user(s) * s.scale)),
    row!("system", "s", "system time that ticks charged", Finished, |s| Some(system(s) * s.scale)),
    row!(
        "cpu",
        "%",
        "(user + system) / elapsed in whole percent, truncated as by time(1)",
        Finished,
        |s| {
            let elapsed = Some(s.seconds()).filter(|e| *e > 0.0)?;
            Some(((user(s) + system(s)) / elapsed * 100.0).floor())
        }
    ),
    row!("context-switches", "", "involuntary switches", Finished, |s| {
        Some(tasks(s).map(|t| t.preemptions).sum::<u64>() as f64 * s.scale)
    }),
    row!("sleeps", "", "voluntary switches", Finished, |s| {
        Some(tasks(s).map(|t| t.sleeps).sum::<u64>() as f64 * s.scale)
    }),
];

fn tasks<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a TaskOutcome> {
    subject.domain().tasks.iter()
}

fn user(subject: &Subject<'_>) -> f64 {
    tasks(subject).map(|t| t.user_ticks).sum::<Picos>().seconds()
}

fn system(subject: &Subject<'_>) -> f64 {
    tasks(subject).map(|t| t.system_ticks).sum::<Picos>().seconds()
}
