//! The scenario: host, domains, locks, workloads, lengths. All times are integer picoseconds.

use crate::keys::{Whose, with_defaults};
use crate::{EVENT, Event, Fault, NOISE, Noise, Picos, SEC, Tree, Varying, Workloads, tree};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

parameters! {
    /// Everything that a run depends on besides the seed.
    Scenario: pub SCENARIO at "top level",
    "The question, and when to stop." {
        name: String = Text, Means("the file's name"), "Name of the scenario, for reports.";
        description: String = Text, Is(""), "The question that it answers, for reports.";
        host: Host = Table(&HOST), Required, "The machine and its hypervisor.";
        domains as domain: Vec<Domain> = Tables(&DOMAIN), Required,
            "The virtual machines, one `[[domain]]` each.";
        events as event: Vec<Event> = Tables(&EVENT), Means("nothing changes"),
            "Actions of the administrator at simulated times, one `[[event]]` each.";
        limit: Picos = time(NS, LONGEST), Is("60s"),
            "Stop at this simulated time, finished or not.";
        to_the_limit: bool = Boolean, Is("false"),
            "Go on until the limit, even when all tasks that end have ended.";
        /// `None`: see [`Scenario::warmup`].
        warmup: Option<Picos> = time(Picos::ZERO, LONGEST),
            Means("if no work ends: a quarter of `limit`, at most 1s; else 0"),
            "What happens before this time does not count: rates, waits and run states begin there.";
        seed: u64 = integer(0, u64::MAX), Is("1"), "Seed of all randomness; `--seed` overrides it.";
    }
}

impl Scenario {
    /// A run of at most `limit`, without a description and without events, with seed 1.
    #[must_use]
    pub fn new(name: impl Into<String>, host: Host, domains: Vec<Domain>, limit: Picos) -> Self {
        let given = json!({ "name": "", "host": { "cores": 1 }, "domains": [] });
        Self { name: name.into(), host, domains, limit, ..with_defaults(given) }
    }

    /// The warm-up of its runs. Without one of its own, a scenario whose work never ends (`endless`) has a quarter of its
    /// limit, at most a second. Before all vCPUs have started, a lock that later collapses may do a hundred times what it
    /// does from then on.
    #[must_use]
    pub fn warmup(&self, endless: bool) -> Picos {
        let default = if endless { (self.limit / 4).min(SEC) } else { Picos::ZERO };
        self.warmup.unwrap_or(default)
    }

    /// Checks that values which are each in their range agree with each other.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn agrees(&self) -> Result<(), Fault> {
        match self.warmup {
            Some(warmup) if warmup >= self.limit && warmup > Picos::ZERO => Err(Fault::new(
                "warmup",
                format!("a warm-up of {warmup} is not over when the run ends, at {}", self.limit),
                "make `warmup` shorter or `limit` longer",
            )),
            _ => Ok(()),
        }
    }
}

parameters! {
    Host: pub HOST at "[host]",
    "The machine and its hypervisor. It has sockets x cores x threads pCPUs, at most 65536." {
        machine: String = Machine, Is("generic-2008"),
            "The machine that provides the costs and `smt_permille` (docs/machines.md), or the file of a profile \
             (docs/calibrate.md).";
        sockets: u32 = integer(1, 256), Is("1"), "Sockets.";
        cores: u32 = integer(1, 4096), Required, "Cores in a socket.";
        threads: u32 = integer(1, 8), Is("1"), "Hardware threads in a core.";
        smt_permille: u32 = integer(1, 1000), Is("650"),
            "Speed of a hardware thread while its sibling runs too, in thousandths of full speed. The default is the \
             machine's, here `generic-2008`.";
        rewarm_permille: u32 = integer(0, 1000), Is("0"),
            "What a vCPU that computes loses to cold caches when it returns to a pCPU where others ran: thousandths of \
             the time that they ran, and at most `costs.migration`. It depends on the work: the part of the time in which \
             others load data that displaces the vCPU's.";
        /// `None`: they always run at full speed.
        governor: Option<Governor> = Table(&GOVERNOR), Means("always at full speed"),
            "Slows down sockets with little load.";
        scheduler: String = Scheduler, Is("credit"), "Scheduler or scheduler profile.";
        params as scheduler_params: Settings = Params(Whose::Scheduler), Means("the profile's"),
            "Parameters that differ from the profile.";
        costs: Costs = Table(&COSTS), Defaults("the machine's"),
            "Costs that differ from the machine's.";
        /// `None`: they spin on.
        pause_loop_exiting: Option<PauseLoopExiting> = Table(&PAUSE_LOOP_EXITING), Means("they go on spinning"),
            "Guests that spin for long exit to the hypervisor, which lets others run.";
        directed_yield: bool = Boolean, Is("false"),
            "A vCPU that exits yields in favour of a preempted vCPU of its domain; if there is none, it goes on \
             spinning. `cfs` and `eevdf-6.18` run that vCPU next if this is fair. With others it is a plain yield, with \
             `eevdf` as in Linux 6.6 to 6.13.";
        /// `None`: it gives up the pCPU at once.
        halt_polling: Option<HaltPolling> = Table(&HALT_POLLING), Means("no polling"),
            "A vCPU that halts keeps its pCPU for a while, in case work arrives at once.";
        /// `None`: they are preempted at once.
        preemption_notification: Option<PreemptionNotification> = Table(&PREEMPTION_NOTIFICATION), Means("they are preempted at once"),
            "vCPUs that are about to be preempted may finish their critical sections first.";
        /// The host's own pool has all pCPUs that are in none of these.
        pools as pool: Vec<Pool> = Tables(&POOL), Means("one pool"),
            "Parts of the machine with their own schedulers, one `[[host.pool]]` each.";
        /// `None`: the host does nothing else.
        noise: Option<Noise> = Table(&NOISE), Defaults("an empty table"),
            "The host's own activity; every host has some.";
        stagger: Picos = ANY, Is("40ms"),
            "Domains begin at random offsets below this, the first one at 0, and their vCPUs after them. Tasks begin \
             periodic work anywhere in its period. `0`: all at once, and equal domains stay in step.";
    }
}

