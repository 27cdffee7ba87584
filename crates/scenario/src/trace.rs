//! The stream of moments that a world can report while it runs.

use crate::{Picos, WaitCauses};

/// Receives the moments of a run, in time order.
pub trait TraceSink {
    /// Something happened at `at`.
    fn record(&mut self, at: Picos, event: TraceEvent);
}

/// Runstate of a vCPU, as Xen names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VcpuState {
    /// On a pCPU.
    Running,
    /// Wants a pCPU.
    Runnable,
    /// Idle by its own will.
    Blocked,
    /// Any other reason.
    Offline,
}

/// A moment. vCPUs are numbered over all domains in scenario order, locks within their domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceEvent {
    /// `pcpu` goes from one vCPU to another (`None`: idle); `prev_state` is what `prev` became.
    Switch {
        /// Where.
        pcpu: u32,
        /// Who left.
        prev: Option<u32>,
        /// What it became.
        prev_state: VcpuState,
        /// Who came.
        next: Option<u32>,
    },
    /// A vCPU became runnable; `pcpu` is the pCPU on which the waker ran, if any.
    Wake {
        /// Who.
        vcpu: u32,
        /// The waker's pCPU.
        pcpu: Option<u32>,
    },
    /// Starts to wait for a lock.
    LockWait {
        /// Who.
        vcpu: u32,
        /// Which.
        lock: u32,
    },
    /// Has got a lock.
    LockAcquired {
        /// Who.
        vcpu: u32,
        /// Which.
        lock: u32,
        /// What it waited for, if it had to wait.
        waited: Option<WaitCauses>,
    },
    /// Begins to release a lock.
    LockReleased {
        /// Who.
        vcpu: u32,
        /// Which.
        lock: u32,
    },
    /// Is done with releasing a lock, which somebody else may have by now.
    LockFreed {
        /// Who.
        vcpu: u32,
        /// Which.
        lock: u32,
    },
    /// Kicks a sleeping waiter.
    Kick {
        /// Who.
        from: u32,
        /// Whom.
        to: u32,
    },
    /// The administrator did something.
    Change {
        /// Index of the event in the scenario.
        event: u32,
    },
    /// A guest task starts to run on a vCPU (`None`: the guest's idle task).
    Task {
        /// Where.
        vcpu: u32,
        /// Index in the domain's tasks.
        task: Option<u32>,
    },
}
