//! The keys of a domain: its vCPUs, its kernel, its workload.

use super::Absent::{Is, Means, Required};
use super::Kind::{self, Boolean, Cpus, Lock, Params, Table, Text, Workloads};
use super::{CAP, COST, Section, WEIGHT, Whose, integer, key, time};
use overspin_scenario::{LONGEST, MS, Picos};

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
            "Most CPU time in percent of one pCPU, at most 100 x vcpus; 0 means no cap.",
        ),
        key(
            "scheduler_params",
            Params(Whose::Domain),
            Means("the scheduler's"),
            "Parameters of the host's scheduler for domains.",
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
            "Wait-loop iterations before a blocking lock blocks.",
        ),
        key(
            "nopvspin",
            Boolean,
            Is("false"),
            "Paravirtual locks behave as on bare hardware: their waiters never sleep.",
        ),
        key("kernel", Table(&KERNEL), Means("as below"), "Its kernel."),
        key("workload", Workloads, Required, "What it does."),
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
            "Timer ticks a second on a busy vCPU; 0 means tickless.",
        ),
        key("task_switch", COST, Is("2us"), "Switch from one task to another."),
        key(
            "tick_work",
            time(Picos::ZERO, Picos::us(100)),
            Is("2us"),
            "Time that a tick handler takes.",
        ),
        key(
            "wakeup_granularity",
            time(Picos::ZERO, Picos::sec(10)),
            Is("30ms"),
            "A waking task preempts one that is ahead of it by more than this.",
        ),
        key(
            "slice",
            time(Picos::ZERO, Picos::sec(10)),
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

/// The keys of every workload, besides those of its kind.
pub(crate) const WORKLOAD: Section = Section {
    heading: "[domain.workload]",
    doc: "What the tasks of the domain do. With `[[domain.workload]]` tables, the domain does several things \
          side by side, each with its own tasks and locks. The names of these then begin with their \
          workload: `ping/ping`, `kernbench/dcache`. Further keys depend on the kind.",
    keys: &[
        key("kind", Kind::Workload, Required, "The kind of workload."),
        key(
            "name",
            Text,
            Means("its kind"),
            "Its name among several; no two workloads of a domain share a name.",
        ),
        key(
            "vcpus",
            Kind::Numbers,
            Means("all"),
            "vCPUs that its tasks may use, such as [0, 1]. A workload with a thread on each vCPU then has \
             one on each of these.",
        ),
    ],
};
