//! Bugs of the paravirtual ticket locks that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_check::NO_SPIN;
use overspin_locks::{Bug, PvTicket, PvTicket2012, PvTicket2012Small, RawLock, Tuning};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, Point, world};

type Head = PvTicket<LoomPlatform>;
type Tail = PvTicket2012<LoomPlatform>;
type SmallTail = PvTicket2012Small<LoomPlatform>;

fn two_cpus<L: RawLock<LoomPlatform> + 'static>() -> Model {
    Model::pairs::<L>(2, 1, 2)
}

/// Every sleep may end for no reason; here each CPU's first one does.
fn spurious_wake<L: RawLock<LoomPlatform> + 'static>() {
    Model::pairs_of(2, 1, 3, || {
        world().wake_spuriously(1);
        Protected::<L>::new(2)
    })
    .passes();
}

#[test]
fn pv_ticket_spurious_wake() {
    spurious_wake::<Head>();
}

#[test]
fn pv_ticket_2012_spurious_wake() {
    spurious_wake::<Tail>();
}

/// CPU 0 holds two locks. CPU 1 sleeps for the first, and an interrupt that strikes it just before
/// that takes the second, with a sleep if need be.
fn nested<L: RawLock<LoomPlatform> + 'static>(preemptions: usize, first_released: usize) -> Model {
    Model::new(2, preemptions, move || {
        let shared = Rc::new(L::shared(2, NO_SPIN).expect("two CPUs are few"));
        let locks = [Protected::<L>::new(2), Protected::<L>::new(2)];
        let tokens =
            [0, 1].map(|index: usize| std::cell::Cell::new(Some(locks[index].lock.lock(&shared))));
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                for index in [first_released, 1 - first_released] {
                    locks[index].inside();
                    let token = tokens[index].take().expect("released once");
                    locks[index].lock.unlock(&shared, token);
                }
                return;
            }
            let (inner, of_all) = (Rc::clone(&locks[1]), Rc::clone(&shared));
            world().arm(Point::Poll, move || pair(&inner, &of_all));
            pair(&locks[0], &shared);
        });
    })
}

/// An acquisition of one of several locks of a system.
fn pair<L: RawLock<LoomPlatform>>(it: &Protected<L>, shared: &L::Shared) {
    let token = it.lock.lock(shared);
    it.inside();
    it.lock.unlock(shared, token);
}

/// As `nested`, and CPU 2 waits for the first lock, perhaps with the ticket that the handler on CPU 1
/// draws from the second.
fn nested_with_a_third(preemptions: usize) -> Model {
    Model::new(3, preemptions, move || {
        let shared = Rc::new(Head::shared(3, NO_SPIN).expect("three CPUs are few"));
        let locks = [Protected::<Head>::new(3), Protected::<Head>::new(3)];
        let tokens =
            [0, 1].map(|index: usize| std::cell::Cell::new(Some(locks[index].lock.lock(&shared))));
        on_cpus(3, move |cpu| match cpu {
            0 => {
                for (it, token) in locks.iter().zip(&tokens) {
                    it.inside();
                    it.lock.unlock(&shared, token.take().expect("released once"));
                }
            }
            1 => {
                let (inner, of_all) = (Rc::clone(&locks[1]), Rc::clone(&shared));
                world().arm(Point::Poll, move || pair(&inner, &of_all));
                pair(&locks[0], &shared);
            }
            _ => pair(&locks[0], &shared),
        });
    })
}

