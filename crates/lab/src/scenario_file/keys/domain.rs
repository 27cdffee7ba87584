//! The keys of a domain: its vCPUs, its kernel, its workload.

use super::Absent::{Is, Means, Required};
use super::Kind::{Boolean, Choice, Cpus, Lock, OneOf, Params, Table, Tables, Text, Texts};
use super::{ANY, CAP, COST, Key, Section, WEIGHT, Whose, integer, key, time};
use crate::scenario_file::quantity::LONGEST;
use overspin_scenario::{MS, NS, SEC, US};

pub(crate) const DOMAIN: Section = Section {
    heading: "[[domain]]",
    doc: "A virtual machine.",
    keys: &[
        key("name", Text, Means("`domain0`, `domain1`, …"), "Name; no two domains share one."),
        key("vcpus", integer(1, 65_536), Required, "vCPUs; not more than the lock can serve."),
        key("weight", WEIGHT, Is("256"), "Scheduler weight."),
        key(
            "cap",
            CAP,
            Is("0"),
            "Most CPU time in percent of one pCPU, at most 100 x vcpus; 0 is no cap.",
        ),
        key(
            "scheduler_params",
            Params(Whose::Domain),
            Means("the scheduler's"),
            "Parameters that the host's scheduler has for domains.",
        ),
        key(
            "pool",
            Text,
            Means("the host's own"),
            "Pool in which it starts; `host` is the host's own.",
        ),
        key(
            "affinity",
            Cpus,
            Means("all pCPUs"),
            "Where vCPUs may run: one list such as \"0-3,6\" for all of them, or an array with a list \
             for each.",
        ),
        key("lock", Lock, Required, "Lock algorithm of its kernel."),
        key(
            "spin_budget",
            integer(0, u32::MAX as u64),
            Means("the lock's own"),
            "Wait-loop iterations before a lock that blocks does so.",
        ),
        key(
            "nopvspin",
            Boolean,
            Is("false"),
            "Paravirtual locks behave as on bare hardware: their waiters never sleep.",
        ),
        key("kernel", Table(&KERNEL), Means("as below"), "Its kernel."),
        key("workload", OneOf(WORKLOADS), Required, "What it does."),
    ],
};

pub(crate) const KERNEL: Section = Section {
    heading: "[domain.kernel]",
    doc: "The kernel of the domain above.",
    keys: &[
        key(
            "hz",
            integer(0, 10_000),
            Is("1000"),
            "Timer ticks a second on a busy vCPU; 0 is tickless.",
        ),
        key("task_switch", COST, Is("2us"), "Switch from one task to another."),
        key("tick_work", time(0, 100 * US), Is("2us"), "Time that a tick handler works."),
        key(
            "wakeup_granularity",
            time(0, 10 * SEC),
            Is("30ms"),
            "A waking task preempts one that is ahead of it by more than this.",
        ),
        key(
            "slice",
            time(0, 10 * SEC),
            Is("15ms"),
            "A tick preempts a task that is ahead of a waiting one by more than this.",
        ),
        key(
            "vmstat",
            time(MS, LONGEST),
            Means("it does not run"),
            "Time between two lines of `vmstat`, which is printed with the results.",
        ),
    ],
};

/// One section for each workload; the first key of each says which.
pub(crate) const WORKLOADS: &[&Section] = &[
    &LOCK_LOOP,
    &BURN_WAIT,
    &KERNBENCH,
    &SCHEDBENCH,
    &PHASES,
    &COUNT,
    &PFT,
    &PING,
    &PGBENCH,
    &DBENCH,
];

/// Words that `kind` takes, in the order of [`WORKLOADS`].
pub(crate) const WORKLOAD_KINDS: &[&str] = &[
    "lock-loop",
    "burn-wait",
    "kernbench",
    "schedbench",
    "phases",
    "count",
    "pft",
    "ping",
    "pgbench",
    "dbench",
];

/// How a time varies around its mean.
pub(crate) const DISTRIBUTIONS: &[&str] = &["fixed", "exponential"];