// One pCPU, the default scheduler, and none of the options, but with realistic noise and offsets. An offset may be
// longer than the time slice of Xen's credit (30 ms), so that the slices of two domains may have any phase to each other.
defaults!(Host { "cores": 1 });

impl Host {
    /// This host without noise and offsets: for comparison with closed forms, and to see the effect of
    /// noise and offsets.
    #[must_use]
    pub fn undisturbed(self) -> Self {
        Self { noise: None, stagger: Picos::ZERO, ..self }
    }

    /// The pool with this number, as in [`Domain::pool`]; `None` for the host's own.
    #[must_use]
    pub fn pool(&self, number: u32) -> Option<&Pool> {
        number.checked_sub(1).and_then(|i| self.pools.get(i as usize))
    }

    /// The name of the scheduler under which a domain starts: that of its pool.
    #[must_use]
    pub fn scheduler_of(&self, domain: &Domain) -> &str {
        self.pool(domain.pool).map_or(&self.scheduler, |pool| &pool.scheduler)
    }

    /// Checks that all values are legal, whatever made the host. Schedulers and their parameters are checked by those who
    /// know them.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        HOST.check(&tree(self))?;
        self.agrees()
    }

    /// Checks that values which are each in their range agree with each other.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn agrees(&self) -> Result<(), Fault> {
        let pcpus = self.pcpus();
        if pcpus > Self::MOST_PCPUS {
            let Self { sockets, cores, threads, .. } = self;
            return Err(Fault::new(
                "cores",
                format!(
                    "{sockets} sockets x {cores} cores x {threads} threads are {pcpus} pCPUs, too many"
                ),
                format!("a host has at most {} pCPUs", Self::MOST_PCPUS),
            ));
        }
        if let Some(ple) = &self.pause_loop_exiting {
            let least = ("window", ple.window, PauseLoopExiting::default().window);
            in_order(least, ple.max).map_err(|fault| fault.within("pause_loop_exiting"))?;
        }
        if let Some(polling) = &self.halt_polling {
            let least = ("start", polling.start, HaltPolling::default().start);
            in_order(least, polling.max).map_err(|fault| fault.within("halt_polling"))?;
        }
        self.costs.agree().map_err(|fault| fault.within("costs"))?;
        match &self.noise {
            Some(noise) => noise.agrees(pcpus).map_err(|fault| fault.within("noise")),
            None => Ok(()),
        }
    }

    /// Most pCPUs of a host. The hypervisor has the same limit, which `overspin-host` makes sure of.
    pub const MOST_PCPUS: u32 = 65_536;

    /// Number of hardware threads.
    #[must_use]
    pub fn pcpus(&self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}

/// Checks that the least window of a vCPU, with its key and its default, is no longer than `max`. If it is the default,
/// `max` is at fault.
fn in_order((key, least, default): (&str, Picos, Picos), max: Picos) -> Result<(), Fault> {
    if least <= max {
        return Ok(());
    }
    let (at, message) = if least == default {
        ("max", format!("{max} is shorter than the least window, {least}"))
    } else {
        (key, format!("{least} is longer than the longest window, {max}"))
    };
    Err(Fault::new(at, message, format!("make `{key}` shorter or `max` longer")))
}

