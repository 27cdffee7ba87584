//! The paravirtual queued spinlock in its versions, and bugs of it that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_check::NO_SPIN;
use overspin_locks::pv_qspinlock::{Linux42, Linux45, Linux415, Shared, Version};
use overspin_locks::{Bug, PvQspinlock, RawLock, Tuning};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, Point, world};

type Lock<V = Linux415> = PvQspinlock<LoomPlatform, V>;

/// State of a system with a table of four entries, so that a search always begins with the same.
fn shared(cpus: usize) -> Shared<LoomPlatform> {
    Shared::with_entries(cpus, NO_SPIN, 4).expect("few CPUs")
}

fn pairs<V: Version>(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    let make = move || Protected::<Lock<V>>::with_shared(shared(cpus));
    Model::pairs_of(cpus, pairs, preemptions, make)
}

/// What a release says that finds no entry.
const NO_ENTRY: &str = "who announces a waiter has put it into the table";
/// What a waiter says that finds an entry of its lock in the table.
const TWO_ENTRIES: &str = "a lock has one entry at most";

#[test]
fn pv_qspinlock_two_cpus_twice() {
    pairs::<Linux415>(2, 2, 4).passes();
}

#[test]
fn pv_qspinlock_three_cpus_once() {
    pairs::<Linux415>(3, 1, 3).passes();
}

#[test]
fn pv_qspinlock_three_cpus_twice() {
    pairs::<Linux415>(3, 2, 2).passes();
}

fn spurious_wake<V: Version>() -> Model {
    Model::pairs_of(2, 1, 3, || {
        world().wake_spuriously(1);
        Protected::<Lock<V>>::with_shared(shared(2))
    })
}

#[test]
fn pv_qspinlock_spurious_wake() {
    spurious_wake::<Linux415>().passes();
    spurious_wake::<Linux45>().passes();
    spurious_wake::<Linux42>().passes();
}

/// Whoever is last in the critical section frees the lock after its own unlock.
#[test]
fn pv_qspinlock_access_after_release() {
    Model::new(2, 2, || {
        world().expect_free();
        let it = Protected::<Lock>::with_shared(shared(2));
        on_cpus(2, move |_| {
            let () = it.lock.lock(&it.shared);
            let last = it.inside() == 2;
            it.lock.unlock(&it.shared, ());
            if last {
                world().free(&it.lock);
            }
        });
    })
    .passes();
}

