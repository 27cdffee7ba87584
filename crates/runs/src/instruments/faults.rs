//! `faults`: the page faults of `pft`.

use super::{Has, Instrument, Row, Subject, row};
use overspin_record::metric::Metric;
use overspin_workload::Pft;

pub(super) static FAULTS: Instrument = Instrument {
    name: "faults",
    places: "The page faults of a domain that runs `pft`. Only finished runs have them.",
    metrics: || FAULTS.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |domain| domain.workload.get::<Pft>().is_some(),
};

static ROWS: [Row; 2] = [
    row!("faults", "1/s", "page faults in a second of wall time", Finished, |s| {
        Some(items(s) / (s.seconds() * s.scale))
    }),
    row!("faults-cpu", "1/s", "page faults in a second of CPU time", Finished, |s| {
        let cpu = s.domain().tasks.iter().map(|t| t.cpu.seconds()).sum::<f64>();
        Some(items(s) / (cpu * s.scale))
    }),
];

fn items(subject: &Subject<'_>) -> f64 {
    subject.domain().tasks.iter().map(|t| t.items).sum::<u64>() as f64 * subject.scale
}
