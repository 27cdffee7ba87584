//! Locks of `overspin-locks` in a kernel or on bare metal: no operating system, no allocation, nothing that sleeps.
//!
//! | File | What it holds |
//! |---|---|
//! | `machine.rs` | [`Machine`]: what the kernel supplies, three functions |
//! | `x86_64.rs` | [`X86_64`]: a machine on bare x86-64 |
//! | `platform.rs` | [`Kernel`]: the platform of the locks on such a machine |
//! | `arena.rs` | memory for records of CPUs, taken at boot and never given back |
//! | `spin_lock.rs` | [`SpinLock`]: data under a lock with guards, with interrupts off |
//! | `kernel/` | a static library for a kernel in C, built without the standard library |
//!
//! Copy these files and write your own [`Machine`]. Two locks are vouched for here. A ticket lock, which is a single word, is
//! enough for a few CPUs. With many CPUs take MCS, whose waiters spin on lines of their own:
//!
//! ```
//! use no_std_lock::{Machine, McsNodes, OverCapacity, SpinLock};
//!
//! fn boot<M: Machine>(cpus: usize) -> Result<(), OverCapacity> {
//!     let nodes = McsNodes::<M>::new(cpus)?; // one for all MCS locks of the system
//!     let ready = SpinLock::new(&nodes, 0);
//!     *ready.lock() += 1; // interrupts are off until the guard is dropped
//!     Ok(())
//! }
//! ```
#![no_std]

mod arena;
mod machine;
mod platform;
mod spin_lock;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use arena::keep;
pub use machine::Machine;
pub use platform::{Kernel, MAX_CPUS};
pub use spin_lock::{
    Guard, McsLock, McsNodes, Nodes, OverCapacity, SpinLock, TicketLock, TicketNodes, Vouched,
};
#[cfg(target_arch = "x86_64")]
pub use x86_64::X86_64;
