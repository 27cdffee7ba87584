//! What a sweep measures of each run: a few figures that every workload with locks has.

use crate::catalog;
use overspin_scenario::{DomainOutcome, LockOutcome, Outcome, Picos, Scenario};

/// A measure of a run, in the unit of its samples.
#[derive(Debug)]
pub struct Measure {
    /// The metric of its samples in records.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// A heading for people.
    pub title: &'static str,
    /// What it says, in a sentence.
    pub definition: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    of: fn(&Subject<'_>) -> f64,
}

/// The number of [`MEASURES`].
pub const COUNT: usize = 6;

/// The position of the throughput in [`MEASURES`].
pub const THROUGHPUT: usize = 0;

/// What is measured of each run, in the order of a cell's values.
pub static MEASURES: [Measure; COUNT] = [
    Measure {
        metric: "throughput",
        unit: "1/s",
        title: "Throughput",
        definition: "Acquisitions of the workload's locks per simulated second.",
        more_is_better: true,
        of: |s| s.workload_locks().map(|(d, locks)| rate(s.outcome, d, locks)).sum(),
    },
    Measure {
        metric: "wait-p50",
        unit: "us",
        title: "p50 wait",
        definition: "The wait that half of the acquisitions did not exceed, of the lock where it is longest.",
        more_is_better: false,
        of: |s| s.longest(|l| l.wait_p50),
    },
    Measure {
        metric: "wait-p99",
        unit: "us",
        title: "p99 wait",
        definition: "The wait that 99 % of the acquisitions did not exceed, of the lock where it is longest.",
        more_is_better: false,
        of: |s| s.longest(|l| l.wait_p99),
    },
    Measure {
        metric: "wait-p99.9",
        unit: "us",
        title: "p99.9 wait",
        definition: "The wait that 99.9 % of the acquisitions did not exceed, of the lock where it is longest.",
        more_is_better: false,
        of: |s| s.longest(|l| l.wait_p999),
    },
    Measure {
        metric: "burned",
        unit: "%",
        title: "CPU burned",
        definition: "Percent of the vCPUs' running time spent on waiting for locks: spinning, and stalls on \
                     their cache lines.",
        more_is_better: false,
        of: |s| s.burned(),
    },
    Measure {
        metric: "fairness",
        unit: "%",
        title: "Fairness",
        definition: "Jain's index over the tasks' items: 100 if all did the same, 100/n if one of n did all.",
        more_is_better: true,
        of: |s| {
            let tasks = s.outcome.domains.iter().flat_map(|d| &d.tasks);
            100.0 * overspin_stats::jain(&tasks.map(|t| t.items as f64).collect::<Vec<_>>())
        },
    },
];

/// The [`MEASURES`] of a run of `scenario`, in their units.
pub(super) fn measure(scenario: &Scenario, outcome: &Outcome) -> [f64; COUNT] {
    let subject = Subject { scenario, outcome };
    std::array::from_fn(|i| (MEASURES[i].of)(&subject))
}

/// A run, and the scenario that it ran.
struct Subject<'a> {
    scenario: &'a Scenario,
    outcome: &'a Outcome,
}

impl<'a> Subject<'a> {
    /// Each domain with the locks of its workload: the guest kernel's own locks come after them.
    fn workload_locks(&self) -> impl Iterator<Item = (&'a DomainOutcome, &'a [LockOutcome])> {
        let domains = self.outcome.domains.iter().zip(&self.scenario.domains);
        domains.map(|(of, domain)| (of, &of.locks[..catalog::names().locks_of(domain).len()]))
    }

    /// The longest of one kind of wait, in microseconds.
    fn longest(&self, wait: fn(&LockOutcome) -> Picos) -> f64 {
        let waits = self.workload_locks().flat_map(|(_, locks)| locks).map(wait);
        waits.max().unwrap_or_default().micros()
    }

    fn burned(&self) -> f64 {
        let vcpus = || self.outcome.domains.iter().flat_map(|d| &d.vcpus);
        let (waiting, running): (Picos, Picos) =
            (vcpus().map(|v| v.waiting).sum(), vcpus().map(|v| v.running).sum());
        // The hypervisor counts in whole nanoseconds, the waits are counted in picoseconds.
        if running == Picos::ZERO { 0.0 } else { waiting.percent(running).min(100.0) }
    }
}

/// Acquisitions per second while the domain lived.
fn rate(outcome: &Outcome, domain: &DomainOutcome, locks: &[LockOutcome]) -> f64 {
    let seconds = domain.lifetime(outcome.elapsed).seconds();
    let acquisitions = locks.iter().map(|l| l.acquisitions as f64).sum::<f64>();
    if seconds > 0.0 { acquisitions / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = MEASURES.iter().map(|m| m.metric).collect();
        assert_eq!(names.len(), COUNT);
        assert_eq!(MEASURES[THROUGHPUT].metric, "throughput");
    }
}
