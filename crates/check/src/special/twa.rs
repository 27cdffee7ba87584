//! TWA with few slots, and with tickets that wrap, and its bugs.

use std::rc::Rc;

use overspin_locks::twa::Shared;
use overspin_locks::{Bug, Twa};

use super::Special;
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected};

fn slots(preemptions: usize, slots: usize) -> Model {
    Model::pairs_of(3, 1, preemptions, move || {
        Protected::<Twa<LoomPlatform>>::with_shared(Shared::with_slots(slots))
    })
}

pub(super) fn models() -> Vec<Special> {
    let wraps = Model::pairs_of(3, 1, 2, || {
        Protected::of(Twa::with_first_ticket(u32::MAX - 1), Rc::new(Shared::with_slots(2)))
    });
    let late = Mutation::Seeded(Bug::W1TwaGrantBeforeSlot);
    vec![
        // Each of two successive tickets has a slot of its own. With just that many slots, less depends
        // on the address of the lock.
        Special::new("two slots", "1 pair each", slots(2, 2)).finds(late, DEADLOCK_MESSAGE),
        // All tickets collide in one slot, which may only cause needless wake-ups.
        Special::new("one slot", "1 pair each", slots(3, 1)),
        Special::new("tickets that wrap", "1 pair each", wraps),
    ]
}
