//! Metrics of real benchmarks on the machine at hand. `overspin-real` defines those of each benchmark.

use super::{Metric, Table};
use overspin_linux::{benchmark, inside};
use overspin_real::{count, dbench, kernbench, pft, pgbench, seconds};

/// What all real benchmarks measure beside their own figures.
fn machine() -> Vec<&'static Metric> {
    seconds::METRICS.into()
}

/// What `overspin measure kernbench`, `dbench`, `pgbench`, `pft`, `count` and `command` measure, and `overspin linux`.
pub static OF_REAL: [Table; 10] = [
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
        heading: "A lock of a guest's kernel",
        places: "The place is that of the run with `/lock NAME`, as `/proc/lock_stat` has it.",
        metrics: || inside::OF_LOCK.into(),
    },
    Table {
        heading: "The machine during a run",
        places: "The place is that of the run with `/machine`, a guest's with `/guest`.",
        metrics: machine,
    },
];
