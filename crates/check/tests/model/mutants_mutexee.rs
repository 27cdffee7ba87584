//! Bugs of MUTEXEE that must be found. See `mutants.rs`.

use overspin_locks::{Bug, Mutexee};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

type Lock = Mutexee<LoomPlatform>;

/// Each CPU's first sleep ends for no reason.
#[test]
fn mutexee_spurious_wake() {
    Model::pairs_of(3, 1, 3, || {
        world().wake_spuriously(1);
        Protected::<Lock>::new(3)
    })
    .passes();
}

/// A waiter that saw the lock held marks it so after it was released.
#[test]
fn b1_mutexee_exchange_in_two_steps() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_mutexee_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_mutexee_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn e1_mutexee_forgets_other_sleepers() {
    Model::pairs::<Lock>(3, 1, 2)
        .catches(Mutation::Seeded(Bug::E1MutexeeForgetsOtherSleepers), DEADLOCK_MESSAGE);
}

/// The third takes the lock from the releaser, who leaves it to him to wake the second.
#[test]
fn e2_mutexee_drops_the_duty() {
    Model::pairs::<Lock>(3, 1, 2)
        .catches(Mutation::Seeded(Bug::E2MutexeeDropsTheDuty), DEADLOCK_MESSAGE);
}

/// Who has taken the lock meanwhile releases what is no longer held: the word underflows.
#[test]
fn e3_mutexee_clears_blindly() {
    Model::pairs::<Lock>(3, 1, 3).catches(
        Mutation::Seeded(Bug::E3MutexeeClearsBlindly),
        "nobody holds it, but it is locked",
    );
}

#[test]
fn e4_mutexee_waits_without_comparing() {
    Model::pairs::<Lock>(2, 1, 2)
        .catches(Mutation::Seeded(Bug::E4MutexeeWaitsWithoutComparing), DEADLOCK_MESSAGE);
}
