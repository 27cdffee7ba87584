//! Metrics of simulated scenarios: runs, many seeds, sweeps.

use super::{Metric, Table};

/// Of the host.
pub(crate) static BUSY: Metric = Metric::new(
    "busy",
    "%",
    "part of the pCPUs' time in which they ran vCPUs; the rest is switching and idling",
);

/// Of a domain.
pub(crate) static ELAPSED: Metric = Metric::new(
    "elapsed",
    "s",
    "from the start of the domain's first vCPU to the end of its last task; only if all its tasks ended",
);
/// Of a domain.
pub(crate) static ITEMS: Metric = Metric::new(
    "items",
    "1/s",
    "items of work that the domain's tasks did; what an item is depends on the workload",
);
/// Of a domain, and of a point of a sweep.
pub(crate) static FAIRNESS: Metric = Metric::new(
    "fairness",
    "%",
    "Jain's index over the tasks' items: 100 if all did the same, 100/n if one of n tasks did everything",
);
/// Of a domain.
pub(crate) static STEAL: Metric = Metric::new(
    "steal",
    "%",
    "part of the time in which the vCPUs wanted a pCPU that they spent without one",
);
/// Of a domain, and of a point of a sweep.
pub(crate) static BURNED: Metric = Metric::new(
    "burned",
    "%",
    "part of the vCPUs' running time that went into waiting for locks: spinning, and stalls on the locks' own \
     cache lines",
);

/// Of a lock.
pub(crate) static ACQUISITIONS: Metric =
    Metric::new("acquisitions", "1/s", "acquisitions in a second of the domain's time");
/// Of a lock.
pub(crate) static WAITING: Metric = Metric::new(
    "waiting",
    "s/s",
    "waiting time of all its waiters, on a pCPU or not, in a second of the domain's time",
);
/// Of a lock, and of a point of a sweep.
pub(crate) static WAIT_P999: Metric =
    Metric::new("wait-p99.9", "us", "99.9 % of the acquisitions waited at most so long");

/// Of a point of a sweep.
pub(crate) static THROUGHPUT: Metric = Metric::new(
    "throughput",
    "1/s",
    "acquisitions of the workloads' locks, without those of the guest kernel, in a second of each domain's time; \
     the sum over domains",
);
/// Of a point of a sweep: the worst of its locks.
pub(crate) static WORST_WAIT_P999: Metric = Metric::new(
    "wait-p99.9",
    "us",
    "99.9 % of the acquisitions of the worst of these locks waited at most so long",
);

/// What a run has, with one seed or with many.
pub(crate) static OF_RUN: [Table; 3] = [
    Table { heading: "The host", places: "The place is `host`.", metrics: || vec![&BUSY] },
    Table {
        heading: "A domain",
        places: "The place is the domain's name, `guest`; `guest#1` if several share the name.",
        metrics: || vec![&ELAPSED, &ITEMS, &FAIRNESS, &STEAL, &BURNED],
    },
    Table {
        heading: "A lock",
        places: "The place is `guest/dcache_lock`: the domain and the lock.",
        metrics: || vec![&ACQUISITIONS, &WAITING, &WAIT_P999],
    },
];

/// What each point of a sweep has.
pub(crate) static OF_SWEEP: [Table; 1] = [Table {
    heading: "A point of a sweep",
    places: "The place has the values on the axes, in their order: `ticket.2/1`.",
    metrics: || vec![&THROUGHPUT, &WORST_WAIT_P999, &BURNED, &FAIRNESS],
}];
