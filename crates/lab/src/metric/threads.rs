//! Metrics that are measured on threads of the machine at hand: benchmarks and noise.

use super::{Metric, Table};

/// `time` of a benchmark of the program.
pub static TIME: Metric =
    Metric::new("time", "s or ns", "time of one run or of one call, as the benchmark's name says");
/// `rate` of a benchmark of the program.
pub static RATE: Metric = Metric::new(
    "rate",
    "M/s or s/s",
    "million events or operations, or simulated seconds, in a second of one thread",
);
/// `memory` of a benchmark of the program.
pub static MEMORY: Metric =
    Metric::new("memory", "MiB", "most memory that the process had by then");

/// `acquisitions` of a lock in one situation.
pub static ACQUISITIONS: Metric = Metric::new("acquisitions", "1/s", "acquisitions of all threads");
/// `fairness` of a lock in one situation.
pub static FAIRNESS: Metric = Metric::new(
    "fairness",
    "%",
    "Jain's index over the threads' acquisitions: 100 if all had as many, 100/n if one of n threads had all",
);
/// `wait-p50` of a lock in one situation.
pub static WAIT_P50: Metric =
    Metric::new("wait-p50", "ns", "half of the acquisitions took at most so long");
/// `wait-p90` of a lock in one situation.
pub static WAIT_P90: Metric =
    Metric::new("wait-p90", "ns", "90 % of the acquisitions took at most so long");
/// `wait-p99` of a lock in one situation.
pub static WAIT_P99: Metric =
    Metric::new("wait-p99", "ns", "99 % of the acquisitions took at most so long");
/// `wait-p99.9` of a lock in one situation.
pub static WAIT_P999: Metric =
    Metric::new("wait-p99.9", "ns", "99.9 % of the acquisitions took at most so long");
/// `wait-max` of a lock in one situation.
pub static WAIT_MAX: Metric = Metric::new("wait-max", "ns", "the longest acquisition");
/// `cpu` of a lock in one situation.
pub static CPU: Metric =
    Metric::new("cpu", "ns", "CPU time of all threads for each acquisition, the work included");
/// `preempted` of a lock in one situation.
pub static PREEMPTED: Metric =
    Metric::new("preempted", "1/s", "involuntary context switches: a thread was descheduled");
/// `slept` of a lock in one situation.
pub static SLEPT: Metric =
    Metric::new("slept", "1/s", "voluntary context switches: a thread went to sleep");
/// `length` of a lock in one situation.
pub static LENGTH: Metric = Metric::new("length", "s", "length of the run");
/// `share` of one thread.
pub static SHARE: Metric = Metric::new("share", "", "acquisitions of this thread");

/// `read` of the clock.
pub static READ: Metric = Metric::new("read", "ns", "time to read the clock");
/// `step` of the clock.
pub static STEP: Metric = Metric::new("step", "ns", "the clock's smallest step");
/// `steal-step` of the clock.
pub static STEAL_STEP: Metric =
    Metric::new("steal-step", "ns", "the step of the kernel's count of stolen time");

/// `watched` of a CPU.
pub static WATCHED: Metric =
    Metric::new("watched", "ns", "time in which quanta of work were watched, gaps included");
/// `quanta` of a CPU.
pub static QUANTA: Metric = Metric::new("quanta", "", "quanta of work");
/// `quantum` of a CPU.
pub static QUANTUM: Metric = Metric::new("quantum", "ns", "mean length of an undisturbed quantum");
/// `quantum-min` of a CPU.
pub static QUANTUM_MIN: Metric =
    Metric::new("quantum-min", "ns", "the shortest undisturbed quantum of any 256 in a row");
/// `quantum-max` of a CPU.
pub static QUANTUM_MAX: Metric =
    Metric::new("quantum-max", "ns", "the longest undisturbed quantum of any 256 in a row");
