//! Models and schedules find a lock that cannot tolerate a spurious failure of an exchange.

use overspin_check::model::{self, LoomPlatform};
use overspin_check::schedules::{self, SchedulePlatform, Strategy};
use overspin_check::{Mutation, Report};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Platform, RawLock, Tuning, lock_byte,
};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A byte lock. Its `try_lock` takes a spurious failure for another CPU's success. Its `lock` correctly
/// tries again.
#[derive(Debug)]
struct Hasty<P: Platform>(P::U8);

impl<P: Platform> RawLock<P> for Hasty<P> {
    const INFO: LockInfo = LockInfo { name: "hasty", abortable: false, size: 1, ..lock_byte::INFO };
    type Shared = ();
    type Token = ();

    fn shared(_: usize, _: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self(P::U8::new(0))
    }
    fn lock(&self, (): &()) {
        while self.0.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            let _ = self.0.spin_until(|byte| byte == 0, Budget::Forever);
        }
    }
    fn try_lock(&self, (): &()) -> Option<()> {
        self.0.compare_exchange_weak(0, 1, Acquire, Relaxed).ok().map(drop)
    }
    fn unlock(&self, (): &(), (): ()) {
        self.0.store(0, Release);
    }
    fn is_locked(&self, (): &()) -> bool {
        self.0.load(Relaxed) != 0
    }
    fn is_contended(&self, (): &()) -> bool {
        false
    }
}

fn says_so(report: &Report) {
    let fault = report.fault.as_ref().expect("it is found");
    assert!(fault.contains("nobody holds it, but try_lock fails"), "{fault}");
}

#[test]
fn models_find_it() {
    says_so(&model::weak_failures::<Hasty<LoomPlatform>>().explore(Mutation::None));
}

#[test]
fn schedules_find_it() {
    let plan = schedules::pairs::<Hasty<SchedulePlatform>>(4, 3, 1);
    says_so(&plan.explore(Strategy::Random, 1_000, 1, Mutation::None));
}
