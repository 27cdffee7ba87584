//! The scenario: host, domains, locks, workloads, lengths. All times are integer picoseconds.

use crate::{Event, MS, NS, Noise, Picos, US, Workloads};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Everything a run depends on besides the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Name, for reports.
    pub name: String,
    /// The question that it answers, for reports.
    pub description: String,
    /// The machine and its hypervisor.
    pub host: Host,
    /// The virtual machines.
    pub domains: Vec<Domain>,
    /// The actions of the administrator during the run.
    pub events: Vec<Event>,
    /// Stop at this simulated time, finished or not.
    pub limit: Picos,
    /// Run up to the limit even if all tasks that end have ended.
    pub to_the_limit: bool,
    /// Default seed.
    pub seed: u64,
}

impl Scenario {
    /// A run of at most `limit`, without a description and without events, with seed 1.
    #[must_use]
    pub fn new(name: impl Into<String>, host: Host, domains: Vec<Domain>, limit: Picos) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            host,
            domains,
            events: Vec::new(),
            limit,
            to_the_limit: false,
            seed: 1,
        }
    }
}

/// The machine and its hypervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The machine from which the host takes its costs, where `costs` and `smt_permille` do not override
    /// them.
    pub machine: String,
    /// Sockets.
    pub sockets: u32,
    /// Cores in a socket.
    pub cores: u32,
    /// Hardware threads in a core.
    pub threads: u32,
    /// Speed of a thread while its sibling runs too, in thousandths of full speed.
    pub smt_permille: u32,
    /// How the package saves power; `None`: it always runs at full speed.
    pub governor: Option<Governor>,
    /// Scheduler or profile, named as in `overspin list schedulers`.
    pub scheduler: String,
    /// Scheduler parameters that differ from the profile's.
    pub params: Settings,
    /// The costs of operations.
    pub costs: Costs,
    /// Interrupts guests that spin for long (Intel's pause-loop exiting, AMD's pause filter); `None`: they
    /// spin on.
    pub pause_loop_exiting: Option<PauseLoopExiting>,
    /// Whether a vCPU in a pause-loop exit yields to a preempted vCPU of its domain (it spins on if there
    /// is none). The scheduler decides whether that vCPU runs next.
    pub directed_yield: bool,
    /// Lets a halting vCPU keep its pCPU for a while; `None`: it gives up the pCPU at once.
    pub halt_polling: Option<HaltPolling>,
    /// Lets vCPUs that are about to be preempted finish their critical sections first; `None`: they are
    /// preempted at once.
    pub preemption_notification: Option<PreemptionNotification>,
    /// Pools besides the host's own pool, which has all pCPUs that are in none of these.
    pub pools: Vec<Pool>,
    /// Noise of the host; `None`: the host does nothing else.
    pub noise: Option<Noise>,
    /// Domains begin at random offsets below this, and the vCPUs of a domain at random offsets after its
    /// first. Periodic work of tasks begins anywhere in its period. 0: everything begins at once.
    pub stagger: Picos,
}

/// Longer than the time slice of Xen's credit (30 ms), so that the slices of two domains may have any phase
/// to each other.
const STAGGER: Picos = Picos::ms(40);

impl Default for Host {
    /// One pCPU, the default scheduler, and none of the options, but with realistic noise and offsets.
    fn default() -> Self {
        Self {
            machine: "generic-2008".into(),
            sockets: 1,
            cores: 1,
            threads: 1,
            smt_permille: 650,
            governor: None,
            scheduler: "credit".into(),
            params: Settings::new(),
            costs: Costs::default(),
            pause_loop_exiting: None,
            directed_yield: false,
            halt_polling: None,
            preemption_notification: None,
            pools: Vec::new(),
            noise: Some(Noise::default()),
            stagger: STAGGER,
        }
    }
}

impl Host {
    /// This host without noise and offsets: for comparison with closed forms, and to see the effect of
    /// noise and offsets.
    #[must_use]
    pub fn undisturbed(self) -> Self {
        Self { noise: None, stagger: Picos::ZERO, ..self }
    }

    /// Number of hardware threads.
    #[must_use]
    pub fn pcpus(&self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}

/// A package that runs more slowly while little of it is used: a lower clock, and idle states that take
/// time to leave. It is checked once per interval, for each socket separately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Governor {
    /// Time between two checks.
    pub interval: Picos,
    /// A socket is quiet if its threads together were busy for less than this since the last check, in
    /// thousandths of one thread's time.
    pub busy_permille: u32,
    /// Speed of a quiet socket, in thousandths of full speed.
    pub quiet_permille: u32,
}

/// Some of the pCPUs, with a scheduler of their own; load in one pool never touches another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Its pCPUs at the start; never pCPU 0, which stays in the host's own pool.
    pub cpus: Vec<u32>,
    /// Scheduler or profile.
    pub scheduler: String,
    /// Scheduler parameters that differ from the profile's.
    pub params: Settings,
}

