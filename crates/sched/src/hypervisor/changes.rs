//! A record of what an administrator changed, for traces and for consoles.

use super::Hypervisor;
use crate::ids::{DomainId, PcpuId, VcpuId};
use crate::scheduler::{DomainParams, Whose};
use crate::time::Nanos;
use alloc::vec::Vec;

/// An operation of an administrator that was carried out. Refused ones are not reported.
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
    /// Parameters of the scheduler's own kind were set.
    Configured(Whose),
    /// The affinity of a vCPU was set.
    Affinity(VcpuId),
    /// A pCPU came to the pool.
    PcpuGiven(PcpuId),
    /// A pCPU is to leave the pool: nothing is placed there any more.
    PcpuLeaving(PcpuId),
    /// A pCPU has left the pool.
    PcpuTaken(PcpuId),
}

/// What was changed since the last look, if anybody looks.
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
    /// From now on changes are recorded, for [`Self::take_changes`]; who asks for it must take them
    /// now and then.
    pub fn record_changes(&mut self) {
        self.changes.changes.get_or_insert_default();
    }

    /// The changes since the last call, with their times in ns, in order; none unless
    /// [`Self::record_changes`] was called. A domain has the time of the call before its creation.
    pub fn take_changes(&mut self) -> Vec<(Nanos, Change)> {
        self.changes.changes.as_mut().map(core::mem::take).unwrap_or_default()
    }
}
