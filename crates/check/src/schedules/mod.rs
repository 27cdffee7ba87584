//! Random schedules: shipped lock code under [shuttle], with more CPUs than the model checker can do.
//!
//! What is looked for is two holders, waiters that nobody wakes, a lock that is not as fair as it says,
//! accesses to a lock that its last user has freed, and, where [memory](Consistency) is weak, critical sections
//! that the lock did not order. The world is as hostile as it may be: interrupts
//! strike between any two accesses, sleeps end for no reason, hints are drawn by lot, and the clock
//! jumps.
//!
//! A plan is run under a [`Strategy`] so many times; the seed decides everything, so a failure is
//! seen again by running the same again.

mod cells;
mod memory;
mod plans;
mod platform;
mod strategy;

pub use cells::{ScheduleU8, ScheduleU16, ScheduleU32, ScheduleUsize};
pub use memory::Consistency;
pub(crate) use plans::Protected;
pub use plans::{UNORDERED_MESSAGE, crowd, last_user_frees, mixed, out_of_nodes, pairs, several};
pub use platform::{SchedulePlatform, World, on_cpus, world};
pub use strategy::{Plan, Strategy};
