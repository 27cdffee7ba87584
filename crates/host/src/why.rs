//! Why a vCPU that wanted to run left its pCPU.
//!
//! Schedulers decide which vCPU runs next, but do not say why. The host derives the reason from its
//! own state at that moment: the first that applies, in the order of [`why`].

use overspin_scenario::Why;
use overspin_sched::{Hypervisor, RunState, VcpuId};

/// What a vCPU does, as far as it matters to the host and to vCPUs that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It executes code of its guest, possibly an interrupt handler.
    Runs,
    /// It sleeps voluntarily.
    Sleeps,
    /// It was woken and does not run yet.
    Wakes,
    /// It was descheduled and wants to run.
    Wants,
    /// It holds a lock, wants to run, and its cap keeps it from running. Only attribution makes this difference.
    Throttled,
}

/// What the host knows, besides the state of the vCPU, when a running vCPU leaves its pCPU.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// It has just yielded, or the host has yielded for it.
    pub yielded: Option<Why>,
    /// Its slice has ended since the last scheduling pass.
    pub slice_over: bool,
    /// What the incoming vCPU did until now.
    pub next: Option<Doing>,
}

/// Why vCPU `v` of `hypervisor` has to leave its pCPU. O(1).
#[must_use]
pub fn why(hypervisor: &Hypervisor, v: VcpuId, leaving: Leaving) -> Why {
    let machine = hypervisor.machine();
    if hypervisor.runstate(v) == RunState::Offline {
        return match (machine.is_parked(v), machine.is_migrating(v)) {
            (true, _) => Why::Parked,
            (false, true) => Why::Migration,
            (false, false) => Why::Paused,
        };
    }
    match leaving {
        // It is throttled, and stays runnable.
        _ if machine.is_capped(v) => Why::Parked,
        Leaving { yielded: Some(why), .. } => why,
        Leaving { slice_over: true, .. } => Why::Slice,
        Leaving { next: Some(Doing::Wakes), .. } => Why::Wake,
        _ => Why::Scheduler,
    }
}
