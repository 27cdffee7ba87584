//! Bugs of the informed spinlock that must be found. See `mutants.rs`.

use overspin_locks::{Bug, ISpinlock};

use crate::harness::Model;
use crate::harness::last_user_frees;
use crate::mutants::EXCLUSION;
use crate::platform::{FREED_MESSAGE, LoomPlatform, Mutation};

type Lock = ISpinlock<LoomPlatform>;

#[test]
fn b2_ispinlock_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_ispinlock_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn i1_ispinlock_learns_after_release() {
    last_user_frees::<Lock>()
        .catches(Mutation::Seeded(Bug::I1InformedLearnsAfterRelease), FREED_MESSAGE);
}
