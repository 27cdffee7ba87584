//! Bugs of TWA that must be found. See `mutants.rs`.

use overspin_locks::twa::Shared;
use overspin_locks::{Bug, Twa};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation};

type Lock = Twa<LoomPlatform>;

/// Successive tickets in slots of their own, and no more slots than that needs: the less depends
/// on the address of the lock.
fn three_cpus() -> Model {
    Model::pairs_of(3, 1, 2, || Protected::<Lock>::with_shared(Shared::with_slots(2)))
}

#[test]
fn b2_twa_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_twa_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

/// All tickets collide in one slot.
#[test]
fn w1_twa_collisions_only_wake() {
    Model::pairs_of(3, 1, 3, || Protected::<Lock>::with_shared(Shared::with_slots(1))).passes();
}

#[test]
fn w1_twa_grant_before_slot() {
    three_cpus().catches(Mutation::Seeded(Bug::W1TwaGrantBeforeSlot), DEADLOCK_MESSAGE);
}
