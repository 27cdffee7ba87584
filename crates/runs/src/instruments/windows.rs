//! `windows`: the windows before preemptions.

use super::{Has, Instrument, Row, Subject, row};
use overspin_record::metric::Metric;
use overspin_scenario::WindowOutcome;

pub(super) static WINDOWS: Instrument = Instrument {
    name: "windows",
    places: "The windows before preemptions of the domain's vCPUs.",
    metrics: || WINDOWS.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |_| true,
};

static ROWS: [Row; 4] = [
    row!("windows", "", "windows that the host offered", Every, |s| sum(s, |w| w.offered)),
    row!("windows-used", "", "windows in which the guest gave the CPU up by itself", Every, |s| {
        sum(s, |w| w.used)
    }),
    row!("windows-expired", "", "windows that ran out", Every, |s| sum(s, |w| w.expired)),
    row!(
        "windows-refused",
        "",
        "preemptions without a window, because too many had expired",
        Every,
        |s| sum(s, |w| w.refused)
    ),
];

fn sum(subject: &Subject<'_>, of: fn(&WindowOutcome) -> u64) -> Option<f64> {
    let windows = subject.domain().vcpus.iter().filter_map(|v| v.windows.as_ref());
    Some(windows.map(of).sum::<u64>() as f64)
}
