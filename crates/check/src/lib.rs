//! Checks a lock in every world that can find a fault in it; the code that is checked is the code that
//! ships.
//!
//! - [`model`]: every interleaving and every stale value that C11 allows, for two or three CPUs, up
//!   to a bound on preemptions;
//! - [`schedules`]: schedules drawn by lot, for 4 to 65 CPUs, with memory that is sequentially consistent or weak;
//! - [`threads`] and [`suite`]: operating system threads.
//!
//! [`abort`] has what is asked of locks whose waiters can give up, in all three.
//!
//! [`checks`] is all of it for one lock, yours or one of ours. `overspin check` prints what comes out,
//! and `examples/own_lock.rs` does the same for a lock from outside.
//!
//! One place is unsafe: the counter that a modelled lock protects, through which loom sees whether
//! two critical sections were ordered ([`model::Protected`]).

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
pub use registry::{checks_by_name, name_of, own_checks, seeded_by_name};

/// Sleep at once: the way to exercise the slow path of a lock that has one.
pub const NO_SPIN: Tuning = Tuning { spin_budget: Some(0), ..Tuning::DEFAULT };

/// What exploring came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Executions run; the last one failed if there is a fault.
    pub runs: usize,
    /// How long they took.
    pub time: Duration,
    /// Whether all that the bound asks for was explored: neither a fault nor a time limit cut it
    /// short.
    pub complete: bool,
    /// What went wrong in the first execution that failed.
    pub fault: Option<String>,
}

/// Does `work` with panics silent: the verdict says what they said.
///
/// The panic hook is the process's: what other threads panic about meanwhile is silent too. It is not
/// put back if `work` itself panics.
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    // shuttle puts a hook of its own in front, once, when it first runs anything: now.
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

/// What a panic says.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message.clone(),
        (None, Some(message)) => (*message).into(),
        (None, None) => "a panic without a message".into(),
    }
}
