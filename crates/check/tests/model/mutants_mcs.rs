//! Bugs of the MCS lock that must be found. See `mutants.rs`.

use overspin_locks::{Bug, Mcs};

use crate::harness::Model;
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation};

fn two_cpus() -> Model {
    Model::pairs::<Mcs<LoomPlatform>>(2, 1, 2)
}

#[test]
fn b1_mcs_exchange_in_two_steps() {
    two_cpus().catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_mcs_release_relaxed() {
    two_cpus().catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_mcs_acquire_relaxed() {
    two_cpus().catches(Mutation::NoAcquire, EXCLUSION);
}

/// The program order that a relaxed link, or a relaxed look at it, permits.
#[test]
fn m1_mcs_link_before_reset() {
    two_cpus().catches(Mutation::Seeded(Bug::M1McsLinkBeforeReset), DEADLOCK_MESSAGE);
}

#[test]
fn m2_mcs_unlock_leaves_unlinked_waiter() {
    two_cpus().catches(Mutation::Seeded(Bug::M2McsUnlockLeavesUnlinkedWaiter), DEADLOCK_MESSAGE);
}