parameters! {
    Governor: pub GOVERNOR at "[host.governor]",
    "A socket with little load slows down: its clock is lower, and its idle states take time to leave." {
        interval: Picos = time(Picos::us(100), SEC), Is("10ms"), "Time between two checks.";
        busy_permille: u32 = integer(0, 4_000_000), Is("1000"),
            "A socket is quiet if its threads together were busy for less than this, in thousandths of one thread's \
             time.";
        quiet_permille: u32 = integer(1, 1000), Is("700"),
            "Speed of a quiet socket, in thousandths of full speed.";
    }
}

parameters! {
    Pool: pub POOL at "[[host.pool]]",
    "Some of the pCPUs, with their own scheduler; load in one pool never affects another. The host's own pool, called \
     `host`, has all pCPUs that are in no other pool, and always pCPU 0." {
        name: String = Text, Required, "Name; no two pools share one.";
        cpus: Vec<u32> = Cpus, Means("none at first"), "Its pCPUs, such as \"4-7\".";
        scheduler: String = Scheduler, Is("credit"), "Scheduler or scheduler profile.";
        params as scheduler_params: Settings = Params(Whose::Scheduler), Means("the profile's"),
            "Parameters that differ from the profile.";
    }
}

parameters! {
    /// When a spinning guest exits to the hypervisor: once PAUSE instructions no more than `gap` apart have gone on for
    /// longer than the vCPU's window. The defaults are 4096 and 128 cycles, and 2^32 cycles at most.
    PauseLoopExiting: pub PAUSE_LOOP_EXITING at "[host.pause_loop_exiting]",
    "When a spinning guest exits to the hypervisor, as on Intel, and which vCPUs the host then tries; an empty table \
     is KVM's current setting on a clock of 2 GHz. For Xen, use `grow = 1`. If `host.costs.spin_iteration` is above \
     the gap, nothing ever exits." {
        window: Picos = time(NS, SEC), Is("2048ns"),
            "Longest loop of PAUSEs of a vCPU that was just put on a pCPU.";
        gap: Picos = time(Picos::ZERO, SEC), Is("64ns"),
            "PAUSEs further apart than this do not form a loop.";
        grow: u32 = integer(1, 1000), Follows(growth, "2, or 1 with rules before 2014"),
            "The window of a vCPU is multiplied by this at each exit; 1 leaves it unchanged, as KVM did until Linux \
             3.17.";
        shrink: u32 = integer(0, 1000), Is("0"),
            "The window is divided by this when the vCPU is put on a pCPU; 0 resets it to `window`.";
        max: Picos = time(NS, Picos::sec(10)), Is("2147ms"), "Longest window.";
        rules: DirectedYieldRules = Choice(DirectedYieldRules::WORDS), Is("2021"),
            "With `directed_yield`, the vCPUs that KVM tries, by the year of the rule: every sibling that is not in \
             guest mode or asleep (`2011`), spinners every other time (`2012`), only preempted \
             ones (`2013`), only those preempted in their kernel (`2017`), also just woken ones (`2019`), or those \
             with an interrupt pending (`2021`). `ipi-aware` was proposed in 2025: also the one that the spinner sent \
             an interrupt, and of the woken ones only those with an interrupt.";
        apicv: bool = Boolean, Is("true"),
            "The processor delivers interrupts to guests and ends them (APICv). Without it the host does not see \
             which siblings have an interrupt pending (`2021`, `ipi-aware`), but it sees when interrupts end \
             (`ipi-aware`).";
        ipi_window: Picos = time(US, Picos::sec(10)), Is("50ms"),
            "With the rules `ipi-aware`, for how long after an interrupt its receiver is tried unless it has ended one.";
        relaxed_round: bool = Boolean, Is("true"),
            "With the rules `ipi-aware`, a spinner that finds no sibling tries all preempted ones in a second round.";
    }
}

defaults!(PauseLoopExiting {});

/// By how much windows grow: not at all before 2014 (Linux 3.18, commit b4a2d31da812).
fn growth(tree: &Tree) -> Value {
    let rules = tree.get("rules").map(DirectedYieldRules::deserialize);
    let early = matches!(rules, Some(Ok(rules)) if rules <= DirectedYieldRules::Y2013);
    Value::from(if early { 1 } else { 2 })
}

