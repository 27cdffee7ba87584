//! Metrics of runs of scenarios: what any run has, and what each point of a sweep has. Experiments use them too, where
//! they measure the same.

use super::Metric;

macro_rules! metrics {
    ($($name:ident = $metric:literal, $unit:literal, $meaning:literal;)+) => {
        $(#[doc = $meaning] pub static $name: Metric = Metric::new($metric, $unit, $meaning);)+
    };
}

// Of the host.
metrics! {
    BUSY = "busy", "%", "Percent of the pCPUs' time in which they ran vCPUs.";
}

// Of a domain, or of all domains together.
metrics! {
    ELAPSED = "elapsed", "s", "Time from the start of the domain until its work was done.";
    ITEMS = "items", "1/s", "Work items of the domain's tasks per second, as the workload counts them.";
    FAIRNESS = "fairness", "%",
        "Jain's index over the tasks' items: 100 if all did the same, 100/n if one of n did all.";
    STEAL = "steal", "%", "Percent of the time in which its vCPUs wanted a pCPU that they had none.";
    BURNED = "burned", "%",
        "Percent of the vCPUs' running time spent on waiting for locks: spinning, and stalls on their cache lines.";
    SPINNING = "spinning", "%",
        "Percent of the vCPUs' running time spent on spinning for locks; `burned` has stalls on cache lines, too.";
}

// Of a lock.
metrics! {
    ACQUISITIONS = "acquisitions", "1/s", "Acquisitions of the lock per second.";
    WAITS = "waiting", "s/s", "Time that all waiters together waited for the lock, per second.";
    WAIT_P50 = "wait-p50", "us", "The wait that half of the acquisitions did not exceed.";
    WAIT_P99 = "wait-p99", "us", "The wait that 99 % of the acquisitions did not exceed.";
    WAIT_P999 = "wait-p99.9", "us", "The wait that 99.9 % of the acquisitions did not exceed.";
}

// Of a point of a sweep, over all of its locks.
metrics! {
    THROUGHPUT = "throughput", "1/s", "Acquisitions of the workload's locks per simulated second.";
    LONGEST_WAIT_P50 = "wait-p50", "us",
        "The wait that half of the acquisitions did not exceed, of the lock where it is longest.";
    LONGEST_WAIT_P99 = "wait-p99", "us",
        "The wait that 99 % of the acquisitions did not exceed, of the lock where it is longest.";
    LONGEST_WAIT_P999 = "wait-p99.9", "us",
        "The wait that 99.9 % of the acquisitions did not exceed, of the lock where it is longest.";
}
