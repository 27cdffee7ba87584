//! Every key of a scenario file, once: its type, default, legal values and meaning. The reader checks against
//! this list, which also generates the JSON Schema and the tables of `docs/scenario.md`. The keys of a
//! workload are in its own file (`overspin_workload`).

mod domain;

pub(crate) use domain::{DOMAIN, KERNEL, WORKLOAD};
pub(crate) use overspin_scenario::keys::{
    ANY, Absent, COST, Key, Kind, Section, Whose, expected, integer, key, legal, time,
};

use Absent::{Is, Means, Required};
use Kind::{Choice, Cpus, Params, Scheduler, Table, Tables, Text, Texts};
use overspin_scenario::{LONGEST, NS, Picos, SEC, US};
use overspin_sched::DomainParams;

/// The schedulers define the legal weights and caps.
const WEIGHT: Kind = integer(1, DomainParams::MAX_WEIGHT as u64);
const CAP: Kind = integer(0, DomainParams::MAX_CAP as u64);

pub(crate) const ROOT: Section = Section {
    heading: "top level",
    doc: "The question, and when to stop.",
    keys: &[
        key("name", Text, Means("the file's name"), "Name of the scenario, for reports."),
        key("description", Text, Is(""), "The question that it answers, for reports."),
        key(
            "seed",
            integer(0, u64::MAX),
            Is("1"),
            "Seed of all randomness; `--seed` overrides it.",
        ),
        key("limit", time(NS, LONGEST), Is("60s"), "Stop at this simulated time, finished or not."),
        key(
            "to_the_limit",
            Kind::Boolean,
            Is("false"),
            "Go on until the limit, even when all tasks that end have ended.",
        ),
        key("host", Table(&HOST), Required, "The machine and its hypervisor."),
        key("domain", Tables(&DOMAIN), Required, "The virtual machines, one `[[domain]]` each."),
        key(
            "event",
            Tables(&EVENT),
            Means("nothing changes"),
            "Actions of the administrator at simulated times, one `[[event]]` each.",
        ),
        key(
            "vary",
            Tables(&VARY),
            Means("one run"),
            "What to vary, one `[[vary]]` each: every combination is run, and all are printed: a sweep.",
        ),
    ],
};

pub(crate) const VARY: Section = Section {
    heading: "[[vary]]",
    doc: "One axis of a sweep. The values of the first axis become the rows.",
    keys: &[
        key("name", Text, Required, "Name of the axis in the sweep."),
        key(
            "set",
            Text,
            Required,
            "The key to set, as for `--set`; or several keys, with `/` between them. `seed` by itself is no \
             axis: every point runs with each seed, and means are printed.",
        ),
        key(
            "to",
            Texts,
            Required,
            "Its values, with `/` between those of several keys; an empty one leaves its key as it is. `[\"every lock\"]`, \
             `[\"every scheduler\"]` and `[\"every machine\"]` stand for all names.",
        ),
        key("labels", Texts, Means("the values"), "Names of the values in the sweep."),
    ],
};

