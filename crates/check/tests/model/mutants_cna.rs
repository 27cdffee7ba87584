//! Bugs of CNA that must be found. See `mutants.rs`.

use overspin_locks::cna::Shared;
use overspin_locks::{Bug, Cna};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

type Lock = Cna<LoomPlatform>;

/// CPUs on two NUMA nodes in turn. The secondary queue is put back once in `flush_one_in`
/// handovers, not before it must be with 0, and always with 1.
fn two_nodes(cpus: usize, pairs: usize, preemptions: usize, flush_one_in: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().deal_over_nodes(2);
        let shared = Shared::new(cpus, flush_one_in).expect("so many CPUs are few");
        Protected::<Lock>::with_shared(shared)
    })
}

#[test]
fn two_nodes_keep_the_lock_local() {
    two_nodes(3, 1, 3, 0).passes();
    two_nodes(3, 2, 1, 0).passes();
    two_nodes(4, 1, 1, 0).passes();
}

#[test]
fn two_nodes_flush_always() {
    two_nodes(3, 1, 3, 1).passes();
    two_nodes(3, 2, 1, 1).passes();
    two_nodes(4, 1, 1, 1).passes();
}

#[test]
fn b1_cna_exchange_in_two_steps() {
    two_nodes(2, 1, 2, 0).catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_cna_release_relaxed() {
    two_nodes(2, 1, 2, 0).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_cna_acquire_relaxed() {
    two_nodes(2, 1, 2, 0).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn n1_cna_secondary_queue_ignored() {
    two_nodes(3, 1, 2, 0)
        .catches(Mutation::Seeded(Bug::N1CnaSecondaryQueueIgnored), DEADLOCK_MESSAGE);
}
