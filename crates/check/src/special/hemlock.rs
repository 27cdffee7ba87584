//! Bugs of Hemlock.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::{Bug, Hemlock};

use super::{Special, few};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, LoomPlatform, Model, Protected, on_cpus};

type Lock = Hemlock<LoomPlatform>;

/// CPU 0 takes the lock twice. A CPU that then queues behind it, while another CPU holds the lock, sees
/// the grant of the first time.
fn one_of_three_twice() -> Model {
    Model::new(3, 2, || {
        let it = Protected::<Lock>::new(3);
        let shared = Rc::clone(&it);
        on_cpus(3, move |cpu| (0..if cpu == 0 { 2 } else { 1 }).for_each(|_| _ = shared.pair()));
        it.assert_idle(4);
    })
}

/// CPU 0 holds two locks, for which CPUs 1 and 2 wait. The grant is in the CPU's word, not in the
/// lock's.
fn two_locks() -> Model {
    Model::new(3, 2, || {
        let first = Protected::<Lock>::new(3);
        let locks = [Rc::clone(&first), first.another()];
        let tokens = Cell::new(Some(locks.each_ref().map(|it| it.lock())));
        on_cpus(3, move |cpu| {
            if cpu == 0 {
                let tokens = tokens.take().expect("CPU 0 runs once");
                for (it, token) in locks.iter().zip(tokens) {
                    it.inside();
                    it.unlock(token);
                }
            } else {
                locks[cpu - 1].pair();
            }
        });
    })
}

pub(super) fn models() -> Vec<Special> {
    let unseen = Mutation::Seeded(Bug::H1HemlockUnlockWithoutAcknowledgement);
    vec![
        few::<Lock>().finds(Mutation::SplitSwap, DEADLOCK_MESSAGE),
        Special::new("a word used again", "CPU 0 twice", one_of_three_twice())
            .finds(Mutation::NoPublication, EXCLUSION_MESSAGE),
        Special::new("two locks held, both wanted", "1 pair each", two_locks())
            .finds(unseen, DEADLOCK_MESSAGE),
    ]
}