words! {
    #[derive(Default, PartialOrd, Ord, Hash)]
    DirectedYieldRules, "Which siblings KVM tries in a directed yield, by the year of the rule. Each rule builds on the one \
     before." {
        Y2011 = "2011",
            "Linux 2.6.39 to 3.5 (commit 217ece6129f2): every sibling that is neither in guest mode nor asleep, in \
             turn, until one takes it.";
        Y2012 = "2012",
            "Linux 3.6 to 3.8 (06e48c510aa3): KVM passes over siblings that are in a pause-loop exit themselves, \
             every other time.";
        Y2013 = "2013",
            "Linux 3.9 (c45c528899c4) and 3.10 (7bc7ae25b143): only preempted siblings; to 4.13.";
        Y2017 = "2017",
            "Linux 4.14 to 5.2 (199b5763d329, de63ad4cf497): if the spinner is in its kernel, only siblings that were \
             preempted in their kernel.";
        Y2019 = "2019",
            "Linux 5.3 to 5.12 (d73eb57b80b9, 046ddeed0461): also siblings that were woken and have not run yet.";
        #[default]
        Y2021 = "2021",
            "Linux 5.13 (52acd22faa1a) and later: also siblings that were preempted in user mode and have an \
             interrupt pending.";
        IpiAware = "ipi-aware",
            "Proposed in December 2025 and not merged: also the sibling to which the spinner sent an interprocessor \
             interrupt; a woken sibling only if it has an interrupt; a second round over all preempted ones.";
    }
}

parameters! {
    HaltPolling: pub HALT_POLLING at "[host.halt_polling]",
    "How long a vCPU that halts or blocks waits on its pCPU, as long as no other vCPU waits for that; an empty table \
     is KVM's setting on x86. This time, the poll window of the vCPU, is 0 at first." {
        max: Picos = time(NS, SEC), Is("200us"),
            "Longest poll window. After a halt that took longer in all, the window shrinks.";
        start: Picos = time(NS, SEC), Is("10us"), "Least poll window other than 0.";
        grow: u32 = integer(1, 1000), Is("2"),
            "A window that was too short for a halt of less than `max` is multiplied by this.";
        shrink: u32 = integer(0, 1000), Is("2"),
            "A shrinking window is divided by this; 0, or a result below `start`, makes it 0.";
    }
}

defaults!(HaltPolling {});

parameters! {
    /// What the hypervisor does before it preempts a vCPU in favour of another. Kernels hold locks for tens of microseconds, so a millisecond is ample.
    PreemptionNotification: pub PREEMPTION_NOTIFICATION at "[host.preemption_notification]",
    "A window before another vCPU preempts a vCPU. In it, the guest releases its locks and then gives up the pCPU; an \
     empty table is the protocol of 2005." {
        guests: NotifiedGuests = Choice(NotifiedGuests::WORDS), Is("smp"),
            "Guests that get windows: those with several vCPUs, or all.";
        protocol: NotificationProtocol = ChoiceOrNone(NotificationProtocol::WORDS), Is("upcall"),
            "`upcall`: an interrupt tells the guest. `deferral`: the hypervisor looks at the guest's count of held \
             locks, and opens a window only if there are any. `none`: as without this table.";
        window: Picos = time(US, Picos::ms(10)), Is("1ms"),
            "Longest window; after it the vCPU is preempted by force.";
        strikes: u32 = integer(1, 1000), Is("3"),
            "After this many windows in a row that end by force, a vCPU gets none for `back_off`.";
        back_off: Picos = ANY, Is("100ms"), "Time for which it then gets none.";
    }
}

defaults!(PreemptionNotification {});

words! {
    NotifiedGuests, "Which guests' vCPUs the host asks before it preempts them." {
        Smp = "smp", "Guests with several vCPUs: a lone vCPU has no sibling that waits for its locks.";
        All = "all", "All guests.";
    }
}

words! {
    NotificationProtocol, "How a guest learns that it is to be preempted." {
        Upcall = "upcall",
            "By an interrupt, in any case; the handler gives up at once if no lock is held.";
        Deferral = "deferral",
            "The hypervisor reads the count of held locks, which the guest keeps in a shared page. If it is 0, \
             the hypervisor preempts at once; otherwise it sets a flag that the last unlock checks.";
    }
}

/// Parameters of a scheduler by name; the names depend on the scheduler.
pub type Settings = BTreeMap<String, Setting>;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// A time.
    Time(Picos),
    /// A whole number.
    Number(i64),
    /// On or off.
    Flag(bool),
    /// A word.
    Word(String),
}

