//! Locks with backoff whose pauses are short enough for the model checker. A pause of one iteration does not
//! wait.

use std::rc::Rc;

use overspin_locks::{TicketBackoff, Ttas, ticket_backoff, ttas};

use super::{Special, tries_alone};
use crate::model::{LoomPlatform, Model, Protected};

/// Pauses of two to four iterations.
fn byte(cpus: usize) -> Rc<Protected<Ttas<LoomPlatform>>> {
    Protected::with_shared(ttas::Shared::new(cpus, 4, 4).expect("few CPUs"))
}

/// Pauses of two iterations for each waiter in front.
fn tickets(cpus: usize) -> Rc<Protected<TicketBackoff<LoomPlatform>>> {
    Protected::with_shared(ticket_backoff::Shared::new(cpus, 2).expect("few CPUs"))
}

pub(super) fn ttas() -> Vec<Special> {
    vec![
        Special::new("short pauses", "2 pairs each", Model::pairs_of(2, 2, 4, || byte(2))),
        Special::new("short pauses", "1 pair each", Model::pairs_of(3, 1, 2, || byte(3))),
        Special::new("short pauses", "2 pairs each", Model::pairs_of(3, 2, 1, || byte(3))),
        tries_alone::<Ttas<LoomPlatform>>(),
    ]
}

pub(super) fn ticket() -> Vec<Special> {
    vec![
        Special::new("short pauses", "2 pairs each", Model::pairs_of(2, 2, 4, || tickets(2))),
        Special::new("short pauses", "1 pair each", Model::pairs_of(3, 1, 3, || tickets(3))),
        Special::new("short pauses", "2 pairs each", Model::pairs_of(3, 2, 1, || tickets(3))),
    ]
}
