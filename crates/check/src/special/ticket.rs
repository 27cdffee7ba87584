//! The ticket lock with tickets of two bits, which wrap at once, and its bugs.

use overspin_locks::ticket::TicketLock;

use super::Special;
use crate::Mutation;
use crate::model::{
    DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, LoomPlatform, Model, Protected, TinyCell, on_cpus,
};

type TwoBits = TicketLock<LoomPlatform, TinyCell<2>>;

/// CPU 0 takes the lock three times and keeps it the fourth time. Four draws bring `tail` back to
/// the value that CPU 1 saw before it exchanged.
fn one_keeps_it() -> Model {
    Model::new(2, 2, || {
        let it = Protected::<TwoBits>::new(2);
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                (0..3).for_each(|_| _ = it.pair());
                let _held = it.lock();
                it.inside();
            } else if let Some(token) = it.try_lock() {
                it.inside();
                it.unlock(token);
            }
        });
    })
}

pub(super) fn models() -> Vec<Special> {
    vec![
        Special::new("tickets of two bits", "5 pairs", Model::pairs::<TwoBits>(1, 5, 2))
            .finds(Mutation::CarryingHead, DEADLOCK_MESSAGE),
        Special::new("tickets of two bits", "3 pairs each", Model::pairs::<TwoBits>(2, 3, 2)),
        Special::new("tickets of two bits", "one takes 4, one tries", one_keeps_it())
            .finds(Mutation::TailOnlyCas, EXCLUSION_MESSAGE),
    ]
}
