//! The outcome of one run: what every vCPU, lock and task did. All times are picoseconds.

use crate::{ChangeOutcome, LongWait, Picos, WaitCauses};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Ending {
    /// All tasks ended.
    Finished,
    /// The simulated-time limit came first.
    Limit,
    /// Nothing can ever happen again although tasks are left.
    Deadlock {
        /// Who waits for what, a line each.
        waits: Vec<String>,
    },
    /// It was stopped from outside before any of these; the outcome is that of the time until then.
    Stopped {
        /// By what.
        by: Stopped,
    },
}

/// What stopped a run from outside. When it happened depends on the speed of the machine: the
/// outcome of such a run is not the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// It had used up the real time that it was given.
    MaxWall,
    /// A signal.
    Interrupted,
}

impl Stopped {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::MaxWall => "the wall-clock limit came",
            Self::Interrupted => "it was interrupted",
        }
    }
}

/// A hash in JSON: 16 hexadecimal digits. As a number it would not survive readers that take numbers
/// for doubles, which keep 53 bits. Older records have numbers, which are still read.
pub mod hash_text {
    use alloc::format;
    use alloc::string::String;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the digits.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{hash:016x}"))
    }

    /// Reads digits, or a number.
    ///
    /// # Errors
    /// If it is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Number(hash) => Ok(hash),
            Either::Text(digits) => u64::from_str_radix(&digits, 16)
                .map_err(|_| de::Error::custom(format!("`{digits}` is not 16 hexadecimal digits"))),
        }
    }
}

impl Ending {
    /// It ran as far as it was to: neither a deadlock nor stopped from outside, after which its figures are
    /// those of another, shorter run.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        matches!(self, Ending::Finished | Ending::Limit)
    }
}

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Seed of the run.
    pub seed: u64,
    /// How it ended.
    pub ending: Ending,
    /// Simulated time at the end.
    pub elapsed: Picos,
    /// Engine events processed.
    pub events: u64,
    /// Simulated memory operations applied without a switch to the engine.
    pub run_ahead: u64,
    /// Hash over all scheduling and lock events, equal for equal runs.
    #[serde(with = "hash_text")]
    pub trace_hash: u64,
    /// Idle time of each pCPU.
    pub pcpus: Vec<PcpuOutcome>,
    /// Domains in scenario order.
    pub domains: Vec<DomainOutcome>,
    /// What the administrator did, in the order in which it took place.
    pub changes: Vec<ChangeOutcome>,
    /// The longest waits for locks, the longest first; ten at most. A decision's domain beyond
    /// `domains` is the host's noise.
    pub worst_waits: Vec<LongWait>,
    /// What the host's noise did; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseOutcome>,
}

/// What the host's noise did, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseOutcome {
    /// On a pCPU.
    pub running: Picos,
    /// Wanted a pCPU and had none.
    pub runnable: Picos,
    /// Times that a thread did its work.
    pub wakes: u64,
}

/// What a pCPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PcpuOutcome {
    /// Running some vCPU.
    pub busy: Picos,
    /// Switching between vCPUs.
    pub switching: Picos,
    /// Nothing to run.
    pub idle: Picos,
    /// Switches between vCPUs.
    pub switches: u64,
}

/// What a domain did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DomainOutcome {
    /// Name.
    pub name: String,
    /// When its first vCPU came up.
    #[serde(default)]
    pub started: Picos,
    /// When its last task ended; `None` if it did not finish.
    pub finished: Option<Picos>,
    /// vCPUs.
    pub vcpus: Vec<VcpuOutcome>,
    /// Named locks of its kernel.
    pub locks: Vec<LockOutcome>,
    /// Tasks.
    pub tasks: Vec<TaskOutcome>,
    /// Cache lines with locks among other data, and what holders met there; empty if every lock has a
    /// line of its own by the workload's nature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineOutcome>,
    /// What `vmstat` printed, if it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vmstat: Vec<VmstatLine>,
    /// What its disk did, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskOutcome>,
}

impl DomainOutcome {
    /// From its start to its end, or to the end of the run, which `elapsed` tells.
    #[must_use]
    pub fn lifetime(&self, elapsed: Picos) -> Picos {
        self.finished.unwrap_or(elapsed).saturating_sub(self.started)
    }
}

/// What the holders of locks met at a cache line of the kernel's data, when they worked on data in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineOutcome {
    /// What lies in it, in order of addresses.
    pub names: Vec<String>,
    /// Accesses by holders.
    pub accesses: u64,
    /// Accesses that took longer than a hit: the line was elsewhere, or shared when it was written.
    pub misses: u64,
    /// Those of them to a line that the holder had had since it took the lock: somebody who does not hold
    /// the lock has taken it away.
    pub lost: u64,
    /// Time that all accesses took.
    pub stalled: Picos,
}

/// A line of `vmstat`. The times are as the kernel's ticks charged them, summed over all vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmstatLine {
    /// When it was printed.
    pub at: Picos,
    /// Tasks that run or could, at that moment.
    pub running: u32,
    /// Tasks that sleep for the disk, at that moment.
    pub blocked: u32,
    /// Pages that went to the disk since the line before.
    pub pages_out: u64,
    /// User time since then.
    pub user: Picos,
    /// Kernel time since then.
    pub system: Picos,
}

