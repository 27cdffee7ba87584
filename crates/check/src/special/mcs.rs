//! Bugs of the MCS lock.

use overspin_locks::{Bug, Mcs};

use super::{Special, few, with_spare_nodes};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform};

type Lock = Mcs<LoomPlatform>;

pub(super) fn models() -> Vec<Special> {
    let mut models = vec![
        few::<Lock>()
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE)
            // The program order that a relaxed link, or a relaxed load of it, permits.
            .finds(Mutation::Seeded(Bug::M1McsLinkBeforeReset), DEADLOCK_MESSAGE)
            .finds(Mutation::Seeded(Bug::M2McsUnlockLeavesUnlinkedWaiter), DEADLOCK_MESSAGE),
    ];
    models.extend(with_spare_nodes::<Lock>(2));
    models
}
