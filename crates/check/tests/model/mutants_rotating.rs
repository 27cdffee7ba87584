//! Bugs of the rotating mutex that must be found. See `mutants.rs`.

use overspin_locks::rotating::Shared;
use overspin_locks::{Bug, Rotating};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

/// A mark that nobody clears.
const LEFT: &str = "nobody waits, but it is contended";

type Lock = Rotating<LoomPlatform>;

/// Each CPU's first sleep ends for no reason: it may leave the count as the one that was woken, beside the
/// one that was.
#[test]
fn rotating_spurious_wake() {
    Model::pairs_of(3, 1, 2, || {
        world().wake_spuriously(1);
        Protected::<Lock>::new(3)
    })
    .passes();
}

/// Sleepers are woken only if nobody takes the lock. The models of every lock rotate at each release.
fn never_rotates(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, || {
        Protected::<Lock>::with_shared(Shared::impatient(u64::MAX))
    })
}

#[test]
fn rotating_without_rotation() {
    never_rotates(2, 2, 5).passes();
    never_rotates(3, 1, 2).passes();
    never_rotates(3, 2, 1).passes();
}

/// Those who wait look, yield, look again and sleep.
#[test]
fn rotating_with_turns() {
    let restless = |cpus, pairs, preemptions| {
        Model::pairs_of(cpus, pairs, preemptions, || {
            Protected::<Lock>::with_shared(Shared::restless())
        })
    };
    restless(2, 2, 3).passes();
    restless(3, 1, 2).passes();
}

#[test]
fn b2_rotating_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_rotating_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn o1_rotating_reads_wakes_late() {
    Model::pairs::<Lock>(2, 1, 2)
        .catches(Mutation::Seeded(Bug::O1RotatingReadsWakesLate), DEADLOCK_MESSAGE);
}

#[test]
fn o2_rotating_sleeps_on_a_free_lock() {
    Model::pairs::<Lock>(2, 1, 2)
        .catches(Mutation::Seeded(Bug::O2RotatingSleepsOnAFreeLock), DEADLOCK_MESSAGE);
}

#[test]
fn o3_rotating_looks_before_it_releases() {
    Model::pairs::<Lock>(2, 1, 2)
        .catches(Mutation::Seeded(Bug::O3RotatingLooksBeforeItReleases), DEADLOCK_MESSAGE);
}

/// Whoever takes the lock in the moment after a release has the duty, and must find the sleepers.
#[test]
fn o3_rotating_looks_before_it_releases_without_rotation() {
    never_rotates(3, 1, 2)
        .catches(Mutation::Seeded(Bug::O3RotatingLooksBeforeItReleases), DEADLOCK_MESSAGE);
}

/// Nobody would be woken any more while `WAKING` stands; with two CPUs there is nobody left to be.
#[test]
fn o4_rotating_forgets_it_was_woken() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::Seeded(Bug::O4RotatingForgetsItWasWoken), LEFT);
}

/// An heir that has come and gone keeps everybody out.
#[test]
fn o5_rotating_heir_stays() {
    Model::pairs::<Lock>(2, 2, 3).catches(Mutation::Seeded(Bug::O5RotatingHeirStays), LEFT);
}

/// The sleeper must fall asleep between the two steps, hence a third preemption.
#[test]
fn o6_rotating_wakes_before_it_counts() {
    Model::pairs::<Lock>(2, 1, 3)
        .catches(Mutation::Seeded(Bug::O6RotatingWakesBeforeItCounts), DEADLOCK_MESSAGE);
}