/// Which ticks phases wait for.
pub(crate) const ALIGNMENTS: &[&str] = &["none", "guest-tick", "host-tick"];

/// Where locks lie.
pub(crate) const PLACEMENTS: &[&str] = &["linked", "aligned"];

const KIND: Key = key("kind", Choice(WORKLOAD_KINDS), Required, "Which workload.");
const THREADS: Key =
    key("threads", integer(0, 100_000), Is("0"), "Threads; 0 is one on each vCPU.");

const LOCKS: Key = key(
    "locks",
    Tables(&KERNEL_LOCK),
    Means("no locks"),
    "Kernel locks, one `[[domain.workload.locks]]` each.",
);

pub(crate) const COUNT: Section = Section {
    heading: "[domain.workload] with kind = \"count\"",
    doc: "A process that counts from 0, and does nothing else.",
    keys: &[
        KIND,
        key("to", integer(1, u64::MAX), Is("4294967296"), "Where it ends."),
        key("step", time(1, SEC), Is("5ns"), "CPU time of one iteration."),
    ],
};

pub(crate) const PFT: Section = Section {
    heading: "[domain.workload] with kind = \"pft\"",
    doc: "A page-fault test: processes, all started on vCPU 0, that touch their memory page by page.",
    keys: &[
        KIND,
        key("processes", integer(1, 10_000), Is("2"), "Processes."),
        key("pages", integer(1, u64::MAX), Is("32768"), "Pages that each touches."),
        key("touch", time(0, SEC), Is("100ns"), "User CPU time for a page."),
        key(
            "fault",
            time(0, SEC),
            Is("5us"),
            "Kernel CPU time of a fault, time under locks included.",
        ),
        key(
            "fork",
            time(0, SEC),
            Is("500us"),
            "Kernel CPU time to start a process, which its parent spends.",
        ),
        LOCKS,
    ],
};

pub(crate) const PING: Section = Section {
    heading: "[domain.workload] with kind = \"ping\"",
    doc: "Answers to the pings of another machine: interrupts at a rate.",
    keys: &[
        KIND,
        key(
            "rate",
            integer(0, 10_000_000),
            Required,
            "Requests a second that the other machine is told to send; 0 is none.",
        ),
        key(
            "resolution",
            time(0, SEC),
            Is("1ms"),
            "Its `ping` cuts the time between two down to a multiple of this; 0: it is exact. If 0 \
             is left, the next request comes `round_trip` after the answer to the last.",
        ),
        key(
            "round_trip",
            time(0, SEC),
            Is("100us"),
            "From an answer to the request that it causes: the network, and the other machine.",
        ),
        key("work", time(0, SEC), Is("20us"), "CPU time from interrupt to answer."),
    ],
};

pub(crate) const LOCK_LOOP: Section = Section {
    heading: "[domain.workload] with kind = \"lock-loop\"",
    doc: "Threads that take one lock again and again.",
    keys: &[
        KIND,
        THREADS,
        key("section", ANY, Is("2us"), "Time in the section."),
        key("outside", ANY, Is("10us"), "Mean time between sections."),
        key(
            "fixed",
            Boolean,
            Is("false"),
            "The time outside is always the same instead of exponential.",
        ),
        key(
            "irqs_off",
            Boolean,
            Is("true"),
            "Interrupts are off in the section and while waiting for it.",
        ),
        key(
            "count",
            integer(0, u64::MAX),
            Is("0"),
            "Sections of each thread; 0 is until the limit.",
        ),
    ],
};

