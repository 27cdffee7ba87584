//! The world `hv`: a micro-hypervisor that runs real vCPUs through KVM.
//!
//! One pinned thread is one pCPU. It enters vCPUs with `KVM_RUN`, and the schedulers of `overspin_sched` decide
//! which: the same objects that decide in the simulator. Guests are programs in ring 3 that call the host by port
//! I/O; see `overspin_guest_abi`. The image that comes with this crate contains the project's locks and workloads.
//!
//! What is measured is this machine: its costs, its noise. Keys of a scenario that describe a simulated machine
//! are not honoured, and `World::supports` names them.
//!
//! This works on Linux on x86-64 with `/dev/kvm`, in a build with the feature `kvm`; the build script sets `cfg(kvm)` where
//! both are there. Elsewhere every run is refused with the reason.

#[cfg(kvm)]
mod boot;
#[cfg(kvm)]
mod clock;
#[cfg(kvm)]
mod core;
#[cfg(kvm)]
mod doorbell;
#[cfg(kvm)]
#[doc(hidden)]
pub mod fuzz;
#[cfg(kvm)]
mod hypercalls;
#[cfg(kvm)]
mod image;
#[cfg(kvm)]
#[path = "../guest/src/job.rs"]
mod job;
#[cfg(kvm)]
mod kvm_run;
#[cfg(kvm)]
mod lifecycle;
#[cfg(kvm)]
mod memory;
#[cfg(kvm)]
mod outcome;
#[cfg(kvm)]
mod passes;
#[cfg(kvm)]
mod pcpu;
mod probe;
#[cfg(kvm)]
mod program;
#[cfg(all(test, kvm))]
mod race;
#[cfg(kvm)]
mod rate;
#[cfg(kvm)]
mod run;
#[cfg(kvm)]
mod ticks;
#[cfg(kvm)]
mod timer;
#[cfg(kvm)]
mod timers;
#[cfg(kvm)]
mod tracing;
#[cfg(kvm)]
mod vcpu;
mod world;

mod alone;
mod costs;

pub use costs::{HvCosts, Singles};
pub use probe::{Round, round};
pub use world::Hv;

extern crate alloc;

/// The name of the world.
pub(crate) const NAME: &str = "hv";
