//! A lock from outside the tree: draw a number, wait until it is served.

use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Properties of [`Deli`].
pub const INFO: LockInfo = LockInfo {
    name: "deli",
    brief: "draw a number, wait until it is served",
    source: "this example",
    fair: true,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: u32::MAX,
    size: 8,
};

/// Two counters: draw a number, wait until it is served. `BROKEN` drops the order of the release, to show
/// that the checker catches it.
#[derive(Debug)]
pub struct Deli<P: Platform, const BROKEN: bool = false> {
    next: P::U32,
    served: P::U32,
}

impl<P: Platform, const BROKEN: bool> RawLock<P> for Deli<P, BROKEN> {
    const INFO: LockInfo = INFO;
    type Shared = ();
    type Token = u32;

    fn shared(cpus: usize, _: Tuning) -> Result<(), CapacityError> {
        INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { next: P::U32::new(0), served: P::U32::new(0) }
    }

    fn lock(&self, (): &()) -> u32 {
        let mine = self.next.fetch_add(1, Relaxed);
        let _ = self.served.spin_until(|served| served == mine, Budget::Forever);
        mine
    }

    fn try_lock(&self, (): &()) -> Option<u32> {
        let served = self.served.load(Acquire);
        self.next.compare_exchange(served, served.wrapping_add(1), Relaxed, Relaxed).ok()
    }

    fn unlock(&self, (): &(), mine: u32) {
        self.served.store(mine.wrapping_add(1), if BROKEN { Relaxed } else { Release });
    }

    fn is_locked(&self, (): &()) -> bool {
        self.next.load(Relaxed) != self.served.load(Relaxed)
    }

    fn is_contended(&self, (): &()) -> bool {
        self.next.load(Relaxed).wrapping_sub(self.served.load(Relaxed)) > 1
    }
}