pub(crate) const BURN_WAIT: Section = Section {
    heading: "[domain.workload] with kind = \"burn-wait\"",
    doc: "Threads that compute and sleep in turn.",
    keys: &[
        KIND,
        THREADS,
        key("burn", time(NS, LONGEST), Is("10ms"), "CPU time of one item."),
        key("wait", ANY, Is("0"), "Sleep after it; 0 never sleeps."),
        key("count", integer(0, u64::MAX), Is("0"), "Items of each thread; 0 is until the limit."),
        key(
            "burn_distribution",
            Choice(DISTRIBUTIONS),
            Is("fixed"),
            "How `burn`, the mean, varies.",
        ),
        key(
            "wait_distribution",
            Choice(DISTRIBUTIONS),
            Is("fixed"),
            "How `wait`, the mean, varies. With `exponential` threads begin with a wait.",
        ),
    ],
};

pub(crate) const SCHEDBENCH: Section = Section {
    heading: "[domain.workload] with kind = \"schedbench\"",
    doc: "A schedbench worker on each vCPU: timers that burn and wait.",
    keys: &[
        KIND,
        key(
            "worker",
            Text,
            Required,
            "Its items, as in a plan: `burnwait KOPS WAIT_NS ...`, `deadline KOPS PERIOD_NS ...`.",
        ),
        key("rate", integer(1, 1_000_000), Is("1000"), "Million operations a CPU second."),
        key("report_interval", time(MS, LONGEST), Is("1s"), "Time between two reports."),
    ],
};

pub(crate) const PHASES: Section = Section {
    heading: "[domain.workload] with kind = \"phases\"",
    doc: "Threads that run, sleep, wait for timers and yield in phases, as rt-app describes them.",
    keys: &[
        KIND,
        THREADS,
        key(
            "phases",
            Texts,
            Required,
            "Phases: `run 10ms, sleep 5ms`, `timer 16ms` (until 16 ms after its last time, at first \
             after the thread's start), `yield` (the vCPU gives its pCPU up and stays runnable), or \
             with a number of times before them, `5 x run 1ms, timer 10ms`.",
        ),
        key(
            "count",
            integer(0, u64::MAX),
            Is("0"),
            "How often each thread goes through all phases; 0 is until the limit.",
        ),
        key(
            "start",
            time(0, LONGEST),
            Is("0"),
            "Each thread begins so much later; with `align`, each round so long after the tick.",
        ),
        key(
            "align",
            Choice(ALIGNMENTS),
            Is("none"),
            "Before each round through all phases a thread sleeps until the next tick of its kernel, or \
             of the host's scheduler on the pCPU that it is on.",
        ),
    ],
};

pub(crate) const KERNBENCH: Section = Section {
    heading: "[domain.workload] with kind = \"kernbench\"",
    doc: "A parallel compile, `make -jN`.",
    keys: &[
        KIND,
        key("jobs", integer(1, 10_000), Required, "N of `make -jN`."),
        key(
            "units",
            integer(1, 1_000_000),
            Is("100"),
            "Compile units: groups of processes that make starts.",
        ),
        key("user", time(NS, LONGEST), Is("400ms"), "Mean user CPU time of a unit."),
        key(
            "system",
            ANY,
            Is("80ms"),
            "Mean kernel CPU time of a unit, without waiting for locks.",
        ),
        key(
            "pipe_sleeps",
            integer(1, 1_000_000),
            Is("30"),
            "Buffers that a compiler hands to its assembler, which sleeps for each.",
        ),
        LOCKS,
    ],
};

pub(crate) const PGBENCH: Section = Section {
    heading: "[domain.workload] with kind = \"pgbench\"",
    doc: "Clients that ask a database, `pgbench -S -cN`: each has a process of the server.",
    keys: &[
        KIND,
        key("clients", integer(1, 10_000), Required, "N of `pgbench -cN`."),
        key(
            "workers",
            integer(1, 10_000),
            Is("1"),
            "N of `pgbench -jN`: threads that the clients are dealt to, at most one for each.",
        ),
        key(
            "transactions",
            integer(0, u64::MAX),
            Is("0"),
            "Transactions of each client; 0 is until the limit.",
        ),
        key("server", time(NS, LONGEST), Is("60us"), "Mean user CPU time of the server for one."),
        key("client", time(NS, LONGEST), Is("15us"), "Mean user CPU time of pgbench for one."),
        key(
            "system",
            ANY,
            Is("40us"),
            "Mean kernel CPU time of a transaction, both sides, without waiting for locks.",
        ),
        LOCKS,
    ],
};

