//! Why a vCPU that wanted to run left its pCPU.
//!
//! Schedulers answer which vCPU runs next, not why. The reason is read off what the host knows at that
//! moment; the first that applies, in the order of [`why`].

use overspin_scenario::Why;
use overspin_sched::{Hypervisor, RunState, VcpuId};

/// What a vCPU does, as far as a host and those that wait for the vCPU care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It executes code of its guest, an interrupt handler's maybe.
    Runs,
    /// It sleeps by its own will.
    Sleeps,
    /// It was woken, and does not run yet.
    Wakes,
    /// It was descheduled and wants to run.
    Wants,
}

/// What a host knows, besides the state of the vCPU, when a vCPU that ran leaves its pCPU.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// It has just yielded, by its own will or the host's.
    pub yielded: Option<Why>,
    /// Its slice has ended since the last scheduling pass.
    pub slice_over: bool,
    /// What the vCPU that comes did until now.
    pub next: Option<Doing>,
}

/// Why vCPU `v` of `hypervisor` leaves its pCPU against its will. O(1).
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
        Leaving { yielded: Some(why), .. } => why,
        Leaving { slice_over: true, .. } => Why::Slice,
        Leaving { next: Some(Doing::Wakes), .. } => Why::Wake,
        _ => Why::Scheduler,
    }
}
