//! Random schedules: shipped lock code under [shuttle], with more CPUs than the model checker can handle.
//!
//! The plans look for two holders, waiters that no CPU wakes, a lock that is less fair than it claims, and
//! accesses to a lock that its last user has freed. Where [memory](Consistency) is weak, they also look for
//! critical sections that the lock did not order. The world is as hostile as possible: interrupts strike
//! between any two accesses, sleeps end spuriously, hints are random, and the clock jumps.
//!
//! A [`Strategy`] runs a plan a given number of times. The seed decides everything, so the same run shows the
//! same failure again.

mod cells;
mod cpus;
mod lasso;
mod memory;
mod plans;
mod platform;
mod rivalry;
mod strategy;
mod waiting;
mod world;

pub use cells::{ScheduleU8, ScheduleU16, ScheduleU32, ScheduleUsize};
pub use cpus::on_cpus;
pub use memory::Consistency;
pub(crate) use plans::Protected;
pub use plans::{
    UNORDERED_MESSAGE, crowd, last_user_frees, mixed, out_of_nodes, pairs, rivals,
    rivals_that_wait, several,
};
pub use platform::SchedulePlatform;
pub use rivalry::Rivalry;
pub(crate) use rivalry::STARVES;
pub use strategy::{Plan, Strategy};
pub use world::{World, world};

use overspin_locks::Platform;
use shuttle::rand::{Rng, thread_rng};

/// Returns true once in `n` times, at random.
fn one_in(n: u32) -> bool {
    thread_rng().gen_range(0..n) == 0
}

/// Nanoseconds to a deadline: it has passed; it passes after some looks; it passes after a jump of the clock.
const DEADLINES: [u64; 3] = [0, 5_000, 100_000_000];

/// Returns a random deadline, for an attempt that begins now.
pub fn deadline() -> u64 {
    let patience = DEADLINES[thread_rng().gen_range(0..DEADLINES.len())];
    SchedulePlatform::now() + patience
}
