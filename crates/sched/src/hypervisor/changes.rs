//! A record of what an administrator changed, for traces and for consoles.

use super::Hypervisor;
use crate::ids::{DomainId, PcpuId, VcpuId};
use crate::scheduler::{DomainParams, Whose};
use crate::time::Nanos;
use alloc::vec::Vec;

/// An operation that an administrator carried out. Refused operations are not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A domain was created.
    DomainCreated(DomainId),
    /// A vCPU was created or plugged in.
    VcpuCreated(VcpuId),
    /// A vCPU was removed for good.
    VcpuRemoved(VcpuId),
    /// A vCPU was started.
    Up(VcpuId),
    /// A vCPU was taken offline.
    Down(VcpuId),
    /// A vCPU was paused once more.
    Paused(VcpuId),
    /// One pause of a vCPU ended.
    Unpaused(VcpuId),
    /// A domain was paused once more.
    DomainPaused(DomainId),
    /// One pause of a domain ended.
    DomainUnpaused(DomainId),
    /// Weight and cap of a domain were set.
    DomainParams(DomainId, DomainParams),
    /// A vCPU was given a weight of its own.
    Weight(VcpuId, u32),
    /// Parameters of the scheduler's own kind were set.
    Configured(Whose),
    /// The affinity of a vCPU was set.
    Affinity(VcpuId),
    /// A pCPU joined the pool.
    PcpuGiven(PcpuId),
    /// A pCPU has begun to leave the pool: no vCPU is placed there any more.
    PcpuLeaving(PcpuId),
    /// A pCPU has left the pool.
    PcpuTaken(PcpuId),
}

/// The changes since they were last taken, if they are recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder {
    changes: Option<Vec<(Nanos, Change)>>,
}

impl Recorder {
    pub(super) fn note(&mut self, now: Nanos, change: Change) {
        if let Some(changes) = &mut self.changes {
            changes.push((now, change));
        }
    }
}

impl Hypervisor {
    /// Records changes from now on. The caller must take them with [`Self::take_changes`] now and
    /// then, because they accumulate.
    pub fn record_changes(&mut self) {
        self.changes.changes.get_or_insert_default();
    }

    /// Takes the changes since the last call, with their times in ns, in order; none unless
    /// [`Self::record_changes`] was called. The creation of a domain has the time of the call
    /// before it.
    pub fn take_changes(&mut self) -> Vec<(Nanos, Change)> {
        self.changes.changes.as_mut().map(core::mem::take).unwrap_or_default()
    }
}
