//! The trace hash: equal for equal runs, so it shows whether two runs were the same.

use crate::moment::{LockEvent, Moment};
use overspin_scenario::Picos;

/// Stands for "no vCPU" or "no task" in the hash.
const NONE: u32 = u32::MAX;

/// Hashes which vCPU and which task ran where, which locks were taken, which vCPUs were woken, which windows
/// were opened, and what the administrator did.
///
/// A world whose observer has [`Interest::HASH`](crate::Interest::HASH) feeds it where the moments happen.
///
/// The hash leaves out other moments, so that it stays comparable with hashes of earlier versions, which had
/// fewer moments.
#[derive(Clone, Copy, Debug)]
pub struct TraceHash(u64);

impl TraceHash {
    /// The hash at the start of a run with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The hash of all recorded moments.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn mix(&mut self, at: Picos, what: u64) {
        let h = (self.0 ^ at.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (h.rotate_left(23) ^ what).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    /// Takes one moment.
    #[inline(always)]
    pub fn record(&mut self, at: Picos, moment: &Moment) {
        let two = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let what = match *moment {
            Moment::LockAcquired { vcpu, lock, .. } => two(vcpu, lock),
            Moment::TaskLock { domain, task, lock, what: LockEvent::Acquired { .. } } => {
                two(u32::from(domain) << 16 ^ task, lock) | 1 << 43
            }
            Moment::Switch { pcpu, next, .. } => two(pcpu, next.unwrap_or(NONE)),
            Moment::Task { vcpu, task } => two(vcpu, task.unwrap_or(NONE)) | 1 << 63,
            Moment::Wake { vcpu, runnable: true, .. } => u64::from(vcpu) | 1 << 40,
            Moment::WindowOpens { vcpu, .. } => u64::from(vcpu) | 1 << 41,
            Moment::Change { event } => u64::from(event) | 1 << 42,
            _ => return,
        };
        self.mix(at, what);
    }
}