pub(crate) const HOST: Section = Section {
    heading: "[host]",
    doc: "The machine and its hypervisor. It has sockets x cores x threads pCPUs, at most 65536.",
    keys: &[
        key(
            "machine",
            Kind::Machine,
            Is("generic-2008"),
            "The machine that provides the costs and `smt_permille` (docs/machines.md), or the file of a profile \
             (docs/calibrate.md).",
        ),
        key("sockets", integer(1, 256), Is("1"), "Sockets."),
        key("cores", integer(1, 4096), Required, "Cores in a socket."),
        key("threads", integer(1, 8), Is("1"), "Hardware threads in a core."),
        key(
            "smt_permille",
            integer(1, 1000),
            Is("650"),
            "Speed of a hardware thread while its sibling runs too, in thousandths of full speed. The \
             default is the machine's, here `generic-2008`.",
        ),
        key(
            "governor",
            Table(&GOVERNOR),
            Means("always at full speed"),
            "Slows down sockets with little load.",
        ),
        key("scheduler", Scheduler, Is("credit"), "Scheduler or scheduler profile."),
        key(
            "scheduler_params",
            Params(Whose::Scheduler),
            Means("the profile's"),
            "Parameters that differ from the profile.",
        ),
        key(
            "pool",
            Tables(&POOL),
            Means("one pool"),
            "Parts of the machine with their own schedulers, one `[[host.pool]]` each.",
        ),
        key(
            "costs",
            Table(&COSTS),
            Means("the machine's"),
            "Costs that differ from the machine's.",
        ),
        key(
            "pause_loop_exiting",
            Table(&PAUSE_LOOP_EXITING),
            Means("they go on spinning"),
            "Guests that spin for long exit to the hypervisor, which lets others run.",
        ),
        key(
            "directed_yield",
            Kind::Boolean,
            Is("false"),
            "A vCPU that exits yields in favour of a preempted vCPU of its domain; if there is none, it goes \
             on spinning. `cfs` and `eevdf-6.18` run that vCPU next if this is fair; `eevdf` treats it as \
             a plain yield, as Linux 6.6 to 6.13 do. With other schedulers, which have no directed \
             yields, it is a plain yield.",
        ),
        key(
            "halt_polling",
            Table(&HALT_POLLING),
            Means("no polling"),
            "A vCPU that halts keeps its pCPU for a while, in case work arrives at once.",
        ),
        key(
            "preemption_notification",
            Table(&PREEMPTION_NOTIFICATION),
            Means("they are preempted at once"),
            "vCPUs that are about to be preempted may finish their critical sections first.",
        ),
        key(
            "noise",
            Table(&NOISE),
            Means("an empty table"),
            "The host's own activity; every host has some.",
        ),
        key(
            "stagger",
            ANY,
            Is("40ms"),
            "Domains begin at random offsets below this, the first one at 0. The vCPUs of each domain begin \
             at random offsets after its first. Tasks begin periodic work anywhere in its period. `0`: \
             everything begins at once, and equal domains stay in step.",
        ),
    ],
};

pub(crate) const NOISE_PLACEMENTS: &[&str] = &["none", "per-cpu", "anywhere"];

pub(crate) const NOISE: Section = Section {
    heading: "[host.noise]",
    doc: "Threads of the host, or a control domain, that wake at random, work for a moment and sleep \
          again; the host's scheduler schedules them like vCPUs. `overspin measure noise` writes \
          such a table for the machine at hand. Without the table, its defaults apply.",
    keys: &[
        key(
            "placement",
            Choice(NOISE_PLACEMENTS),
            Is("per-cpu"),
            "`per-cpu`: a thread on each pCPU, which stays there. `anywhere`: the vCPUs of a control \
             domain, which may run on any pCPU of their pool. `none`: no noise.",
        ),
        key(
            "every",
            time(US, Picos(LONGEST.0 / 45)),
            Is("59ms"),
            "Mean sleep of a thread (exponential).",
        ),
        key(
            "length",
            time(NS, Picos(LONGEST.0 / 45)),
            Is("350us"),
            "Mean CPU time of a thread each time that it wakes (exponential).",
        ),
        key(
            "vcpus",
            integer(0, 65_536),
            Is("0"),
            "Threads in each pool with `anywhere`; 0 means as many as there are pCPUs.",
        ),
        key("cpus", Cpus, Means("all"), "pCPUs that have noise, such as \"0-3\"."),
        key("weight", WEIGHT, Is("256"), "Scheduler weight, as for a domain."),
    ],
};

pub(crate) const GOVERNOR: Section = Section {
    heading: "[host.governor]",
    doc: "A socket with little load slows down: its clock is lower, and its idle states take time to \
          leave.",
    keys: &[
        key("interval", time(Picos::us(100), SEC), Is("10ms"), "Time between two checks."),
        key(
            "busy_permille",
            integer(0, 4_000_000),
            Is("1000"),
            "A socket is quiet if its threads together were busy for less than this, in thousandths \
             of one thread's time.",
        ),
        key(
            "quiet_permille",
            integer(1, 1000),
            Is("700"),
            "Speed of a quiet socket, in thousandths of full speed.",
        ),
    ],
};

pub(crate) const POOL: Section = Section {
    heading: "[[host.pool]]",
    doc: "Some of the pCPUs, with their own scheduler; load in one pool never affects another. \
          The host's own pool, called `host`, has all pCPUs that are in no other pool, and always \
          pCPU 0.",
    keys: &[
        key("name", Text, Required, "Name; no two pools share one."),
        key("cpus", Cpus, Means("none at first"), "Its pCPUs, such as \"4-7\"."),
        key("scheduler", Scheduler, Is("credit"), "Scheduler or scheduler profile."),
        key(
            "scheduler_params",
            Params(Whose::Scheduler),
            Means("the profile's"),
            "Parameters that differ from the profile.",
        ),
    ],
};

