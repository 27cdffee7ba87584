//! Ids of pCPUs, vCPUs, domains, pools and timers, and the actions that a world must perform.

use crate::time::Nanos;

/// A physical CPU: one hardware thread. Ids are dense from 0; see [`Topology`](crate::Topology).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PcpuId(pub u32);

/// A virtual CPU. Ids are dense from 0 in order of creation, over all domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(pub u32);

/// A domain (virtual machine), the owner of vCPUs. Ids are dense from 0 in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// A pool: some pCPUs with their own scheduler. Ids are dense from 0 in order of creation; see
/// [`Pools`](crate::Pools).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

impl PoolId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl PcpuId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl VcpuId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl DomainId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A timer that the world keeps for the hypervisor layer or its scheduler.
///
/// The order of this type is the order in which timers due at one instant must be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerId {
    /// The periodic tick of a pCPU.
    Tick(PcpuId),
    /// The accounting of a scheduler, one per system.
    Accounting,
    /// The end of the slice of the vCPU that runs on a pCPU.
    Slice(PcpuId),
}

/// What the world must do after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Make this pCPU enter its scheduler as soon as it can.
    Resched(PcpuId),
    /// Set a timer. This replaces an earlier setting of the same timer.
    SetTimer {
        /// The timer.
        timer: TimerId,
        /// When it expires, as an absolute time. A time in the past means at once.
        at: Nanos,
    },
    /// Stop a timer. No effect if it is not set.
    StopTimer {
        /// The timer.
        timer: TimerId,
    },
    /// Nothing to do: from now on its cap keeps this vCPU from running, or no longer does.
    Throttle {
        /// The vCPU.
        vcpu: VcpuId,
        /// Whether it does.
        on: bool,
    },
}
