//! The metrics of this kind, in long form. Places are
//!
//! - `lock.load.pcpus` for a run in a guest, such as `ticket."pgbench, 8 clients".4`;
//! - `threads.2.100ns-200ns` for the cost on threads of this machine: the number of threads, the length of
//!   the section and the mean length of the work between sections; below it, the two locks;
//! - `capacity.lock` for the capacity of locks;
//! - `kernel.scale.clients` for published averages, such as `base.500.16`.

use super::measure::{Measured, Sample};
use super::threads::Cost;
use super::{Capacity, PvTicket};
use overspin_claims::{Samples, Vocabulary};
use overspin_native::bench::{PairedReport, Pairs};
use overspin_record::metric::simulated::SPINNING;
use overspin_record::metric::{Metric, Table};
use std::time::Duration;

static DEADLOCK: Metric =
    Metric::new("deadlock", "", "1 if everything waited for something, else 0");
static RATE: Metric = Metric::new(
    "rate",
    "1/s",
    "transactions, or processes of the compile; on threads: acquisitions",
);
static OF_BEST: Metric =
    Metric::new("of-best", "%", "rate in parts of the mean rate of the lock that is best there");
static OVERCOMMIT: Metric = Metric::new("overcommit", "", "vCPUs for each pCPU");
static WAIT: Metric = Metric::new(
    "wait-p999",
    "ms",
    "99.9 % of the acquisitions of the worst lock waited at most so long",
);
static SLOW_PATHS: Metric = Metric::new("slow-paths", "", "times that a waiter slept");
static HOLDERS: Metric =
    Metric::new("holders-preempted", "", "times that a holder was descheduled");
static IN_GUEST: [&Metric; 6] = [&RATE, &OF_BEST, &SPINNING, &WAIT, &SLOW_PATHS, &HOLDERS];

static RATIO: Metric = Metric::new(
    "ratio",
    "",
    "throughput of PV ticket over that of ticket: the mean of pairs, by logarithms",
);
static LOW: Metric = Metric::new("ratio-low", "", "lower end of its 95 % interval");
static HIGH: Metric = Metric::new("ratio-high", "", "upper end");
static RESOLUTION: Metric =
    Metric::new("resolution", "%", "how far the interval goes to either side");
static CHANCE: Metric = Metric::new(
    "chance",
    "",
    "probability of so large a difference if there is none (p), with all situations counted (Holm)",
);
static COST: [&Metric; 5] = [&RATIO, &LOW, &HIGH, &RESOLUTION, &CHANCE];
/// The two locks of a pair.
const PAIR: [&str; 2] = ["ticket", "pv-ticket"];

static CPUS: Metric = Metric::new("cpus", "", "the most CPUs that the lock serves");

/// What is measured, for the reference.
pub(crate) static TABLES: [Table; 4] = [
    Table {
        heading: "A lock under a load",
        places: "The place is `lock.load.pcpus`, by the label of the lock: `ticket.\"pgbench, 8 clients\".4`.",
        metrics: || [&DEADLOCK, &OVERCOMMIT].into_iter().chain(IN_GUEST).collect(),
    },
    Table {
        heading: "The cost on threads of the real machine",
        places: "The place is `threads.2.100ns-200ns`: the number of threads, the length of the section, and the \
                 mean length of the work between two sections.",
        metrics: || COST.to_vec(),
    },
    Table {
        heading: "A lock on threads",
        places: "The place is that of the cost with `.ticket` or `.pv-ticket`. The values of `setup.averages` are \
                 the published `rate` of `kernel.scale.clients`: `published(base.500.16.rate)`.",
        metrics: || vec![&RATE],
    },
    Table {
        heading: "The capacity of a lock",
        places: "The place is `capacity.lock`, for each lock of `setup.capacity`.",
        metrics: || vec![&CPUS],
    },
];

fn situation(section_ns: u128, outside_ns: u128) -> String {
    format!("{section_ns}ns-{outside_ns}ns")
}

pub(super) fn vocabulary(experiment: &PvTicket) -> Vocabulary {
    let mut names = Vocabulary::default();
    for lock in &experiment.locks {
        for load in &experiment.loads {
            for pcpus in &experiment.pcpus {
                let pcpus = pcpus.to_string();
                let place = [&lock.label, &load.name, &pcpus].map(String::as_str);
                names.measured(&place, &[&DEADLOCK, &OVERCOMMIT]);
                names.measured(&place, &IN_GUEST);
            }
        }
    }
    let pairs = Pairs::default();
    let nanos = |time: &Duration| time.as_nanos();
    for threads in pairs.threads.iter().map(usize::to_string) {
        for (section, outside) in &pairs.situations {
            let situation = situation(nanos(section), nanos(outside));
            let place = ["threads", threads.as_str(), situation.as_str()];
            names.measured(&place, &COST);
            for lock in PAIR {
                names.measured(&[place[0], place[1], place[2], lock], &[&RATE]);
            }
        }
    }
    for average in &experiment.averages {
        let place = [&average.kernel, &average.scale.to_string(), &average.clients.to_string()];
        names.published(&place.map(String::as_str), &RATE, average.avg);
    }
    for lock in &experiment.capacity {
        names.measured(&["capacity", lock], &[&CPUS]);
    }
    names
}

pub(super) fn samples(
    m: &Measured<'_>,
    runs: &[Sample],
    report: &PairedReport,
    cost: &[Cost],
    capacities: &[Capacity],
) -> Samples {
    let mut samples = Samples::default();
    for run in runs {
        let pcpus = run.pcpus.to_string();
        let place = [run.lock.as_str(), run.load.as_str(), pcpus.as_str()];
        let stuck = run.ending == "deadlock";
        let mut of = samples.run(Some(run.seed));
        let load = m.experiment.loads.iter().find(|l| l.name == run.load);
        of.add(&place, &DEADLOCK, f64::from(u8::from(stuck))).add(
            &place,
            &OVERCOMMIT,
            load.map(|load| m.overcommit(load, run.pcpus)),
        );
        if stuck {
            continue;
        }
        let best = load.and_then(|load| m.best(load, run.pcpus));
        of.add(&place, &RATE, run.rate)
            .add(&place, &OF_BEST, best.map(|best| 100.0 * (run.rate / best)))
            .add(&place, &SPINNING, 100.0 * run.spinning)
            .add(&place, &WAIT, 1e3 * run.wait_p999_s)
            .add(&place, &SLOW_PATHS, run.slow_paths as f64)
            .add(&place, &HOLDERS, run.holder_preempted as f64);
    }
    for (point, cost) in report.points.iter().zip(cost) {
        let threads = point.threads.to_string();
        let situation = situation(point.section_ns.into(), point.outside_ns.into());
        let place = ["threads", threads.as_str(), situation.as_str()];
        let mut of = samples.run(None);
        for pair in &point.pairs {
            for (lock, rate) in PAIR.iter().zip(pair) {
                of.add(&[place[0], place[1], place[2], lock], &RATE, *rate);
            }
        }
        of.add(&place, &CHANCE, cost.p);
        if let Some(ratio) = cost.ratio {
            of.add(&place, &RATIO, ratio.middle)
                .add(&place, &LOW, ratio.low)
                .add(&place, &HIGH, ratio.high)
                .add(&place, &RESOLUTION, 100.0 * ((ratio.high / ratio.low).sqrt() - 1.0));
        }
    }
    for capacity in capacities {
        samples.run(None).add(&["capacity", &capacity.lock], &CPUS, f64::from(capacity.cpus));
    }
    samples
}
