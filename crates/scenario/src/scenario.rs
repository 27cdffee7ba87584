//! The scenario: hosts, domains, locks, workload, lengths. All times are integer picoseconds.

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
    /// Stop at this simulated time, finished or not.
    pub limit: Picos,
    /// Default seed.
    pub seed: u64,
}

/// The machine and its hypervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
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
}

impl Host {
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
    /// From sending an interprocessor interrupt to its arrival.
    pub ipi: Picos,
    /// Guest takes an interrupt (entry and exit).
    pub interrupt: Picos,
    /// Work lost to cold caches after a vCPU moved to another core.
    pub migration: Picos,
}

impl Default for Costs {
    /// A server of about 2008, from orders of magnitude in the literature (see docs).
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
    /// vCPU k may run on `affinity[k]` (all pCPUs if the list is empty).
    pub affinity: Vec<Vec<u32>>,
    /// Lock algorithm of its kernel, as `overspin list locks` names it.
    pub lock: String,
    /// Wait-loop iterations before a blocking lock's slow path.
    pub spin_budget: Option<u32>,
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
    /// Runs until the limit: has no end of its own.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        match self {
            Workload::LockLoop(w) => w.count == 0,
            Workload::BurnWait(w) => w.count == 0,
            Workload::Kernbench(_) => false,
            Workload::Schedbench(_) => true,
        }
    }
}
