//! Bugs of FlexGuard that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_locks::flexguard::Shared;
use overspin_locks::{Bug, FlexGuard, Tuning};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

type Lock = FlexGuard<LoomPlatform>;

/// Waiters queue, and go to sleep after `looks` looks in vain.
fn queue(cpus: usize, pairs: usize, preemptions: usize, looks: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        Protected::<Lock>::tuned(cpus, Tuning { spin_budget: Some(looks), ..Tuning::DEFAULT })
    })
}

/// Waiters spin without a limit, and look after every second iteration whether somebody is
/// preempted. CPU 0 says so while it uses the lock.
fn preempted(cpus: usize, preemptions: usize) -> Model {
    Model::new(cpus, preemptions, move || {
        world().say_preempted(false);
        let shared = Shared::new(cpus, Tuning::DEFAULT, 2).expect("few CPUs");
        let it = Protected::<Lock>::with_shared(shared);
        let of_all = Rc::clone(&it);
        on_cpus(cpus, move |cpu| {
            if cpu == 0 {
                world().say_preempted(true);
                of_all.pair();
                world().say_preempted(false);
            } else {
                of_all.pair();
            }
        });
        it.assert_idle(cpus);
    })
}

#[test]
fn preempted_now_and_then() {
    preempted(2, 4).passes();
    preempted(3, 2).passes();
}

#[test]
fn queue_and_sleep() {
    queue(2, 2, 4, 1).passes();
    queue(3, 1, 3, 2).passes();
    queue(3, 2, 1, 1).passes();
}

/// Every sleep may end for no reason; here each CPU's first one does.
#[test]
fn spurious_wake() {
    Model::pairs_of(2, 1, 3, || {
        world().wake_spuriously(1);
        Protected::<Lock>::new(2)
    })
    .passes();
}

#[test]
fn b2_flexguard_release_relaxed() {
    queue(2, 1, 2, 1).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_flexguard_acquire_relaxed() {
    queue(2, 1, 2, 1).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn g1_flexguard_leaves_without_grant() {
    preempted(3, 2).catches(Mutation::Seeded(Bug::G1FlexGuardLeavesWithoutGrant), DEADLOCK_MESSAGE);
}