pub(crate) const KERNEL_LOCK: Section = Section {
    heading: "[[domain.workload.locks]]",
    doc: "A lock of the guest kernel, for kernbench, pft and pgbench.",
    keys: &[
        key("name", Text, Required, "Name; no two locks of a domain share one."),
        key("hold", time(0, SEC), Is("2us"), "Mean hold time (exponential)."),
        key(
            "every",
            time(NS, SEC),
            Is("100us"),
            "Mean kernel time between two acquisitions by one task (exponential).",
        ),
        key(
            "irqs_off",
            Boolean,
            Is("false"),
            "Interrupts are off while it is held and waited for.",
        ),
    ],
};

pub(crate) const DBENCH: Section = Section {
    heading: "[domain.workload] with kind = \"dbench\"",
    doc: "Clients of a file server that make files, read and write them, and remove them, over a page \
          cache, five global locks and a disk.",
    keys: &[
        KIND,
        key("clients", integer(1, 10_000), Required, "N of `dbench N`."),
        key(
            "files",
            integer(1, 1_000_000),
            Is("100"),
            "Files that each client makes, and removes at the end.",
        ),
        key("pages", integer(1, 1_000_000), Is("10"), "Pages of each file, 4 KiB each."),
        key(
            "operations",
            integer(0, u32::MAX as u64),
            Is("10000"),
            "Reads and writes of each client between, all in the page cache.",
        ),
        key("user", time(0, SEC), Is("10us"), "Mean user time of such an operation (exponential)."),
        key(
            "copy",
            time(0, SEC),
            Is("10us"),
            "Mean kernel time of an operation on a page outside of locks (exponential).",
        ),
        key(
            "dirty_limit",
            integer(0, u32::MAX as u64),
            Is("10000"),
            "Pages that may be dirty; who makes more dirty writes some to the disk, and waits.",
        ),
        key(
            "placement",
            Choice(PLACEMENTS),
            Is("linked"),
            "Where the locks lie among the kernel's data: as linked, or each in a cache line of its own.",
        ),
        key("sections", Table(&DBENCH_SECTIONS), Means("as below"), "Times of critical sections."),
        key("disk", Table(&DISK), Means("as below"), "The disk."),
    ],
};

pub(crate) const DBENCH_SECTIONS: Section = Section {
    heading: "[domain.workload.sections]",
    doc: "Mean times of dbench's critical sections (exponential), without waiting for cache lines.",
    keys: &[
        key("directory", COST, Is("10us"), "`kernel_flag`, to make or remove a file."),
        key("block", COST, Is("5us"), "`kernel_flag`, to find a place on the disk for a new page."),
        key("name", COST, Is("5us"), "`kernel_flag`, to look a name up."),
        key("pagecache", COST, Is("1us"), "`pagecache_lock`, to find, add or remove a page."),
        key("pagemap_lru", COST, Is("1us"), "`pagemap_lru_lock`, to move a page between lists."),
        key("lru_list", COST, Is("2us"), "`lru_list_lock`, to move a buffer between lists."),
        key("kmap", COST, Is("500ns"), "`kmap_lock`, to map a page or to give the mapping back."),
    ],
};

pub(crate) const DISK: Section = Section {
    heading: "[domain.workload.disk]",
    doc: "The disk of a guest: it serves its queue from low to high addresses, pages that follow each \
          other at one go. The defaults are a SCSI disk of 2001.",
    keys: &[
        key(
            "seek",
            COST,
            Is("8ms"),
            "To get to a page that does not follow the last one, rotation included.",
        ),
        key("page", time(NS, SEC), Is("200us"), "To write a page of 4 KiB."),
        key("request", integer(1, 1_000_000), Is("32"), "Most pages that are written at one go."),
    ],
};
