//! Every key of a scenario file, once: its type, default, legal values and meaning. The reader
//! checks against this list, and the JSON Schema and the tables of `docs/scenario.md` are written
//! from it.

use super::quantity::LONGEST;
use overspin_scenario::{NS, Picos, SEC, US};

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// Name of a lock.
    Lock,
    /// Name of a scheduler.
    Scheduler,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer { min: u64, max: u64 },
    /// `true` or `false`.
    Boolean,
    /// A time with its unit.
    Time { min: Picos, max: Picos },
    /// pCPU lists.
    Cpus,
    /// An array of texts.
    Texts,
    /// A table.
    Table(&'static Section),
    /// An array of tables.
    Tables(&'static Section),
    /// A table whose keys depend on its `kind`.
    OneOf(&'static [&'static Section]),
}

/// What a key is when it is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    /// An error.
    Required,
    /// As if this text stood there.
    Is(&'static str),
    /// Something that the documentation puts into words.
    Means(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) absent: Absent,
    pub(crate) doc: &'static str,
}

/// The keys of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    /// Where it stands, as a reader writes it.
    pub(crate) heading: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Section {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|k| k.name)
    }

    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }
}

use Absent::{Is, Means, Required};
use Kind::{
    Boolean, Choice, Cpus, Integer, Lock, OneOf, Scheduler, Table, Tables, Text, Texts, Time,
};

const fn key(name: &'static str, kind: Kind, absent: Absent, doc: &'static str) -> Key {
    Key { name, kind, absent, doc }
}

const fn integer(min: u64, max: u64) -> Kind {
    Integer { min, max }
}

const fn time(min: Picos, max: Picos) -> Kind {
    Time { min, max }
}

/// Any time, also none.
const ANY: Kind = time(0, LONGEST);
/// What one operation costs: more than a second is a typing error.
const COST: Kind = time(0, SEC);

pub(crate) const ROOT: Section = Section {
    heading: "top level",
    doc: "What is asked, and when to stop.",
    keys: &[
        key("name", Text, Means("the file's name"), "Name of the scenario, for reports."),
        key("description", Text, Is(""), "The question that it answers, for reports."),
        key(
            "seed",
            integer(0, u64::MAX),
            Is("1"),
            "Seed of all randomness; `--seed` wins over it.",
        ),
        key("limit", time(NS, LONGEST), Is("60s"), "Stop at this simulated time, finished or not."),
        key("host", Table(&HOST), Required, "The machine and its hypervisor."),
        key("domain", Tables(&DOMAIN), Required, "The virtual machines, one `[[domain]]` each."),
        key(
            "vary",
            Tables(&VARY),
            Means("one run"),
            "What to vary, one `[[vary]]` each: every combination is run, and all are printed as maps.",
        ),
    ],
};

pub(crate) const VARY: Section = Section {
    heading: "[[vary]]",
    doc: "One axis of a map. The first one's values become the rows.",
    keys: &[
        key("name", Text, Required, "What the axis is called in the map."),
        key(
            "set",
            Text,
            Required,
            "The key to set, as `--set` takes it; or several at once, with `/` between them.",
        ),
        key(
            "to",
            Texts,
            Required,
            "Its values, with `/` between those of several keys. `[\"every lock\"]` and \
             `[\"every scheduler\"]` stand for all names.",
        ),
        key("labels", Texts, Means("the values"), "What to call the values in the map."),
    ],
};

pub(crate) const HOST: Section = Section {
    heading: "[host]",
    doc: "The machine and its hypervisor. It has sockets x cores x threads pCPUs, at most 65536.",
    keys: &[
        key("sockets", integer(1, 256), Is("1"), "Sockets."),
        key("cores", integer(1, 4096), Required, "Cores in a socket."),
        key("threads", integer(1, 8), Is("1"), "Hardware threads in a core."),
        key(
            "smt_permille",
            integer(1, 1000),
            Is("650"),
            "Speed of a hardware thread while its sibling runs too, in thousandths of full speed.",
        ),
        key("scheduler", Scheduler, Is("credit"), "Scheduler or profile of one."),
        key(
            "scheduler_params",
            Table(&PARAMS),
            Means("the profile's"),
            "What differs from the profile.",
        ),
        key("costs", Table(&COSTS), Means("those below"), "What things cost on this machine."),
    ],
};

