//! Bugs of the queued spinlock that must be found. See `mutants.rs`.

use std::cell::Cell;
use std::rc::Rc;

use overspin_check::schedules::{self, SchedulePlatform, Strategy};
use overspin_locks::{Bug, Qspinlock, QspinlockTas, RawLock};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{LoomPlatform, Mutation};

type Lock = Qspinlock<LoomPlatform>;
type Fallback = QspinlockTas<LoomPlatform>;

#[test]
fn b2_qspinlock_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_qspinlock_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn b2_qspinlock_tas_release_relaxed() {
    Model::pairs::<Fallback>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_qspinlock_tas_acquire_relaxed() {
    Model::pairs::<Fallback>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

/// What needs a pending waiter, a queue and somebody who comes in between is out of the model
/// checker's reach in useful time; random schedules of four CPUs reach it. Q4 is the program order that
/// a relaxed exchange of the tail permits.
#[test]
fn q1_q2_q4_qspinlock_queue() {
    // Enough for the one that hides best, several times over.
    const SCHEDULES: usize = 10_000;
    const SEED: u64 = 1;
    let plan = schedules::pairs::<Qspinlock<SchedulePlatform>>(4, 3, 2);
    let right = plan.explore(Strategy::Random, SCHEDULES, SEED, None);
    assert_eq!(right.fault, None);
    for bug in [
        Bug::Q1QspinlockPendingNotUndone,
        Bug::Q2QspinlockDropsTheTail,
        Bug::Q4QspinlockResetAfterPublication,
    ] {
        let report = plan.explore(Strategy::Random, SCHEDULES, SEED, Some(bug));
        println!("{bug:?}: {} schedules, {:?}", report.runs, report.fault);
        assert!(report.fault.is_some(), "{bug:?} survived");
    }
}

/// Each CPU takes a lock and then asks for the other's. One at least is told that it is held.
#[test]
fn q5_qspinlock_is_locked_without_fence() {
    Model::new(2, 2, || {
        let locks = Rc::new([Protected::<Lock>::new(2), Protected::<Lock>::new(2)]);
        let told = Rc::new(Cell::new(0));
        let all = (Rc::clone(&locks), Rc::clone(&told));
        on_cpus(2, move |cpu| {
            let (locks, told) = &all;
            let (mine, other) = (&locks[cpu], &locks[1 - cpu]);
            let () = mine.lock.lock(&mine.shared);
            if other.lock.is_locked(&other.shared) {
                told.set(told.get() + 1);
            }
        });
        assert!(told.get() > 0, "{BOTH_FREE}");
    })
    .catches(Mutation::NoUnlockFence, BOTH_FREE);
}

/// What the test of `is_locked` says when it fails.
const BOTH_FREE: &str = "each was told that the other's lock is free";
