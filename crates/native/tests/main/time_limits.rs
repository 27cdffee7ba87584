//! Locks with time limits on threads. `overspin-check` has their models.

use overspin_locks::mcs_tp::McsTp;
use overspin_locks::{Platform, RawLock, Tuning};
use overspin_native::{MAX_THREADS, Mutex, Threads};
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_held_mutex_is_given_up_at_the_limit() {
    let mutex = Mutex::new(0);
    let held = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            assert!(mutex.try_lock_for(SHORT).is_none());
            assert!(begin.elapsed() >= SHORT, "too early");
            assert!(mutex.try_lock_for(Duration::ZERO).is_none());
            assert!(mutex.try_lock_until(begin).is_none());
        });
    });
    drop(held);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    assert!(mutex.try_lock_for(Duration::MAX).is_some());
}

#[test]
fn a_release_before_the_limit_is_in_time() {
    let mutex = Mutex::new(());
    let held = mutex.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let begin = Instant::now();
            assert!(mutex.try_lock_for(LONG).is_some());
            assert!(begin.elapsed() < LONG);
        });
        thread::sleep(SHORT);
        drop(held);
        waiter.join().unwrap();
    });
}

/// Many give up while others come and go: all those who do not give up get the mutex, and none is in twice.
#[test]
fn threads_that_give_up_leave_the_mutex_to_the_others() {
    let (mutex, gave_up) = (Mutex::new(0_u64), AtomicU32::new(0));
    let acquired: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number: u64| {
                let (mutex, gave_up) = (&mutex, &gave_up);
                scope.spawn(move || {
                    let mut acquired = 0;
                    for round in 0..2_000 {
                        let limit = Duration::from_micros((number + round) % 4 * 30);
                        let guard =
                            if number < 6 { mutex.try_lock_for(limit) } else { Some(mutex.lock()) };
                        let Some(mut count) = guard else {
                            gave_up.fetch_add(1, Relaxed);
                            continue;
                        };
                        *count += 1;
                        acquired += 1;
                        if round % 50 == 0 {
                            // Longer than the limits, and it sleeps.
                            thread::sleep(Duration::from_micros(200));
                        }
                    }
                    acquired
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(*mutex.lock(), acquired);
    assert!(gave_up.load(Relaxed) > 0, "nothing was tested");
}

/// A thread gives up, and its place in the queue is known by the lock's address. The lock is released, and goes; another one
/// comes to the same address. The place must not count there, whether that lock is free or held.
#[test]
fn a_place_in_the_queue_of_a_lock_that_is_gone_does_not_count() {
    let soon = || Threads::now() + 5_000_000;
    let shared = McsTp::<Threads>::shared(MAX_THREADS, Tuning::DEFAULT).unwrap();
    let lock = std::sync::RwLock::new(McsTp::<Threads>::new());
    let address = || ptr::from_ref(&*lock.read().unwrap()).addr();
    let (before, step) = (address(), Barrier::new(2));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            for _ in 0..2 {
                step.wait();
                assert!(lock.read().unwrap().lock_until(&shared, soon()).is_none(), "it is held");
                // Here the lock is replaced.
                step.wait();
                step.wait();
                let lock = lock.read().unwrap();
                let token = lock.lock_until(&shared, Threads::now() + LONG.as_nanos() as u64);
                lock.unlock(&shared, token.expect("the other thread releases it"));
                drop(lock);
                step.wait();
            }
        });
        for is_held in [false, true] {
            let held = lock.read().unwrap();
            let token = held.lock(&shared);
            step.wait();
            step.wait();
            held.unlock(&shared, token);
            drop(held);
            *lock.write().unwrap() = McsTp::new();
            assert_eq!(address(), before);
            let new = lock.read().unwrap();
            let token = is_held.then(|| new.lock(&shared));
            step.wait();
            if let Some(token) = token {
                thread::sleep(SHORT);
                new.unlock(&shared, token);
            }
            step.wait();
        }
        waiter.join().unwrap();
    });
}
