//! The figures of a run that are compared.

use super::cases::{Case, Family};
use crate::metric::{Metric, Table};
use overspin_record::validation::FigureKind;
use overspin_scenario::{DomainOutcome, Outcome, Picos, US, VcpuOutcome};

static THROUGHPUT: Metric =
    Metric::new("throughput", "1/s", "work items of the domain in a second");
static WORK_SHARE: Metric =
    Metric::new("work-share", "%", "the domain's part of the work items of all domains");
static LEAST_SHARE: Metric = Metric::new(
    "least-share",
    "%",
    "the work items of the worker with fewest, in percent of the mean of its domain",
);
static WAKE_P50: Metric = Metric::new(
    "wake-p50",
    "us",
    "half of the sleepers' items began at most so long after they were due",
);
static WAKE_P99: Metric = Metric::new(
    "wake-p99",
    "us",
    "99 % of the sleepers' items began at most so long after they were due",
);
static RUNNING: Metric =
    Metric::new("running", "%", "part of the vCPUs' time in which they had a pCPU");
static RUNNABLE: Metric = Metric::new(
    "runnable",
    "%",
    "part of the vCPUs' time in which they wanted a pCPU and had none (steal)",
);
static BLOCKED: Metric = Metric::new("blocked", "%", "part of the vCPUs' time in which they slept");

/// What other programs had of the CPUs, as in [`Disturbance`](super::Disturbance).
pub(crate) static OTHERS: Metric = Metric::new(
    "others",
    "%",
    "what other programs and the kernel's own threads had of the CPUs of this machine in a measured run",
);
/// What the hypervisor below had of the CPUs, as in [`Disturbance`](super::Disturbance).
pub(crate) static STEAL: Metric = Metric::new(
    "steal",
    "%",
    "what the hypervisor below had of the CPUs of this machine in a measured run",
);

/// The metrics of a validation.
pub static TABLES: [Table; 1] = [Table {
    heading: "A case",
    places: "The place is `hv.credit.wake-1-hogs.measured/sleeper`: the world, the scheduler, the case, the side \
             (`simulated` or `measured`), and the domain if there are several.",
    metrics: || {
        vec![
            &THROUGHPUT,
            &WORK_SHARE,
            &LEAST_SHARE,
            &WAKE_P50,
            &WAKE_P99,
            &RUNNING,
            &RUNNABLE,
            &BLOCKED,
            &OTHERS,
            &STEAL,
        ]
    },
}];

/// A figure of a run.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The domain, if the case has several.
    pub domain: Option<String>,
    /// Its metric.
    pub metric: &'static Metric,
    /// How it is compared.
    pub kind: FigureKind,
    /// Its value.
    pub value: f64,
}

/// The figures of a run of `case`. Equal cases give the same figures in the same order, but a run in which no
/// sleeper woke has no latencies.
#[must_use]
pub fn figures(case: &Case, outcome: &Outcome) -> Vec<Figure> {
    let several = outcome.domains.len() > 1;
    let seconds = outcome.counted().seconds().max(f64::MIN_POSITIVE);
    let all: f64 = outcome.domains.iter().map(items).sum();
    let mut figures = Vec::new();
    for domain in &outcome.domains {
        let name = several.then(|| domain.name.clone());
        let mut push = |metric, kind, value| {
            figures.push(Figure { domain: name.clone(), metric, kind, value });
        };
        match case.family {
            Family::Locks | Family::BurnWait | Family::Caps => {
                push(&THROUGHPUT, FigureKind::Throughput, items(domain) / seconds);
            }
            Family::Weights => {
                push(&WORK_SHARE, FigureKind::Throughput, 100.0 * items(domain) / all.max(1.0));
            }
            Family::Shares => {
                if several {
                    push(&WORK_SHARE, FigureKind::Throughput, 100.0 * items(domain) / all.max(1.0));
                }
                let least = domain.tasks.iter().map(|t| t.items).min().unwrap_or(0) as f64;
                let mean = items(domain) / domain.tasks.len().max(1) as f64;
                push(&LEAST_SHARE, FigureKind::Throughput, 100.0 * least / mean.max(1.0));
            }
            Family::WakeUp => {
                let mut late: Vec<Picos> =
                    domain.tasks.iter().flat_map(|t| &t.reports).map(|r| r.max_delta).collect();
                late.sort_unstable();
                if !late.is_empty() {
                    push(&WAKE_P50, FigureKind::Latency, quantile(&late, 0.5).ratio(US));
                    push(&WAKE_P99, FigureKind::Latency, quantile(&late, 0.99).ratio(US));
                }
            }
        }
        let time = outcome.counted().saturating_mul(domain.vcpus.len() as u64);
        let part = |of: fn(&VcpuOutcome) -> Picos| {
            let sum: Picos = domain.vcpus.iter().map(of).sum();
            if time == Picos::ZERO { 0.0 } else { sum.percent(time) }
        };
        push(&RUNNING, FigureKind::State, part(|v| v.running));
        push(&RUNNABLE, FigureKind::State, part(|v| v.runnable));
        push(&BLOCKED, FigureKind::State, part(|v| v.blocked));
    }
    figures
}

