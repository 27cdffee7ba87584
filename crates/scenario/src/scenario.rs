//! The scenario: hosts, domains, locks, workload, lengths. All times are integer picoseconds.

use crate::{Dbench, Disk, Event, Noise};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Picoseconds. Integer, so that no rounding ever decides an order.
pub type Picos = u64;

/// One nanosecond.
pub const NS: Picos = 1_000;
/// One microsecond.
pub const US: Picos = 1_000 * NS;
/// One millisecond.
pub const MS: Picos = 1_000 * US;
/// One second.
pub const SEC: Picos = 1_000 * MS;

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
const STAGGER: Picos = 40 * MS;

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
        Self { noise: None, stagger: 0, ..self }
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
            cache_hit: 500,
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
    pub workload: Workload,
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

/// What the tasks of a domain do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Threads that take one lock again and again.
    LockLoop(LockLoop),
    /// Threads that compute and sleep in turn.
    BurnWait(BurnWait),
    /// A parallel compile.
    Kernbench(Kernbench),
    /// A schedbench worker.
    Schedbench(Schedbench),
    /// Threads that run, sleep and wait for timers in phases.
    Phases(Phases),
    /// A loop that counts.
    Count(Count),
    /// A page-fault test.
    Pft(Pft),
    /// Answers to the pings of another machine.
    Ping(Ping),
    /// Clients of a database.
    Pgbench(Pgbench),
    /// Clients of a file server.
    Dbench(Dbench),
}

/// Threads that take one lock again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockLoop {
    /// Threads; 0 is one on each vCPU.
    pub threads: u32,
    /// Time in the section.
    pub section: Picos,
    /// Mean time outside (exponential; exactly this if `fixed`).
    pub outside: Picos,
    /// The outside time does not vary.
    pub fixed: bool,
    /// Interrupts are off in the section and while waiting for it.
    pub irqs_off: bool,
    /// How many sections each thread does; 0 is until the limit.
    pub count: u64,
}

/// Threads that compute and sleep in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurnWait {
    /// Threads; 0 is one on each vCPU.
    pub threads: u32,
    /// CPU time of one item.
    pub burn: Picos,
    /// Sleep after it; 0 never sleeps.
    pub wait: Picos,
    /// How many items each thread does; 0 is until the limit.
    pub count: u64,
    /// How `burn` varies.
    pub burn_distribution: Distribution,
    /// How `wait` varies. Threads with random waits begin with one.
    pub wait_distribution: Distribution,
}

impl Default for BurnWait {
    fn default() -> Self {
        Self {
            threads: 0,
            burn: 10 * MS,
            wait: 0,
            count: 0,
            burn_distribution: Distribution::Fixed,
            wait_distribution: Distribution::Fixed,
        }
    }
}

/// How a time varies around its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// It does not.
    Fixed,
    /// Exponentially.
    Exponential,
}

/// A schedbench worker: one loop on each vCPU that serves items in the order of their times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedbench {
    /// The items, all due at the start.
    pub items: Vec<BenchItem>,
    /// Time between two reports.
    pub report_interval: Picos,
}

/// Something that a schedbench worker does again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchItem {
    /// Its work, in thousands of operations.
    pub kops: u64,
    /// CPU time that this takes at full speed.
    pub burn: Picos,
    /// When it is due again.
    pub again: Again,
}

/// When an item is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Again {
    /// So long after its work is done.
    After(Picos),
    /// So long after it was due; by then its work must be done (its deadline).
    Every(Picos),
}

/// Threads that run, sleep and wait for timers in phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Threads; 0 is one on each vCPU.
    pub threads: u32,
    /// Phases, in their order.
    pub phases: Vec<Phase>,
    /// How often each thread goes through all of them; 0 is until the limit.
    pub count: u64,
    /// Each thread begins so long after it could; with `align`, each of its rounds through the phases
    /// so long after a tick.
    pub start: Picos,
    /// Which tick each round waits for.
    pub align: Align,
}

/// A tick that a thread may go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// None.
    #[default]
    None,
    /// That of its vCPU's kernel.
    GuestTick,
    /// That of the hypervisor's scheduler, on the pCPU that its vCPU is on.
    HostTick,
}