pub(crate) const EVENT: Section = Section {
    heading: "[[event]]",
    doc: "An action of the administrator while the guests run: exactly one of `weight`, \
          `cap`, `affinity`, `pause`, `unpause` and `pool`. An action that the hypervisor would refuse \
          is an error of the scenario. Only a refusal because something is still on its way to another \
          pool occurs during the run, and is reported. vCPUs cannot be plugged in or out: the \
          simulated kernel could not move their tasks. Pause them, or begin with fewer.",
    keys: &[
        key(
            "at",
            ANY,
            Required,
            "Time of the event. Events of the same time happen in the order of the file.",
        ),
        key("domain", Text, Means("none, with `pcpu`"), "Name of the affected domain."),
        key(
            "vcpu",
            integer(0, 65_535),
            Means("all of the domain"),
            "Only this vCPU, from 0; with `affinity`, `pause` and `unpause`.",
        ),
        key("pcpu", integer(0, 65_535), Means("none"), "A pCPU that moves to another `pool`."),
        key("weight", WEIGHT, Means("as it is"), "New weight."),
        key(
            "cap",
            CAP,
            Means("as it is"),
            "New cap in percent of one pCPU, at most 100 x vcpus; 0 means no cap.",
        ),
        key("affinity", Cpus, Means("as it is"), "Where vCPUs may run, as for a domain."),
        key(
            "pause",
            Kind::Boolean,
            Is("false"),
            "The domain or vCPU does not run until it is unpaused; pauses nest.",
        ),
        key("unpause", Kind::Boolean, Is("false"), "Ends one pause."),
        key(
            "pool",
            Text,
            Means("as it is"),
            "The domain, or `pcpu`, moves to this pool. A domain has default weight, cap, parameters \
             and affinity there. A pCPU moves once its running vCPU has left it.",
        ),
    ],
};

/// The years of the rules for directed yields.
pub(crate) const RULES: &[&str] = &["2011", "2012", "2013", "2017", "2019", "2021"];

pub(crate) const PAUSE_LOOP_EXITING: Section = Section {
    heading: "[host.pause_loop_exiting]",
    doc: "When a spinning guest exits to the hypervisor, as on Intel, and which vCPUs the host then tries; \
          an empty table is KVM's current setting on a clock of 2 GHz. For Xen, use `grow = 1`. If \
          `host.costs.spin_iteration` is above the gap, nothing ever exits.",
    keys: &[
        key(
            "window",
            time(NS, SEC),
            Is("2048ns"),
            "Longest loop of PAUSEs of a vCPU that was just put on a pCPU.",
        ),
        key(
            "gap",
            time(Picos::ZERO, SEC),
            Is("64ns"),
            "PAUSEs further apart than this do not form a loop.",
        ),
        key(
            "grow",
            integer(1, 1000),
            Means("2, or 1 with rules before 2014"),
            "The window of a vCPU is multiplied by this at each exit; 1 leaves it unchanged, as KVM did until \
             Linux 3.17.",
        ),
        key(
            "shrink",
            integer(0, 1000),
            Is("0"),
            "The window is divided by this when the vCPU is put on a pCPU; 0 resets it to `window`.",
        ),
        key("max", time(NS, Picos::sec(10)), Is("2147ms"), "Longest window."),
        key(
            "rules",
            Choice(RULES),
            Is("2021"),
            "With `directed_yield`, the vCPUs that KVM tries, by the year in which the rule was added: every \
             sibling that is not in guest mode or asleep (`2011`), spinners every other time (`2012`), only \
             preempted ones and at most three refusals (`2013`), only those preempted in their kernel \
             (`2017`), also those that were just woken (`2019`), or preempted in user mode with an \
             interrupt pending (`2021`).",
        ),
    ],
};

