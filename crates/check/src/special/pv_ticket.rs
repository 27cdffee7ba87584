//! The paravirtual ticket locks: nested waits, tickets that wrap, other modes, and bugs.

use std::rc::Rc;

use overspin_locks::{Bug, PvTicket, PvTicket2012, PvTicket2012Small, RawLock, Tuning};

use super::nested::{released_meanwhile, two_locks};
use super::{Special, few, native};
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Model, Point, Protected};
use crate::{Mutation, NO_SPIN};

type Head = PvTicket<LoomPlatform>;
type Tail = PvTicket2012<LoomPlatform>;
type SmallTail = PvTicket2012Small<LoomPlatform>;

/// The models of all forms of the lock.
fn common<L: RawLock<LoomPlatform> + 'static>() -> Vec<Special> {
    let make = Protected::<L>::new;
    let as_published = Mutation::Seeded(Bug::P7PvTicketNestedPickUpLeavesLatchClear);
    let giving_way = |cpus, pairs, preemptions| {
        let tuning = Tuning { yields: 1, ..NO_SPIN };
        Model::pairs_of(cpus, pairs, preemptions, move || Protected::<L>::tuned(cpus, tuning))
    };
    vec![
        native::<L>(),
        Special::new("giving way before the sleep", "2 pairs each", giving_way(2, 2, 3)),
        Special::new("giving way before the sleep", "1 pair each", giving_way(3, 1, 2)),
        Special::new(
            "a nested wait before the sleep",
            "2 locks",
            two_locks(2, 2, Point::Poll, 0, make),
        )
        .finds(Mutation::NoPickupSet, DEADLOCK_MESSAGE)
        .finds(as_published, DEADLOCK_MESSAGE),
        Special::new("a nested wait is kicked", "2 locks", two_locks(2, 3, Point::Poll, 1, make)),
    ]
}

pub(super) fn models() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    let wraps = Model::pairs_of(2, 2, 3, || {
        let shared = Rc::new(Head::shared(2, NO_SPIN).expect("two CPUs are few"));
        Protected::of(Head::with_first_ticket(u16::MAX - 3), shared)
    });
    let third = two_locks(3, 2, Point::Poll, 0, Protected::<Head>::new);
    let meanwhile = released_meanwhile(1, Protected::<Head>::new);
    let mut models = vec![
        few::<Head>()
            .finds(seeded(Bug::P3PvTicketHeadBeforeFlag), DEADLOCK_MESSAGE)
            .finds(seeded(Bug::P4PvTicketKicksOldTicket), DEADLOCK_MESSAGE)
            .finds(Mutation::LateRegistration, DEADLOCK_MESSAGE),
        Special::new("pairs, three of them", "1 pair each", Model::pairs::<Head>(3, 1, 2))
            .finds(seeded(Bug::P5PvTicketFlagClearedBlindly), DEADLOCK_MESSAGE),
        Special::new("tickets that wrap", "2 pairs each", wraps),
        Special::new("a nested wait, and a third CPU", "2 locks", third)
            .finds(seeded(Bug::P6PvTicketRecordWithoutNull), DEADLOCK_MESSAGE),
        Special::new("released during a nested wait", "2 locks", meanwhile)
            .finds(seeded(Bug::P6bPvTicketKicksFirstMatchOnly), DEADLOCK_MESSAGE),
    ];
    models.extend(common::<Head>());
    models
}

pub(super) fn models_of_2012() -> Vec<Special> {
    let mut models = vec![
        few::<Tail>()
            // The program order that a missing fence permits.
            .finds(Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease), DEADLOCK_MESSAGE)
            .finds(Mutation::LateRegistration, DEADLOCK_MESSAGE),
    ];
    models.extend(common::<Tail>());
    models
}

pub(super) fn models_of_2012_small() -> Vec<Special> {
    // The flag is in the half that a carry would reach: tickets 252, 254, 0 and 2.
    let wraps = Model::pairs_of(2, 2, 3, || {
        let shared = Rc::new(SmallTail::shared(2, NO_SPIN).expect("two CPUs are few"));
        Protected::of(SmallTail::with_first_ticket(u8::MAX - 3), shared)
    });
    let early = Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease);
    vec![
        few::<SmallTail>().finds(early, DEADLOCK_MESSAGE),
        native::<SmallTail>(),
        Special::new("tickets that wrap", "2 pairs each", wraps),
    ]
}