/// When a spinning guest exits to the hypervisor: once PAUSE instructions no more than `gap` apart have
/// gone on for longer than the vCPU's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseLoopExiting {
    /// The shortest window, and by default that of a vCPU that has just been put on a pCPU.
    pub window: Picos,
    /// PAUSEs further apart than this do not form a loop.
    pub gap: Picos,
    /// Each exit multiplies the window by this; 1 leaves it unchanged.
    pub grow: u32,
    /// Each dispatch of the vCPU divides the window by this; 0 sets it back to `window`.
    pub shrink: u32,
    /// Longest window.
    pub max: Picos,
    /// Which siblings the host tries in directed yields.
    pub rules: DirectedYieldRules,
}

impl Default for PauseLoopExiting {
    /// The values of KVM on Intel today, at a clock of 2 GHz: 4096 and 128 cycles, and 2^32 cycles at most.
    fn default() -> Self {
        Self {
            window: 2048 * NS,
            gap: 64 * NS,
            grow: 2,
            shrink: 0,
            max: 2147 * MS,
            rules: DirectedYieldRules::default(),
        }
    }
}

/// Which siblings KVM tries in a directed yield, by the year of the rule. Each rule builds on the one
/// before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum DirectedYieldRules {
    /// Linux 2.6.39 to 3.5 (commit 217ece6129f2): every sibling that is neither in guest mode nor
    /// asleep, in turn, until one takes it.
    #[serde(rename = "2011")]
    Y2011,
    /// Linux 3.6 to 3.8 (06e48c510aa3): KVM passes over siblings that are in a pause-loop exit themselves,
    /// every other time.
    #[serde(rename = "2012")]
    Y2012,
    /// Linux 3.9 (c45c528899c4: at most three refusals) and 3.10 (7bc7ae25b143: only preempted siblings),
    /// to 4.13.
    #[serde(rename = "2013")]
    Y2013,
    /// Linux 4.14 to 5.2 (199b5763d329, de63ad4cf497): if the spinner is in its kernel, only siblings that
    /// were preempted in their kernel.
    #[serde(rename = "2017")]
    Y2017,
    /// Linux 5.3 to 5.12 (d73eb57b80b9, 046ddeed0461): also siblings that were woken and have not run yet.
    #[serde(rename = "2019")]
    Y2019,
    /// Linux 5.13 (52acd22faa1a) and later: also siblings that were preempted in user mode and have an
    /// interrupt pending.
    #[default]
    #[serde(rename = "2021")]
    Y2021,
}

impl DirectedYieldRules {
    /// All rules, from the oldest.
    pub const ALL: [Self; 6] =
        [Self::Y2011, Self::Y2012, Self::Y2013, Self::Y2017, Self::Y2019, Self::Y2021];

    /// The year, as scenarios write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Y2011 => "2011",
            Self::Y2012 => "2012",
            Self::Y2013 => "2013",
            Self::Y2017 => "2017",
            Self::Y2019 => "2019",
            Self::Y2021 => "2021",
        }
    }
}

/// How long a halting vCPU waits on its pCPU for an event before it gives up the pCPU. This time, its *poll
/// window*, adapts: it is 0 at first, and then 0 or from `start` to `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaltPolling {
    /// Longest window. A halt that took longer than this in all makes the window shrink.
    pub max: Picos,
    /// First window.
    pub start: Picos,
    /// A window grows by this factor if it was too short for a halt of less than `max`.
    pub grow: u32,
    /// A window shrinks by this divisor; 0 sets it to 0.
    pub shrink: u32,
}

impl Default for HaltPolling {
    /// The values of KVM on x86 today.
    fn default() -> Self {
        Self { max: 200 * US, start: 10 * US, grow: 2, shrink: 2 }
    }
}

/// What the hypervisor does before it preempts a vCPU in favour of another: it opens a *window* in which
/// the guest may finish its critical sections and then give up the pCPU itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreemptionNotification {
    /// Which guests' vCPUs get windows.
    pub guests: NotifiedGuests,
    /// How the guest learns of it.
    pub protocol: NotificationProtocol,
    /// Longest window: a vCPU that has not given up by then is preempted by force.
    pub window: Picos,
    /// Number of windows in a row that end by force, after which a vCPU gets none for `back_off`.
    pub strikes: u32,
    /// How long such a vCPU gets no window.
    pub back_off: Picos,
}

impl Default for PreemptionNotification {
    /// The protocol of 2005 with the necessary bounds: kernels hold locks for tens of microseconds, so a
    /// millisecond is ample.
    fn default() -> Self {
        Self {
            guests: NotifiedGuests::Smp,
            protocol: NotificationProtocol::Upcall,
            window: MS,
            strikes: 3,
            back_off: 100 * MS,
        }
    }
}

/// Which guests' vCPUs the host asks before it preempts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifiedGuests {
    /// Guests with several vCPUs: a lone vCPU has no sibling that waits for its locks.
    Smp,
    /// All guests.
    All,
}

/// How a guest learns that it is to be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationProtocol {
    /// By an interrupt, in any case; the handler gives up at once if no lock is held.
    Upcall,
    /// The hypervisor reads the count of held locks, which the guest keeps in a shared page. If it is 0,
    /// the hypervisor preempts at once; otherwise it sets a flag that the last unlock checks.
    Deferral,
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

