//! Giving up: the requirements on a lock that has [`RawLock::LOCK_UNTIL`]. A waiter that gave up holds nothing, no
//! CPU waits for it, and it may come back. A waiter that was granted the lock has it, however late.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};

use overspin_locks::{AtomicCell, Budget, LockUntil, Platform, RawLock, Tuning};
use shuttle::rand::{Rng, thread_rng};

use crate::asked;
use crate::model::{self, LoomPlatform, LoomU32, Model, Protected};
use crate::schedules::{self, Plan, SchedulePlatform, Strategy};
use crate::threads::{self, StdPlatform, System};
use crate::{Mutation, NO_SPIN, Report, suite};

/// CPUs, and schedules of each strategy, in the hunt for a seeded bug. Most bugs take some 100 schedules of 4 CPUs. The
/// best hidden one needs a sleeper, a waiter that gives up and a releaser at the right moment: some 2,600 of 8 CPUs.
const SCHEDULES: [(usize, usize); 2] = [(4, 5_000), (8, 30_000)];

/// Attempts an acquisition in a model. The deadline passes at the `looks`th look at the clock. Returns whether the
/// CPU acquired the lock.
pub(crate) fn modelled<L: RawLock<LoomPlatform>>(
    it: &Protected<L>,
    lock_until: LockUntil<LoomPlatform, L>,
    looks: u64,
) -> bool {
    let deadline = LoomPlatform::now() + looks;
    let (lock, shared) = it.raw();
    let token = asked::lock_until(lock, shared, lock_until, deadline);
    let acquired = token.is_some();
    if let Some(token) = token {
        it.inside();
        it.unlock(token);
    }
    acquired
}

/// Creates a lock in a world whose clock advances by 1 at each reading.
fn ticking<L: RawLock<LoomPlatform>>(cpus: usize) -> Rc<Protected<L>> {
    model::world().advance_clock_by(1);
    Protected::tuned(cpus, NO_SPIN)
}

/// CPU 0 takes the lock, twice if there are two CPUs. CPU 1 has little patience; with two CPUs it comes back with
/// more. The third CPU waits behind it.
fn crossing<L: RawLock<LoomPlatform> + 'static>(
    cpus: usize,
    preemptions: usize,
    lock_until: LockUntil<LoomPlatform, L>,
) -> Model {
    Model::new(cpus, preemptions, move || {
        let it = ticking::<L>(cpus);
        let of_all = Rc::clone(&it);
        let acquired = Rc::new(Cell::new(0));
        let count = Rc::clone(&acquired);
        model::on_cpus(cpus, move |cpu| {
            let got = |it| count.set(count.get() + it);
            match cpu {
                // Once with three CPUs, because the model takes long.
                0 => (0..4 / cpus).for_each(|_| {
                    of_all.pair();
                    got(1);
                }),
                1 => {
                    got(usize::from(modelled(&of_all, lock_until, 0)));
                    if cpus == 2 {
                        got(usize::from(modelled(&of_all, lock_until, 2)));
                    }
                }
                _ => {
                    of_all.pair();
                    got(1);
                }
            }
        });
        assert_eq!(it.inside(), acquired.get() + 1, "an update was lost");
        it.assert_free();
    })
}

/// The holder waits until the other CPU has given up, which it must do, twice.
fn held<L: RawLock<LoomPlatform> + 'static>(lock_until: LockUntil<LoomPlatform, L>) -> Model {
    Model::new(2, 2, move || {
        let it = ticking::<L>(2);
        let of_all = Rc::clone(&it);
        let stage = Rc::new(LoomU32::new(0));
        model::on_cpus(2, move |cpu| {
            let reached = |at: u32| {
                let _ = stage.spin_until(move |stage| stage >= at, Budget::Forever);
            };
            if cpu == 0 {
                let token = of_all.lock();
                stage.swap(1, Release);
                reached(2);
                of_all.inside();
                of_all.unlock(token);
            } else {
                reached(1);
                for looks in [1, 3] {
                    assert!(!modelled(&of_all, lock_until, looks), "two CPUs hold the lock");
                }
                stage.swap(2, Release);
                of_all.pair();
            }
        });
        assert_eq!(it.inside(), 3, "an update was lost");
        it.assert_free();
    })
}

/// Lists the models of giving up, with names and bounds in words; empty if the lock cannot give up.
pub fn models<L: RawLock<LoomPlatform> + 'static>(
    preemptions: [usize; 3],
) -> Vec<(&'static str, &'static str, Model)> {
    let Some(lock_until) = L::LOCK_UNTIL else { return Vec::new() };
    let [two, three, _] = preemptions;
    vec![
        ("giving up", "2 pairs; 2 attempts", crossing(2, two.min(4) - 1, lock_until)),
        (
            "giving up in a queue",
            "1 pair; 1 attempt; 1 pair",
            crossing(3, three.min(2), lock_until),
        ),
        ("giving up while it is held", "1 pair; 2 attempts, 1 pair", held(lock_until)),
    ]
}

