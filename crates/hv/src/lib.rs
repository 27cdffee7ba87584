//! The world `hv`: a micro-hypervisor that runs real vCPUs through KVM.
//!
//! One pinned thread is one pCPU. It enters vCPUs with `KVM_RUN`, and the schedulers of `overspin_sched` decide
//! which: the same objects that decide in the simulator. Guests are programs in ring 3 that call the host by port
//! I/O; see `overspin_guest_abi`. The image that comes with this crate contains the project's locks and workloads.
//!
//! What is measured is this machine: its costs, its noise. Keys of a scenario that describe a simulated machine
//! are not honoured, and `World::supports` names them.
//!
//! This works on Linux on x86-64 with `/dev/kvm`. Elsewhere every run is refused with the reason.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod boot;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod clock;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod core;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod doorbell;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod hypercalls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod image;
#[path = "../guest/src/job.rs"]
mod job;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kvm_run;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lifecycle;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod outcome;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod passes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod pcpu;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod probe;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod race;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod rate;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod run;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ticks;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod timer;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod timers;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod vcpu;
mod world;

mod alone;
mod costs;

pub use costs::{HvCosts, Singles};
pub use world::Hv;

extern crate alloc;

/// The name of the world.
pub(crate) const NAME: &str = "hv";