/// The costs of operations on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Load or store that hits this core's cache.
    pub cache_hit: Picos,
    /// Extra cost of an atomic read-modify-write on a line that this core owns.
    pub atomic: Picos,
    /// A line comes from the sibling thread, or from the cache level that the threads of the core share.
    pub same_core: Picos,
    /// A line comes from another core of the socket.
    pub cross_core: Picos,
    /// A line comes from another socket.
    pub cross_socket: Picos,
    /// One iteration of a spin loop (load, compare, pause).
    pub spin_iteration: Picos,
    /// Memory fence.
    pub fence: Picos,
    /// The hypervisor switches from one vCPU to another.
    pub context_switch: Picos,
    /// What a switch takes beyond `context_switch` if the vCPU that leaves did not ask for it: it has to exit first.
    /// (Records from before this cost existed do not have it.)
    #[serde(default)]
    pub preemption: Picos,
    /// A guest enters and leaves the hypervisor.
    pub hypercall: Picos,
    /// A guest enters the hypervisor because it spins (pause-loop exit) and returns, without the host's
    /// work in between.
    pub pause_loop_exit: Picos,
    /// The host tries a directed yield; counted from when it has the locks of both run queues.
    pub yield_to: Picos,
    /// From sending an interprocessor interrupt to its arrival.
    pub ipi: Picos,
    /// A timer of a guest that ends while its pCPU is idle is late by this: the pCPU has to leave its sleep first.
    /// (Records from before this cost existed do not have it.)
    #[serde(default)]
    pub timer: Picos,
    /// A guest takes an interrupt (entry and exit).
    pub interrupt: Picos,
    /// Work lost to cold caches after a vCPU moved to another core.
    pub migration: Picos,
}

impl Default for Costs {
    /// The machine `generic-2008` (`docs/machines.md`).
    fn default() -> Self {
        Self {
            cache_hit: Picos(500),
            atomic: 8 * NS,
            same_core: 10 * NS,
            cross_core: 60 * NS,
            cross_socket: 120 * NS,
            spin_iteration: 20 * NS,
            fence: 8 * NS,
            context_switch: 2 * US,
            preemption: Picos::ZERO,
            hypercall: 500 * NS,
            pause_loop_exit: 620 * NS,
            yield_to: 500 * NS,
            ipi: US,
            timer: Picos::ZERO,
            interrupt: US,
            migration: 50 * US,
        }
    }
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// Number of vCPUs.
    pub vcpus: u32,
    /// Scheduler weight.
    pub weight: u32,
    /// Maximum CPU time, in percent of one pCPU; 0 is no cap.
    pub cap: u32,
    /// Parameters that the host's scheduler has for domains, besides weight and cap.
    pub params: Settings,
    /// Pool in which it starts: 0 is the host's own, `k` the `k`-th of `Host::pools`.
    pub pool: u32,
    /// vCPU k may run on `affinity[k]` (all pCPUs if the list is empty).
    pub affinity: Vec<Vec<u32>>,
    /// Lock algorithm of its kernel, named as in `overspin list locks`.
    pub lock: String,
    /// Wait-loop iterations before the slow path of a blocking lock.
    pub spin_budget: Option<u32>,
    /// Whether paravirtual locks behave as on bare hardware.
    pub nopvspin: bool,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its workloads.
    pub workload: Workloads,
}

impl Domain {
    /// A domain with weight 256, in the host's own pool, without a cap and without settings of its own.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        vcpus: u32,
        lock: impl Into<String>,
        workload: impl Into<Workloads>,
    ) -> Self {
        Self {
            name: name.into(),
            vcpus,
            weight: 256,
            cap: 0,
            params: Settings::new(),
            pool: 0,
            affinity: Vec::new(),
            lock: lock.into(),
            spin_budget: None,
            nopvspin: false,
            kernel: Kernel::default(),
            workload: workload.into(),
        }
    }
}

/// The guest kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Timer ticks per second on a busy vCPU; 0 is tickless.
    pub hz: u32,
    /// Switch from one task to another.
    pub task_switch: Picos,
    /// Run time of a tick handler.
    pub tick_work: Picos,
    /// A waking task preempts one that is ahead by more than this.
    pub wakeup_granularity: Picos,
    /// A tick preempts a task that is ahead of the first waiting one by more than this. A task that slept
    /// gets a credit of at most four slices.
    pub slice: Picos,
    /// Time between two lines of `vmstat`; `None`: it does not run.
    pub vmstat: Option<Picos>,
}

impl Default for Kernel {
    /// Linux 2.6.26 on four CPUs: a scheduling latency of 20 ms scaled by 1 + log2(4) = 60 ms,
    /// which is the credit of a sleeper and four slices; a wake-up granularity of 10 ms, scaled.
    fn default() -> Self {
        Self {
            hz: 1000,
            task_switch: 2 * US,
            tick_work: 2 * US,
            wakeup_granularity: 30 * MS,
            slice: 15 * MS,
            vmstat: None,
        }
    }
}
