//! The outcome of one run: what every vCPU, lock and task did. All times are in picoseconds.

use crate::{ChangeOutcome, LongWait, Measurement, Picos, WaitCauses};
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
    /// Tasks are left, but nothing can happen any more.
    Deadlock {
        /// One line for each waiter, which says what it waits for.
        waits: Vec<String>,
    },
    /// It was stopped from outside before any of these; the outcome covers the time until then.
    Stopped {
        /// What stopped it.
        by: Stopped,
    },
}

/// What stopped a run from outside. The moment depends on the speed of the machine, so the outcome of such
/// a run cannot be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// It had used up its limit of real time.
    MaxWall,
    /// A signal.
    Interrupted,
}

impl Stopped {
    /// The reason in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::MaxWall => "the wall-clock limit was reached",
            Self::Interrupted => "it was interrupted",
        }
    }
}

/// A hash in JSON: 16 hexadecimal digits. Readers that treat numbers as doubles, with 53 bits, would damage
/// a number. Older records contain numbers, which are still read.
pub mod hash_text {
    use alloc::format;
    use serde::{Deserialize, Deserializer, Serializer, de};
    use serde_json::Value;

    /// Writes the digits.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{hash:016x}"))
    }

    /// Reads digits, or a number.
    ///
    /// # Errors
    /// If the value is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        match Value::deserialize(from)? {
            Value::String(digits) => u64::from_str_radix(&digits, 16)
                .map_err(|_| de::Error::custom(format!("`{digits}` is not 16 hexadecimal digits"))),
            number => serde_json::from_value(number).map_err(de::Error::custom),
        }
    }
}

impl Ending {
    /// Whether the run went as far as intended: it neither deadlocked nor was stopped from outside.
    /// Otherwise its figures are those of another, shorter run.
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
    /// How the run ended.
    pub ending: Ending,
    /// Time at the end.
    pub elapsed: Picos,
    /// The time from which everything counts that does not say otherwise: acquisitions, waits, items, times of vCPUs
    /// and pCPUs. A wait counts if it ends after this time, as a whole.
    #[serde(default)]
    pub warmup: Picos,
    /// The time between two values of [`DomainOutcome::progress`].
    #[serde(default)]
    pub progress_step: Picos,
    /// Engine events processed.
    pub events: u64,
    /// Simulated memory operations applied without a switch to the engine.
    pub run_ahead: u64,
    /// Hash over scheduling and lock events; equal for equal runs.
    #[serde(with = "hash_text")]
    pub trace_hash: u64,
    /// Idle time of each pCPU.
    pub pcpus: Vec<PcpuOutcome>,
    /// Domains in scenario order.
    pub domains: Vec<DomainOutcome>,
    /// What the administrator did, in the order in which it took place.
    pub changes: Vec<ChangeOutcome>,
    /// The longest waits for locks, at most ten, the longest first. In a decision, a domain beyond
    /// `domains` is the host's noise.
    pub worst_waits: Vec<LongWait>,
    /// What the host's noise did; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseOutcome>,
    /// How it was measured; `None` if it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
}

/// The code that reads and writes an outcome is much. Called instead of serde's generic functions, these have it compiled
/// once, in this crate.
impl Outcome {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it has names for keys, and no numbers that JSON lacks")
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// What all threads of the host's noise did together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseOutcome {
    /// Time on a pCPU.
    pub running: Picos,
    /// Time in which threads wanted a pCPU and had none.
    pub runnable: Picos,
    /// How often a thread woke and did its work.
    pub wakes: u64,
}

/// What a pCPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PcpuOutcome {
    /// Time in which it ran a vCPU.
    pub busy: Picos,
    /// Time in which it switched between vCPUs.
    pub switching: Picos,
    /// Time in which it had nothing to run.
    pub idle: Picos,
    /// Number of switches between vCPUs.
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
    /// Items of all its tasks from the start of the run, warm-up included, up to the end of each step
    /// ([`Outcome::progress_step`]).
    #[serde(default)]
    pub progress: Vec<u64>,
    /// Cache lines that hold locks together with other data, and the accesses of holders there; empty if
    /// the workload gives every lock a line of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineOutcome>,
    /// What `vmstat` printed, if it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vmstat: Vec<VmstatLine>,
    /// What its disk did; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskOutcome>,
    /// Its TLB shootdowns; `None` if no task unmaps memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shootdowns: Option<ShootdownOutcome>,
    /// Extensions of its tasks' time slices; `None` if its kernel grants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<ExtensionOutcome>,
    /// What its tasks did in their kernel in the middle of sections; `None` if they make no such excursions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excursions: Option<ExcursionOutcome>,
    /// What its cap did; `None` if it has none, or the scheduler does not count that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<ThrottlingOutcome>,
    /// How its tasks were folded onto fewer vCPUs; `None` if its kernel has no governor for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folding: Option<FoldingOutcome>,
}

