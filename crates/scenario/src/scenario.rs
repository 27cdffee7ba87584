//! The scenario: hosts, domains, locks, workload, lengths. All times are integer picoseconds.

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
    /// What the administrator does meanwhile.
    pub events: Vec<Event>,
    /// Stop at this simulated time, finished or not.
    pub limit: Picos,
    /// Go on until then although all that ends has ended.
    pub to_the_limit: bool,
    /// Default seed.
    pub seed: u64,
}

/// The machine and its hypervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The machine whose costs it has, where `costs` and `smt_permille` do not differ from them.
    pub machine: String,
    /// Sockets.
    pub sockets: u32,
    /// Cores in a socket.
    pub cores: u32,
    /// Hardware threads in a core.
    pub threads: u32,
    /// How fast a thread runs while its sibling runs too, in thousandths of full speed.
    pub smt_permille: u32,
    /// How the package saves power; `None`: it always runs at full speed.
    pub governor: Option<Governor>,
    /// Scheduler or profile, as `overspin list schedulers` names it.
    pub scheduler: String,
    /// Scheduler parameters that differ from the profile's.
    pub params: Settings,
    /// What things cost.
    pub costs: Costs,
    /// Guests that spin for long are interrupted (Intel's pause-loop exiting, AMD's pause filter);
    /// `None`: they spin on.
    pub pause_loop_exiting: Option<PauseLoopExiting>,
    /// A vCPU that exits yields in favour of a preempted one of its domain, and spins on if there is
    /// none; whether that one runs next is up to the scheduler.
    pub directed_yield: bool,
    /// A vCPU that halts keeps its pCPU for a while; `None`: it gives it up at once.
    pub halt_polling: Option<HaltPolling>,
    /// vCPUs that are about to be preempted may finish their critical sections first; `None`: they
    /// are preempted at once.
    pub preemption_notification: Option<PreemptionNotification>,
    /// Pools besides the host's own, which has all pCPUs that are in none of these.
    pub pools: Vec<Pool>,
    /// What else the host does; `None`: nothing, ever.
    pub noise: Option<Noise>,
    /// Domains begin at random offsets below this, and the vCPUs of each at random offsets after its first;
    /// what tasks do periodically begins anywhere in its period. 0: everything begins at once.
    pub stagger: Picos,
}

/// Longer than the time slice of any scheduler here (30 ms of Xen's credit), so that the slices of two
/// domains may have any phase to each other.
const STAGGER: Picos = Picos::ms(40);

impl Default for Host {
    /// One pCPU, the default scheduler, and none of the options; noise and offsets as hosts have them.
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
    /// This host without noise and offsets: for closed forms, and to see what they change.
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

/// A package that runs slower while little of it is used: a lower clock, and idle states that take
/// time to leave. Looked at once an interval, for each socket by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Governor {
    /// Time between two looks.
    pub interval: Picos,
    /// It is quiet if its threads were busy for less than this in sum since the last look, in
    /// thousandths of one thread's time.
    pub busy_permille: u32,
    /// Speed while it is quiet, in thousandths of full speed.
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

/// When a guest that spins exits to the hypervisor: once PAUSE instructions no more than `gap` apart
/// have gone on for longer than the vCPU's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseLoopExiting {
    /// The window of a vCPU that has just been put on a pCPU, and its least.
    pub window: Picos,
    /// PAUSEs further apart than this are no loop.
    pub gap: Picos,
    /// The window is multiplied by this at each exit; 1 leaves it.
    pub grow: u32,
    /// The window is divided by this when the vCPU is put on a pCPU; 0 sets it back to `window`.
    pub shrink: u32,
    /// Longest window.
    pub max: Picos,
    /// Whom the host tries in directed yields.
    pub rules: DirectedYieldRules,
}

impl Default for PauseLoopExiting {
    /// KVM on Intel today, on a clock of 2 GHz: 4096 and 128 cycles, and 2^32 at most.
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

/// Whom KVM tries in a directed yield, by the year in which the rule came. Each adds to the one
/// before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum DirectedYieldRules {
    /// Linux 2.6.39 to 3.5 (commit 217ece6129f2): every sibling that is neither in guest mode nor
    /// asleep, in turn, until one takes it.
    #[serde(rename = "2011")]
    Y2011,
    /// Linux 3.6 to 3.8 (06e48c510aa3): siblings that are in a pause-loop exit themselves are passed
    /// over every other time.
    #[serde(rename = "2012")]
    Y2012,
    /// Linux 3.9 (c45c528899c4: at most three refusals) and 3.10 (7bc7ae25b143: only those that were
    /// preempted), to 4.13.
    #[serde(rename = "2013")]
    Y2013,
    /// Linux 4.14 to 5.2 (199b5763d329, de63ad4cf497): if the spinner is in its kernel, only those
    /// that were preempted in theirs.
    #[serde(rename = "2017")]
    Y2017,
    /// Linux 5.3 to 5.12 (d73eb57b80b9, 046ddeed0461): those also that were woken and have not run
    /// yet.
    #[serde(rename = "2019")]
    Y2019,
    /// Linux 5.13 (52acd22faa1a) and later: those also that were preempted in user mode and have an
    /// interrupt pending.
    #[default]
    #[serde(rename = "2021")]
    Y2021,
}

