//! The reader-writer lock on threads. `overspin-check` has its models.

use overspin_native::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
use overspin_testing::must_end;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(600);

#[test]
fn readers_are_in_together_and_a_writer_is_alone() {
    let _guard = must_end();
    let lock = RwLock::new(1);
    let inside = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let read = lock.read();
                // Each waits for the other one with its guard.
                inside.wait();
                assert!(lock.is_locked() && !lock.is_locked_exclusive());
                assert!(lock.try_write().is_none());
                inside.wait();
                assert_eq!(*read, 1);
            });
        }
    });
    let mut write = lock.write();
    *write += 1;
    assert!(lock.try_read().is_none() && lock.try_write().is_none() && lock.is_locked_exclusive());
    drop(write);
    assert_eq!(*lock.read(), 2);
    assert!(!lock.is_locked());
    assert_eq!(size_of::<RwLock<()>>(), 36);
}

#[test]
fn a_writer_becomes_a_reader_and_an_upgradable_reader_a_writer() {
    let _guard = must_end();
    let lock = RwLock::new(0);
    let mut write = lock.write();
    *write = 7;
    let read = RwLockWriteGuard::downgrade(write);
    assert_eq!(*read, 7);
    let upgradable = lock.upgradable_read();
    assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
    let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap_err();
    assert_eq!(*upgradable, 7);
    drop(read);
    let mut write = RwLockUpgradableReadGuard::upgrade(upgradable);
    *write = 8;
    drop(write);
    assert_eq!(*lock.read(), 8);
    let upgradable = lock.try_upgradable_read().unwrap();
    *RwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap() = 9;
    assert_eq!(lock.into_inner(), 9);
}

#[test]
fn a_held_lock_is_given_up_at_the_limit() {
    let _guard = must_end();
    let lock = RwLock::new(0);
    let given_up = |readers: bool| {
        let begin = Instant::now();
        assert!(lock.try_write_for(SHORT).is_none());
        assert!(begin.elapsed() >= SHORT, "too early");
        assert_eq!(lock.try_read_for(SHORT).is_some(), readers);
        assert_eq!(lock.try_read_until(begin).is_some(), readers);
    };
    let read = lock.read();
    thread::scope(|scope| _ = scope.spawn(|| given_up(true)));
    drop(read);
    let write = lock.write();
    thread::scope(|scope| _ = scope.spawn(|| given_up(false)));
    drop(write);
    assert!(lock.try_write_for(LONG).is_some() && lock.try_read_for(LONG).is_some());
}

/// Readers and writers of all kinds. Both halves of the value are equal whenever no writer is in.
#[test]
fn readers_see_no_half_of_a_write() {
    let _guard = must_end();
    const ROUNDS: u64 = 3_000;
    let (lock, written) = (RwLock::new((0_u64, 0_u64)), AtomicU64::new(0));
    let write = |pair: &mut (u64, u64)| {
        pair.0 += 1;
        thread::yield_now();
        pair.1 += 1;
        written.fetch_add(1, Relaxed);
    };
    let check = |pair: &(u64, u64)| assert_eq!(pair.0, pair.1, "half of a write");
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let (lock, write, check) = (&lock, &write, &check);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let limit = Duration::from_micros(round % 3 * 40);
                    match (number + round) % 10 {
                        0 => write(&mut lock.write()),
                        1 => {
                            if let Some(mut pair) = lock.try_write_for(limit) {
                                write(&mut pair);
                            }
                        }
                        2 => {
                            let pair = lock.upgradable_read();
                            check(&pair);
                            write(&mut RwLockUpgradableReadGuard::upgrade(pair));
                        }
                        3 => {
                            let mut pair = lock.write();
                            write(&mut pair);
                            check(&RwLockWriteGuard::downgrade(pair));
                        }
                        4 => {
                            if let Some(pair) = lock.try_read_for(limit) {
                                check(&pair);
                            }
                        }
                        _ => check(&lock.read()),
                    }
                }
            });
        }
    });
    assert_eq!(lock.read().0, written.load(Relaxed));
    assert!(!lock.is_locked());
}

/// A stream of readers that always overlap does not keep a writer out, and the other way round.
#[test]
fn nobody_starves() {
    let _guard = must_end();
    let (lock, over, writes) = (RwLock::new(0), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let _read = lock.read();
                    thread::sleep(Duration::from_micros(100));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    *lock.write() += 1;
                    writes.fetch_add(1, Relaxed);
                }
            });
        }
        for _ in 0..100 {
            *lock.write() += 1;
            drop(lock.read());
        }
        over.store(true, Relaxed);
    });
    assert_eq!(*lock.read(), writes.load(Relaxed) + 100);
}
