//! The plans, which every lock must pass.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use overspin_locks::{CpuId, Platform, RawLock, Tuning};
use shuttle::rand::{Rng, thread_rng};

use super::cpus::on_cpus;
use super::memory::Consistency;
use super::one_in;
use super::platform::SchedulePlatform;
use super::rivalry::Rivalry;
use super::strategy::Plan;
use super::world::world;
use crate::asked::{self, OutOfNodes};
use crate::{NO_SPIN, Profile};

/// Interrupts of each CPU in `mixed`. With only one, bugs of nested waits take four times as many schedules to
/// show, because it mostly strikes where no CPU waits.
const INTERRUPTS: u32 = 3;

/// One in this many executions of `mixed` has paravirtual locks that do not sleep.
const NATIVE_ONE_IN: u32 = 8;

/// The message about two holders at once.
const EXCLUSION: &str = "two CPUs hold the lock";

/// The message of a plan with weak memory if a holder sees less than the holder before it did.
pub const UNORDERED_MESSAGE: &str = "two critical sections are not ordered";

/// A lock and what it protects.
pub(crate) struct Protected<L> {
    pub(crate) lock: L,
    held: AtomicBool,
    count: AtomicUsize,
    /// The cell that records which CPUs have used the protected data.
    data: u32,
    cost_alone: u64,
}

impl<L: RawLock<SchedulePlatform>> Protected<L> {
    pub(crate) fn new(shared: &L::Shared) -> Self {
        world().let_nap(Profile::of(&L::INFO).longest_nap);
        Self {
            lock: L::new(),
            held: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            data: world().cell(0),
            cost_alone: asked::cost_alone::<_, L>(shared),
        }
    }

    /// The critical section. Returns the number of sections so far.
    fn inside(&self) -> usize {
        assert!(!self.held.swap(true, Relaxed), "{EXCLUSION}");
        assert!(world().use_data(self.data), "{UNORDERED_MESSAGE}");
        world().acquired();
        // If the lock lets other CPUs in, they may come here.
        world().turn();
        let count = self.count.fetch_add(1, Relaxed) + 1;
        assert!(self.held.swap(false, Relaxed), "{EXCLUSION}");
        count
    }

    /// The critical section and the release. Returns the number of sections so far.
    pub(crate) fn leave(&self, shared: &L::Shared, token: L::Token) -> usize {
        let count = self.inside();
        asked::unlock(&self.lock, shared, token);
        count
    }

    /// One acquisition. Returns the number of sections so far.
    pub(crate) fn pair(&self, shared: &L::Shared) -> usize {
        self.leave(shared, asked::lock(&self.lock, shared))
    }

    /// One acquisition with interrupts off.
    pub(crate) fn pair_irqsave(&self, shared: &L::Shared) {
        let (token, state) = asked::lock_irqsave(&self.lock, shared);
        self.leave(shared, token);
        SchedulePlatform::irq_restore(state);
    }

    /// Asserts what must hold at the end.
    fn assert_idle(&self, shared: &L::Shared, cpus: usize) {
        asked::assert_idle(&self.lock, shared, cpus, self.cost_alone);
    }
}

/// Creates the shared state for all CPUs up to the last of the `cpus` that run.
fn shared<L: RawLock<SchedulePlatform>>(cpus: usize) -> L::Shared {
    let all = world().first() + cpus;
    L::shared(all, NO_SPIN).expect("the lock serves that many CPUs")
}

/// Each CPU takes the lock `pairs` times. Where memory is sequentially consistent, a lock that promises fairness
/// must serve CPUs in the order of arrival: a CPU that was parked before another one called `lock` is served
/// before that one.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn pairs<L>(cpus: usize, pairs: usize, numa_nodes: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(numa_nodes);
        let shared = shared::<L>(cpus);
        let it = Arc::new((Protected::<L>::new(&shared), shared));
        let of_all = Arc::clone(&it);
        let in_order = L::INFO.fair && world().consistency() == Consistency::Sequential;
        on_cpus(cpus, move |_| {
            let (it, shared) = &*of_all;
            for _ in 0..pairs {
                let came = world().comes();
                let token = asked::lock(&it.lock, shared);
                world().granted();
                if in_order {
                    assert_first_come(cpus, came);
                }
                it.leave(shared, token);
            }
        });
        let (it, shared) = &*it;
        assert_eq!(it.count.load(Relaxed), cpus * pairs, "an update was lost");
        it.assert_idle(shared, cpus);
    })
}

