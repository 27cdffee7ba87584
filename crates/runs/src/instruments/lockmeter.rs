//! `lockmeter`: holds and waits of the workload's locks, and the cache lines that holders lose.

use super::{Has, Instrument, Row, Subject, row};
use crate::catalog;
use overspin_record::metric::Metric;
use overspin_scenario::{LineOutcome, LockOutcome, Picos};

pub(super) static LOCKMETER: Instrument = Instrument {
    name: "lockmeter",
    places: "What lockmeter shows of the workload's locks, and what no tool could show of cache lines. Only finished \
             runs have it.",
    metrics: || LOCKMETER.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |_| true,
};

static ROWS: [Row; 4] = [
    row!("hold", "us", "mean hold time of the workload's locks", Finished, |s| {
        Some(each(s, locks(s).iter().map(|l| l.hold_total).sum()))
    }),
    row!(
        "hold-data",
        "us",
        "of this, the time in which the holder gets at its data",
        Finished,
        |s| { Some(each(s, s.domain().lines.iter().map(|l| l.stalled).sum())) }
    ),
    row!(
        "waiting-share",
        "%",
        "waits for all locks in parts of the time of all CPUs",
        Finished,
        |s| {
            let waited: Picos = s.domain().locks.iter().map(|l| l.wait_total).sum();
            Some(waited.percent(s.outcome.elapsed * s.domain().vcpus.len() as u64))
        }
    ),
    row!(
        "lost-lines",
        "%",
        "part of the holders' accesses that were to a line that they had had and lost",
        Finished,
        |s| {
            let sum =
                |count: fn(&LineOutcome) -> u64| s.domain().lines.iter().map(count).sum::<u64>();
            Some(100.0 * sum(|l| l.lost) as f64 / (sum(|l| l.accesses) as f64).max(1.0))
        }
    ),
];

/// The locks of the workload; those of the guest's kernel come after them.
fn locks<'a>(subject: &Subject<'a>) -> &'a [LockOutcome] {
    &subject.domain().locks[..catalog::names().locks_of(subject.asked()).len()]
}

/// Microseconds of an acquisition of the workload's locks.
fn each(subject: &Subject<'_>, total: Picos) -> f64 {
    let taken = locks(subject).iter().map(|l| l.acquisitions).sum::<u64>().max(1);
    total.micros() / taken as f64
}
