//! Hapax locks with few counters, and with values that repeat, and their bugs.

use std::rc::Rc;

use overspin_locks::hapax::Shared;
use overspin_locks::{Bug, Hapax};

use super::Special;
use crate::Mutation;
use crate::model::{
    DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, LoomPlatform, Model, Protected, on_cpus, set_cpu,
};

/// More values than a model draws.
const MANY: usize = 1 << 8;

type Lock = Hapax<LoomPlatform>;

fn once_each(preemptions: usize, counters: usize) -> Model {
    Model::pairs_of(3, 1, preemptions, move || {
        Protected::<Lock>::with_shared(Shared::with(3, counters, MANY))
    })
}

/// CPU 0 takes the lock, another one, and the lock again. It has two values, so the third is the first again. Others take
/// the lock once.
fn two_values(cpus: usize, preemptions: usize) -> Model {
    Model::new(cpus, preemptions, move || {
        let it = Protected::<Lock>::with_shared(Shared::with(cpus, 8, 2));
        let (of_all, another) = (Rc::clone(&it), it.another());
        on_cpus(cpus, move |cpu| {
            of_all.pair();
            if cpu == 0 {
                another.pair();
                of_all.pair();
            }
        });
        it.assert_idle(cpus + 1);
    })
}

/// CPU 1 has drawn its two values. Each CPU takes the lock once. If CPU 0 is the first, CPU 1 draws its first value again,
/// and CPU 2 may still believe that it was the last to depart.
fn first_value_again(preemptions: usize) -> Model {
    Model::new(3, preemptions, move || {
        let it = Protected::<Lock>::with_shared(Shared::with(3, 8, 2));
        set_cpu(1);
        it.pair();
        it.another().pair();
        set_cpu(0);
        let of_all = Rc::clone(&it);
        on_cpus(3, move |_| _ = of_all.pair());
        it.assert_idle(4);
    })
}

pub(super) fn models() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    vec![
        Special::new("pairs, three of them", "1 pair each", once_each(2, 8))
            .finds(seeded(Bug::Z1HapaxDepartBeforeCounter), DEADLOCK_MESSAGE),
        // All waiters collide in one counter, which may only cause needless wake-ups.
        Special::new("one counter", "1 pair each", once_each(2, 1)),
        Special::new("values that repeat", "CPU 0 and another lock in between", two_values(2, 2))
            .finds(seeded(Bug::Z2HapaxDrawsWhatHasDeparted), EXCLUSION_MESSAGE),
        Special::new("a value drawn again", "1 pair each", first_value_again(2))
            .finds(seeded(Bug::Z3HapaxArrivesRelaxed), EXCLUSION_MESSAGE),
    ]
}
