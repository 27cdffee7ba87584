//! The requirements on every lock, written once and run over operating system threads.
//!
//! Threads cannot show a missing order or an access after the release; [`model`](crate::model)
//! checks those. A lock that loses a waiter fails here after [`threads::STUCK`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use overspin_locks::{CapacityError, RawLock, Tuning};

use crate::NO_SPIN;
use crate::asked::{self, assert_looks_idle};
use crate::threads::{self, StdPlatform, System};

/// CPUs of a test: more than most test machines have to spare.
pub const CPUS: usize = 4;

/// A test. It panics if the requirement does not hold.
pub type Test = Box<dyn Fn() + Send + Sync>;

/// Lists all tests of this module, by name.
pub fn all<L: RawLock<StdPlatform> + Sync + 'static>(
    records_waiters: bool,
) -> impl Iterator<Item = (&'static str, Test)>
where
    L::Shared: Sync,
{
    let tests: [(_, Test); 8] = [
        ("exclusion", Box::new(|| exclusion::<L>(Tuning::DEFAULT))),
        ("exclusion, no spinning", Box::new(|| exclusion::<L>(NO_SPIN))),
        ("exclusion, with tries", Box::new(|| exclusion_with_tries::<L>(NO_SPIN))),
        ("try_lock and is_locked", Box::new(try_lock::<L>)),
        ("lock_irqsave", Box::new(irqsave::<L>)),
        ("20 locks held at once", Box::new(many_locks_held::<L>)),
        ("waiters", Box::new(move || waiters::<L>(Tuning::DEFAULT, records_waiters))),
        ("capacity", Box::new(capacity::<L>)),
    ];
    tests.into_iter()
}

/// Checks mutual exclusion. In the critical section each CPU counts up, checks that no other CPU
/// did, and counts back, as the validation of Concurrency Kit does. Both the holder and the
/// intruder see an intrusion.
///
/// # Panics
/// If two CPUs hold the lock at once.
pub fn exclusion<L: RawLock<StdPlatform> + Sync>(tuning: Tuning)
where
    L::Shared: Sync,
{
    const ROUNDS: usize = 2_000;
    const DEPTH: usize = 8;
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let inside = AtomicUsize::new(0);
    // Separate load and store, so that an intruder also loses updates.
    let total = AtomicUsize::new(0);
    System::new(CPUS).run_all(|_| {
        for _ in 0..ROUNDS {
            let token = threads::lock(&lock, &shared);
            for depth in 0..DEPTH {
                assert_eq!(inside.fetch_add(1, Relaxed), depth);
            }
            total.store(total.load(Relaxed) + 1, Relaxed);
            for depth in (0..DEPTH).rev() {
                assert_eq!(inside.fetch_sub(1, Relaxed), depth + 1);
            }
            threads::unlock(&lock, &shared, token);
        }
    });
    assert_eq!(total.into_inner(), CPUS * ROUNDS);
    assert_idle::<L>(&lock, &shared);
}

/// Checks mutual exclusion where half of the CPUs only try.
///
/// # Panics
/// If two CPUs hold the lock at once.
pub fn exclusion_with_tries<L: RawLock<StdPlatform> + Sync>(tuning: Tuning)
where
    L::Shared: Sync,
{
    const ROUNDS: usize = 2_000;
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let inside = AtomicUsize::new(0);
    System::new(CPUS).run_all(|cpu| {
        for _ in 0..ROUNDS {
            let token = if cpu % 2 == 0 {
                Some(threads::lock(&lock, &shared))
            } else {
                threads::try_lock(&lock, &shared)
            };
            if let Some(token) = token {
                assert_eq!(inside.fetch_add(1, Relaxed), 0);
                assert_eq!(inside.fetch_sub(1, Relaxed), 1);
                threads::unlock(&lock, &shared, token);
            }
        }
    });
    assert_idle::<L>(&lock, &shared);
}

/// Checks that `try_lock` succeeds on a free lock and fails on a held one, and that `is_locked`
/// agrees.
///
/// # Panics
/// If this does not hold.
pub fn try_lock<L: RawLock<StdPlatform>>() {
    System::new(1).run(0, || {
        let lock = L::new();
        let shared = L::shared(1, Tuning::DEFAULT).unwrap();
        assert_looks_idle(&lock, &shared);
        // More iterations than any ticket has values.
        for _ in 0..70_000 {
            let token = threads::try_lock(&lock, &shared).expect("the lock is free");
            assert!(lock.is_locked(&shared));
            assert!(!lock.is_contended(&shared));
            assert!(threads::try_lock(&lock, &shared).is_none(), "the lock is held");
            threads::unlock(&lock, &shared, token);
            assert_looks_idle(&lock, &shared);
        }
    });
}

/// Checks that `lock_irqsave` takes the lock and `unlock` releases it.
///
/// # Panics
/// If this does not hold.
pub fn irqsave<L: RawLock<StdPlatform>>() {
    System::new(1).run(0, || {
        let lock = L::new();
        let shared = L::shared(1, Tuning::DEFAULT).unwrap();
        let token = threads::lock_irqsave(&lock, &shared);
        assert!(lock.is_locked(&shared));
        threads::unlock(&lock, &shared, token);
        assert_idle::<L>(&lock, &shared);
    });
}

/// One CPU holds more locks at once than it has queue nodes, if the lock has any, and another CPU
/// wants all of them.
///
/// # Panics
/// If two CPUs hold one lock at once.
pub fn many_locks_held<L: RawLock<StdPlatform> + Sync>()
where
    L::Shared: Sync,
{
    const LOCKS: usize = 20;
    const ROUNDS: usize = 100;
    let locks: [L; LOCKS] = std::array::from_fn(|_| L::new());
    let shared = L::shared(2, NO_SPIN).unwrap();
    let inside = [const { AtomicUsize::new(0) }; LOCKS];
    System::new(2).run_all(|cpu| {
        for _ in 0..ROUNDS {
            let mut held = Vec::new();
            for (lock, inside) in locks.iter().zip(&inside) {
                let token = threads::lock(lock, &shared);
                assert_eq!(inside.fetch_add(1, Relaxed), 0);
                held.push((lock, inside, token));
            }
            // In the order of acquisition, and in reverse.
            if cpu == 0 {
                held.reverse();
            }
            for (lock, inside, token) in held {
                assert_eq!(inside.fetch_sub(1, Relaxed), 1);
                threads::unlock(lock, &shared, token);
            }
        }
    });
    locks.iter().for_each(|lock| assert_idle::<L>(lock, &shared));
}

/// With a holder and waiters that are known to wait, the lock reports contention exactly if it
/// `records_waiters`. If it promises fairness, it serves the waiters in the order of arrival.
///
/// # Panics
/// If this does not hold.
pub fn waiters<L: RawLock<StdPlatform> + Sync>(tuning: Tuning, records_waiters: bool)
where
    L::Shared: Sync,
{
    let system = System::new(CPUS);
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let served = Mutex::new(Vec::new());
    let token = system.run(0, || threads::lock(&lock, &shared));
    thread::scope(|scope| {
        for cpu in 1..CPUS {
            let (system, lock, shared, served) = (&system, &lock, &shared, &served);
            let waiter: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
                system.run(cpu, || {
                    let token = threads::lock(lock, shared);
                    served.lock().unwrap().push(cpu);
                    threads::unlock(lock, shared, token);
                });
            });
            scope.spawn(waiter);
            system.await_waiting(cpu);
            // This runs on a CPU, so that a failed assertion also ends the waiters.
            system.run(0, || assert_eq!(lock.is_contended(shared), records_waiters));
        }
        system.run(0, || threads::unlock(&lock, &shared, token));
    });
    let mut served = served.into_inner().unwrap();
    if !L::INFO.fair {
        served.sort_unstable();
    }
    assert_eq!(served, (1..CPUS).collect::<Vec<_>>());
    assert_idle::<L>(&lock, &shared);
}

/// Checks that the lock serves as many CPUs as promised, and not one more.
///
/// # Panics
/// If this does not hold.
pub fn capacity<L: RawLock<StdPlatform>>() {
    let max = L::INFO.max_cpus;
    assert!(L::shared(max as usize, Tuning::DEFAULT).is_ok());
    let cpus = max as usize + 1;
    assert_eq!(L::shared(cpus, Tuning::DEFAULT).err(), Some(CapacityError { cpus, max }));
}

/// Checks that no CPU holds the lock or waits for it, and that a CPU can take it at once, once.
pub(crate) fn assert_idle<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared) {
    let tried = || threads::try_lock(lock, shared);
    System::new(1).run(0, || {
        asked::assert_had_once(lock, shared, tried, tried, |token| {
            threads::unlock(lock, shared, token)
        });
    });
}