parameters! {
    /// The costs of operations on this machine.
    Costs: pub COSTS at "[host.costs]",
    "The costs of operations. The defaults are those of `host.machine`, here `generic-2008`; values \
     given here override them." {
        // With this cost or that of a spin at 0, an endless loop would use no simulated time.
        cache_hit: Picos = time(Picos(1), SEC), Is("500ps"),
            "Load or store that hits this core's cache.";
        atomic: Picos = COST, Is("8ns"),
            "Extra cost of an atomic operation on a line that this core owns.";
        same_core: Picos = COST, Is("10ns"),
            "A line comes from the sibling thread or the core's own shared level.";
        cross_core: Picos = COST, Is("60ns"), "A line comes from another core of the socket.";
        cross_socket: Picos = COST, Is("120ns"), "A line comes from another socket.";
        spin_iteration: Picos = time(Picos(1), SEC), Is("20ns"),
            "One iteration of a spin loop: load, compare, pause.";
        fence: Picos = COST, Is("8ns"), "Memory fence.";
        context_switch: Varying = VARYING_COST, Is("2us"),
            "The hypervisor switches from one vCPU to another.";
        preemption: Varying = VARYING_COST, Is("0ns"),
            "What a switch takes beyond `context_switch` if the vCPU that leaves did not ask for it: its exit.";
        hypercall: Varying = VARYING_COST, Is("500ns"), "A guest enters and leaves the hypervisor.";
        system_call: Picos = COST, Is("500ns"), "A task in user mode enters and leaves its kernel.";
        pause_loop_exit: Picos = COST, Is("620ns"),
            "A guest exits to the hypervisor and comes back because it spins.";
        yield_to: Picos = COST, Is("500ns"),
            "The host tries a directed yield. It holds the locks of both run queues for this time, and waits \
             for them before.";
        run_queue: Picos = COST, Is("200ns"),
            "With directed yields: how long a tick or a wake-up on the host holds the lock of a run queue.";
        host_interrupt: Picos = COST, Is("620ns"),
            "With directed yields: an interrupt of the host takes a running vCPU out of its guest, and switches nothing.";
        ipi: Varying = VARYING_COST, Is("1us"), "From sending an interprocessor interrupt to its arrival.";
        timer: Varying = VARYING_COST, Is("0ns"),
            "A timer of a guest that ends while its pCPU is idle is late by this time. It comes on top of `ipi` and \
             `context_switch`.";
        host_timer: Varying = VARYING_COST, Is("0ns"),
            "The scheduler's timers, and those of guests that end while their pCPU is busy, are late by this time.";
        interrupt: Picos = COST, Is("1us"), "A guest takes an interrupt: entry and exit.";
        migration: Picos = COST, Is("50us"),
            "Work lost to cold caches after a vCPU moved to another core.";
    }
}

defaults!(Costs {});

impl Costs {
    /// Checks that quantiles are in order.
    fn agree(&self) -> Result<(), Fault> {
        let varying = [
            ("context_switch", self.context_switch),
            ("preemption", self.preemption),
            ("hypercall", self.hypercall),
            ("ipi", self.ipi),
            ("timer", self.timer),
            ("host_timer", self.host_timer),
        ];
        varying.iter().try_for_each(|(key, of)| of.agrees().map_err(|fault| fault.within(key)))
    }
}

parameters! {
    Domain: pub DOMAIN at "[[domain]]",
    "A virtual machine." {
        name: String = Text, Means("`domain0`, `domain1`, …"), "Name; no two domains share one.";
        vcpus: u32 = integer(1, 65_536), Required, "vCPUs; not more than the lock can serve.";
        weight: u32 = WEIGHT, Is("256"), "Scheduler weight.";
        weights: Vec<u32> = Numbers, Means("`weight` for each"),
            "A weight for each vCPU, on a host whose scheduler is Linux's: the nice values of threads. 256 is nice 0.";
        cap: u32 = CAP, Is("0"),
            "Most CPU time in percent of one pCPU, at most 100 x vcpus; 0 means no cap.";
        /// As data, `None` is what the host's hypervisor has.
        guest_type as type: Option<GuestType> = Choice(GuestType::WORDS),
            Means("`hvm` if the host has pause-loop exits or a scheduler of Linux or VMware, else `pv`"),
            "Paravirtual, or virtualised by hardware. Only `hvm` guests exit in pause loops. All operations cost the same.";
        params as scheduler_params: Settings = Params(Whose::Domain), Means("the scheduler's"),
            "Parameters of the host's scheduler for domains.";
        /// As data, 0 is the host's own, and `k` the `k`-th of [`Host::pools`].
        pool: u32 = Text, Follows(|_| Value::from(0), "the host's own"),
            "Pool in which it starts; `host` is the host's own.";
        /// As data, vCPU `k` may run on `affinity[k]`; on all pCPUs if the list is empty.
        affinity: Vec<Vec<u32>> = Affinity, Means("all pCPUs"),
            "Where vCPUs may run: one list such as \"0-3,6\" for all of them, or an array with a list for each.";
        lock: String = Lock, Required, "Lock algorithm of its kernel.";
        spin_budget: Option<u32> = integer(0, u32::MAX as u64), Means("the lock's own"),
            "Wait-loop iterations before a blocking lock blocks.";
        nopvspin: bool = Boolean, Is("false"),
            "Paravirtual locks behave as on bare hardware: their waiters never sleep. So do those of an \
             `hvm` guest whose kernel has them for `pv` guests only.";
        kernel: Kernel = Table(&KERNEL), Defaults("as below"), "Its kernel.";
        workload: Workloads = Workloads, Required, "What it does.";
    }
}