/// Steps that are taken a number of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// How often.
    pub times: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Uses so much CPU time.
    Run(Picos),
    /// Sleeps for so long.
    Sleep(Picos),
    /// Sleeps until so long after this timer's last time, or not at all if that is over. The first
    /// period begins with the thread's first round.
    Timer(Picos),
    /// The thread's vCPU gives its pCPU up and stays runnable: a yield to the hypervisor.
    Yield,
}

/// A process that counts from 0, and does nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Up to here.
    pub to: u64,
    /// CPU time of one iteration.
    pub step: Picos,
}

/// A page-fault test: a parent starts processes that touch their memory page by page, and waits for
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pft {
    /// Processes.
    pub processes: u32,
    /// Pages that each touches.
    pub pages: u64,
    /// User CPU time for a page.
    pub touch: Picos,
    /// Kernel CPU time of a fault, time under locks included.
    pub fault: Picos,
    /// Kernel CPU time to start a process, which its parent spends.
    pub fork: Picos,
    /// Named kernel locks and how the kernel time uses them.
    pub locks: Vec<KernelLock>,
}

/// The echo requests of another machine, and the guest that answers them: I/O interrupts at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ping {
    /// Requests a second that the other machine is told to send; 0 is none.
    pub rate: u32,
    /// Its `ping` cuts the time between requests down to a multiple of this; 0: it is exact. If 0
    /// is left, it sends the next request when it has the answer to the last.
    pub resolution: Picos,
    /// From an answer to the request that it causes: the network both ways and the other machine.
    pub round_trip: Picos,
    /// CPU time from interrupt to answer.
    pub work: Picos,
}

impl Ping {
    /// Time between two requests; `None` if the next one waits for the answer to the last.
    ///
    /// # Panics
    /// If the rate is 0.
    #[must_use]
    pub fn interval(&self) -> Option<Picos> {
        let asked = SEC / Picos::from(self.rate);
        let cut = asked.checked_rem(self.resolution).unwrap_or(0);
        (asked > cut).then(|| asked - cut)
    }
}

/// A parallel compile, `make -jN`, as kernbench runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernbench {
    /// `N` of `make -jN`.
    pub jobs: u32,
    /// Compile units (files).
    pub units: u32,
    /// Mean user CPU time of a unit.
    pub user: Picos,
    /// Mean kernel CPU time of a unit, without waiting for locks.
    pub system: Picos,
    /// Times that the processes of a unit sleep on each other (pipe between compiler and assembler).
    pub pipe_sleeps: u32,
    /// Named kernel locks and how the kernel time uses them.
    pub locks: Vec<KernelLock>,
}

/// Clients of a database, each with a process of the server, as pgbench runs them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pgbench {
    /// Connections: `N` of `pgbench -c N`.
    pub clients: u32,
    /// Threads that the clients are dealt to: `N` of `pgbench -j N`; at most one for each client.
    pub workers: u32,
    /// Transactions of each client; 0 is until the limit.
    pub transactions: u64,
    /// Mean user CPU time of the server for a transaction.
    pub server: Picos,
    /// Mean user CPU time of the client for a transaction.
    pub client: Picos,
    /// Mean kernel CPU time of a transaction, without waiting for locks: half of it on each side.
    pub system: Picos,
    /// Named kernel locks and how the kernel time uses them.
    pub locks: Vec<KernelLock>,
}

/// A named lock of the guest kernel and how it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelLock {
    /// Name.
    pub name: String,
    /// Mean hold time (exponential).
    pub hold: Picos,
    /// Mean kernel time between two acquisitions by one task (exponential).
    pub every: Picos,
    /// Interrupts are off while it is held and waited for.
    pub irqs_off: bool,
}

impl Workload {
    /// The disk that it writes to, if it has one.
    #[must_use]
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Workload::Dbench(w) => Some(&w.disk),
            _ => None,
        }
    }

    /// Runs until the limit: has no end of its own.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        match self {
            Workload::LockLoop(w) => w.count == 0,
            Workload::BurnWait(w) => w.count == 0,
            Workload::Kernbench(_) | Workload::Dbench(_) => false,
            Workload::Schedbench(_) => true,
            Workload::Phases(w) => w.count == 0,
            Workload::Count(_) | Workload::Pft(_) => false,
            Workload::Ping(_) => true,
            Workload::Pgbench(w) => w.transactions == 0,
        }
    }
}