/// Asserts that no parked CPU has been waiting since before the holder came, at `came`.
fn assert_first_come(cpus: usize, came: u64) {
    let passed = |&cpu: &CpuId| world().waits_since(cpu).is_some_and(|since| since < came);
    let passed = (0..cpus).find(passed);
    assert_eq!(passed, None, "a CPU was overtaken by one that came while it waited");
}

/// CPU 0 takes the lock `pairs` times, while all others take it, or try to, again and again: each of them `most` times at most
/// while CPU 0 wants it.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn rivals<L>(cpus: usize, pairs: usize, most: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    rivalry::<L>(cpus, pairs, most, || one_in(2))
}

/// As [`rivals`], but all CPUs wait for the lock.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn rivals_that_wait<L>(cpus: usize, pairs: usize, most: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    rivalry::<L>(cpus, pairs, most, || false)
}

fn rivalry<L>(cpus: usize, pairs: usize, most: usize, tries: fn() -> bool) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(2);
        let tuning = Tuning { lottery: Some(4), ..NO_SPIN };
        let shared = L::shared(cpus, tuning).expect("the lock serves that many CPUs");
        let it = Arc::new((Protected::<L>::new(&shared), shared));
        let of_all = Arc::clone(&it);
        let rivalry = Rivalry::new(most);
        on_cpus(cpus, move |cpu| {
            let (it, shared) = &*of_all;
            if cpu == 0 {
                (0..pairs).for_each(|_| rivalry.comes(it.pair(shared)));
                rivalry.ends();
                return;
            }
            while !rivalry.is_over() {
                let token = match tries() {
                    true => asked::try_lock(&it.lock, shared),
                    false => Some(asked::lock(&it.lock, shared)),
                };
                let Some(token) = token else { continue };
                rivalry.was_inside(it.leave(shared, token), cpus - 1);
            }
        });
        let (it, shared) = &*it;
        it.assert_idle(shared, cpus);
    })
}

/// Each CPU does `rounds` random operations: it takes the lock, tries to take it, takes another lock with
/// interrupts off, or takes the second while it holds the first. Interrupt handlers take the second lock. The
/// tuning is random too: how long waiters spin, whether paravirtual locks sleep, the odds of lotteries.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn mixed<L>(cpus: usize, rounds: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(2);
        let spin_budget = [Some(0), Some(3), None][thread_rng().gen_range(0..3)];
        let yields = [0, 2][thread_rng().gen_range(0..2)];
        let lottery = [None, Some(0), Some(1), Some(2)][thread_rng().gen_range(0..4)];
        let tuning = Tuning { spin_budget, nopvspin: one_in(NATIVE_ONE_IN), yields, lottery };
        // A handler is one more context, of four.
        world().begin_at_level(thread_rng().gen_range(0..3));
        let shared = L::shared(cpus, tuning).expect("the lock serves that many CPUs");
        let locks = [0, 1].map(|_| Protected::<L>::new(&shared));
        let it = Arc::new((locks, shared));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            let handler = Arc::clone(&of_all);
            world().arm(INTERRUPTS, move || handler.0[1].pair_irqsave(&handler.1));
            let ([first, second], shared) = &*of_all;
            for _ in 0..rounds {
                if one_in(4) {
                    second.pair_irqsave(shared);
                    continue;
                }
                let token = if one_in(3) {
                    asked::try_lock(&first.lock, shared)
                } else {
                    Some(asked::lock(&first.lock, shared))
                };
                let Some(token) = token else { continue };
                first.inside();
                if one_in(4) {
                    second.pair_irqsave(shared);
                }
                asked::unlock(&first.lock, shared, token);
            }
        });
        let (locks, shared) = &*it;
        locks.iter().for_each(|it| it.assert_idle(shared, cpus));
    })
}

