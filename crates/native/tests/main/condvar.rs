//! The condition variable on threads. `overspin-check` has its models.

use overspin_native::{Condvar, Mutex};
use overspin_testing::must_end;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Producers and consumers of a queue with few places, with both kinds of notifications, under the mutex and after it.
#[test]
fn everything_that_goes_into_a_queue_comes_out_once() {
    let _guard = must_end();
    const EACH: u64 = 20_000;
    let (queue, not_empty, not_full) =
        (Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new());
    let sum = thread::scope(|scope| {
        for producer in 0..3 {
            let (queue, not_empty, not_full) = (&queue, &not_empty, &not_full);
            scope.spawn(move || {
                for i in 0..EACH {
                    let mut queue = queue.lock();
                    not_full.wait_while(&mut queue, |q| q.len() == 4);
                    queue.push_back(i);
                    if producer == 0 {
                        not_empty.notify_one();
                    }
                    drop(queue);
                    if producer != 0 {
                        not_empty.notify_one();
                    }
                }
            });
        }
        let consumer = |number: u64| {
            let (queue, not_empty, not_full) = (&queue, &not_empty, &not_full);
            move || -> u64 {
                let one = |_| {
                    let mut queue = queue.lock();
                    if number == 0 {
                        not_empty.wait_while(&mut queue, |q| q.is_empty());
                    } else {
                        while queue.is_empty() {
                            not_empty.wait_for(&mut queue, Duration::from_micros(50));
                        }
                    }
                    let found = queue.pop_front().unwrap();
                    not_full.notify_all();
                    found
                };
                (0..EACH).map(one).sum()
            }
        };
        let consumers: Vec<_> = (0..3).map(|number| scope.spawn(consumer(number))).collect();
        consumers.into_iter().map(|c| c.join().unwrap()).sum::<u64>()
    });
    assert_eq!(sum, 3 * EACH * (EACH - 1) / 2);
    assert!(queue.lock().is_empty());
}

#[test]
fn a_notification_of_all_wakes_all() {
    let _guard = must_end();
    const THREADS: u32 = 12;
    let (round, next, waiting) = (Mutex::new(0), Condvar::new(), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for mine in 0..200 {
                    let mut round = round.lock();
                    waiting.fetch_add(1, Relaxed);
                    next.wait_while(&mut round, |round| *round <= mine);
                }
            });
        }
        for mine in 1..=200 {
            while waiting.load(Relaxed) < THREADS * mine {
                thread::yield_now();
            }
            *round.lock() = mine;
            next.notify_all();
        }
    });
}

#[test]
fn time_limits_end_waits_with_the_mutex_held() {
    let _guard = must_end();
    let (mutex, never) = (Mutex::new(0), Condvar::new());
    let mut guard = mutex.lock();
    for limit in [Duration::ZERO, Duration::from_millis(20)] {
        let began = Instant::now();
        assert!(never.wait_for(&mut guard, limit).timed_out());
        assert!(began.elapsed() >= limit);
        assert!(mutex.is_locked() && mutex.try_lock().is_none());
    }
    let until = Instant::now() + Duration::from_millis(20);
    assert!(never.wait_while_until(&mut guard, |_| true, until).timed_out());
    assert!(Instant::now() >= until);
    assert!(never.wait_until(&mut guard, until).timed_out(), "a time that is past");
    assert!(!never.wait_while_for(&mut guard, |_| false, Duration::MAX).timed_out());
    never.notify_one();
    never.notify_all();
}

#[test]
fn a_notification_ends_a_wait_with_a_time_limit() {
    let _guard = must_end();
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut guard = ready.lock();
            changed.wait_while_for(&mut guard, |ready| !*ready, Duration::MAX).timed_out()
        });
        thread::sleep(Duration::from_millis(20));
        *ready.lock() = true;
        changed.notify_one();
        assert!(!waiter.join().unwrap());
    });
}

/// Starts a thread that waits once, without a loop: a wait does not end for no reason. Returns when it waits.
fn wait_once<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    mutex: &'scope Mutex<u32>,
    changed: &'scope Condvar,
    limit: Duration,
) -> thread::ScopedJoinHandle<'scope, bool> {
    let mut before = mutex.lock();
    *before = 0;
    let waiter = scope.spawn(move || {
        let mut guard = mutex.lock();
        *guard = 1;
        !changed.wait_for(&mut guard, limit).timed_out()
    });
    drop(before);
    // The waiter sets it just before it waits, and the mutex is free again when it does.
    while *mutex.lock() == 0 {
        thread::yield_now();
    }
    waiter
}

#[test]
fn a_notification_ends_the_longest_wait_and_says_so() {
    let _guard = must_end();
    let (mutex, changed) = (Mutex::new(0), Condvar::new());
    assert_eq!((changed.notify_one(), changed.notify_all()), (false, 0));
    thread::scope(|scope| {
        for under in [false, true] {
            let start = |_| wait_once(scope, &mutex, &changed, Duration::MAX);
            let mut waiters: VecDeque<_> = (0..4).map(start).collect();
            while waiters.len() > 2 {
                let guard = under.then(|| mutex.lock());
                assert!(changed.notify_one());
                drop(guard);
                assert!(waiters.pop_front().unwrap().join().unwrap());
                assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
            }
            let guard = under.then(|| mutex.lock());
            assert_eq!(changed.notify_all(), 2);
            drop(guard);
            assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
            assert!(!changed.notify_one());
        }
    });
}

#[test]
fn a_wait_that_is_over_gets_no_notification() {
    let _guard = must_end();
    let (mutex, changed) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        let short = wait_once(scope, &mutex, &changed, Duration::from_millis(1));
        let first = wait_once(scope, &mutex, &changed, Duration::MAX);
        let second = wait_once(scope, &mutex, &changed, Duration::MAX);
        assert!(!short.join().unwrap());
        assert!(changed.notify_one() && first.join().unwrap());
        assert!(changed.notify_one() && second.join().unwrap());
    });
    assert_eq!(changed.notify_all(), 0);
}

/// More of them than a notification takes from the queue at a time.
#[test]
fn two_hundred_threads_wait_with_one_of_two_mutexes() {
    let _guard = must_end();
    let (mutexes, changed) = ([Mutex::new(0), Mutex::new(0)], Condvar::new());
    thread::scope(|scope| {
        let start = |n: usize| wait_once(scope, &mutexes[n % 2], &changed, Duration::MAX);
        let waiters: Vec<_> = (0..200).map(start).collect();
        let guard = mutexes[1].lock();
        assert_eq!(changed.notify_all(), 200);
        drop(guard);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    });
    assert!(mutexes.iter().all(|mutex| !mutex.is_locked()));
}

#[test]
fn destructors_of_thread_local_values_may_wait() {
    let _guard = must_end();
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            let (mutex, never) = (Mutex::new(()), Condvar::new());
            assert!(never.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
            ENDED.fetch_add(1, Relaxed);
        }
    }
    static ENDED: AtomicU32 = AtomicU32::new(0);
    thread_local!(static LAST: Waits = const { Waits });
    for waits_before in [false, true] {
        thread::spawn(move || {
            LAST.with(|_| ());
            if waits_before {
                drop(Waits);
            }
        })
        .join()
        .unwrap();
    }
    assert_eq!(ENDED.load(Relaxed), 3);
}