/// `steal` of a CPU.
pub static STEAL: Metric = Metric::new(
    "steal",
    "ns",
    "stolen time, by the kernel's count; absent where it does not count",
);
/// `run-delay` of a CPU.
pub static RUN_DELAY: Metric = Metric::new(
    "run-delay",
    "ns",
    "time in which the thread could have run and did not, by the kernel's count; absent where it does not count",
);

/// `gaps` of a kind of gaps.
pub static GAPS: Metric = Metric::new("gaps", "", "number of gaps");
/// `time` of a kind of gaps.
pub static GAP_TIME: Metric = Metric::new("time", "ns", "their length in all");
/// `longest` of a kind of gaps.
pub static LONGEST: Metric = Metric::new("longest", "ns", "the longest of them");
/// `bin-gaps` of the gaps of about one length.
pub static BIN_GAPS: Metric = Metric::new("bin-gaps", "", "number of gaps of such a length");
/// `bin-time` of the gaps of about one length.
pub static BIN_TIME: Metric = Metric::new("bin-time", "ns", "their length in all");

/// What `overspin bench sim` and `bench sched` measure.
pub static OF_SPEED: [Table; 1] = [Table {
    heading: "A benchmark of the program",
    places: "The place is `sim.` or `sched.` and the name of the benchmark. It has one of these \
             metrics.",
    metrics: || vec![&TIME, &RATE, &MEMORY],
}];

/// What `overspin bench locks` measures.
pub static OF_LOCKS: [Table; 2] = [
    Table {
        heading: "A lock in a situation",
        places: "The place is `mutex.threads-2.section-100ns.outside-200ns`: the lock, the number of threads, the \
                 length of the section, and the mean length of the work between two sections. In another case than \
                 `plain` the case follows the lock: `mutex.hogs.threads-2.section-100ns.outside-200ns`.",
        metrics: || {
            vec![
                &ACQUISITIONS,
                &FAIRNESS,
                &WAIT_P50,
                &WAIT_P90,
                &WAIT_P99,
                &WAIT_P999,
                &WAIT_MAX,
                &CPU,
                &PREEMPTED,
                &SLEPT,
                &LENGTH,
            ]
        },
    },
    Table {
        heading: "A thread in a situation",
        places: "The place is that of the situation with `.thread-0`.",
        metrics: || vec![&SHARE],
    },
];

/// What `overspin measure noise` measures.
pub static OF_NOISE: [Table; 4] = [
    Table {
        heading: "The clock",
        places: "The place is `clock`.",
        metrics: || vec![&READ, &STEP, &STEAL_STEP],
    },
    Table {
        heading: "A CPU",
        places: "The place is `cpu-0`.",
        metrics: || {
            vec![&WATCHED, &QUANTA, &QUANTUM, &QUANTUM_MIN, &QUANTUM_MAX, &STEAL, &RUN_DELAY]
        },
    },
    Table {
        heading: "A kind of gaps",
        places: "The place is `cpu-0.thread`, `cpu-0.taken` or `cpu-0.short` ([the kinds](measure.md)), or \
                 `cpu-0.interval`: the times from one `thread` gap to the next.",
        metrics: || vec![&GAPS, &GAP_TIME, &LONGEST],
    },
    Table {
        heading: "Gaps of about one length",
        places: "The place is `cpu-0.thread.1024-1152ns`: from the first length to below the second.",
        metrics: || vec![&BIN_GAPS, &BIN_TIME],
    },
];

/// `cost` of an operation of the machine.
pub static COST: Metric = Metric::new(
    "cost",
    "ns",
    "what the operation takes in one round; a speed is in thousandths (`permille`), a share in `0.001 %`",
);

/// What `overspin calibrate` measures.
pub static OF_CALIBRATION: [Table; 1] = [Table {
    heading: "An operation",
    places: "The place is a key of `[host.costs]`, `smt_permille`, `line-0-1` (two CPUs), `wake`, `timer`, `noise`, \
             `interruption`, or `rewarm.256-KiB-at-random.10us` (working set, time of the other thread; `rewarm-control`: the \
             other touches nothing). A run is a round.",
    metrics: || vec![&COST],
}];
