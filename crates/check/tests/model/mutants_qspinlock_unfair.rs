//! Bugs of the unfair queued spinlock that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_check::schedules::{self, SchedulePlatform, Strategy};
use overspin_locks::{Bug, QspinlockUnfair, RawLock};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{LoomPlatform, Mutation};

type Lock = QspinlockUnfair<LoomPlatform>;

#[test]
fn b2_qspinlock_unfair_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_qspinlock_unfair_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

/// CPU 0 holds the lock when the others come, each of which takes it once.
#[test]
fn qspinlock_unfair_held_at_first() {
    Model::new(3, 1, || {
        let it = Protected::<Lock>::new(3);
        let () = it.lock.lock(&it.shared);
        let of_all = Rc::clone(&it);
        on_cpus(3, move |cpu| {
            if cpu == 0 {
                of_all.inside();
                of_all.lock.unlock(&of_all.shared, ());
            } else {
                of_all.pair();
            }
        });
        it.assert_idle(3);
    })
    .passes();
}

/// All of them take a queue out of which somebody in the middle, or at the end, takes the lock. Two waiters
/// that look for ever are too much for the model checker; random schedules of four CPUs find them.
#[test]
fn u1_u2_u3_u4_qspinlock_unfair_queue() {
    // Enough for the one that hides best, several times over.
    const SCHEDULES: usize = 10_000;
    const SEED: u64 = 1;
    let plan = schedules::pairs::<QspinlockUnfair<SchedulePlatform>>(4, 3, 2);
    let right = plan.explore(Strategy::Random, SCHEDULES, SEED, None);
    assert_eq!(right.fault, None);
    for bug in [
        Bug::U1QspinlockUnfairFirstTakesBlindly,
        Bug::U2QspinlockUnfairMissesItsGrant,
        Bug::U3QspinlockUnfairLeavesItsLink,
        Bug::U4QspinlockUnfairKeepsThePredecessor,
    ] {
        let report = plan.explore(Strategy::Random, SCHEDULES, SEED, Some(bug));
        println!("{bug:?}: {} schedules, {:?}", report.runs, report.fault);
        assert!(report.fault.is_some(), "{bug:?} survived");
    }
}
