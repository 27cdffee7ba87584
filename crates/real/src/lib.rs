//! Real benchmarks on the machine at hand: the programs that the published documents used, run with the rigour of a
//! laboratory.
//!
//! A [`Benchmark`] has places (configurations that are compared) and runs one of them. [`measure`] does the rest: a
//! warm-up, rounds in which each place runs once in a shuffled order, a record of what the machine did in each
//! second, and an end that keeps what was measured when the user or an error stops it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`benchmark`] | the trait, the plan, the rounds |
//! | [`kernbench`], [`dbench`], [`pgbench`], [`command`] | benchmarks that are programs |
//! | [`pft`], [`count`] | benchmarks of our own, from their description, beside packets if asked ([`packets`]) |
//! | [`seconds`] | what the machine did in each second |
//! | [`contention`] | waits for the kernel's own locks, where the kernel tells |
//! | [`program`], [`scratch`] | child processes and folders that never outlive us, even if we are killed |
//! | [`left_behind`] | what programs leave behind at their end, and its end |
//! | [`told`] | what a run gave, as lines of text |
//! | [`preload`] | a lock in place of a program's pthread mutexes |

pub mod benchmark;
pub mod command;
pub mod contention;
pub mod count;
pub mod dbench;
mod failed;
mod keeper;
pub mod kernbench;
pub mod left_behind;
pub mod lock_stat;
pub mod packets;
pub mod pft;
pub mod pgbench;
pub mod preload;
pub mod program;
pub mod scratch;
pub mod seconds;
mod source;
pub mod told;

pub use benchmark::{
    Benchmark, Earlier, Figure, Hears, Measured, Outcome, Plan, Progress, Run, Steps, measure,
};
pub use failed::Failed;
pub use source::SourceOf;

/// Whether to stop now; asked many times a second.
pub type Cancel<'a> = &'a dyn Fn() -> bool;

/// CPUs that this process may use; at least 1.
#[must_use]
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}
