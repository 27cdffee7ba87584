//! Checks a lock in every world that can find a fault in it; the code that is checked is the code that
//! ships.
//!
//! - [`model`]: every interleaving and every stale value that C11 allows, for two or three CPUs, up
//!   to a bound on preemptions;
//! - [`threads`]: operating system threads.
//!
//! One place is unsafe: the counter that a modelled lock protects, through which loom sees whether
//! two critical sections were ordered ([`model::Protected`]).

pub mod model;
pub mod schedules;
pub mod threads;

/// What a panic says.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message.clone(),
        (None, Some(message)) => (*message).into(),
        (None, None) => "a panic without a message".into(),
    }
}
