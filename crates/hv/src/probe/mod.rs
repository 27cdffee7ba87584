//! What this machine's virtualisation costs, and what the hypervisor adds to it.
//!
//! Each figure of ours stands beside its floor, measured in the same round: a bare entry and exit of one vCPU, a bare
//! wake-up of a thread. All times are in nanoseconds.

#[cfg(kvm)]
mod on_kvm;

use overspin_host::Refused;

/// One round of measurements, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// A bare exit and entry: a vCPU alone on a thread, without the hypervisor.
    pub round_trip: f64,
    /// An entry and exit where two vCPUs are entered in turn: what the kernel itself takes for a switch.
    pub alternating: f64,
    /// A switch between two vCPUs of a pCPU: the first yields.
    pub switch: f64,
    /// The part of it outside `KVM_RUN`: the decision, the hypercall, the lock, and caches that are cold after the
    /// exit.
    pub outside: f64,
    /// The scheduling pass: the scheduler's decision, the runstates, the pages of both vCPUs.
    pub decision: f64,
    /// From the moment at which a vCPU is woken by another pCPU to the moment at which it is entered; `None` with one
    /// CPU.
    pub wake: Option<f64>,
    /// A bare wake-up of a thread on another CPU.
    pub thread_wake: Option<f64>,
}

/// Measures once.
///
/// # Errors
/// If this machine has no usable KVM.
#[cfg(kvm)]
pub fn round(seed: u64) -> Result<Round, Refused> {
    on_kvm::round(seed)
}

/// This build cannot measure.
///
/// # Errors
/// Always.
#[cfg(not(kvm))]
pub fn round(_: u64) -> Result<Round, Refused> {
    Err(crate::world::absent())
}