/// Work items of a domain.
fn items(domain: &DomainOutcome) -> f64 {
    domain.tasks.iter().map(|t| t.items as f64).sum()
}

/// The value that a part of `sorted`, which is not empty, does not exceed.
fn quantile(sorted: &[Picos], part: f64) -> Picos {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::cases::cases;
    use overspin_scenario::{Ending, MS, TaskOutcome, WorkerReport};

    fn outcome(domains: Vec<DomainOutcome>) -> Outcome {
        Outcome {
            seed: 1,
            ending: Ending::Limit,
            elapsed: 600 * MS,
            warmup: 100 * MS,
            progress_step: Picos::ZERO,
            events: 0,
            run_ahead: 0,
            trace_hash: 0,
            pcpus: Vec::new(),
            domains,
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: None,
        }
    }

    fn domain(name: &str, items: u64, late_us: &[u64]) -> DomainOutcome {
        let reports =
            late_us.iter().map(|us| WorkerReport { max_delta: *us * US, ..Default::default() });
        DomainOutcome {
            name: name.into(),
            vcpus: vec![VcpuOutcome {
                running: 125 * MS,
                runnable: 250 * MS,
                ..Default::default()
            }],
            tasks: vec![TaskOutcome { items, reports: reports.collect(), ..Default::default() }],
            ..Default::default()
        }
    }

    fn values(case: &str, domains: Vec<DomainOutcome>) -> Vec<(Option<String>, &'static str, f64)> {
        let case = cases(1).into_iter().find(|c| c.name == case).unwrap();
        let figures = figures(&case, &outcome(domains));
        figures.into_iter().map(|f| (f.domain, f.metric.name, f.value)).collect()
    }

    #[test]
    fn figures_by_hand() {
        // 30 items in half a second; 125, 250 and 0 of 500 ms.
        assert_eq!(
            values("ticket-1x", vec![domain("guest", 30, &[])]),
            [
                (None, "throughput", 60.0),
                (None, "running", 25.0),
                (None, "runnable", 50.0),
                (None, "blocked", 0.0)
            ]
        );
        let of = values("weights-3", vec![domain("heavy", 30, &[]), domain("light", 10, &[])]);
        assert_eq!(of[0], (Some("heavy".into()), "work-share", 75.0));
        assert_eq!(of[4], (Some("light".into()), "work-share", 25.0));
    }

    /// 96, 48 and 48 items: the least have 48 of 64.
    #[test]
    fn the_least_share_shows_a_hog_that_keeps_its_pcpu() {
        let hogs = [96, 48, 48].map(|items| TaskOutcome { items, ..Default::default() });
        let guest = DomainOutcome { tasks: hogs.into(), ..domain("hog", 0, &[]) };
        assert_eq!(values("shares-3-to-2", vec![guest])[0], (None, "least-share", 75.0));
    }

    #[test]
    fn latencies_are_of_all_wake_ups() {
        let late: Vec<u64> = (1..=100).rev().collect();
        let of = values("wake-0-hogs", vec![domain("sleeper", 100, &late)]);
        assert_eq!(of[..2], [(None, "wake-p50", 50.0), (None, "wake-p99", 99.0)]);
        assert_eq!(values("wake-0-hogs", vec![domain("sleeper", 0, &[])])[0].1, "running");
    }
}