words! {
    GuestType, "How a guest is virtualised." {
        Pv = "pv", "Paravirtual: its kernel is made for the hypervisor, Xen, and needs no help of the processor.";
        Hvm = "hvm", "By hardware: the processor exits to the hypervisor, also where the guest does not ask for it.";
    }
}

/// The parameter of a domain, of the simulated hosts `cfs` and `eevdf`, that [`Domain::capped_vcpus`] reads.
pub const CAPPED_VCPUS: &str = "capped_vcpus";

impl Domain {
    /// A domain with weight 256, in the host's own pool, without a cap and without settings of its own.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        vcpus: u32,
        lock: impl Into<String>,
        workload: impl Into<Workloads>,
    ) -> Self {
        let (name, lock, workload) = (name.into(), lock.into(), workload.into());
        // The workload may be long, so it takes no way through data.
        let given = json!({ "name": name, "vcpus": vcpus, "lock": lock, "workload": [] });
        Self { workload, ..with_defaults(given) }
    }

    /// How many of its vCPUs, the first ones, its cap is for.
    #[must_use]
    pub fn capped_vcpus(&self) -> u32 {
        match self.params.get(CAPPED_VCPUS) {
            Some(Setting::Number(n)) if *n > 0 => u32::try_from(*n).unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    /// Checks that all values are legal, whatever made the domain. Its lock and its workloads are checked by those who know
    /// them.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        DOMAIN.check(&tree(self))?;
        self.kernel.agrees().map_err(|fault| fault.within("kernel"))
    }
}

words! {
    GuestScheduler, "How the guest's kernel shares a vCPU among its tasks." {
        Cfs2008 = "cfs-2.6.26", "Linux 2.6.26: the least virtual runtime; `slice` and `wakeup_granularity` are its times.";
        Eevdf = "eevdf", "Linux 6.6, like the host's scheduler of this name.";
        Eevdf618 = "eevdf-6.18", "Linux 6.18, like the host's scheduler of this name.";
    }
}

words! {
    #[derive(PartialOrd, Ord)]
    Preemption, "Where the guest's kernel lets another task take over, besides where a task sleeps or ends." {
        None = "none", "On the return to user mode.";
        Voluntary = "voluntary", "Also between the pieces of kernel work of a task that holds no kernel lock.";
        Lazy = "lazy", "Also in such a piece, if another task has waited for a tick.";
        Full = "full", "Also in such a piece, at once.";
    }
}

words! {
    NewProcess, "Where a new process runs." {
        Balanced = "balanced", "On the vCPU with the fewest tasks, from its start.";
        Linux2626 = "2.6.26",
            "As in Linux 2.6.26: at once in place of its parent. When it executes a program, a thread of the kernel stops it \
             and moves it to a vCPU with fewer tasks.";
    }
}

