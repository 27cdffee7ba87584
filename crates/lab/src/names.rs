//! What can be named in a scenario: locks, schedulers, workloads.

pub use overspin_locks::LockInfo;
pub use overspin_sched::{ParamInfo, SchedulerInfo};

/// All lock algorithms.
#[must_use]
pub fn locks() -> Vec<LockInfo> {
    overspin_locks::infos().to_vec()
}

/// Properties of a lock.
#[must_use]
pub fn lock(name: &str) -> Option<LockInfo> {
    locks().into_iter().find(|l| l.name == name)
}

/// All schedulers and profiles.
#[must_use]
pub fn schedulers() -> Vec<SchedulerInfo> {
    overspin_sched::schedulers().to_vec()
}
