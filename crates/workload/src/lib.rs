//! What guests do: programs written once against [`Env`], which every world supplies.
//!
//! A program is ordinary code. It computes, sleeps, takes named kernel locks, starts other
//! programs and waits for them; the world decides what that costs and who runs when.
//!
//! To add a workload: a file with its program, a variant of `overspin_scenario::Workload`, and a
//! line in [`start`] and in [`WORKLOADS`].
#![forbid(unsafe_code)]

mod burnwait;
mod count;
mod dbench;
mod env;
mod kernbench;
mod kernel;
mod layout;
mod lockloop;
mod pft;
mod pgbench;
mod phases;
mod ping;
mod random;
mod schedbench;

pub use env::{Env, LockId, LockUse, Mode, Program, Semaphore, Ticks, WordId};
pub use layout::{Layout, layout};
pub use random::Random;

use overspin_scenario::{Kernbench, Pft, Pgbench, Workload};

/// A workload, as `overspin list workloads` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One sentence: what it does.
    pub brief: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All workloads.
pub const WORKLOADS: &[WorkloadInfo] = &[
    lockloop::INFO,
    burnwait::INFO,
    kernbench::INFO,
    schedbench::INFO,
    phases::INFO,
    count::INFO,
    pft::INFO,
    ping::INFO,
    pgbench::INFO,
    dbench::INFO,
];

/// Names of the kernel locks that a workload uses, in the order of their [`LockId`].
#[must_use]
pub fn lock_names(workload: &Workload) -> Vec<String> {
    match workload {
        Workload::LockLoop(_) => vec!["section".into()],
        Workload::BurnWait(_)
        | Workload::Schedbench(_)
        | Workload::Phases(_)
        | Workload::Count(_)
        | Workload::Ping(_) => Vec::new(),
        Workload::Kernbench(Kernbench { locks, .. })
        | Workload::Pft(Pft { locks, .. })
        | Workload::Pgbench(Pgbench { locks, .. }) => {
            locks.iter().map(|l| l.name.clone()).collect()
        }
        Workload::Dbench(_) => dbench::LOCKS.iter().map(|name| (*name).into()).collect(),
    }
}

/// Starts the first programs of a workload in a guest of `vcpus` vCPUs: name, vCPU to start on
/// (`None`: anywhere), program.
#[must_use]
pub fn start(workload: &Workload, vcpus: u32) -> Vec<(String, Option<u32>, Program)> {
    match workload {
        Workload::LockLoop(w) => lockloop::start(w, vcpus),
        Workload::BurnWait(w) => burnwait::start(w, vcpus),
        Workload::Kernbench(w) => kernbench::start(w),
        Workload::Schedbench(w) => schedbench::start(w, vcpus),
        Workload::Phases(w) => phases::start(w, vcpus),
        Workload::Count(w) => count::start(w),
        Workload::Pft(w) => pft::start(w),
        Workload::Ping(w) => ping::start(w),
        Workload::Pgbench(w) => pgbench::start(w, vcpus),
        Workload::Dbench(w) => dbench::start(w),
    }
}
