//! Bugs of the CLH lock.

use std::rc::Rc;

use overspin_locks::{Bug, Clh};

use super::{Special, few, with_spare_nodes};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, LoomPlatform, Model, Protected, on_cpus};

type Lock = Clh<LoomPlatform>;

/// CPU 0 takes the lock twice, so that it uses its node again; CPU 1 once.
fn one_of_them_twice() -> Model {
    Model::new(2, 2, || {
        let it = Protected::<Lock>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |cpu| (cpu..2).for_each(|_| _ = shared.pair()));
        it.assert_idle(3);
    })
}

pub(super) fn models() -> Vec<Special> {
    let mut models = vec![
        few::<Lock>().finds(Mutation::SplitSwap, EXCLUSION_MESSAGE),
        Special::new("a node used again", "CPU 0 twice", one_of_them_twice())
            // The bug of the seL4 big lock: a waiter sees the node as it was before it was queued.
            .finds(Mutation::NoPublication, EXCLUSION_MESSAGE)
            .finds(Mutation::Seeded(Bug::C2ClhReuseWithoutNewVersion), DEADLOCK_MESSAGE),
    ];
    models.extend(with_spare_nodes::<Lock>(2));
    models
}
