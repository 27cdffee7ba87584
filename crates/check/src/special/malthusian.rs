//! The Malthusian lock with relief at every release and with none, and its bugs.

use overspin_locks::malthusian::Shared;
use overspin_locks::{Bug, Malthusian};

use super::{Special, with_spare_nodes};
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected};
use crate::{Mutation, NO_SPIN};

type Lock = Malthusian<LoomPlatform>;

/// The longest passive waiter gets the lock once in `relief_one_in` releases: with 0 only when it
/// must, with 1 always.
fn relief(cpus: usize, pairs: usize, preemptions: usize, relief_one_in: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        let shared = Shared::new(cpus, NO_SPIN, relief_one_in).expect("few CPUs");
        Protected::<Lock>::with_shared(shared)
    })
}

pub(super) fn models() -> Vec<Special> {
    let forgets = Mutation::Seeded(Bug::A1MalthusianPassiveListIgnored);
    let mut models = vec![
        Special::new("relief never", "1 pair each", relief(2, 1, 2, 0))
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE),
        Special::new("relief never", "1 pair each", relief(3, 1, 2, 0))
            .finds(forgets, DEADLOCK_MESSAGE),
        Special::new("relief never", "2 pairs each", relief(3, 2, 1, 0)),
        Special::new("relief never", "1 pair each", relief(4, 1, 1, 0)),
        Special::new("relief always", "1 pair each", relief(3, 1, 2, 1)),
        Special::new("relief always", "2 pairs each", relief(3, 2, 1, 1)),
        Special::new("relief always", "1 pair each", relief(4, 1, 1, 1)),
    ];
    models.extend(with_spare_nodes::<Lock>(2));
    models
}
