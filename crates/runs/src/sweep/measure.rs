//! What a sweep measures of each run: a few figures that every workload with locks has.

use crate::catalog;
use crate::instruments::Subject;
use overspin_record::metric::{Metric, Table, simulated};
use overspin_scenario::{DomainOutcome, LockOutcome, Outcome, Picos, Scenario};

/// A measure of a run, in the unit of its metric.
#[derive(Debug)]
pub struct Measure {
    /// The metric of its samples in records.
    pub metric: &'static Metric,
    /// A heading for people.
    pub title: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    pub(crate) of: fn(&Subject<'_>) -> Option<f64>,
}

/// What is measured of each run, in the order of a cell's values. A new measure is one more row.
const ALL: &[Measure] = &[
    Measure {
        metric: &simulated::THROUGHPUT,
        title: "Throughput",
        more_is_better: true,
        of: |s| Some(workload_locks(s).map(|(d, locks)| rate(s.outcome, d, locks)).sum()),
    },
    Measure {
        metric: &simulated::LONGEST_WAIT_P50,
        title: "p50 wait",
        more_is_better: false,
        of: |s| Some(longest(s, |l| l.wait_p50)),
    },
    Measure {
        metric: &simulated::LONGEST_WAIT_P99,
        title: "p99 wait",
        more_is_better: false,
        of: |s| Some(longest(s, |l| l.wait_p99)),
    },
    Measure {
        metric: &simulated::LONGEST_WAIT_P999,
        title: "p99.9 wait",
        more_is_better: false,
        of: |s| Some(longest(s, |l| l.wait_p999)),
    },
    Measure {
        metric: &simulated::BURNED,
        title: "CPU burned",
        more_is_better: false,
        of: |s| Some(burned(s)),
    },
    Measure {
        metric: &simulated::FAIRNESS,
        title: "Fairness",
        more_is_better: true,
        of: |s| {
            let tasks = s.outcome.domains.iter().flat_map(|d| &d.tasks);
            Some(100.0 * overspin_stats::jain(&tasks.map(|t| t.items as f64).collect::<Vec<_>>()))
        },
    },
];

/// All measures.
pub static MEASURES: &[Measure] = ALL;

/// The number of [`MEASURES`].
pub const COUNT: usize = ALL.len();

/// The position of the throughput in [`MEASURES`].
pub const THROUGHPUT: usize = 0;

/// What each point of a sweep has.
pub static TABLES: [Table; 1] = [Table {
    heading: "A point of a sweep",
    places: "The place has the values on the axes, in their order: `ticket.2/1`.",
    metrics: || MEASURES.iter().map(|m| m.metric).collect(),
}];

/// The [`MEASURES`] of a run of `scenario`, in their units.
pub(super) fn measure(scenario: &Scenario, outcome: &Outcome) -> [f64; COUNT] {
    let subject = Subject { scenario, outcome, domain: 0, scale: 1.0 };
    std::array::from_fn(|i| (MEASURES[i].of)(&subject).unwrap_or(0.0))
}

/// Each domain with the locks of its workload: the guest kernel's own locks come after them.
fn workload_locks<'a>(
    s: &Subject<'a>,
) -> impl Iterator<Item = (&'a DomainOutcome, &'a [LockOutcome])> {
    let domains = s.outcome.domains.iter().zip(&s.scenario.domains);
    domains.map(|(of, domain)| (of, &of.locks[..catalog::names().locks_of(domain).len()]))
}

/// The longest of one kind of wait, in microseconds.
fn longest(s: &Subject<'_>, wait: fn(&LockOutcome) -> Picos) -> f64 {
    workload_locks(s).flat_map(|(_, locks)| locks).map(wait).max().unwrap_or_default().micros()
}

fn burned(s: &Subject<'_>) -> f64 {
    let vcpus = || s.outcome.domains.iter().flat_map(|d| &d.vcpus);
    // Waits for locks of programs are counted for their tasks: of these, the vCPUs know the spinning.
    let (waiting, running): (Picos, Picos) =
        (vcpus().map(|v| v.waiting.max(v.spinning)).sum(), vcpus().map(|v| v.running).sum());
    // The hypervisor counts in whole nanoseconds, the waits are counted in picoseconds.
    if running == Picos::ZERO { 0.0 } else { waiting.percent(running).min(100.0) }
}

/// Acquisitions per second while the domain lived.
fn rate(outcome: &Outcome, domain: &DomainOutcome, locks: &[LockOutcome]) -> f64 {
    let seconds = outcome.lifetime(domain).seconds();
    let acquisitions = locks.iter().map(|l| l.acquisitions as f64).sum::<f64>();
    if seconds > 0.0 { acquisitions / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = MEASURES.iter().map(|m| m.metric.name).collect();
        assert_eq!(names.len(), COUNT);
        assert_eq!(MEASURES[THROUGHPUT].metric.name, "throughput");
    }
}
