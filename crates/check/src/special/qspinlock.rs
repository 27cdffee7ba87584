//! The promise of the queued spinlock about `is_locked`, and the unfair one with a queue.
//!
//! Some bugs need a pending waiter, a queue and a CPU that comes in between. They are out of a model's
//! reach in useful time; schedules of four CPUs reach them.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::{Qspinlock, QspinlockUnfair, RawLock};

use super::{Special, held_at_first};
use crate::Mutation;
use crate::model::{LoomPlatform, Model, Protected, on_cpus};

/// The message of the model of `is_locked`.
const BOTH_FREE: &str = "each was told that the other's lock is free";

/// Each CPU takes a lock and then asks for the other's. At least one must learn that it is held.
fn each_asks_for_the_other() -> Model {
    Model::new(2, 2, || {
        let first = Protected::<Qspinlock<LoomPlatform>>::new(2);
        let locks = [Rc::clone(&first), first.another()];
        let told = Rc::new(Cell::new(0));
        let all = (locks, Rc::clone(&told));
        on_cpus(2, move |cpu| {
            let (locks, told) = &all;
            let () = locks[cpu].lock();
            let (other, shared) = locks[1 - cpu].raw();
            if other.is_locked(shared) {
                told.set(told.get() + 1);
            }
        });
        assert!(told.get() > 0, "{BOTH_FREE}");
    })
}

pub(super) fn models() -> Vec<Special> {
    vec![
        Special::new("is_locked of the other's lock", "2 locks", each_asks_for_the_other())
            .finds(Mutation::NoUnlockFence, BOTH_FREE),
    ]
}

pub(super) fn unfair() -> Vec<Special> {
    let held = held_at_first(1, None, Protected::<QspinlockUnfair<LoomPlatform>>::new);
    vec![Special::new("held at first", "1 pair each", held)]
}
