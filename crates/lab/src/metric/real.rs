//! Metrics of real benchmarks on the machine at hand. `overspin-real` defines those of each benchmark.

use super::{Metric, Table};
use overspin_linux::benchmark;
use overspin_real::{count, dbench, kernbench, pft, pgbench};

/// `user-share` of the machine during a run.
pub static USER: Metric =
    Metric::new("user-share", "%", "user time, of all CPUs, by all processes of the machine");
/// `system-share` of the machine during a run.
pub static SYSTEM: Metric =
    Metric::new("system-share", "%", "system time and interrupts, of all CPUs");
/// `idle-share` of the machine during a run.
pub static IDLE: Metric = Metric::new("idle-share", "%", "idle time, of all CPUs");
/// `iowait-share` of the machine during a run.
pub static IOWAIT: Metric =
    Metric::new("iowait-share", "%", "idle time while a disk was waited for");
/// `steal-share` of the machine during a run.
pub static STEAL: Metric =
    Metric::new("steal-share", "%", "time that the hypervisor gave to others");
/// `switches` of the machine during a run.
pub static SWITCHES: Metric =
    Metric::new("switches", "1/s", "context switches of the whole machine");
/// `cpu-pressure` of the machine during a run.
pub static CPU_PRESSURE: Metric = Metric::new(
    "cpu-pressure",
    "%",
    "part of the time in which a thread waited for a CPU; absent where the kernel does not tell",
);
/// `run-delay` of the machine during a run.
pub static RUN_DELAY: Metric = Metric::new(
    "run-delay",
    "s/s",
    "time in which threads could have run and did not, together; absent where the kernel does not tell",
);
/// `contentions` of the machine during a run.
pub static CONTENTIONS: Metric = Metric::new(
    "contentions",
    "1/s",
    "waits for the kernel's own locks that began; absent where the kernel does not tell",
);

/// What all real benchmarks measure beside their own figures.
fn machine() -> Vec<&'static Metric> {
    vec![&USER, &SYSTEM, &IDLE, &IOWAIT, &STEAL, &SWITCHES, &CPU_PRESSURE, &RUN_DELAY, &CONTENTIONS]
}

/// What `overspin measure kernbench`, `dbench`, `pgbench`, `pft`, `count` and `command` measure, and `overspin linux`.
pub static OF_REAL: [Table; 9] = [
    Table {
        heading: "kernbench and command",
        places: "The place is `half`, `optimal`, `maximal` or `jobs-4`, or `program`; with `--lock`, `mutex.half` or `mutex`.",
        metrics: || kernbench::METRICS.into(),
    },
    Table {
        heading: "dbench",
        places: "The place is `clients-4`; with `--lock`, `mutex.clients-4`.",
        metrics: || dbench::METRICS.into(),
    },
    Table {
        heading: "An operation of dbench",
        places: "The place is that of the run with `/Flush` or another operation.",
        metrics: || dbench::OF_OPERATION.into(),
    },
    Table {
        heading: "pgbench",
        places: "The place is `clients-4`; with `--lock`, `mutex.clients-4`.",
        metrics: || pgbench::METRICS.into(),
    },
    Table {
        heading: "pft",
        places: "The place is `processes-2.packets-1000` or `threads-2.packets-1000`: the workers, and the packets a second beside them.",
        metrics: || pft::METRICS.into(),
    },
    Table {
        heading: "count",
        places: "The place is `packets-1000`: the packets a second beside it.",
        metrics: || count::METRICS.into(),
    },
    Table {
        heading: "A guest",
        places: "The place is `ticket.half` or another load, or `ticket` of `overspin linux dup`. All that kernbench measures is there, too.",
        metrics: || benchmark::METRICS.into(),
    },
    Table {
        heading: "A vCPU of a guest",
        places: "The place is that of the run with `/v0`.",
        metrics: || benchmark::OF_VCPU.into(),
    },
    Table {
        heading: "The machine during a run",
        places: "The place is that of the run with `/machine`.",
        metrics: machine,
    },
];
