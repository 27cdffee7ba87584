//! The paravirtual queued spinlock in its versions, and its bugs. The table has four entries, so that a
//! search always begins at the same one.

use std::rc::Rc;

use overspin_locks::pv_qspinlock::{Linux42, Linux45, Linux415, Shared, Version};
use overspin_locks::{Bug, PvQspinlock};

use super::nested::two_locks;
use super::{Special, held_at_first, native};
use crate::model::{
    DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, LoomPlatform, Model, Point, Protected, world,
};
use crate::{Mutation, NO_SPIN};

type Lock<V> = PvQspinlock<LoomPlatform, V>;

/// The message of a release that finds no entry.
const NO_ENTRY: &str = "a waiter is in the table before it is announced";
/// The message of a waiter that finds an entry of its lock in the table.
const TWO_ENTRIES: &str = "a lock has one entry at most";

fn lock<V: Version>(cpus: usize) -> Rc<Protected<Lock<V>>> {
    let shared = Shared::with_entries(cpus, NO_SPIN, 4).expect("few CPUs");
    Protected::<Lock<V>>::with_shared(shared)
}

fn pairs<V: Version>(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || lock::<V>(cpus))
}

fn spurious_wake<V: Version>() -> Model {
    Model::pairs_of(2, 1, 3, || {
        world().wake_spuriously(1);
        lock::<V>(2)
    })
}

fn common<V: Version>() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    let promoted = Special::new(
        "a waiter becomes the first",
        "1 pair each",
        held_at_first(3, None, lock::<V>),
    )
    .finds(seeded(Bug::V3PvQspinlockLooksBeforePromoting), DEADLOCK_MESSAGE)
    .finds(Mutation::NoUnlockFence, DEADLOCK_MESSAGE);
    let twice = seeded(Bug::V1PvQspinlockHeadHalted);
    vec![
        Special::new("table of four, few", "1 pair each", pairs::<V>(2, 1, 2))
            .finds(seeded(Bug::V2PvQspinlockKicksSleepersOnly), DEADLOCK_MESSAGE)
            .finds(seeded(Bug::V6PvQspinlockSlowBeforeEntry), NO_ENTRY),
        Special::new("table of four, three", "1 pair each", pairs::<V>(3, 1, 2))
            .finds(seeded(Bug::V8PvQspinlockStealsFromTheFirst), EXCLUSION_MESSAGE),
        Special::new("table of four, spurious wake-up", "1 pair each", spurious_wake::<V>()),
        if V::WAKES_NEXT { promoted } else { promoted.finds(twice, TWO_ENTRIES) },
        native::<Lock<V>>(),
    ]
}

/// V7 is an order that the published code leaves to the processor.
fn woken_for_no_reason<V: Version>() -> Special {
    let model = held_at_first(3, Some(2), lock::<V>);
    Special::new("made the first, spurious wake-up", "1 pair each", model)
        .finds(Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval), TWO_ENTRIES)
        .finds(Mutation::Seeded(Bug::V7PvQspinlockHashedSeenBeforeGrant), TWO_ENTRIES)
}

pub(super) fn models_of_4_2() -> Vec<Special> {
    common::<Linux42>()
}

pub(super) fn models_of_4_5() -> Vec<Special> {
    let mut models = common::<Linux45>();
    models.push(woken_for_no_reason::<Linux45>());
    models
}

pub(super) fn models() -> Vec<Special> {
    let clears = Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch);
    let nested = |first_released| two_locks(2, 2, Point::Poll, first_released, lock::<Linux415>);
    let third = two_locks(3, 2, Point::Poll, 0, lock::<Linux415>);
    let mut models = common::<Linux415>();
    models.extend([
        woken_for_no_reason::<Linux415>(),
        Special::new("table of four", "2 pairs each", pairs::<Linux415>(2, 2, 4)),
        Special::new("table of four", "1 pair each", pairs::<Linux415>(3, 1, 3)),
        Special::new("table of four", "2 pairs each", pairs::<Linux415>(3, 2, 2)),
        Special::new("a nested wait before the sleep", "2 locks", nested(0))
            .finds(clears, DEADLOCK_MESSAGE),
        Special::new("a nested wait is kicked", "2 locks", nested(1)),
        Special::new("a handler queues, and a third CPU", "2 locks", third)
            .finds(Mutation::OneContext, DEADLOCK_MESSAGE),
    ]);
    models
}