impl DirectedYieldRules {
    /// All, from the oldest.
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

/// How long a vCPU that halts waits on its pCPU for something to do, before it gives the pCPU up.
/// The time, its *poll window*, adapts: it is 0 at first, and then 0 or from `start` to `max`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaltPolling {
    /// Longest window. Halts that took longer in all make the window shrink.
    pub max: Picos,
    /// First window.
    pub start: Picos,
    /// A window that was too short for a halt of less than `max` is multiplied by this.
    pub grow: u32,
    /// A window is divided by this when it shrinks; 0 makes it 0.
    pub shrink: u32,
}

impl Default for HaltPolling {
    /// KVM on x86 today.
    fn default() -> Self {
        Self { max: 200 * US, start: 10 * US, grow: 2, shrink: 2 }
    }
}

/// What the hypervisor does before it preempts a vCPU in favour of another: it opens a *window* in
/// which the guest may finish what it does under locks and then give the pCPU up itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreemptionNotification {
    /// Whose vCPUs get windows.
    pub guests: NotifiedGuests,
    /// How the guest learns of it.
    pub protocol: NotificationProtocol,
    /// Longest window: who has not given up by then is preempted by force.
    pub window: Picos,
    /// Windows in a row that end by force after which a vCPU gets none for `back_off`.
    pub strikes: u32,
    /// For how long it gets none.
    pub back_off: Picos,
}

impl Default for PreemptionNotification {
    /// The protocol of 2005 with the bounds that it needs: kernels hold locks for tens of
    /// microseconds, so that a millisecond is ample.
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

/// Whose vCPUs are asked before they are preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifiedGuests {
    /// Those of guests with several vCPUs: nobody waits for the lock of a lone one.
    Smp,
    /// Everybody's.
    All,
}

/// How a guest learns that it is to be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationProtocol {
    /// By an interrupt, whatever it does; its handler gives up at once if no lock is held.
    Upcall,
    /// The hypervisor looks at the count of held locks, which the guest keeps in a shared page. It
    /// preempts at once if that is 0, otherwise sets a flag that the last unlock looks at.
    Deferral,
}

/// Parameters of a scheduler by name. Which there are depends on the scheduler.
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

/// What things cost on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Load or store that hits this core's cache.
    pub cache_hit: Picos,
    /// Extra cost of an atomic read-modify-write on a line that this core owns.
    pub atomic: Picos,
    /// Line comes from the sibling thread's or the own core's shared cache level.
    pub same_core: Picos,
    /// Line comes from another core of the socket.
    pub cross_core: Picos,
    /// Line comes from another socket.
    pub cross_socket: Picos,
    /// One iteration of a spin loop (load, compare, pause).
    pub spin_iteration: Picos,
    /// Memory fence.
    pub fence: Picos,
    /// Hypervisor switches from one vCPU to another.
    pub context_switch: Picos,
    /// Guest enters and leaves the hypervisor.
    pub hypercall: Picos,
    /// Guest leaves the hypervisor and comes back because it spins (pause-loop exit), without what
    /// the host does then.
    pub pause_loop_exit: Picos,
    /// The host tries a directed yield, from when it has the locks of both run queues.
    pub yield_to: Picos,
    /// From sending an interprocessor interrupt to its arrival.
    pub ipi: Picos,
    /// Guest takes an interrupt (entry and exit).
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
            hypercall: 500 * NS,
            pause_loop_exit: 620 * NS,
            yield_to: 500 * NS,
            ipi: US,
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
    /// How many vCPUs.
    pub vcpus: u32,
    /// Scheduler weight.
    pub weight: u32,
    /// Most CPU time, in percent of one pCPU; 0 is no cap.
    pub cap: u32,
    /// Parameters that the host's scheduler has for domains, besides weight and cap.
    pub params: Settings,
    /// Pool in which it starts: 0 is the host's own, `k` the `k`-th of `Host::pools`.
    pub pool: u32,
    /// vCPU k may run on `affinity[k]` (all pCPUs if the list is empty).
    pub affinity: Vec<Vec<u32>>,
    /// Lock algorithm of its kernel, as `overspin list locks` names it.
    pub lock: String,
    /// Wait-loop iterations before a blocking lock's slow path.
    pub spin_budget: Option<u32>,
    /// Paravirtual locks behave as on bare hardware.
    pub nopvspin: bool,
    /// Its kernel.
    pub kernel: Kernel,
    /// What it does.
    pub workload: Workloads,
}

/// The guest kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Timer ticks a second on a busy vCPU; 0 is tickless.
    pub hz: u32,
    /// Switch from one task to another.
    pub task_switch: Picos,
    /// Time a tick handler works.
    pub tick_work: Picos,
    /// A waking task preempts one that is ahead by more than this.
    pub wakeup_granularity: Picos,
    /// A tick preempts a task that is ahead of the first waiting one by more than this. A task
    /// that slept is owed at most four slices.
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
