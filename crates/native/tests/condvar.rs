//! The condition variable on threads. `overspin-check` has its models.

use overspin_native::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Producers and consumers of a queue with few places, with both kinds of notifications, under the mutex and after it.
#[test]
fn everything_that_goes_into_a_queue_comes_out_once() {
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
    let (mutex, never) = (Mutex::new(0), Condvar::new());
    let mut guard = mutex.lock();
    for limit in [Duration::ZERO, Duration::from_millis(20)] {
        let began = Instant::now();
        // A sleep may end before, for no reason.
        while !never.wait_for(&mut guard, limit).timed_out() {}
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
