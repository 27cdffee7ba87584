//! Bugs of MUTEXEE and of the futex mutex.

use overspin_locks::{Bug, Futex, Mutexee};

use super::{Special, few, three_that_wake_for_no_reason};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model};

type Lock = Mutexee<LoomPlatform>;
type Plain = Futex<LoomPlatform>;

pub(super) fn models() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    vec![
        few::<Lock>()
            // A waiter that saw the lock held marks it so after it was released.
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE)
            .finds(seeded(Bug::E4MutexeeWaitsWithoutComparing), DEADLOCK_MESSAGE),
        Special::new("pairs, three of them", "1 pair each", Model::pairs::<Lock>(3, 1, 3))
            .finds(seeded(Bug::E1MutexeeForgetsOtherSleepers), DEADLOCK_MESSAGE)
            // The third CPU takes the lock from the releaser, which leaves the wake-up of the second to it.
            .finds(seeded(Bug::E2MutexeeDropsTheDuty), DEADLOCK_MESSAGE)
            // A CPU that has taken the lock meanwhile releases what it no longer holds: the word
            // underflows.
            .finds(seeded(Bug::E3MutexeeClearsBlindly), "nobody holds it, but it is locked"),
        three_that_wake_for_no_reason::<Lock>(3),
    ]
}

pub(super) fn models_of_futex() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    vec![
        few::<Plain>()
            // As above.
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE)
            .finds(seeded(Bug::F2FutexWaitsWithoutComparing), DEADLOCK_MESSAGE),
        Special::new("pairs, three of them", "1 pair each", Model::pairs::<Plain>(3, 1, 2))
            .finds(seeded(Bug::F1FutexForgetsOtherSleepers), DEADLOCK_MESSAGE),
        three_that_wake_for_no_reason::<Plain>(3),
    ]
}