pub(crate) const HALT_POLLING: Section = Section {
    heading: "[host.halt_polling]",
    doc: "How long a vCPU that halts or blocks waits on its pCPU, as long as no other vCPU waits for that; \
          an empty table is KVM's setting on x86. This time, the poll window of the vCPU, is 0 at \
          first.",
    keys: &[
        key(
            "max",
            time(NS, SEC),
            Is("200us"),
            "Longest poll window. After a halt that took longer in all, the window shrinks.",
        ),
        key("start", time(NS, SEC), Is("10us"), "Least poll window other than 0."),
        key(
            "grow",
            integer(1, 1000),
            Is("2"),
            "A window that was too short for a halt of less than `max` is multiplied by this.",
        ),
        key(
            "shrink",
            integer(0, 1000),
            Is("2"),
            "A shrinking window is divided by this; 0, or a result below `start`, makes it 0.",
        ),
    ],
};

/// Names of the notified guests, and of the protocols.
pub(crate) const NOTIFIED_GUESTS: &[&str] = &["smp", "all"];
pub(crate) const PROTOCOLS: &[&str] = &["none", "upcall", "deferral"];

pub(crate) const PREEMPTION_NOTIFICATION: Section = Section {
    heading: "[host.preemption_notification]",
    doc: "A window before another vCPU preempts a vCPU. In it, the guest releases its locks and then \
          gives up the pCPU; an empty table is the protocol of 2005.",
    keys: &[
        key(
            "guests",
            Choice(NOTIFIED_GUESTS),
            Is("smp"),
            "Guests that get windows: those with several vCPUs, or all.",
        ),
        key(
            "protocol",
            Choice(PROTOCOLS),
            Is("upcall"),
            "`upcall`: an interrupt tells the guest, which gives up the pCPU at once if it holds no lock. \
             `deferral`: the hypervisor looks at the guest's count of held locks, and opens a \
             window only if there are any. `none`: as without this table.",
        ),
        key(
            "window",
            time(US, Picos::ms(10)),
            Is("1ms"),
            "Longest window; after it the vCPU is preempted by force.",
        ),
        key(
            "strikes",
            integer(1, 1000),
            Is("3"),
            "After this many windows in a row that end by force, a vCPU gets none for `back_off`.",
        ),
        key("back_off", ANY, Is("100ms"), "Time for which it then gets none."),
    ],
};

pub(crate) const COSTS: Section = Section {
    heading: "[host.costs]",
    doc: "The costs of operations. The defaults are those of `host.machine`, here `generic-2008`; values \
          given here override them.",
    keys: &[
        key(
            "cache_hit",
            time(Picos(1), SEC),
            Is("500ps"),
            "Load or store that hits this core's cache.",
        ),
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
            time(Picos(1), SEC),
            Is("20ns"),
            "One iteration of a spin loop: load, compare, pause.",
        ),
        key("fence", COST, Is("8ns"), "Memory fence."),
        key("context_switch", COST, Is("2us"), "The hypervisor switches from one vCPU to another."),
        key(
            "preemption",
            COST,
            Is("0ns"),
            "What a switch takes beyond `context_switch` if the vCPU that leaves did not ask for it: its exit.",
        ),
        key("hypercall", COST, Is("500ns"), "A guest enters and leaves the hypervisor."),
        key(
            "pause_loop_exit",
            COST,
            Is("620ns"),
            "A guest exits to the hypervisor and comes back because it spins.",
        ),
        key(
            "yield_to",
            COST,
            Is("500ns"),
            "The host tries a directed yield. It holds the locks of both run queues for this time, and waits \
             for them before.",
        ),
        key("ipi", COST, Is("1us"), "From sending an interprocessor interrupt to its arrival."),
        key(
            "timer",
            COST,
            Is("0ns"),
            "A timer of a guest that ends while its pCPU is idle is late by this time. It comes on top of `ipi` and \
             `context_switch`.",
        ),
        key("interrupt", COST, Is("1us"), "A guest takes an interrupt: entry and exit."),
        key(
            "migration",
            COST,
            Is("50us"),
            "Work lost to cold caches after a vCPU moved to another core.",
        ),
    ],
};

/// All sections except those of schedulers and of workloads, in the order of the documentation.
pub(crate) const SECTIONS: &[&Section] = &[
    &ROOT,
    &HOST,
    &GOVERNOR,
    &POOL,
    &PAUSE_LOOP_EXITING,
    &HALT_POLLING,
    &PREEMPTION_NOTIFICATION,
    &NOISE,
    &COSTS,
    &DOMAIN,
    &KERNEL,
    &WORKLOAD,
    &EVENT,
    &VARY,
];
