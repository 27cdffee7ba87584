//! ShflLock on two NUMA nodes. Bugs of its shuffling need four CPUs, too many for an exhaustive search;
//! schedules find them.

use overspin_locks::ShflLock;

use super::Special;
use crate::model::{LoomPlatform, Model, Protected, world};

/// CPUs on two NUMA nodes in turn.
fn two_nodes(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().deal_over_nodes(2);
        Protected::<ShflLock<LoomPlatform>>::new(cpus)
    })
}

pub(super) fn models() -> Vec<Special> {
    vec![
        Special::new("two NUMA nodes", "1 pair each", two_nodes(3, 1, 3)),
        Special::new("two NUMA nodes", "2 pairs each", two_nodes(3, 2, 1)),
        Special::new("two NUMA nodes", "1 pair each", two_nodes(4, 1, 1)),
    ]
}