/// Attempts an acquisition with a random deadline, in schedules.
fn attempt<L: RawLock<SchedulePlatform>>(
    it: &schedules::Protected<L>,
    shared: &L::Shared,
    lock_until: LockUntil<SchedulePlatform, L>,
) {
    let deadline = schedules::deadline();
    let attempt = || asked::lock_until(&it.lock, shared, lock_until, deadline);
    if let Some(token) = schedules::world().until(deadline, attempt) {
        it.leave(shared, token);
    }
}

/// Each CPU does `rounds` random operations: it takes one of two locks, with or without a deadline. Interrupt
/// handlers take the second lock with a deadline, so tasks take that lock with interrupts off. `None` if the lock
/// cannot give up.
pub fn plan<L>(cpus: usize, rounds: usize) -> Option<Plan>
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let lock_until = L::LOCK_UNTIL?;
    Some(Plan::new(cpus, move || {
        let spin_budget = [Some(0), Some(3), None][thread_rng().gen_range(0..3)];
        let tuning = Tuning { spin_budget, ..Tuning::DEFAULT };
        let shared = L::shared(cpus, tuning).expect("the lock serves that many CPUs");
        let it = Arc::new(([0, 1].map(|_| schedules::Protected::<L>::new(&shared)), shared));
        let of_all = Arc::clone(&it);
        schedules::on_cpus(cpus, move |_| {
            let handler = Arc::clone(&of_all);
            schedules::world().arm(2, move || attempt(&handler.0[1], &handler.1, lock_until));
            let ([first, second], shared) = &*of_all;
            for _ in 0..rounds {
                match thread_rng().gen_range(0..6) {
                    0 => _ = first.pair(shared),
                    1 => {
                        let irqs = SchedulePlatform::irq_save();
                        attempt(second, shared, lock_until);
                        SchedulePlatform::irq_restore(irqs);
                    }
                    2 => second.pair_irqsave(shared),
                    _ => attempt(first, shared, lock_until),
                }
            }
        });
        let (locks, shared) = &*it;
        locks.iter().for_each(|it| asked::assert_free(&it.lock, shared));
    }))
}

/// On threads, half of the acquisitions have a deadline that has passed or one that never passes. `None` if the lock
/// cannot give up.
pub fn test<L>() -> Option<suite::Test>
where
    L: RawLock<StdPlatform> + Sync + 'static,
    L::Shared: Sync,
{
    const ROUNDS: usize = 2_000;
    let lock_until = L::LOCK_UNTIL?;
    Some(Box::new(move || {
        let lock = L::new();
        let shared = L::shared(suite::CPUS, NO_SPIN).expect("few CPUs");
        let inside = AtomicUsize::new(0);
        System::new(suite::CPUS).run_all(|cpu| {
            for round in 0..ROUNDS {
                let token = match (cpu + round) % 4 {
                    0 => lock_until(&lock, &shared, u64::MAX),
                    1 => lock_until(&lock, &shared, 0),
                    _ => Some(threads::lock(&lock, &shared)),
                };
                if let Some(token) = token {
                    assert_eq!(inside.fetch_add(1, Acquire), 0);
                    assert_eq!(inside.fetch_sub(1, Release), 1);
                    threads::unlock(&lock, &shared, token);
                }
            }
        });
        suite::assert_idle(&lock, &shared);
    }))
}

/// Looks for `bug` in the way a lock gives up. Returns what found it, in words; `None` if the bug survives or the
/// lock cannot give up.
pub(crate) fn hunt<M, S>(
    bug: Mutation,
    preemptions: [usize; 3],
    executions: usize,
    seed: u64,
) -> Option<(String, Report)>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
{
    for (name, _, model) in models::<M>(preemptions) {
        let report = model.clone().at_most(executions).explore(bug);
        if report.fault.is_some() {
            return Some((format!("model, {name}, {} CPUs", model.cpus), report));
        }
    }
    for (cpus, count) in SCHEDULES {
        let plan = plan::<S>(cpus, 4)?;
        for strategy in [Strategy::Random, Strategy::Pct] {
            let report = plan.explore(strategy, count, seed, bug);
            if report.fault.is_some() {
                return Some((
                    format!("{} schedules, giving up, {cpus} CPUs", strategy.name()),
                    report,
                ));
            }
        }
    }
    None
}
