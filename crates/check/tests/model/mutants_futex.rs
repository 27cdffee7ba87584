//! Bugs of the futex mutex that must be found. See `mutants.rs`.

use overspin_locks::{Bug, Futex};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

type Lock = Futex<LoomPlatform>;

/// Every sleep may end for no reason; here each CPU's first one does.
#[test]
fn futex_spurious_wake() {
    Model::pairs_of(3, 1, 3, || {
        world().wake_spuriously(1);
        Protected::<Lock>::new(3)
    })
    .passes();
}

/// Found first as a deadlock: a waiter that saw the lock held marks it so after it was released.
#[test]
fn b1_futex_exchange_in_two_steps() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_futex_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_futex_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn f1_futex_forgets_other_sleepers() {
    Model::pairs::<Lock>(3, 1, 2)
        .catches(Mutation::Seeded(Bug::F1FutexForgetsOtherSleepers), DEADLOCK_MESSAGE);
}

#[test]
fn f2_futex_waits_without_comparing() {
    Model::pairs::<Lock>(2, 1, 2)
        .catches(Mutation::Seeded(Bug::F2FutexWaitsWithoutComparing), DEADLOCK_MESSAGE);
}