/// What a governor of steal time did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldingOutcome {
    /// How often it looked at the time stolen.
    pub samples: u64,
    /// Stolen time that it has seen, of all its vCPUs: up to its last look.
    pub steal: Picos,
    /// How often it removed a core.
    pub narrowed: u64,
    /// How often it added one.
    pub widened: u64,
    /// Tasks that a tick took off a vCPU that was no longer preferred.
    pub pushed: u64,
    /// For how long vCPUs were preferred, summed over them.
    pub preferred: Picos,
}

/// Entries into the kernel in sections of user mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcursionOutcome {
    /// How many there were.
    pub number: u64,
    /// Those in which, or on the return from which, another task took over.
    pub preempted: u64,
}

/// Extensions of time slices, by how they ended. One that has not ended is still granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionOutcome {
    /// Extensions granted.
    pub granted: u64,
    /// Those that the task gave back after its section.
    pub yielded: u64,
    /// Those that another system call of the task ended.
    pub aborted: u64,
    /// Those that lasted as long as the kernel allows.
    pub expired: u64,
    /// Those that the next preemption ended. The count of Linux contains the expired ones too.
    pub revoked: u64,
}

impl DomainOutcome {
    /// Time from its start until its work was done, if it was.
    #[must_use]
    pub fn time_to_finish(&self) -> Option<Picos> {
        self.finished.map(|at| at.saturating_sub(self.started))
    }
}

/// What the kernel's `cpu.stat` says of a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottlingOutcome {
    /// Periods in which the domain ran (`nr_periods`).
    pub periods: u64,
    /// Periods in which it used its quota up (`nr_throttled`).
    pub throttled: u64,
    /// Time for which it stood still, summed over the pCPUs on which it wanted to run (`throttled_time`, `throttled_usec`).
    pub time: Picos,
}

/// TLB shootdowns: vCPUs that unmap memory wait until the others have forgotten it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShootdownOutcome {
    /// How many there were.
    pub shootdowns: u64,
    /// Interrupts that they sent.
    pub interrupts: u64,
    /// vCPUs that needed none, since they had no pCPU and were told by the host (`pv_tlb_flush`).
    pub skipped: u64,
    /// Total time that senders waited.
    pub waited: Picos,
    /// The part of that for which the last vCPU to answer had no pCPU.
    pub preempted: Picos,
}

/// Accesses of lock holders to a cache line of the kernel's data, when they worked on data in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineOutcome {
    /// The names of its contents, in order of addresses.
    pub names: Vec<String>,
    /// Accesses by holders.
    pub accesses: u64,
    /// Accesses that took longer than a hit: the line was elsewhere, or shared when it was written.
    pub misses: u64,
    /// Misses on a line that the holder had already accessed under the lock: a vCPU that does not hold the
    /// lock has taken the line away.
    pub lost: u64,
    /// Total time of all accesses.
    pub stalled: Picos,
}

/// A line of `vmstat`. The times are those charged by the kernel's ticks, summed over all vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmstatLine {
    /// When it was printed.
    pub at: Picos,
    /// Tasks that run or could run at that moment.
    pub running: u32,
    /// Tasks that wait for the disk at that moment.
    pub blocked: u32,
    /// Pages written to the disk since the previous line.
    pub pages_out: u64,
    /// User time since the previous line.
    pub user: Picos,
    /// Kernel time since the previous line.
    pub system: Picos,
}

/// What a disk did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOutcome {
    /// Pages written.
    pub pages: u64,
    /// Number of requests.
    pub requests: u64,
    /// Requests that did not begin where the last one ended.
    pub seeks: u64,
    /// Busy time.
    pub busy: Picos,
}

