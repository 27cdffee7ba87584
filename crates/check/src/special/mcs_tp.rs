//! The time-published MCS lock where waiters are stale, and its bugs.

use overspin_locks::{Bug, McsTp, Tuning};

use super::{Special, few, with_spare_nodes};
use crate::Mutation;
use crate::model::{LoomPlatform, Model, Protected, world};

type Lock = McsTp<LoomPlatform>;

/// The message when a forgotten waiter times out again and again: there are writes, but no progress.
const LIVELOCK: &str = "exceeded maximum number of branches";

/// So much time passes between two readings of the clock that every waiter is stale and every critical
/// section overdue. All waiters are removed.
fn stale(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().advance_clock_by(100_000_000);
        Protected::<Lock>::tuned(cpus, Tuning { spin_budget: Some(2), ..Tuning::DEFAULT })
    })
}

pub(super) fn models() -> Vec<Special> {
    let mut models = vec![
        // Waiters time out after one look, again and again. The clock stands still, so only a waiter
        // that has timed out is passed over.
        few::<Lock>()
            .finds(Mutation::SplitSwap, LIVELOCK)
            .finds(Mutation::Seeded(Bug::Y1McsTpGrantIgnoresTimeOut), LIVELOCK),
        Special::new("every waiter is stale", "2 pairs each", stale(2, 2, 3)),
        Special::new("every waiter is stale", "1 pair each", stale(3, 1, 1)),
    ];
    models.extend(with_spare_nodes::<Lock>(1));
    models
}
