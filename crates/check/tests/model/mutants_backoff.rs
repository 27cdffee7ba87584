//! The locks with backoff, with pauses that the model checker can explore, and bugs that must be found.
//! See `mutants.rs`.

use std::rc::Rc;

use overspin_locks::{RawLock, TicketBackoff, Ttas, ticket_backoff, ttas};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{LoomPlatform, Mutation};

/// A lock whose pauses are two to four iterations: a pause of one iteration does not wait.
fn byte(cpus: usize) -> Rc<Protected<Ttas<LoomPlatform>>> {
    Protected::with_shared(ttas::Shared::new(cpus, 4, 4).expect("few CPUs"))
}

/// A lock whose pauses are two iterations for each waiter in front.
fn tickets(cpus: usize) -> Rc<Protected<TicketBackoff<LoomPlatform>>> {
    Protected::with_shared(ticket_backoff::Shared::new(cpus, 2).expect("few CPUs"))
}

#[test]
fn ttas() {
    Model::pairs_of(2, 2, 4, || byte(2)).passes();
    Model::pairs_of(3, 1, 2, || byte(3)).passes();
    Model::pairs_of(3, 2, 1, || byte(3)).passes();
}

#[test]
fn ticket_backoff() {
    Model::pairs_of(2, 2, 4, || tickets(2)).passes();
    Model::pairs_of(3, 1, 3, || tickets(3)).passes();
    Model::pairs_of(3, 2, 1, || tickets(3)).passes();
}

#[test]
fn b1_ttas_exchange_in_two_steps() {
    // Nobody unlocks and nobody waits, so that what is left to find is two holders.
    let model = Model::new(2, 2, || {
        let it = byte(2);
        on_cpus(2, move |_| {
            if it.lock.try_lock(&it.shared).is_some() {
                it.inside();
            }
        });
    });
    model.catches(Mutation::SplitSwap, EXCLUSION);
}

#[test]
fn b2_ttas_release_relaxed() {
    Model::pairs_of(2, 1, 2, || byte(2)).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_ttas_acquire_relaxed() {
    Model::pairs_of(2, 1, 2, || byte(2)).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn b2_ticket_backoff_release_relaxed() {
    Model::pairs_of(2, 1, 2, || tickets(2)).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_ticket_backoff_acquire_relaxed() {
    Model::pairs_of(2, 1, 2, || tickets(2)).catches(Mutation::NoAcquire, EXCLUSION);
}