/// Each CPU takes the lock `pairs` times. All CPUs except every third hold as many other locks as a CPU has
/// queue nodes.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn out_of_nodes<L>(cpus: usize, pairs: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_over_nodes(2);
        let shared = shared::<L>(cpus);
        let it = Arc::new((Protected::<L>::new(&shared), shared));
        let out = OutOfNodes::<_, L>::new(&it.1, (0..cpus).filter(|cpu| cpu % 3 != 1));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            let (it, shared) = &*of_all;
            (0..pairs).for_each(|_| _ = it.pair(shared));
        });
        let (it, shared) = &*it;
        assert_eq!(it.count.load(Relaxed), cpus * pairs, "an update was lost");
        out.end(shared);
        it.assert_idle(shared, cpus);
    })
}

/// CPU 0 holds the lock until all others are parked, or for a limited time. Each CPU takes the lock once.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn crowd<L>(cpus: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    /// Turns of the holder, for each CPU. They suffice for the others to reach a wait for a write.
    const PATIENCE: usize = 8;
    Plan::new(cpus, move || {
        let shared = shared::<L>(cpus);
        let it = Arc::new((Protected::<L>::new(&shared), shared));
        let of_all = Arc::clone(&it);
        let is_held = AtomicBool::new(false);
        on_cpus(cpus, move |cpu| {
            let (it, shared) = &*of_all;
            if cpu != 0 {
                while !is_held.load(Relaxed) {
                    SchedulePlatform::relax();
                }
                it.pair(shared);
                return;
            }
            let token = asked::lock(&it.lock, shared);
            is_held.store(true, Relaxed);
            for _ in 0..PATIENCE * cpus {
                if world().others_wait() {
                    break;
                }
                SchedulePlatform::relax();
            }
            assert!(it.lock.is_locked(shared), "a CPU holds it, but it is not locked");
            assert!(
                asked::try_lock(&it.lock, shared).is_none(),
                "try_lock takes a lock that is held"
            );
            it.leave(shared, token);
        });
        let (it, shared) = &*it;
        assert_eq!(it.count.load(Relaxed), cpus, "an update was lost");
        it.assert_idle(shared, cpus);
    })
}

/// Each CPU takes some of six locks, in one order, and releases them in the same order. The locks may share a
/// few places of hash tables.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn several<L>(cpus: usize, rounds: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        world().deal_places(thread_rng().gen_range(1..4));
        let shared = shared::<L>(cpus);
        let locks: [_; 6] = std::array::from_fn(|_| Protected::<L>::new(&shared));
        let it = Arc::new((locks, shared));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            let (locks, shared) = &*of_all;
            for _ in 0..rounds {
                let some = locks.iter().filter(|_| one_in(2));
                let take = |it: &Protected<L>| asked::lock(&it.lock, shared);
                let held: Vec<_> = some.map(|it| (it, take(it))).collect();
                for (it, token) in held {
                    it.leave(shared, token);
                }
            }
        });
        let (locks, shared) = &*it;
        locks.iter().for_each(|it| it.assert_idle(shared, cpus));
    })
}

/// Each CPU takes the lock once. The last CPU in the critical section frees the lock after its own unlock. If an
/// unlock touches the lock after the release, it may then touch freed memory.
///
/// # Panics
/// When the plan runs, if the lock does not serve that many CPUs.
pub fn last_user_frees<L>(cpus: usize) -> Plan
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        let shared = shared::<L>(cpus);
        let it = Arc::new((Protected::<L>::new(&shared), shared));
        on_cpus(cpus, move |_| {
            let (it, shared) = &*it;
            if it.pair(shared) == cpus {
                world().free(&it.lock);
            }
        });
    })
}
