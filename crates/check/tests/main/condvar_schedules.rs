//! Random schedules of the condition variable, with more CPUs than models have: no thing stays in the store while a CPU
//! waits for it, and a wait with a deadline ends soon after it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::bounds;
use overspin_check::schedules::{
    Plan, SchedulePlatform, ScheduleU32, Strategy, deadline, on_cpus, world,
};
use overspin_locks::mutex::Shared;
use overspin_locks::{AtomicCell, Condvar, Mutex, RawLock};
use shuttle::rand::{Rng, thread_rng};

/// No deadline.
const NEVER: u64 = u64::MAX;

/// Things behind a mutex, for which CPUs wait.
struct Store {
    mutex: Mutex<SchedulePlatform>,
    shared: Shared,
    more: Condvar<SchedulePlatform>,
    things: AtomicUsize,
    is_held: AtomicBool,
}

impl Store {
    fn new() -> Self {
        let zero = || ScheduleU32::new(0);
        // Each release wakes a sleeper, or only if no CPU has taken the mutex.
        let rotation = [0, NEVER][thread_rng().gen_range(0..2)];
        Self {
            mutex: RawLock::new(),
            shared: Shared::impatient(rotation),
            more: Condvar::of(zero(), zero()),
            things: AtomicUsize::new(0),
            is_held: AtomicBool::new(false),
        }
    }

    fn enter(&self) {
        assert!(!self.is_held.swap(true, Relaxed), "two CPUs hold the mutex");
        world().acquired();
    }

    fn leave(&self) {
        assert!(self.is_held.swap(false, Relaxed), "two CPUs hold the mutex");
    }

    /// Waits for a thing until the deadline, and takes it. Returns whether there was one.
    fn take(&self, deadline_ns: u64) -> bool {
        let Self { mutex, shared, things, .. } = self;
        let mut token = mutex.lock(shared);
        self.enter();
        let mut notified = true;
        while things.load(Relaxed) == 0 && notified {
            let release = || {
                self.leave();
                mutex.unlock(shared, token);
            };
            (token, notified) = self.more.wait((), mutex, shared, release, deadline_ns);
            self.enter();
        }
        let there = things.load(Relaxed) > 0;
        if there {
            things.fetch_sub(1, Relaxed);
        }
        self.leave();
        mutex.unlock(shared, token);
        there
    }

    /// Brings things, and tells one waiter of each, or all of all of them; under the mutex or after it.
    fn put(&self, number: usize, all: bool, under: bool) {
        let Self { mutex, shared, .. } = self;
        let notify = || match all {
            true => _ = self.more.notify_all(|_| mutex),
            false => (0..number).for_each(|_| _ = self.more.notify_one(|_| mutex)),
        };
        let token = mutex.lock(shared);
        self.enter();
        self.things.fetch_add(number, Relaxed);
        if under {
            notify();
        }
        self.leave();
        mutex.unlock(shared, token);
        if !under {
            notify();
        }
    }
}

/// A third of the CPUs bring two things for each of the others. Of those, half wait for their two, and half come with a deadline, a
/// few times: a lost notification leaves a waiter asleep.
fn store(cpus: usize) -> Plan {
    Plan::new(cpus, move || {
        let it = Arc::new(Store::new());
        let of_all = Arc::clone(&it);
        let takers = cpus - cpus / 3;
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        on_cpus(cpus, move |cpu| {
            let coin = || thread_rng().gen_range(0..2) == 0;
            if cpu >= takers {
                let share = takers / (cpus / 3) + usize::from(cpu - takers < takers % (cpus / 3));
                let mut left = 2 * share;
                while left > 0 {
                    let number = thread_rng().gen_range(1..left + 1);
                    of_all.put(number, coin(), coin());
                    left -= number;
                }
                return;
            }
            for _ in 0..2 {
                if cpu % 2 == 0 {
                    assert!(of_all.take(NEVER), "it was not notified");
                    count.fetch_add(1, Relaxed);
                    continue;
                }
                // Not for ever: the schedule may never run those that bring things.
                if (0..3).any(|_| of_all.take(deadline())) {
                    count.fetch_add(1, Relaxed);
                }
            }
        });
        let taken = taken.load(Relaxed);
        assert_eq!(
            it.things.load(Relaxed) + taken,
            2 * takers,
            "everything is taken once, or left"
        );
        let free = it.mutex.try_lock(&it.shared);
        let token = free.expect("the mutex is as new");
        it.mutex.unlock(&it.shared, token);
        assert!(!it.mutex.is_contended(&it.shared), "nobody waits, but it is contended");
    })
}

#[test]
fn no_notification_is_lost() {
    for (cpus, schedules) in [(3, 2_000), (6, 700), (12, 150)] {
        bounds::passes(&store(cpus), &[Strategy::Random, Strategy::Pct], schedules);
    }
}
