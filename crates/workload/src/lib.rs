#![doc = include_str!("../README.md")]
//!
//! # How a program works
//!
//! A program is ordinary code. It computes, sleeps, takes named kernel locks, starts other programs and waits
//! for them. The world decides what that costs and which task runs when. Programs know no operating system
//! and may run on any thread. Tasks of one workload share atomics, and semaphores and locks of their world.
//!
//! # To add a workload
//!
//! Add a file with its `mod`, and a line in [`WORKLOADS`] (`registry.rs`). `count.rs` is the shortest. The
//! file has
//!
//! 1. its parameters: `parameters!` makes the structure together with the table of its keys. It is the only
//!    place of names, ranges, defaults and sentences: they serve to read and check scenario files, and to
//!    write `docs/scenario.md` and its JSON Schema (`UPDATE_EXPECT=1 cargo test -p overspin-scenario-file
//!    published_schema`);
//! 2. its [`WorkloadInfo`], with a name ([`Parameters::KIND`](overspin_scenario::Parameters::KIND)), a
//!    sentence, a source, and, if the keys differ from the fields, a function that turns keys into fields;
//! 3. its [`Load`]: what the ranges of single keys cannot say, locks, tasks, and the programs.
//!
//! A scenario does not hold that structure but its values under their names
//! ([`Workload`](overspin_scenario::Workload)), so that a scenario stays readable data. A world makes the
//! programs of a domain with [`Loads::of`], which checks everything and names the key that is wrong. A
//! workload from outside this tree is one more of the [`Kinds`] that a world is given.
//!
//! Dependencies: this crate knows `overspin_scenario`, which does not know it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod burnwait;
mod count;
mod dbench;
mod disk;
mod env;
mod info;
mod kernbench;
mod kernel_work;
mod layout;
mod lockloop;
mod noise;
mod parameters;
mod part;
mod pft;
mod pgbench;
mod phases;
mod ping;
mod queue;
mod random;
mod registry;
mod replay;
mod schedbench;
mod several;
mod stream;
mod threads;

pub use burnwait::{BurnWait, Distribution};
pub use count::Count;
pub use dbench::{Dbench, Placement, Sections};
pub use disk::Disk;
pub use env::{
    Env, Excursion, LockId, LockUse, Mode, Program, Semaphore, SliceRequest, Ticks, Trip, Waking,
    WordId,
};
pub use info::{Load, Start, WorkloadInfo};
pub use kernbench::Kernbench;
pub use kernel_work::KernelLock;
pub use layout::{Layout, LayoutOf};
pub use lockloop::{LockLoop, MOST_LOCKS};
pub use noise::with_noise;
pub use overspin_scenario::Fault;
pub use pft::Pft;
pub use pgbench::Pgbench;
pub use phases::{Align, Phase, Phases, Step};
pub use ping::Ping;
pub use random::Random;
pub use registry::{Kinds, WORKLOADS};
pub use replay::Replay;
pub use schedbench::{Again, BenchItem, Schedbench, WorkerArgs, WorkerError};
pub use several::{First, Loads};
pub use stream::Stream;

use alloc::format;
use alloc::string::String;

/// The name of the lock of a vCPU's run queue. These locks follow the workloads' in every list of a guest's
/// locks.
#[must_use]
pub fn run_queue_lock(vcpu: u32) -> String {
    format!("runqueue/{vcpu}")
}
