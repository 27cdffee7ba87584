//! What only the resilient queued spinlock promises: which errors an acquisition ends with, and which not.
//!
//! These are plans for schedules, in which handlers strike between any two accesses, as a non-maskable interrupt does.

use std::sync::Arc;

use overspin_locks::rqspinlock::{CHECK_NS, Shared, Stuck, WAITING_NS};
use overspin_locks::{Bug, Rqspinlock};
use shuttle::rand::{Rng, thread_rng};

use super::SpecialPlan;
use crate::schedules::{Plan, Protected, SchedulePlatform, on_cpus, world};
use crate::{Mutation, NO_SPIN, asked};

type Lock = Rqspinlock<SchedulePlatform>;

/// Sections of each CPU.
const ROUNDS: usize = 3;
/// Interrupts that strike each CPU.
const INTERRUPTS: u32 = 3;
/// So long that only a wait that cannot end lasts it: some thousand looks, with the jumps of the clock.
const PATIENT_NS: u64 = 40 * WAITING_NS;

/// The message about a wait that should have ended at once.
const STALLED: &str = "it waited for its own CPU until the time was up";
/// The message about an error without a reason.
const NO_DEADLOCK: &str = "it was told of a deadlock that is none";

fn system(cpus: usize, waiting_ns: u64) -> Shared<SchedulePlatform> {
    Shared::new(cpus, NO_SPIN, waiting_ns, CHECK_NS).expect("few CPUs")
}

/// Takes the lock and releases it, or fails.
fn attempt(it: &Protected<Lock>, shared: &Shared<SchedulePlatform>) -> Result<(), Stuck> {
    it.lock.lock_or_fail(shared).map(|token| _ = it.leave(shared, token))
}

/// Tasks take the lock with interrupts on, and handlers want it too. A handler gets it, or is told at once that its CPU has
/// it already.
fn interrupted() -> Plan {
    Plan::new(2, || {
        world().begin_at_level(thread_rng().gen_range(0..3));
        let shared = system(2, PATIENT_NS);
        let it = Arc::new((Protected::<Lock>::new(&shared), shared));
        let of_all = Arc::clone(&it);
        on_cpus(2, move |_| {
            let handler = Arc::clone(&of_all);
            world().arm(INTERRUPTS, move || match attempt(&handler.0, &handler.1) {
                Ok(()) | Err(Stuck::Itself) => {}
                Err(Stuck::TimedOut) => panic!("{STALLED}"),
                Err(Stuck::EachOther) => panic!("{NO_DEADLOCK}: {}", Stuck::EachOther),
            });
            let (it, shared) = &*of_all;
            for _ in 0..ROUNDS {
                attempt(it, shared).unwrap_or_else(|stuck| panic!("{NO_DEADLOCK}: {stuck}"));
            }
        });
        asked::assert_free(&it.0.lock, &it.1);
    })
}

/// Each CPU holds one lock and wants the other's. One of them at least is told, gives its own back, and begins again.
fn crossed() -> Plan {
    Plan::new(2, || {
        let shared = system(2, PATIENT_NS);
        let it = Arc::new(([0, 1].map(|_| Protected::<Lock>::new(&shared)), shared));
        let of_all = Arc::clone(&it);
        on_cpus(2, move |cpu| {
            let (locks, shared) = &*of_all;
            for _ in 0..ROUNDS {
                let first = locks[cpu].lock.lock_or_fail(shared);
                let first = first.unwrap_or_else(|stuck| panic!("{NO_DEADLOCK}: {stuck}"));
                match attempt(&locks[1 - cpu], shared) {
                    Ok(()) | Err(Stuck::EachOther) => {}
                    Err(stuck) => panic!("{STALLED}: {stuck}"),
                }
                locks[cpu].leave(shared, first);
            }
        });
        let (locks, shared) = &*it;
        locks.iter().for_each(|it| asked::assert_free(&it.lock, shared));
    })
}

/// CPUs with little patience. What they leave behind does not keep a patient one from the lock.
fn impatient(cpus: usize) -> Plan {
    Plan::new(cpus, move || {
        let waiting_ns = [1, 5_000, WAITING_NS][thread_rng().gen_range(0..3)];
        let shared = system(cpus, waiting_ns);
        let it = Arc::new((Protected::<Lock>::new(&shared), shared));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |cpu| {
            let (it, shared) = &*of_all;
            for round in 0..ROUNDS {
                if (cpu + round) % 3 == 0 {
                    it.pair(shared);
                    continue;
                }
                match attempt(it, shared) {
                    Ok(()) | Err(Stuck::TimedOut) => {}
                    Err(stuck) => panic!("{NO_DEADLOCK}: {stuck}"),
                }
            }
        });
        asked::assert_free(&it.0.lock, &it.1);
    })
}

pub(super) fn plans() -> Vec<SpecialPlan> {
    let seeded = Mutation::Seeded;
    vec![
        SpecialPlan::new("a handler wants the lock of its CPU", interrupted())
            .finds(seeded(Bug::R2RqspinlockNotesWhatItHas), STALLED)
            .finds(seeded(Bug::R5RqspinlockKeepsItsNote), NO_DEADLOCK),
        SpecialPlan::new("each wants the other's lock", crossed()),
        SpecialPlan::new("waits that time out", impatient(4))
            .finds(seeded(Bug::R3RqspinlockFailsAndStaysPending), "")
            .finds(seeded(Bug::R4RqspinlockLeavesItsSuccessor), ""),
    ]
}
