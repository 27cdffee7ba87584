//! What CPUs do: the plans that every lock must get through.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use overspin_locks::{CpuId, Platform, RawLock, Tuning};
use shuttle::rand::{Rng, thread_rng};

use super::platform::{SchedulePlatform, on_cpus, one_in, world};
use super::strategy::Plan;
use crate::tried::assert_idle;
use crate::{NO_SPIN, Profile};

/// Interrupts of each CPU in `mixed`. With one alone, bugs of nested waits take four times as many
/// schedules to be seen: it mostly strikes where nobody waits.
const INTERRUPTS: u32 = 3;

/// One execution of `mixed` in so many has paravirtual locks that do not sleep.
const NATIVE_ONE_IN: u32 = 8;

/// Two holders at once.
const EXCLUSION: &str = "two CPUs hold the lock";

/// A lock and what it protects.
struct Protected<L> {
    lock: L,
    held: AtomicBool,
    count: AtomicUsize,
}

impl<L: RawLock<SchedulePlatform>> Protected<L> {
    fn new() -> Self {
        Self { lock: L::new(), held: AtomicBool::new(false), count: AtomicUsize::new(0) }
    }

    /// The critical section. Returns how many have been through.
    fn inside(&self) -> usize {
        assert!(!self.held.swap(true, Relaxed), "{EXCLUSION}");
        world().acquired();
        // Others may come in here if the lock lets them.
        world().turn();
        let count = self.count.fetch_add(1, Relaxed) + 1;
        assert!(self.held.swap(false, Relaxed), "{EXCLUSION}");
        count
    }

    /// Nobody holds it or waits for it, and it can be had at once.
    fn assert_idle(&self, shared: &L::Shared) {
        let tried = || world().tries(|| self.lock.try_lock(shared));
        let declines = Profile::of(&L::INFO).tries_may_decline;
        let take = || tried().or_else(|| declines.then(|| self.lock.lock(shared)));
        assert_idle(&self.lock, shared, take, tried);
    }
}

/// State for `cpus` CPUs.
fn shared<L: RawLock<SchedulePlatform>>(cpus: usize) -> L::Shared {
    L::shared(cpus, NO_SPIN).expect("the lock serves so many CPUs")
}

/// Each CPU takes the lock so often. A lock that promises it must serve CPUs in the order in which
/// they came: who was seen to wait before another called `lock` is served before that other.
///
/// # Panics
/// When it is run, if the lock does not serve so many CPUs.
pub fn pairs<L>(cpus: usize, pairs: usize, numa_nodes: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(numa_nodes);
        let it = Arc::new((Protected::<L>::new(), shared::<L>(cpus)));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            let (it, shared) = &*of_all;
            for _ in 0..pairs {
                let came = world().comes();
                let token = it.lock.lock(shared);
                world().granted();
                if L::INFO.fair {
                    assert_first_come(cpus, came);
                }
                it.inside();
                it.lock.unlock(shared, token);
            }
        });
        let (it, shared) = &*it;
        assert_eq!(it.count.load(Relaxed), cpus * pairs, "an update was lost");
        it.assert_idle(shared);
    })
}

/// Nobody who is parked has been waiting since before the holder came, at `came`.
fn assert_first_come(cpus: usize, came: u64) {
    let passed = |&cpu: &CpuId| world().waits_since(cpu).is_some_and(|since| since < came);
    let passed = (0..cpus).find(passed);
    assert_eq!(passed, None, "a CPU was passed by one that came after it waited");
}

/// Each CPU does so many things, drawn by lot: takes the lock, tries to, takes another with
/// interrupts off, or takes the second while it holds the first. Interrupts strike, whose handlers
/// take the second lock. How long waiters spin, and whether paravirtual locks sleep, is drawn by lot too.
///
/// # Panics
/// When it is run, if the lock does not serve so many CPUs.
pub fn mixed<L>(cpus: usize, rounds: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(2);
        let spin_budget = [Some(0), Some(3), None][thread_rng().gen_range(0..3)];
        let yields = [0, 2][thread_rng().gen_range(0..2)];
        let tuning = Tuning { spin_budget, nopvspin: one_in(NATIVE_ONE_IN), yields };
        let shared = L::shared(cpus, tuning).expect("the lock serves so many CPUs");
        let it = Arc::new(([Protected::<L>::new(), Protected::<L>::new()], shared));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            let handler = Arc::clone(&of_all);
            world().arm(INTERRUPTS, move || irqsave(&handler.0[1], &handler.1));
            let ([first, second], shared) = &*of_all;
            for _ in 0..rounds {
                if one_in(4) {
                    irqsave(second, shared);
                    continue;
                }
                let token = if one_in(3) {
                    world().tries(|| first.lock.try_lock(shared))
                } else {
                    Some(first.lock.lock(shared))
                };
                let Some(token) = token else { continue };
                first.inside();
                if one_in(4) {
                    irqsave(second, shared);
                }
                first.lock.unlock(shared, token);
            }
        });
        let (locks, shared) = &*it;
        locks.iter().for_each(|it| it.assert_idle(shared));
    })
}

/// One acquisition with interrupts off.
fn irqsave<L: RawLock<SchedulePlatform>>(it: &Protected<L>, shared: &L::Shared) {
    let (token, state) = it.lock.lock_irqsave(shared);
    it.inside();
    it.lock.unlock(shared, token);
    SchedulePlatform::irq_restore(state);
}

/// Each CPU takes the lock once. Who is last in the critical section frees it after its own unlock: a
/// lock whose unlock touches it after the release has then touched freed memory.
///
/// # Panics
/// When it is run, if the lock does not serve so many CPUs.
pub fn last_user_frees<L>(cpus: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        let it = Arc::new((Protected::<L>::new(), shared::<L>(cpus)));
        on_cpus(cpus, move |_| {
            let (it, shared) = &*it;
            let token = it.lock.lock(shared);
            let last = it.inside() == cpus;
            it.lock.unlock(shared, token);
            if last {
                world().free(&it.lock);
            }
        });
    })
}