parameters! {
    /// The guest kernel.
    ///
    /// The defaults are Linux 2.6.26 on four CPUs: a scheduling latency of 20 ms scaled by 1 + log2(4) = 60 ms,
    /// which is the credit of a sleeper and four slices; a wake-up granularity of 10 ms, scaled.
    Kernel: pub KERNEL at "[domain.kernel]",
    "The kernel of the domain above." {
        hz: u32 = integer(0, 10_000), Is("1000"),
            "Timer ticks a second on a busy vCPU; 0 means tickless.";
        scheduler: GuestScheduler = Choice(GuestScheduler::WORDS), Is("cfs-2.6.26"),
            "Who shares a vCPU among its tasks: Linux 2.6.26, or the host's scheduler of this name.";
        preemption: Preemption = Choice(Preemption::WORDS), Is("none"),
            "Where another task may take over. `none`: on the return to user mode. `voluntary`: also between pieces of kernel \
             work. `full`: also in them, but under no kernel lock. `lazy`: the same, a tick later.";
        task_switch: Picos = COST, Is("2us"), "Switch from one task to another.";
        tick_work: Picos = time(Picos::ZERO, Picos::us(100)), Is("2us"),
            "Time that a tick handler takes.";
        wakeup_granularity: Picos = time(Picos::ZERO, Picos::sec(10)), Is("30ms"),
            "`cfs-2.6.26`: a waking task preempts one that is ahead of it by more than this.";
        /// A task that slept gets a credit of at most four slices.
        slice: Picos = time(Picos::ZERO, Picos::sec(10)), Is("15ms"),
            "`cfs-2.6.26`: a tick preempts a task that is ahead of a waiting one by more than this.";
        new_process: NewProcess = Choice(NewProcess::WORDS), Is("balanced"),
            "Where a new process runs. `balanced`: on the vCPU with the fewest tasks. `2.6.26`, only with `cfs-2.6.26`: at \
             once in place of its parent; when it executes a program, a kernel thread moves it to a vCPU with fewer tasks.";
        pv_tlb_flush: bool = Boolean, Is("false"),
            "Where a task unmaps memory: the host tells vCPUs without a pCPU, and nobody waits for them.";
        /// `None`: it grants none.
        slice_extension: Option<Picos> = time(Picos::us(5), Picos::us(50)), Means("none"),
            "The longest extension of the time slice of a task that asks for one (`slice_request`), before another task \
             takes over on the return from an interrupt to user mode (rseq, Linux 7.0: 5us).";
        /// `None`: it uses all its vCPUs.
        steal_governor: Option<StealGovernor> = Table(&STEAL_GOVERNOR), Means("all vCPUs are used"),
            "Folds tasks onto fewer vCPUs while the host steals time. Only the world `sim` has it.";
        /// `None`: it does not run.
        vmstat: Option<Picos> = time(MS, LONGEST), Means("it does not run"),
            "Time between two lines of `vmstat`, which is printed with the results.";
    }
}

defaults!(Kernel {});

impl Kernel {
    /// Checks that values which are each in their range agree with each other.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn agrees(&self) -> Result<(), Fault> {
        if self.new_process == NewProcess::Linux2626 && self.scheduler != GuestScheduler::Cfs2008 {
            return Err(Fault::new(
                "new_process",
                "`2.6.26` is how the scheduler `cfs-2.6.26` starts a process",
                "leave `scheduler` or `new_process` out",
            ));
        }
        let Some(governor) = &self.steal_governor else { return Ok(()) };
        if governor.low_permille > governor.high_permille {
            return Err(Fault::new(
                "steal_governor.low_permille",
                format!(
                    "{} is more than `high_permille`, {}: one ratio would remove a core and add one",
                    governor.low_permille, governor.high_permille
                ),
                "make it at most `high_permille`",
            ));
        }
        if self.hz == 0 {
            return Err(Fault::new(
                "steal_governor",
                "a tick takes tasks off vCPUs that are no longer preferred, and `hz = 0` has no ticks",
                "set `hz`, or leave `steal_governor` out",
            ));
        }
        Ok(())
    }

    /// What it has that only a simulated kernel can have, in words; nothing if it can be another one.
    #[must_use]
    pub fn only_simulated(&self) -> Option<&'static str> {
        self.steal_governor.is_some().then_some(
            "`kernel.steal_governor` needs a kernel that knows the time that the host steals and folds its tasks onto fewer vCPUs; \
             leave it out, or run the scenario in the world `sim`",
        )
    }
}

parameters! {
    /// The defaults are those of Linux.
    StealGovernor: pub STEAL_GOVERNOR at "[domain.kernel.steal_governor]",
    "A kernel that folds its tasks onto fewer vCPUs while the host steals time from it (preferred CPUs, expected in Linux 7.4); an \
     empty table has Linux's values." {
        period: Picos = time(MS, Picos::sec(100)), Is("1s"),
            "Time between two looks at the time stolen. Linux allows 100 ms to 100 s.";
        high_permille: u32 = integer(0, 1000), Is("50"),
            "Above this steal, in thousandths of the time of all its vCPUs, tasks leave the last core.";
        low_permille: u32 = integer(0, 1000), Is("20"), "At this steal or less, they may use one core more.";
        core: u32 = integer(1, 64), Is("1"), "vCPUs of a core, which come and go together (SMT siblings).";
    }
}

