//! What a machine did in a second, as measured runs report it.

use serde::{Deserialize, Serialize};

/// One second, or what was left at the end. Rates are in events a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, in seconds from the begin of the run.
    pub until_s: f64,
    /// Threads that ran or could have run, at its end.
    pub runnable: u64,
    /// Threads that waited for a disk, at its end.
    pub blocked: u64,
    /// Read from disks, in KiB/s.
    pub read_kib: f64,
    /// Written to disks, in KiB/s.
    pub written_kib: f64,
    /// Interrupts a second.
    pub interrupts: f64,
    /// Context switches a second.
    pub switches: f64,
    /// Page faults a second.
    pub faults: f64,
    /// Where the time of the CPUs went; unknown if no clock tick of the kernel ended in this time.
    #[serde(flatten)]
    pub shares: Option<Shares>,
    /// Percent of the time in which a thread waited for a CPU (PSI `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<f64>,
    /// Percent of the time in which a thread waited for a disk (PSI `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<f64>,
    /// Percent of the time in which a thread waited for memory (PSI `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure: Option<f64>,
    /// Time that runnable threads waited for a CPU, summed over all threads, per second (`/proc/schedstat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay: Option<f64>,
    /// Waits for the kernel's own locks that began, a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contentions: Option<f64>,
}

/// Where the time of all CPUs together went, in percent. The kernel counts it in ticks of some 10 ms, so a run of a few
/// milliseconds may see none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// User time, with that of nice processes.
    pub user: f64,
    /// System time, with interrupts.
    pub system: f64,
    /// Idle time.
    pub idle: f64,
    /// Idle time while a disk was waited for.
    pub iowait: f64,
    /// Time that the hypervisor gave to others.
    pub steal: f64,
}