#[test]
fn b2_pv_ticket_release_relaxed() {
    two_cpus::<Head>().catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_pv_ticket_acquire_relaxed() {
    two_cpus::<Head>().catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn b2_pv_ticket_2012_release_relaxed() {
    two_cpus::<Tail>().catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_pv_ticket_2012_acquire_relaxed() {
    two_cpus::<Tail>().catches(Mutation::NoAcquire, EXCLUSION);
}

/// The shipped tickets, through their wrap.
#[test]
fn t1_pv_ticket_wraps_under_contention() {
    Model::pairs_of(2, 2, 3, || {
        let shared = Head::shared(2, NO_SPIN).expect("two CPUs are few");
        Protected::of(Head::with_first_ticket(u16::MAX - 3), shared)
    })
    .passes();
}

/// Likewise, with the flag in the half that a carry would reach: tickets 252, 254, 0 and 2.
#[test]
fn t1_pv_ticket_2012_small_wraps_under_contention() {
    Model::pairs_of(2, 2, 3, || {
        let shared = SmallTail::shared(2, NO_SPIN).expect("two CPUs are few");
        Protected::of(SmallTail::with_first_ticket(u8::MAX - 3), shared)
    })
    .passes();
}

/// The program order that a missing fence permits.
#[test]
fn p1_pv_ticket_2012_flag_before_release() {
    two_cpus::<Tail>()
        .catches(Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease), DEADLOCK_MESSAGE);
}

#[test]
fn p1_pv_ticket_2012_small_flag_before_release() {
    two_cpus::<SmallTail>()
        .catches(Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease), DEADLOCK_MESSAGE);
}

#[test]
fn p3_pv_ticket_head_before_flag() {
    two_cpus::<Head>().catches(Mutation::Seeded(Bug::P3PvTicketHeadBeforeFlag), DEADLOCK_MESSAGE);
}

#[test]
fn p4_pv_ticket_kicks_old_ticket() {
    two_cpus::<Head>().catches(Mutation::Seeded(Bug::P4PvTicketKicksOldTicket), DEADLOCK_MESSAGE);
}

#[test]
fn p5_pv_ticket_flag_cleared_blindly() {
    Model::pairs::<Head>(3, 1, 2)
        .catches(Mutation::Seeded(Bug::P5PvTicketFlagClearedBlindly), DEADLOCK_MESSAGE);
}

#[test]
fn p6_pv_ticket_record_without_null() {
    nested_with_a_third(2)
        .catches(Mutation::Seeded(Bug::P6PvTicketRecordWithoutNull), DEADLOCK_MESSAGE);
}

#[test]
fn p6b_pv_ticket_kicks_first_match_only() {
    // The lock as it is passes with two preemptions, above; with three it takes many minutes.
    nested_with_a_third(3)
        .fails_with(Mutation::Seeded(Bug::P6bPvTicketKicksFirstMatchOnly), DEADLOCK_MESSAGE);
}

#[test]
fn p7_pv_ticket_nested_pick_up_leaves_latch_clear() {
    nested::<Head>(2, 0).catches(Mutation::NoPickupSet, DEADLOCK_MESSAGE);
}

#[test]
fn p7_pv_ticket_2012_nested_pick_up_leaves_latch_clear() {
    nested::<Tail>(2, 0).catches(Mutation::NoPickupSet, DEADLOCK_MESSAGE);
}

/// The locks released in the other order: the nested wait is kicked.
#[test]
fn pv_ticket_nested_wait_kicked() {
    nested::<Head>(3, 1).passes();
    nested::<Tail>(3, 1).passes();
}

#[test]
fn p8_pv_ticket_record_after_the_flag() {
    two_cpus::<Head>().catches(Mutation::LateRegistration, DEADLOCK_MESSAGE);
}

#[test]
fn p8_pv_ticket_2012_record_after_the_flag() {
    two_cpus::<Tail>().catches(Mutation::LateRegistration, DEADLOCK_MESSAGE);
}

/// CPU 0 releases in one mode and CPU 1 waits in the other. The mode is part of what all locks of a
/// system share, so no program can do this but one that has two such systems.
#[test]
fn p9_pv_ticket_native_release_of_a_sleeper() {
    Model::new(2, 2, || {
        let native = Tuning { nopvspin: true, ..NO_SPIN };
        let native = Rc::new(Head::shared(2, native).expect("two CPUs are few"));
        let it = Protected::<Head>::new(2);
        on_cpus(2, move |cpu| pair(&it, if cpu == 0 { &native } else { &it.shared }));
    })
    .fails(DEADLOCK_MESSAGE);
}

fn tuned<L>(cpus: usize, pairs: usize, preemptions: usize, tuning: Tuning) -> Model
where
    L: RawLock<LoomPlatform> + 'static,
{
    Model::pairs_of(cpus, pairs, preemptions, move || Protected::<L>::tuned(cpus, tuning))
}

#[test]
fn pv_ticket_native() {
    let tuning = Tuning { nopvspin: true, ..NO_SPIN };
    tuned::<Head>(2, 2, 3, tuning).passes();
    tuned::<Tail>(2, 2, 3, tuning).passes();
}

#[test]
fn pv_ticket_giving_way() {
    let tuning = Tuning { yields: 1, ..NO_SPIN };
    for (cpus, pairs, preemptions) in [(2, 2, 3), (3, 1, 2)] {
        tuned::<Head>(cpus, pairs, preemptions, tuning).passes();
        tuned::<Tail>(cpus, pairs, preemptions, tuning).passes();
    }
}