/// What a disk did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOutcome {
    /// Pages written.
    pub pages: u64,
    /// Times that it went for something.
    pub requests: u64,
    /// Requests that began elsewhere than the last one ended.
    pub seeks: u64,
    /// Time that it was busy.
    pub busy: Picos,
}

/// What a vCPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VcpuOutcome {
    /// On a pCPU.
    pub running: Picos,
    /// Wanted a pCPU and had none (steal).
    pub runnable: Picos,
    /// Idle by its own will.
    pub blocked: Picos,
    /// Any other reason.
    pub offline: Picos,
    /// Part of `running` that it spun: looked again and again whether a lock is to be had (or, to release
    /// some queue locks, whether the next waiter is ready).
    pub spinning: Picos,
    /// Part of `running` from the first look at a lock that was not to be had until it had the lock:
    /// what lockmeter and lock_stat call waiting, less the time off the pCPU. More than `spinning` by
    /// the time stalled on the lock's own lines, and by interrupts taken meanwhile.
    #[serde(default)]
    pub waiting: Picos,
    /// Dispatches.
    pub dispatches: u64,
    /// Dispatches on another pCPU than the last one.
    pub migrations: u64,
    /// Ticks that its kernel took.
    pub ticks: u64,
    /// Times that it was interrupted because it spun (pause-loop exits).
    pub spin_exits: u64,
    /// Part of `running` that the host spent on those: the exits, and its directed yields with their
    /// waits for locks of run queues.
    #[serde(default)]
    pub exiting: Picos,
    /// How many of them ended with a directed yield that the scheduler took.
    #[serde(default)]
    pub directed_yields: u64,
    /// Part of `running` that it held its pCPU although it had halted (halt polling).
    pub polling: Picos,
    /// What its waits for locks were spent on, those that it got.
    pub wait_causes: WaitCauses,
    /// What became of the windows that it got before preemptions; `None` if it gets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowOutcome>,
}

/// Windows of a vCPU before preemptions. What is not used, expired or left was open at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowOutcome {
    /// Windows.
    pub offered: u64,
    /// Those in which the guest gave the pCPU up itself.
    pub used: u64,
    /// Those at whose end it was preempted by force.
    pub expired: u64,
    /// Those in which the vCPU blocked, or whoever wanted the pCPU went elsewhere.
    pub left: u64,
    /// Preemptions without a window, because too many had expired.
    pub refused: u64,
    /// Time from when a window was opened until it was closed.
    pub time: Picos,
}

/// What happened at a lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockOutcome {
    /// Name.
    pub name: String,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Acquisitions that had to wait.
    pub contended: u64,
    /// Total time from the first failed attempt to the acquisition.
    pub wait_total: Picos,
    /// Longest wait.
    pub wait_max: Picos,
    /// What `wait_total` was spent on; the sum is the same.
    pub wait_causes: WaitCauses,
    /// 99.9 % of all acquisitions, contended or not, waited for at most this long (two
    /// digits; never more than `wait_max`).
    pub wait_p999: Picos,
    /// Total time from acquisition to release.
    pub hold_total: Picos,
    /// Longest hold.
    pub hold_max: Picos,
    /// Times that a waiter went to sleep (slow path).
    pub slow_paths: u64,
    /// Kicks sent at its release.
    pub kicks: u64,
    /// Holds during which the holder's vCPU was descheduled.
    pub holder_preempted: u64,
}

/// What a task did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// Name.
    pub name: String,
    /// True CPU time.
    pub cpu: Picos,
    /// User time as the kernel's ticks charged it.
    pub user_ticks: Picos,
    /// System time as the kernel's ticks charged it.
    pub system_ticks: Picos,
    /// Voluntary switches (sleeps).
    pub sleeps: u64,
    /// Involuntary switches.
    pub preemptions: u64,
    /// Work items done, as the workload counts them.
    pub items: u64,
    /// When it ended; `None` if it did not.
    pub ended: Option<Picos>,
    /// How long others waited for its answers; `None` if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyOutcome>,
    /// What it told about itself as it ran.
    pub reports: Vec<WorkerReport>,
}

/// How long others waited for a task's answers: from when a request came to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyOutcome {
    /// Answers.
    pub answers: u64,
    /// Sum over all of them.
    pub total: Picos,
    /// Longest.
    pub max: Picos,
    /// Half of them took at most this long (two digits; never more than `max`).
    pub p50: Picos,
    /// 99 % of them.
    pub p99: Picos,
    /// 99.9 % of them.
    pub p999: Picos,
}

/// What a worker has done up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// The moment.
    pub at: Picos,
    /// Work done since the start, in thousands of operations.
    pub kops: u64,
    /// Most that an item was late since the last report: from when it was due to when it began.
    pub max_delta: Picos,
    /// CPU time of its vCPU since the start, by the hypervisor's account.
    pub cpu_time: Picos,
    /// Items with a deadline that were done since the start.
    pub deadlines: u64,
    /// Those of them that were done too late.
    pub missed: u64,
}
