//! FlexGuard with preempted holders and with sleepers, and its bugs.

use std::rc::Rc;

use overspin_locks::flexguard::Shared;
use overspin_locks::{Bug, FlexGuard, Tuning};

use super::Special;
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected, on_cpus, world};

type Lock = FlexGuard<LoomPlatform>;

/// Waiters queue, and go to sleep after `looks` failed looks.
fn queue(cpus: usize, pairs: usize, preemptions: usize, looks: u32) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        Protected::<Lock>::tuned(cpus, Tuning { spin_budget: Some(looks), ..Tuning::DEFAULT })
    })
}

/// Waiters spin without limit, and check after every second iteration whether a CPU is preempted.
/// CPU 0 reports so while it uses the lock.
fn preempted(cpus: usize, preemptions: usize) -> Model {
    Model::new(cpus, preemptions, move || {
        world().say_preempted(false);
        let shared = Shared::new(cpus, Tuning::DEFAULT, 2).expect("few CPUs");
        let it = Protected::<Lock>::with_shared(shared);
        let of_all = Rc::clone(&it);
        on_cpus(cpus, move |cpu| {
            if cpu == 0 {
                world().say_preempted(true);
                of_all.pair();
                world().say_preempted(false);
            } else {
                of_all.pair();
            }
        });
        it.assert_idle(cpus);
    })
}

pub(super) fn models() -> Vec<Special> {
    let leaves = Mutation::Seeded(Bug::G1FlexGuardLeavesWithoutGrant);
    vec![
        Special::new("preempted now and then", "1 pair each", preempted(2, 4)),
        Special::new("preempted now and then", "1 pair each", preempted(3, 2))
            .finds(leaves, DEADLOCK_MESSAGE),
        Special::new("queue and sleep", "2 pairs each", queue(2, 2, 4, 1)),
        Special::new("queue and sleep", "1 pair each", queue(3, 1, 3, 2)),
        Special::new("queue and sleep", "2 pairs each", queue(3, 2, 1, 1)),
    ]
}
