//! A run as a live view: what pCPUs, domains, vCPUs and locks did in one interval of simulated time after
//! another, as `xentop` shows a host.
//!
//! `meter.rs` makes frames from moments, `report.rs` turns a frame into text. The command decides when a frame
//! is shown.

mod meter;
mod report;

pub use meter::Meter;
pub use report::{Room, report};

use overspin_host::VcpuState;
use overspin_scenario::Picos;

/// What happened in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// When the interval begins.
    pub from: Picos,
    /// When it ends.
    pub until: Picos,
    /// pCPUs, by number.
    pub pcpus: Vec<Pcpu>,
    /// Domains in scenario order, with the host's noise last.
    pub domains: Vec<Domain>,
    /// vCPUs of all domains, in the same order.
    pub vcpus: Vec<Vcpu>,
    /// Locks that were used in the interval, or are waited for at its end.
    pub locks: Vec<Lock>,
}

impl Frame {
    /// Length of the interval.
    #[must_use]
    pub fn length(&self) -> Picos {
        self.until.saturating_sub(self.from)
    }
}

/// A pCPU in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Pcpu {
    /// The vCPU on it at the end; `None`: idle.
    pub vcpu: Option<String>,
    /// Time in which it had a vCPU.
    pub busy: Picos,
    /// How often it went to another vCPU.
    pub switches: u64,
}

/// How a vCPU spent an interval. The sum of all but `spinning` is the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on a pCPU.
    pub running: Picos,
    /// Part of `running` in which it waited for a lock.
    pub spinning: Picos,
    /// Time in which it wanted a pCPU and had none (steal).
    pub runnable: Picos,
    /// Time in which it had blocked.
    pub blocked: Picos,
    /// Any other time, and all time before it first runs: no moment says when a vCPU comes up.
    pub offline: Picos,
}

impl Spent {
    /// Adds the times of another vCPU.
    fn add(&mut self, other: &Self) {
        self.running += other.running;
        self.spinning += other.spinning;
        self.runnable += other.runnable;
        self.blocked += other.blocked;
        self.offline += other.offline;
    }
}

/// A domain in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// Number of vCPUs.
    pub vcpus: u32,
    /// The times of its vCPUs, added up.
    pub spent: Spent,
    /// Acquisitions of locks.
    pub acquisitions: u64,
    /// Waits for locks that ended.
    pub waits: u64,
    /// Total time of these waits, which may have begun before the interval.
    pub waited: Picos,
}

/// A vCPU in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Vcpu {
    /// Name.
    pub name: String,
    /// Its runstate at the end.
    pub state: VcpuState,
    /// Its pCPU, or the last one.
    pub pcpu: Option<u32>,
    /// How it spent the interval.
    pub spent: Spent,
    /// The lock for which it waits at the end.
    pub waits_for: Option<String>,
}

/// A lock in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Name, with its domain's.
    pub name: String,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Waits that ended.
    pub waits: u64,
    /// Total time of these waits.
    pub waited: Picos,
    /// The longest of them.
    pub longest: Picos,
    /// Its holder at the end.
    pub holder: Option<String>,
    /// Waiters at the end.
    pub waiters: u32,
}

#[cfg(test)]
mod tests;
