//! The preemptable ticket lock where tickets wrap, and its bugs.

use std::rc::Rc;

use overspin_locks::{Bug, PreemptableTicket, RawLock, Tuning};

use super::Special;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Protected, on_cpus};
use crate::{Mutation, NO_SPIN};

type Lock = PreemptableTicket<LoomPlatform>;

/// The message of the model of the order of service.
const ORDER: &str = "served out of turn";

fn beginning_at(first: u16, tuning: Tuning) -> Rc<Protected<Lock>> {
    let shared = Rc::new(Lock::shared(3, tuning).expect("few CPUs"));
    Protected::of(Lock::with_first_ticket(first), shared)
}

/// No waiter loses patience, so all are served in turn.
fn in_turn() -> Model {
    Model::new(3, 2, move || {
        let patient = Tuning { spin_budget: Some(u32::MAX), ..NO_SPIN };
        let it = beginning_at(u16::MAX - 3, patient);
        on_cpus(3, move |_| {
            let token = it.lock();
            it.inside();
            assert!(token.in_turn(), "{ORDER}");
            it.unlock(token);
        });
    })
}

pub(super) fn models() -> Vec<Special> {
    let wraps = Model::pairs_of(2, 2, 3, || beginning_at(u16::MAX - 3, NO_SPIN));
    let keeps = Mutation::Seeded(Bug::K2PreemptableServesWithoutReleasing);
    vec![
        Special::new("tickets that wrap, no patience", "2 pairs each", wraps),
        // With tickets 0xfffc, 0xfffe and 0, the third CPU believes that its turn has come.
        Special::new("tickets that wrap, all patient", "1 pair each", in_turn())
            .finds(Mutation::Seeded(Bug::K1PreemptableComparesWrappedTickets), ORDER),
        Special::new("alone", "2 pairs", Model::pairs::<Lock>(1, 2, 2))
            .finds(keeps, DEADLOCK_MESSAGE),
    ]
}
