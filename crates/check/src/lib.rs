#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! - [`model`]: every interleaving and every stale value that C11 allows, for two or three CPUs, up to a bound on
//!   preemptions;
//! - [`schedules`]: random schedules for 4 to 65 CPUs, with memory that is sequentially consistent or weak;
//! - [`threads`] and [`suite`]: operating system threads.
//!
//! [`abort`] has the checks of locks whose waiters can give up, in all three worlds.
//!
//! [`checks()`] lists all checks of one lock, yours or one of ours. `overspin check` runs them and prints the
//! results; `examples/own_lock.rs` does the same for a lock from outside this repository.
//!
//! One place is unsafe: the counter that a modelled lock protects. Through it loom sees whether two critical
//! sections were ordered ([`model::Protected`]).

pub mod abort;
mod asked;
mod checks;
pub mod descheduled;
pub mod model;
mod mutation;
mod profile;
mod registry;
pub mod schedules;
pub mod seeded;
pub mod special;
pub mod suite;
pub mod threads;

use std::time::Duration;

use overspin_locks::Tuning;

pub use asked::TRY_WAITS_MESSAGE;
pub use checks::{Check, Limits, NOT_COVERED, Verdict, World, checks};
pub use mutation::Mutation;
pub use profile::{Profile, named_in_tables};
pub use registry::{checks_by_name, own_checks, seeded_by_name, seeded_by_name_within};

/// A tuning with which waiters sleep at once. It exercises the slow path of locks that have one.
pub const NO_SPIN: Tuning = Tuning { spin_budget: Some(0), ..Tuning::DEFAULT };

/// The result of exploring a model or a plan.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of executions. If there is a fault, the last execution failed.
    pub runs: usize,
    /// The time they took.
    pub time: Duration,
    /// Whether the exploration reached its bound: neither a fault nor a limit cut it short.
    pub complete: bool,
    /// The message of the first execution that failed.
    pub fault: Option<String>,
}

/// Runs `work` with panic messages silenced; the verdict repeats them.
///
/// The panic hook is global to the process, so panics of other threads are silent meanwhile too. If `work` itself
/// panics, the old hook is not restored.
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    // shuttle installs a hook of its own, once, on its first run. Trigger that now.
    schedules::Plan::new(1, || schedules::world().turn()).explore(
        schedules::Strategy::Random,
        1,
        0,
        Mutation::None,
    );
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = work();
    std::panic::set_hook(hook);
    result
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message.clone(),
        (None, Some(message)) => (*message).into(),
        (None, None) => "a panic without a message".into(),
    }
}
