//! Bugs of the Malthusian lock that must be found. See `mutants.rs`.

use overspin_check::NO_SPIN;
use overspin_locks::malthusian::Shared;
use overspin_locks::{Bug, Malthusian};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, world};

type Lock = Malthusian<LoomPlatform>;

/// The longest passive waiter gets the lock once in `relief_one_in` releases: not before it must
/// with 0, always with 1.
fn relief(cpus: usize, pairs: usize, preemptions: usize, relief_one_in: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        let shared = Shared::new(cpus, NO_SPIN, relief_one_in).expect("so many CPUs are few");
        Protected::<Lock>::with_shared(shared)
    })
}

#[test]
fn relief_always() {
    relief(3, 1, 2, 1).passes();
    relief(3, 2, 1, 1).passes();
    relief(4, 1, 1, 1).passes();
}

#[test]
fn relief_never() {
    relief(3, 2, 1, 0).passes();
    relief(4, 1, 1, 0).passes();
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
fn b1_malthusian_exchange_in_two_steps() {
    relief(2, 1, 2, 0).catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_malthusian_release_relaxed() {
    relief(2, 1, 2, 0).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_malthusian_acquire_relaxed() {
    relief(2, 1, 2, 0).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn a1_malthusian_passive_list_ignored() {
    relief(3, 1, 2, 0)
        .catches(Mutation::Seeded(Bug::A1MalthusianPassiveListIgnored), DEADLOCK_MESSAGE);
}
