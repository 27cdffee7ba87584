//! Tests of the checks, and of all locks with them. They are one program, so that it is linked once.
//!
//! Models and schedules have [bounds], which are lower than those of CI unless `OVERSPIN_DEEP` is set.

/// How far models and random schedules are explored.
mod bounds;
/// Models of the condition variable.
mod condvar;
/// Random schedules of the condition variable.
mod condvar_schedules;
/// The claims of each lock about descheduled CPUs.
mod descheduled;
/// Locks that would hang a check.
mod ends;
/// The examples that have tests.
mod examples;
mod lasso;
/// Models of every lock of the registry.
mod model;
/// The mutex with one real thread; the others follow a script.
mod mutex_script;
/// Models of the reader-writer lock.
mod rwlock;
/// Random schedules of the reader-writer lock.
mod rwlock_schedules;
/// Random schedules for every lock, and seeded bugs.
mod schedules;
/// The suite on threads for every lock.
mod suite;
/// A lock that cannot tolerate a spurious failure of an exchange.
mod weak;