/// What a vCPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VcpuOutcome {
    /// Time on a pCPU.
    pub running: Picos,
    /// Time in which it wanted a pCPU and had none (steal).
    pub runnable: Picos,
    /// Time in which it was blocked voluntarily.
    pub blocked: Picos,
    /// Time in which it was off its pCPU for any other reason.
    pub offline: Picos,
    /// Part of `running` in which it spun: it checked repeatedly whether a lock was free (or, to release
    /// some queue locks, whether the next waiter was ready).
    pub spinning: Picos,
    /// Part of `running` from the first failed attempt at a lock to its acquisition: what lockmeter and
    /// lock_stat call waiting, without the time off the pCPU. It exceeds `spinning` by stalls on the lock's
    /// own lines, and by interrupts taken meanwhile.
    #[serde(default)]
    pub waiting: Picos,
    /// Dispatches.
    pub dispatches: u64,
    /// Dispatches on a pCPU other than the last one.
    pub migrations: u64,
    /// Ticks that its kernel took.
    pub ticks: u64,
    /// How often it was interrupted because it spun (pause-loop exits).
    pub spin_exits: u64,
    /// Part of `running` that the host spent on pause-loop exits: the exits themselves, and directed yields
    /// with their waits for locks of run queues.
    #[serde(default)]
    pub exiting: Picos,
    /// Part of `running` in which interrupts of the host kept it out of its guest, on a host with directed yields.
    #[serde(default)]
    pub interrupted: Picos,
    /// Number of pause-loop exits that ended with a directed yield that the scheduler took.
    #[serde(default)]
    pub directed_yields: u64,
    /// Part of `running` in which it kept its pCPU although it had halted (halt polling).
    pub polling: Picos,
    /// Causes of its waits for locks that it acquired.
    pub wait_causes: WaitCauses,
    /// The windows that it got before preemptions; `None` if it gets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowOutcome>,
}

/// Windows of a vCPU before preemptions. A window that is not used, expired or left was open at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowOutcome {
    /// Windows opened.
    pub offered: u64,
    /// Windows in which the guest gave up the pCPU itself.
    pub used: u64,
    /// Windows at whose end the host preempted it by force.
    pub expired: u64,
    /// Windows in which the vCPU blocked, or no other vCPU wanted the pCPU any more.
    pub left: u64,
    /// Preemptions without a window, because too many had expired.
    pub refused: u64,
    /// Total time for which windows were open.
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
    /// `wait_total` by cause; the sum is the same.
    pub wait_causes: WaitCauses,
    /// Half of all acquisitions, contended or not, waited for at most this long (at most 1/128 too long, and
    /// never longer than `wait_max`).
    #[serde(default)]
    pub wait_p50: Picos,
    /// 99 % of them waited for at most this long.
    #[serde(default)]
    pub wait_p99: Picos,
    /// 99.9 % of them waited for at most this long.
    pub wait_p999: Picos,
    /// Total time from acquisition to release.
    pub hold_total: Picos,
    /// Longest hold.
    pub hold_max: Picos,
    /// How often a waiter went to sleep (slow path).
    pub slow_paths: u64,
    /// Kicks sent at its releases.
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
    /// User time charged by the kernel's ticks.
    pub user_ticks: Picos,
    /// System time charged by the kernel's ticks.
    pub system_ticks: Picos,
    /// Voluntary switches (sleeps).
    pub sleeps: u64,
    /// Involuntary switches.
    pub preemptions: u64,
    /// Work items done, as the workload counts them.
    pub items: u64,
    /// When it ended; `None` if it did not end.
    pub ended: Option<Picos>,
    /// How long others waited for its answers; `None` if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyOutcome>,
    /// Its reports about itself during the run.
    pub reports: Vec<WorkerReport>,
}

/// How long others waited for a task's answers: from the arrival of a request to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyOutcome {
    /// Answers.
    pub answers: u64,
    /// Sum over all answers.
    pub total: Picos,
    /// The longest wait.
    pub max: Picos,
    /// Half of them took at most this long (at most 1/128 too long, and never longer than `max`).
    pub p50: Picos,
    /// 99 % of them took at most this long.
    pub p99: Picos,
    /// 99.9 % of them took at most this long.
    pub p999: Picos,
}

/// The work that a worker has done up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// The moment.
    pub at: Picos,
    /// Work done since the start, in thousands of operations.
    pub kops: u64,
    /// Greatest delay of an item since the last report: from when it was due to when it began.
    pub max_delta: Picos,
    /// CPU time of its vCPU since the start, as accounted by the hypervisor.
    pub cpu_time: Picos,
    /// Items with a deadline that were completed since the start.
    pub deadlines: u64,
    /// Items with a deadline that were completed too late.
    pub missed: u64,
}
