//! Halt polling: a halting vCPU keeps its pCPU for a while, in case an event arrives soon (schedulers
//! specification §9.3, after KVM).
//!
//! ```text
//!   guest code --halts, window > 0, nobody else wants the pCPU--> polls --interrupt, kick--> guest code
//!        ^                                                          |
//!        |                    window over, or its pCPU is to schedule
//!        +----- woken, dispatched ----- blocked <-------------------+
//! ```
//!
//! The guest does not see the polling time, which the host spends; for the scheduler, the vCPU runs. A
//! waiting vCPU wants the pCPU if that is its home. With schedulers that have one queue for many pCPUs,
//! others may wait meanwhile, as they do for any running vCPU.

use overspin_scenario::{HaltPolling, Picos};
use overspin_sched::{Hypervisor, PcpuId, RunState, VcpuId};

/// The poll window of a vCPU after a halt that took `blocked` in all.
#[must_use]
pub fn next_window(window: Picos, blocked: Picos, polling: &HaltPolling) -> Picos {
    if blocked <= window {
        window
    } else if window > Picos::ZERO && blocked > polling.max {
        let shrunk = window.checked_div(polling.shrink.into()).unwrap_or_default();
        if shrunk < polling.start { Picos::ZERO } else { shrunk }
    } else if window < polling.max && blocked < polling.max {
        window.saturating_mul(polling.grow.into()).clamp(polling.start, polling.max)
    } else {
        window
    }
}

/// Whether vCPU `v` waits for `pcpu`; then no other vCPU may poll there.
#[must_use]
pub fn wants(hypervisor: &Hypervisor, v: VcpuId, pcpu: PcpuId) -> bool {
    hypervisor.runstate(v) == RunState::Runnable && hypervisor.machine().home(v) == pcpu
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    #[test]
    fn a_window_grows_while_it_would_have_helped_and_shrinks_when_it_never_can() {
        let p = HaltPolling { max: 200 * US, start: 10 * US, grow: 2, shrink: 2 };
        let after = |window: u64, blocked: u64| next_window(window * US, blocked * US, &p) / US;
        assert_eq!(after(0, 50), 10, "the first window");
        assert_eq!([after(10, 50), after(160, 190)], [20, 200], "too short: longer, up to max");
        assert_eq!([after(80, 80), after(80, 10)], [80, 80], "long enough");
        assert_eq!([after(80, 300), after(10, 300)], [40, 0], "in vain, and 0 rather than tiny");
        assert_eq!([after(0, 300), after(200, 200)], [0, 200]);
        assert_eq!(next_window(80 * US, 300 * US, &HaltPolling { shrink: 0, ..p }), Picos::ZERO);
    }
}
