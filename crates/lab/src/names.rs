//! Names in scenarios: locks, schedulers, workloads.

use crate::catalog::catalog;
pub use overspin_locks::LockInfo;
use overspin_scenario::Domain;
pub use overspin_sched::{ParamInfo, SchedulerInfo};
use overspin_workload::Loads;
pub use overspin_workload::WorkloadInfo;

/// All lock algorithms.
#[must_use]
pub fn locks() -> Vec<LockInfo> {
    catalog().locks().map(|(info, _)| *info).collect()
}

/// All lock algorithms, with the aliases that scenarios and options accept.
pub fn locks_and_aliases() -> impl Iterator<Item = (&'static LockInfo, &'static [&'static str])> {
    catalog().locks()
}

/// Properties of the lock of this name; an alias is not found.
#[must_use]
pub fn lock(name: &str) -> Option<LockInfo> {
    catalog().lock(name).filter(|info| info.name == name).copied()
}

/// The scheduler of this name; an alias is not found.
#[must_use]
pub fn scheduler(name: &str) -> Option<SchedulerInfo> {
    catalog().schedulers().iter().find(|info| info.name == name).copied()
}

/// The name that `value` stands for, if `key` takes a lock or a scheduler and `value` is an alias of one;
/// otherwise `value` itself.
pub(crate) fn own_name<'a>(key: &str, value: &'a str) -> &'a str {
    match key.rsplit('.').next() {
        Some("lock") => catalog().lock(value).map_or(value, |info| info.name),
        Some("scheduler") => catalog().schedulers().find(value).map_or(value, |info| info.name),
        _ => value,
    }
}

/// All schedulers and profiles.
#[must_use]
pub fn schedulers() -> Vec<SchedulerInfo> {
    catalog().schedulers().iter().copied().collect()
}

/// All workloads.
#[must_use]
pub fn workloads() -> &'static [WorkloadInfo] {
    catalog().workloads().all()
}

/// Names of the kernel locks that the workloads of a domain use, in the order of their numbers; empty if the
/// workloads could not run.
#[must_use]
pub fn lock_names(domain: &Domain) -> Vec<String> {
    Loads::of(domain, catalog().workloads()).map_or_else(|_| Vec::new(), |loads| loads.lock_names())
}
