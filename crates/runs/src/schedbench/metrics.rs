//! Metrics of `.bench` files.

use overspin_record::metric::{Metric, Table};

/// `throughput-total` of a set of workers.
pub(crate) static TOTAL: Metric = Metric::new(
    "throughput-total",
    "kops/s",
    "thousand operations in a second: the sum of the workers' means",
);
/// `throughput-stddev` of a set of workers.
pub(crate) static DEVIATION: Metric = Metric::new(
    "throughput-stddev",
    "kops/s",
    "standard deviation of the workers' means, with the divisor n",
);
/// `utilization-total` of a set of workers.
pub(crate) static UTILIZATION_TOTAL: Metric =
    Metric::new("utilization-total", "CPUs", "CPU time in a second: the sum of the workers' means");
/// `late-max` of a set of workers.
pub(crate) static LATE_MAX: Metric =
    Metric::new("late-max", "ms", "how late the latest item of all began after it was due");

/// `late-max-later` of a set of workers.
pub(crate) static LATE_MAX_LATER: Metric =
    Metric::new("late-max-later", "ms", "the same without the first second");
/// `fair` of a set of workers.
pub(crate) static FAIR: Metric = Metric::new(
    "fair",
    "",
    "CPU time over the fair share, for each worker; only beside a run of each worker alone",
);
/// `of-alone` of a set of workers.
pub(crate) static OF_ALONE: Metric =
    Metric::new("of-alone", "", "throughput over that of a worker alone, for each worker");

/// `deadlines` of a worker.
pub(crate) static DEADLINES: Metric =
    Metric::new("deadlines", "", "items with a deadline; only workers that have deadlines");
/// `missed` of a worker.
pub(crate) static MISSED: Metric =
    Metric::new("missed", "", "items that were not done by their deadlines");
/// `at` of a worker, for each of its reports.
pub(crate) static AT: Metric = Metric::new("at", "s", "time of the report");
/// `throughput` of a worker, for each of its reports.
pub(crate) static THROUGHPUT: Metric =
    Metric::new("throughput", "kops/s", "thousand operations in a second, since the last report");
/// `utilization` of a worker, for each of its reports.
pub(crate) static UTILIZATION: Metric =
    Metric::new("utilization", "CPUs", "CPU time in a second, since the last report");
/// `late` of a worker, for each of its reports.
pub(crate) static LATE: Metric = Metric::new(
    "late",
    "ms",
    "how late the latest item since the last report began after it was due (MaxDelta)",
);

/// What `overspin schedbench` measures.
pub static OF_FILE: [Table; 2] = [
    Table {
        heading: "A set of workers",
        places: "The place is the run's label and the number of the set: `A 2 + B 2.1`.",
        metrics: || {
            vec![
                &TOTAL,
                &DEVIATION,
                &UTILIZATION_TOTAL,
                &LATE_MAX,
                &LATE_MAX_LATER,
                &FAIR,
                &OF_ALONE,
            ]
        },
    },
    Table {
        heading: "A worker",
        places: "The place is the run's label and the worker in schedbench's numbering: `A 2 + B 2.1:0`. The last \
                 four metrics have a sample for each report, in order.",
        metrics: || vec![&DEADLINES, &MISSED, &AT, &THROUGHPUT, &UTILIZATION, &LATE],
    },
];
