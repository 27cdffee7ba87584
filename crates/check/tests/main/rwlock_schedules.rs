//! Random schedules of the reader-writer lock, with more CPUs than models have: a writer is alone, nobody starves, an attempt
//! with a deadline ends soon after it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicIsize, AtomicUsize};

use crate::bounds;
use overspin_check::Profile;
use overspin_check::schedules::{
    Plan, Rivalry, SchedulePlatform, ScheduleU32, Strategy, deadline, on_cpus, world,
};
use overspin_locks::rwlock::{RwLock, Shared};
use overspin_locks::{AtomicCell, Futex, Mutex, Pace, RawLock, Tuning};
use shuttle::rand::{Rng, thread_rng};

/// In `inside`, while a writer is there.
const WRITER: isize = -1;
/// A lock refuses no reader before there are some thousand.
const FEW: &str = "there are few readers";

/// A lock, with a count of those that are in its sections.
struct Guarded<M: RawLock<SchedulePlatform>> {
    lock: RwLock<SchedulePlatform, M>,
    shared: Shared<M::Shared>,
    /// How many readers, or [`WRITER`].
    inside: AtomicIsize,
    /// Sections so far.
    sections: AtomicUsize,
}

impl<M: RawLock<SchedulePlatform>> Guarded<M> {
    fn new(cpus: usize) -> Self {
        let zero = || ScheduleU32::new(0);
        let spin_budget = [0, 3][thread_rng().gen_range(0..2)];
        let patience = [0, 1, 8][thread_rng().gen_range(0..3)];
        let tuning = Tuning { spin_budget: Some(spin_budget), ..Tuning::DEFAULT };
        let writers = M::shared(cpus, tuning).expect("few CPUs");
        Self {
            lock: RwLock::of(zero(), zero(), zero(), zero(), M::new()),
            shared: Shared { writers, spin_budget, patience, pace: Pace::ALWAYS },
            inside: AtomicIsize::new(0),
            sections: AtomicUsize::new(0),
        }
    }

    fn reads(&self) {
        assert!(self.inside.fetch_add(1, Relaxed) >= 0, "a reader is beside a writer");
        world().acquired();
        world().turn();
        self.inside.fetch_sub(1, Relaxed);
        self.sections.fetch_add(1, Relaxed);
    }

    fn writes(&self) {
        assert_eq!(self.inside.swap(WRITER, Relaxed), 0, "a writer is not alone");
        world().acquired();
        world().turn();
        assert_eq!(self.inside.swap(0, Relaxed), WRITER, "a writer is not alone");
        self.sections.fetch_add(1, Relaxed);
    }

    fn read(&self) {
        self.lock.lock_shared(&self.shared).expect(FEW);
        self.reads();
        self.lock.unlock_shared();
    }

    fn write(&self) {
        let token = self.lock.lock_exclusive(&self.shared);
        self.writes();
        self.lock.unlock_exclusive(&self.shared, token);
    }

    fn read_until(&self, deadline: u64) {
        let attempt = || self.lock.lock_shared_until(&self.shared, deadline);
        if world().until(deadline, attempt) {
            self.reads();
            self.lock.unlock_shared();
        }
    }

    fn write_until(&self, deadline: u64) {
        // Behind a mutex that cannot give up, a writer waits without a limit.
        if M::LOCK_UNTIL.is_none() {
            return;
        }
        let token =
            world().until(deadline, || self.lock.lock_exclusive_until(&self.shared, deadline));
        if let Some(token) = token {
            self.writes();
            self.lock.unlock_exclusive(&self.shared, token);
        }
    }

    fn write_and_read(&self) {
        let token = self.lock.lock_exclusive(&self.shared);
        self.writes();
        self.lock.downgrade(&self.shared, token);
        self.reads();
        self.lock.unlock_shared();
    }

    fn read_and_write(&self) {
        let held = self.lock.lock_upgradable(&self.shared).expect(FEW);
        self.reads();
        let token = match self.lock.try_upgrade(held) {
            Ok(token) => token,
            Err(held) => self.lock.upgrade(&self.shared, held),
        };
        self.writes();
        self.lock.unlock_exclusive(&self.shared, token);
    }

    fn assert_free(&self) {
        assert!(!self.lock.is_locked() && !self.lock.is_locked_exclusive(), "it stays locked");
        let token = self.lock.try_lock_exclusive().expect("the lock is as new");
        self.lock.unlock_exclusive(&self.shared, token);
    }
}

/// Each CPU does random things, some with a deadline.
fn mixed<M: RawLock<SchedulePlatform> + Send + Sync + 'static>(cpus: usize) -> Plan
where
    M::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        let it = Arc::new(Guarded::<M>::new(cpus));
        let of_all = Arc::clone(&it);
        on_cpus(cpus, move |_| {
            for _ in 0..4 {
                match thread_rng().gen_range(0..8) {
                    0 | 1 => of_all.read(),
                    2 => of_all.write(),
                    3 | 4 => of_all.read_until(deadline()),
                    5 => of_all.write_until(deadline()),
                    6 => of_all.write_and_read(),
                    _ => of_all.read_and_write(),
                }
            }
        });
        it.assert_free();
    })
}

/// CPU 0 writes or reads twice, while all others read and write, or only read, again and again.
fn rivals<M: RawLock<SchedulePlatform> + Send + Sync + 'static>(
    cpus: usize,
    writes: bool,
    rivals_write: bool,
) -> Plan
where
    M::Shared: Send + Sync,
{
    Plan::new(cpus, move || {
        let it = Arc::new(Guarded::<M>::new(cpus));
        let of_all = Arc::clone(&it);
        let rivalry = Rivalry::new(Profile::default().overtaken);
        on_cpus(cpus, move |cpu| {
            let it = &*of_all;
            if cpu == 0 {
                for _ in 0..2 {
                    rivalry.comes(it.sections.load(Relaxed));
                    if writes { it.write() } else { it.read() }
                }
                rivalry.ends();
                return;
            }
            while !rivalry.is_over() {
                if rivals_write && thread_rng().gen_range(0..2) == 0 {
                    it.write()
                } else {
                    it.read()
                }
                rivalry.was_inside(it.sections.load(Relaxed), cpus - 1);
            }
        });
        it.assert_free();
    })
}

#[test]
fn mixed_work() {
    for (cpus, schedules) in [(3, 1_500), (6, 500), (12, 100)] {
        bounds::passes(
            &mixed::<Futex<SchedulePlatform>>(cpus),
            &[Strategy::Random, Strategy::Pct],
            schedules,
        );
        bounds::passes(
            &mixed::<Mutex<SchedulePlatform>>(cpus),
            &[Strategy::Random, Strategy::Pct],
            schedules,
        );
    }
}

/// Schedules are fair: at random, all CPUs equally likely.
#[test]
fn nobody_starves() {
    for (writes, rivals_write) in [(true, false), (true, true), (false, true)] {
        for (cpus, schedules) in [(3, 500), (6, 150), (12, 40)] {
            let plan = rivals::<Mutex<SchedulePlatform>>(cpus, writes, rivals_write);
            bounds::passes(&plan, &[Strategy::Random], schedules);
        }
    }
}
