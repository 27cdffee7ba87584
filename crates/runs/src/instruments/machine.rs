//! `run`: what the hypervisor sees of a domain, and of those beside it.

use super::{Has, Instrument, Row, row};
use overspin_record::metric::Metric;
use overspin_record::metric::simulated::{BUSY, SPINNING};
use overspin_scenario::Picos;

pub(super) static RUN: Instrument = Instrument {
    name: "run",
    places: "What the hypervisor sees of the domain. `elapsed` and `cpu` are of finished runs only.",
    metrics: || RUN.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |_| true,
};

static ROWS: [Row; 8] = [
    row!("finished", "", "1 if the domain's work was done before the limit, else 0", Every, |s| {
        Some(f64::from(u8::from(s.domain().finished.is_some())))
    }),
    row!(
        "elapsed",
        "s",
        "time from the start of the domain until its work was done",
        Finished,
        |s| Some(s.seconds() * s.scale)
    ),
    row!("cpu", "s", "CPU time of the domain's tasks", Finished, |s| Some(
        s.domain().tasks.iter().map(|t| t.cpu.seconds()).sum::<f64>() * s.scale
    )),
    row!(
        "requests",
        "1/s",
        "work items of the other domains: requests that they answer",
        Every,
        |s| {
            let others = s.outcome.domains.iter().enumerate().filter(|(i, _)| *i != s.domain);
            let rates = others.map(|(_, other)| {
                let answered: u64 = other.tasks.iter().map(|t| t.items).sum();
                answered as f64 / other.lifetime(s.outcome.elapsed).seconds()
            });
            rates.reduce(|a, b| a + b)
        }
    ),
    row!(
        "holders-preempted",
        "",
        "holds of a lock during which the holder was descheduled",
        Every,
        |s| Some(s.domain().locks.iter().map(|l| l.holder_preempted).sum::<u64>() as f64)
    ),
    row!(&SPINNING, Every, |s| {
        let vcpus = || s.domain().vcpus.iter();
        Some(part(vcpus().map(|v| v.spinning).sum(), vcpus().map(|v| v.running).sum()))
    }),
    row!(&BUSY, Every, |s| {
        let pcpus = || s.outcome.pcpus.iter();
        let all = pcpus().map(|p| p.busy + p.switching + p.idle).sum();
        Some(part(pcpus().map(|p| p.busy).sum(), all))
    }),
    row!(
        "events",
        "",
        "a number that is equal for runs with the same events: the first 52 bits of their hash",
        Every,
        |s| Some((s.outcome.trace_hash >> 12) as f64)
    ),
];

/// In percent.
fn part(part: Picos, whole: Picos) -> f64 {
    if whole == Picos::ZERO { 0.0 } else { 100.0 * part.ratio(whole) }
}
