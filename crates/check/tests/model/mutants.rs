//! Bugs that must be found. The ids are those of the table in `docs/model-checking.md`.

use std::rc::Rc;

use overspin_check::NO_SPIN;
use overspin_locks::ticket::TicketLock;
use overspin_locks::{LockByte, RawLock, Ticket, XenPv};

use crate::cells::TinyCell;
use crate::harness::{Model, Protected, on_cpus};
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation, Point, world};

type Byte = LockByte<LoomPlatform>;
type Xen = XenPv<LoomPlatform>;
/// Four ticket values.
type TwoBits = TicketLock<LoomPlatform, TinyCell<2>>;
/// Two ticket values: serves one CPU.
type OneBit = TicketLock<LoomPlatform, TinyCell<1>>;

/// What loom says when two critical sections are not ordered.
pub const EXCLUSION: &str = "Causality violation";

/// Found first as a deadlock: a waiter that saw the lock held stores so after it was released.
#[test]
fn b1_byte_exchange_in_two_steps() {
    Model::pairs::<Byte>(2, 1, 2).catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

/// Nobody unlocks and nobody waits, so that what is left to find is two holders.
#[test]
fn b1_xen_pv_exchange_in_two_steps() {
    let model = Model::new(2, 2, || {
        let it = Protected::<Xen>::new(2);
        on_cpus(2, move |_| {
            if it.lock.try_lock(&it.shared).is_some() {
                it.inside();
            }
        });
    });
    model.catches(Mutation::SplitSwap, EXCLUSION);
}

#[test]
fn b2_byte_release_relaxed() {
    Model::pairs::<Byte>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_byte_acquire_relaxed() {
    Model::pairs::<Byte>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn b2_ticket_release_relaxed() {
    Model::pairs::<Ticket<LoomPlatform>>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_ticket_acquire_relaxed() {
    Model::pairs::<Ticket<LoomPlatform>>(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn b2_xen_pv_release_relaxed() {
    // The fence after the release does not stand in for it: it comes too late.
    Model::pairs::<Xen>(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn t1_ticket_head_carries_into_tail() {
    Model::pairs::<TwoBits>(1, 5, 2).catches(Mutation::CarryingHead, DEADLOCK_MESSAGE);
}

/// As many CPUs as two bits can serve, through the wrap.
#[test]
fn t1_ticket_wraps_under_contention() {
    Model::pairs::<TwoBits>(2, 3, 2).passes();
}

/// CPU 0 takes the lock three times and keeps it the fourth time. Four draws bring `tail` back to
/// where CPU 1 saw it before it exchanged.
#[test]
fn t2_ticket_try_lock_compares_tail_only() {
    let model = Model::new(2, 2, || {
        let it = Protected::<TwoBits>::new(2);
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                (0..3).for_each(|_| it.pair());
                let _held = it.lock.lock(&it.shared);
                it.inside();
            } else if let Some(token) = it.lock.try_lock(&it.shared) {
                it.inside();
                it.lock.unlock(&it.shared, token);
            }
        });
    });
    model.catches(Mutation::TailOnlyCas, EXCLUSION);
}

#[test]
fn t3_ticket_beyond_its_capacity() {
    assert!(OneBit::shared(3, NO_SPIN).is_err(), "and therefore it refuses");
    Model::new(3, 2, || {
        let it = Protected::<OneBit>::new(1);
        on_cpus(3, move |_| it.pair());
    })
    .fails(EXCLUSION);
}

#[test]
fn t4_ticket_interrupts_on_while_waiting() {
    Model::new(2, 2, || {
        let it = Protected::<Ticket<LoomPlatform>>::new(2);
        on_cpus(2, move |cpu| {
            if cpu == 1 {
                let handler = Rc::clone(&it);
                world().arm(Point::Spin, move || handler.pair_irqsave());
            }
            it.pair_irqsave();
        });
    })
    .catches(Mutation::IrqsStayOn, DEADLOCK_MESSAGE);
}

#[test]
fn x1_xen_pv_no_fence_in_unlock() {
    Model::pairs::<Xen>(2, 1, 2).catches(Mutation::NoUnlockFence, DEADLOCK_MESSAGE);
}

#[test]
fn x1_xen_pv_no_fence_in_wait() {
    Model::pairs::<Xen>(2, 1, 2).catches(Mutation::NoWaiterFence, DEADLOCK_MESSAGE);
}

#[test]
fn x2_xen_pv_clear_after_the_re_check() {
    Model::pairs::<Xen>(2, 1, 2).catches(Mutation::LateClear, DEADLOCK_MESSAGE);
}

/// CPU 0 holds two locks. CPU 1 waits for the first, and an interrupt that strikes at `point`
/// takes the second.
fn nested(point: Point, first_released: usize) -> Model {
    Model::new(2, 2, move || {
        let locks = [Protected::<Xen>::new(2), Protected::<Xen>::new(2)];
        // Registrations belong to the system, not to the lock.
        let shared = Rc::new(Xen::shared(2, NO_SPIN).expect("two CPUs are few"));
        locks.iter().for_each(|it| it.lock.lock(&shared));
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                for index in [first_released, 1 - first_released] {
                    locks[index].inside();
                    locks[index].lock.unlock(&shared, ());
                }
                return;
            }
            let (inner, of_all) = (Rc::clone(&locks[1]), Rc::clone(&shared));
            world().arm(point, move || {
                let () = inner.lock.lock(&of_all);
                inner.inside();
                inner.lock.unlock(&of_all, ());
            });
            let () = locks[0].lock.lock(&shared);
            locks[0].inside();
            locks[0].lock.unlock(&shared, ());
        });
    })
}

#[test]
fn x3_xen_pv_nested_pick_up_leaves_latch_clear() {
    nested(Point::Poll, 0).catches(Mutation::NoPickupSet, DEADLOCK_MESSAGE);
}

#[test]
fn x3b_xen_pv_nested_sleep_forgets_the_outer_lock() {
    nested(Point::Clear, 1).catches(Mutation::NoRestore, DEADLOCK_MESSAGE);
}

#[test]
fn x4_xen_pv_registration_after_the_re_check() {
    Model::pairs::<Xen>(2, 1, 2).catches(Mutation::LateRegistration, DEADLOCK_MESSAGE);
}
