//! Bugs of the preemptable ticket lock that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_check::NO_SPIN;
use overspin_locks::{Bug, PreemptableTicket, RawLock, Tuning};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation};

type Lock = PreemptableTicket<LoomPlatform>;

/// What a test of the order of service says when it fails.
const ORDER: &str = "served out of turn";

fn beginning_at(first: u16, tuning: Tuning) -> Rc<Protected<Lock>> {
    Protected::of(Lock::with_first_ticket(first), Lock::shared(3, tuning).expect("few CPUs"))
}

/// Nobody loses patience, so that all are served in turn.
fn in_turn(cpus: usize, pairs: usize, preemptions: usize, first: u16) -> Model {
    Model::new(cpus, preemptions, move || {
        let it = beginning_at(first, Tuning { spin_budget: Some(u32::MAX), ..NO_SPIN });
        on_cpus(cpus, move |_| {
            for _ in 0..pairs {
                let token = it.lock.lock(&it.shared);
                it.inside();
                assert!(token.in_turn(), "{ORDER}");
                it.lock.unlock(&it.shared, token);
            }
        });
    })
}

/// Everybody loses patience at once, where the tickets wrap.
#[test]
fn preemptable_wraps_out_of_turn() {
    Model::pairs_of(2, 2, 3, || beginning_at(u16::MAX - 3, NO_SPIN)).passes();
}

#[test]
fn b2_preemptable_release_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_preemptable_acquire_relaxed() {
    Model::pairs::<Lock>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

/// With tickets 0xfffc, 0xfffe and 0 the third believes that its turn has come.
#[test]
fn k1_preemptable_compares_wrapped_tickets() {
    in_turn(3, 1, 2, u16::MAX - 3)
        .catches(Mutation::Seeded(Bug::K1PreemptableComparesWrappedTickets), ORDER);
}

#[test]
fn k2_preemptable_serves_without_releasing() {
    Model::pairs::<Lock>(1, 2, 2)
        .catches(Mutation::Seeded(Bug::K2PreemptableServesWithoutReleasing), DEADLOCK_MESSAGE);
}