#[test]
fn b2_pv_qspinlock_release_relaxed() {
    pairs::<Linux415>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_pv_qspinlock_acquire_relaxed() {
    pairs::<Linux415>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

/// CPU 0 holds the lock when the others come, each of which takes it once. The first sleep of CPUs
/// from `spurious` on ends for no reason.
fn held_at_first<V: Version>(preemptions: usize, spurious: usize) -> Model {
    Model::new(3, preemptions, move || {
        let it = Protected::<Lock<V>>::with_shared(shared(3));
        let () = it.lock.lock(&it.shared);
        let of_all = Rc::clone(&it);
        on_cpus(3, move |cpu| {
            if cpu == 0 {
                of_all.inside();
                of_all.lock.unlock(&of_all.shared, ());
                return;
            }
            if cpu >= spurious {
                world().wake_spuriously(1);
            }
            of_all.pair();
        });
        it.assert_idle(3);
    })
}

/// What is wrong between a holder and the waiter that it makes the first.
fn promotion<V: Version>() -> Model {
    let model = held_at_first::<V>(3, 3);
    model.passes();
    let looks_first = Mutation::Seeded(Bug::V3PvQspinlockLooksBeforePromoting);
    model.fails_with(looks_first, DEADLOCK_MESSAGE);
    model.fails_with(Mutation::NoUnlockFence, DEADLOCK_MESSAGE);
    model
}

#[test]
fn v1_v3_pv_qspinlock_promotion() {
    let head_halted = Mutation::Seeded(Bug::V1PvQspinlockHeadHalted);
    promotion::<Linux415>().fails_with(head_halted, TWO_ENTRIES);
    promotion::<Linux45>().fails_with(head_halted, TWO_ENTRIES);
}

#[test]
fn v3_pv_qspinlock_4_2_promotion() {
    promotion::<Linux42>();
}

/// V7 is an order that the published code leaves to the processor.
fn woken_spuriously<V: Version>() {
    let model = held_at_first::<V>(3, 2);
    model.passes();
    let release_first = Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval);
    model.fails_with(release_first, TWO_ENTRIES);
    let hashed_first = Mutation::Seeded(Bug::V7PvQspinlockHashedSeenBeforeGrant);
    model.fails_with(hashed_first, TWO_ENTRIES);
}

#[test]
fn v4_v7_pv_qspinlock_spurious_wake() {
    woken_spuriously::<Linux415>();
}

#[test]
fn v4_v7_pv_qspinlock_4_5_spurious_wake() {
    woken_spuriously::<Linux45>();
}

#[test]
fn v2_pv_qspinlock_kicks_sleepers_only() {
    let sleepers_only = Mutation::Seeded(Bug::V2PvQspinlockKicksSleepersOnly);
    pairs::<Linux415>(2, 1, 2).catches(sleepers_only, DEADLOCK_MESSAGE);
    pairs::<Linux45>(2, 1, 2).catches(sleepers_only, DEADLOCK_MESSAGE);
    pairs::<Linux42>(2, 1, 2).catches(sleepers_only, DEADLOCK_MESSAGE);
}

/// In 4.2 the first has no mark that it sets while it spins: a newcomer must respect the tail.
#[test]
fn v8_pv_qspinlock_steals_from_the_first() {
    let steals = Mutation::Seeded(Bug::V8PvQspinlockStealsFromTheFirst);
    pairs::<Linux415>(3, 1, 2).catches(steals, EXCLUSION);
    pairs::<Linux45>(3, 1, 2).catches(steals, EXCLUSION);
    pairs::<Linux42>(3, 1, 2).catches(steals, EXCLUSION);
}

/// CPU 0 holds two locks. CPU 1 sleeps for the first, and an interrupt that strikes it just before
/// that takes the second, with a sleep if need be.
fn nested(preemptions: usize, first_released: usize) -> Model {
    Model::new(2, preemptions, move || {
        // Table and nodes belong to the system, not to the lock.
        let of_all = Rc::new(shared(2));
        let locks = [0, 1].map(|_| Protected::<Lock>::with_shared(shared(2)));
        locks.iter().for_each(|it| it.lock.lock(&of_all));
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                for index in [first_released, 1 - first_released] {
                    locks[index].inside();
                    locks[index].lock.unlock(&of_all, ());
                }
                return;
            }
            let (inner, shared) = (Rc::clone(&locks[1]), Rc::clone(&of_all));
            world().arm(Point::Poll, move || {
                let () = inner.lock.lock(&shared);
                inner.inside();
                inner.lock.unlock(&shared, ());
            });
            let () = locks[0].lock.lock(&of_all);
            locks[0].inside();
            locks[0].lock.unlock(&of_all, ());
        });
    })
}

#[test]
fn v5_pv_qspinlock_nested_wait_clears_the_latch() {
    nested(2, 0)
        .catches(Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch), DEADLOCK_MESSAGE);
}

#[test]
fn pv_qspinlock_nested_wait_kicked() {
    nested(2, 1).passes();
}

#[test]
fn v6_pv_qspinlock_slow_before_entry() {
    let slow_first = Mutation::Seeded(Bug::V6PvQspinlockSlowBeforeEntry);
    pairs::<Linux415>(2, 1, 2).catches(slow_first, NO_ENTRY);
    pairs::<Linux45>(2, 1, 2).catches(slow_first, NO_ENTRY);
    pairs::<Linux42>(2, 1, 2).catches(slow_first, NO_ENTRY);
}

/// CPU 2 queues behind CPU 1, whose handler queues for another lock.
#[test]
fn q3_pv_qspinlock_handler_takes_the_same_node() {
    Model::new(3, 2, || {
        let of_all = Rc::new(shared(3));
        let locks = [0, 1].map(|_| Protected::<Lock>::with_shared(shared(3)));
        locks.iter().for_each(|it| it.lock.lock(&of_all));
        on_cpus(3, move |cpu| {
            let (inner, shared) = (Rc::clone(&locks[1]), Rc::clone(&of_all));
            if cpu == 0 {
                locks.iter().for_each(|it| it.lock.unlock(&of_all, ()));
                return;
            }
            if cpu == 1 {
                world().arm(Point::Poll, move || {
                    let () = inner.lock.lock(&shared);
                    inner.inside();
                    inner.lock.unlock(&shared, ());
                });
            }
            let () = locks[0].lock.lock(&of_all);
            locks[0].inside();
            locks[0].lock.unlock(&of_all, ());
        });
    })
    .catches(Mutation::OneContext, DEADLOCK_MESSAGE);
}

#[test]
fn pv_qspinlock_native() {
    Model::pairs_of(2, 2, 3, || {
        let tuning = Tuning { nopvspin: true, ..NO_SPIN };
        Protected::<Lock>::tuned(2, tuning)
    })
    .passes();
}