pub(crate) const PARAMS: Section = Section {
    heading: "[host.scheduler_params]",
    doc: "Parameters of the scheduler that differ from its profile's.",
    keys: &[
        key("tslice", time(100 * US, 10 * SEC), Means("the profile's"), "Time slice."),
        key(
            "ratelimit",
            time(0, 10 * SEC),
            Means("the profile's"),
            "Least time between a dispatch and a preemption; 0 switches it off. Not above `tslice`.",
        ),
        key(
            "migration_delay",
            time(0, 10 * SEC),
            Means("the profile's"),
            "A vCPU that ran more recently than this counts as cache-hot and is not stolen.",
        ),
    ],
};

pub(crate) const COSTS: Section = Section {
    heading: "[host.costs]",
    doc: "What things cost. The defaults are a server of about 2008.",
    keys: &[
        key("cache_hit", time(1, SEC), Is("500ps"), "Load or store that hits this core's cache."),
        key(
            "atomic",
            COST,
            Is("8ns"),
            "Extra cost of an atomic operation on a line that this core owns.",
        ),
        key(
            "same_core",
            COST,
            Is("10ns"),
            "A line comes from the sibling thread or the core's own shared level.",
        ),
        key("cross_core", COST, Is("60ns"), "A line comes from another core of the socket."),
        key("cross_socket", COST, Is("120ns"), "A line comes from another socket."),
        key(
            "spin_iteration",
            time(1, SEC),
            Is("20ns"),
            "One iteration of a spin loop: load, compare, pause.",
        ),
        key("fence", COST, Is("8ns"), "Memory fence."),
        key("context_switch", COST, Is("2us"), "The hypervisor switches from one vCPU to another."),
        key("hypercall", COST, Is("500ns"), "A guest enters and leaves the hypervisor."),
        key("ipi", COST, Is("1us"), "From sending an interprocessor interrupt to its arrival."),
        key("interrupt", COST, Is("1us"), "A guest takes an interrupt: entry and exit."),
        key(
            "migration",
            COST,
            Is("50us"),
            "Work lost to cold caches after a vCPU moved to another core.",
        ),
    ],
};

pub(crate) const DOMAIN: Section = Section {
    heading: "[[domain]]",
    doc: "A virtual machine.",
    keys: &[
        key("name", Text, Means("`domain0`, `domain1`, …"), "Name; no two domains share one."),
        key("vcpus", integer(1, 65_536), Required, "vCPUs; not more than the lock can serve."),
        key("weight", integer(1, 65_535), Is("256"), "Scheduler weight."),
        key(
            "cap",
            integer(0, 6_553_600),
            Is("0"),
            "Most CPU time in percent of one pCPU, at most 100 x vcpus; 0 is no cap.",
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
    ],
};

/// One section for each workload; the first key of each says which.
pub(crate) const WORKLOADS: &[&Section] = &[&LOCK_LOOP, &BURN_WAIT, &KERNBENCH];

/// Words that `kind` takes, in the order of [`WORKLOADS`].
pub(crate) const WORKLOAD_KINDS: &[&str] = &["lock-loop", "burn-wait", "kernbench"];

const KIND: Key = key("kind", Choice(WORKLOAD_KINDS), Required, "Which workload.");
const THREADS: Key =
    key("threads", integer(0, 100_000), Is("0"), "Threads; 0 is one on each vCPU.");

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
        key(
            "locks",
            Tables(&KERNEL_LOCK),
            Means("no locks"),
            "Kernel locks, one `[[domain.workload.locks]]` each.",
        ),
    ],
};

pub(crate) const KERNEL_LOCK: Section = Section {
    heading: "[[domain.workload.locks]]",
    doc: "A lock of the guest kernel, for kernbench.",
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

/// All sections, in the order of the documentation.
pub(crate) const SECTIONS: &[&Section] = &[
    &ROOT,
    &HOST,
    &PARAMS,
    &COSTS,
    &DOMAIN,
    &KERNEL,
    &LOCK_LOOP,
    &BURN_WAIT,
    &KERNBENCH,
    &KERNEL_LOCK,
    &VARY,
];
