//! CNA on two NUMA nodes, and its bugs.

use overspin_locks::cna::Shared;
use overspin_locks::{Bug, Cna};

use super::{Special, with_spare_nodes};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected, world};

type Lock = Cna<LoomPlatform>;

/// CPUs on two NUMA nodes in turn. The secondary queue is put back once in `flush_one_in`
/// hand-overs: with 0 only when it must be, with 1 always.
fn two_nodes(cpus: usize, pairs: usize, preemptions: usize, flush_one_in: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().deal_over_nodes(2);
        let shared = Shared::new(cpus, flush_one_in).expect("few CPUs");
        Protected::<Lock>::with_shared(shared)
    })
}

pub(super) fn models() -> Vec<Special> {
    let (local, flushed) = ("two NUMA nodes, never flushed", "two NUMA nodes, always flushed");
    let forgets = Mutation::Seeded(Bug::N1CnaSecondaryQueueIgnored);
    let mut models = vec![
        Special::new(local, "1 pair each", two_nodes(2, 1, 2, 0))
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE),
        Special::new(local, "1 pair each", two_nodes(3, 1, 3, 0)).finds(forgets, DEADLOCK_MESSAGE),
        Special::new(local, "2 pairs each", two_nodes(3, 2, 1, 0)),
        Special::new(local, "1 pair each", two_nodes(4, 1, 1, 0)),
        Special::new(flushed, "1 pair each", two_nodes(3, 1, 3, 1)),
        Special::new(flushed, "2 pairs each", two_nodes(3, 2, 1, 1)),
        Special::new(flushed, "1 pair each", two_nodes(4, 1, 1, 1)),
    ];
    models.extend(with_spare_nodes::<Lock>(2));
    models
}
