//! Bugs of MUTEXEE, of the futex mutex and of Swift's.

use overspin_locks::swift_mutex::Shared;
use overspin_locks::{Bug, Futex, Mutexee, SwiftMutex};

use super::{Special, few, three_that_wake_for_no_reason};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected};

type Lock = Mutexee<LoomPlatform>;
type Plain = Futex<LoomPlatform>;
type Swift = SwiftMutex<LoomPlatform>;

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

pub(super) fn models_of_swift() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    // A pause of two or three iterations, after which it parks.
    let one_try = || Protected::<Swift>::with_shared(Shared::new(3, 1, 2).expect("few CPUs"));
    vec![
        few::<Swift>()
            // As above.
            .finds(Mutation::SplitSwap, DEADLOCK_MESSAGE)
            .finds(seeded(Bug::J1SwiftMutexWaitsWithoutComparing), DEADLOCK_MESSAGE)
            .finds(seeded(Bug::J3SwiftMutexStaysCounted), "nobody waits, but it is contended"),
        Special::new("pairs, three of them", "1 pair each", Model::pairs::<Swift>(3, 1, 2))
            .finds(seeded(Bug::J2SwiftMutexForgetsOtherSleepers), DEADLOCK_MESSAGE),
        Special::new("a try after a pause", "1 pair each", Model::pairs_of(3, 1, 2, one_try)),
        three_that_wake_for_no_reason::<Swift>(3),
    ]
}