defaults!(StealGovernor {});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Absent, Kind, Section};
    use crate::{COSTS, Costs, MS, NOISE};
    use alloc::string::ToString;
    use alloc::vec;
    use core::fmt::Debug;

    /// Removes one field after the other, as a record from before its key lacks it, and reads the rest.
    fn lacks_one_by_one<T: Serialize + for<'a> Deserialize<'a> + PartialEq + Debug>(
        of: &T,
        keys: &Section,
    ) {
        for key in keys.keys {
            let mut tree = tree(of);
            assert!(tree.remove(key.field).is_some(), "`{}` is no field", key.field);
            match serde_json::from_value::<T>(tree.clone().into()) {
                Ok(read) => assert_eq!(&read, of, "{}", key.field),
                // A file's reader gives names to domains.
                Err(error) => {
                    assert!(matches!(key.absent, Absent::Required) || key.field == "name");
                    assert!(error.to_string().contains(key.field), "{error}");
                }
            }
            // A field holds all that its key allows.
            if let Kind::Integer { min, max }
            | Kind::Time { min: Picos(min), max: Picos(max) }
            | Kind::Varying { min: Picos(min), max: Picos(max) } = key.kind
            {
                for bound in [min, max] {
                    tree.insert(key.field.into(), bound.into());
                    assert!(
                        serde_json::from_value::<T>(tree.clone().into()).is_ok(),
                        "{}",
                        key.field
                    );
                    assert_eq!(keys.check(&tree), Ok(()), "{}", key.field);
                }
            }
        }
    }

    #[test]
    fn a_field_that_a_record_lacks_has_its_default() {
        lacks_one_by_one(&Host::default(), &HOST);
        lacks_one_by_one(&Noise::default(), &NOISE);
        lacks_one_by_one(&Costs::default(), &COSTS);
        lacks_one_by_one(&PauseLoopExiting::default(), &PAUSE_LOOP_EXITING);
        lacks_one_by_one(&HaltPolling::default(), &HALT_POLLING);
        lacks_one_by_one(&PreemptionNotification::default(), &PREEMPTION_NOTIFICATION);
        lacks_one_by_one(&Kernel::default(), &KERNEL);
        lacks_one_by_one(&StealGovernor::default(), &STEAL_GOVERNOR);
        lacks_one_by_one(&Domain::new("d", 1, "ticket", Workloads(Vec::new())), &DOMAIN);
        lacks_one_by_one(&with_defaults::<Governor>(json!({})), &GOVERNOR);
        lacks_one_by_one(&with_defaults::<Pool>(json!({ "name": "p" })), &POOL);
        let early =
            PauseLoopExiting { rules: DirectedYieldRules::Y2012, grow: 1, ..Default::default() };
        let mut lacks_growth = tree(&early);
        lacks_growth.remove("grow");
        assert_eq!(serde_json::from_value::<PauseLoopExiting>(lacks_growth.into()).unwrap(), early);
    }

    #[test]
    fn what_is_none_stays_none_and_what_is_unknown_is_left_out() {
        let host = Host::default().undisturbed();
        let mut tree = tree(&host);
        assert_eq!(tree["noise"], Value::Null);
        tree.insert("of-a-later-version".into(), 7.into());
        assert_eq!(serde_json::from_value::<Host>(tree.into()).unwrap(), host);
    }

    /// The ranges of keys hold whatever made the value.
    #[test]
    fn faults_name_their_key() {
        let costs = Costs { atomic: Picos::sec(2), ..Costs::default() };
        let fault = Host { costs, ..Host::default() }.check().unwrap_err();
        assert_eq!(fault.key, "costs.atomic");
        assert!(fault.message.contains("2s") && fault.help.contains("0 to 1s"), "{fault}");
        let noise = Noise { cpus: vec![1], ..Noise::default() };
        let fault = Host { noise: Some(noise), ..Host::default() }.check().unwrap_err();
        assert_eq!(fault.key, "noise.cpus");
        let polling = HaltPolling { max: MS / 1000, ..HaltPolling::default() };
        let fault = Host { halt_polling: Some(polling), ..Host::default() }.check().unwrap_err();
        assert_eq!(fault.key, "halt_polling.max");
        assert_eq!(Host::default().check(), Ok(()));
        let with = |hz, low_permille| {
            let steal_governor = Some(StealGovernor { low_permille, ..StealGovernor::default() });
            let kernel = Kernel { hz, steal_governor, ..Kernel::default() };
            kernel.agrees().map_err(|fault| fault.key)
        };
        assert_eq!(
            with(1000, 50),
            Ok(()),
            "equal limits leave no room between them, which is legal"
        );
        assert_eq!(with(1000, 51), Err("steal_governor.low_permille".into()));
        assert_eq!(with(0, 20), Err("steal_governor".into()));
    }
}
