//! What can be named in a scenario: locks, schedulers, workloads.

pub use overspin_locks::LockInfo;
pub use overspin_sched::{ParamInfo, SchedulerInfo};

/// All lock algorithms.
#[must_use]
pub fn locks() -> Vec<LockInfo> {
    overspin_locks::infos().to_vec()
}

/// All lock algorithms, with the other names that scenarios and options take for them.
pub fn locks_and_aliases() -> impl Iterator<Item = (&'static LockInfo, &'static [&'static str])> {
    overspin_locks::infos_and_aliases()
}

/// Properties of the lock of this name; an alias is none.
#[must_use]
pub fn lock(name: &str) -> Option<LockInfo> {
    locks().into_iter().find(|l| l.name == name)
}

/// The scheduler of this name; an alias is none.
#[must_use]
pub fn scheduler(name: &str) -> Option<SchedulerInfo> {
    schedulers().into_iter().find(|s| s.name == name)
}

/// The name that `value` stands for, if the key `key` takes a lock or a scheduler and `value` is an alias of one;
/// otherwise `value` itself.
pub(crate) fn own_name<'a>(key: &str, value: &'a str) -> &'a str {
    match key.rsplit('.').next() {
        Some("lock") => overspin_locks::find(value).map_or(value, |info| info.name),
        Some("scheduler") => overspin_sched::find(value).map_or(value, |info| info.name),
        _ => value,
    }
}

/// All schedulers and profiles.
#[must_use]
pub fn schedulers() -> Vec<SchedulerInfo> {
    overspin_sched::schedulers().to_vec()
}
