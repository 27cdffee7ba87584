//! Bugs of ShflLock that must be found. See `mutants.rs`. The one in its shuffling takes four CPUs to
//! show, too many for an exhaustive search.

use overspin_locks::ShflLock;

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{LoomPlatform, Mutation, world};

type Lock = ShflLock<LoomPlatform>;

/// CPUs on two NUMA nodes in turn.
fn two_nodes(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().deal_over_nodes(2);
        Protected::<Lock>::new(cpus)
    })
}

#[test]
fn two_nodes_shuffle() {
    two_nodes(3, 1, 3).passes();
    two_nodes(3, 2, 1).passes();
    two_nodes(4, 1, 1).passes();
}

#[test]
fn b2_shfllock_release_relaxed() {
    two_nodes(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_shfllock_acquire_relaxed() {
    two_nodes(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}
