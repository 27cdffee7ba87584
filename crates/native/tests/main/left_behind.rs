//! Locks that a thread has left locked, and sleeps with a limit. The test runs in its own process,
//! because thread numbers are global to the process.

use crate::alone::in_own_process;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

use overspin_locks::{Platform, infos};
use overspin_native::{Kind, Threads, thread_id, try_thread_id, with_number_of};

#[test]
fn another_thread_releases_in_the_name_of_one_that_is_gone() {
    in_own_process(
        "left_behind::another_thread_releases_in_the_name_of_one_that_is_gone",
        releases,
    );
}

fn releases() {
    assert_eq!(thread_id(), 0);
    for info in infos() {
        let kind = Kind::new(info.name).expect("it is in the registry");
        assert!(kind.capacity() > 1 && kind.capacity() <= info.max_cpus as usize);
        let lock = kind.new_lock();
        let acquire = || {
            lock.lock();
            thread_id()
        };
        let number = thread::scope(|scope| scope.spawn(acquire).join().expect("no panic"));
        assert_eq!(number, 1);
        assert!(!lock.try_lock(), "{}", info.name);
        // SAFETY: no thread has the number now. Its former owner has acquired the lock.
        unsafe { with_number_of(number, || lock.unlock()) };
        assert_eq!(try_thread_id(), Some(0));
        // The lock works as if nothing had happened, also for the next thread with that number.
        for _ in 0..2 {
            thread::scope(|scope| {
                let again = || {
                    lock.lock();
                    // SAFETY: this thread has just acquired it.
                    unsafe { lock.unlock() };
                };
                scope.spawn(again).join().expect("no panic");
            });
        }
        assert!(lock.try_lock(), "{}", info.name);
        // SAFETY: this thread has just acquired it.
        unsafe { lock.unlock() };
    }

    let (cell, soon) = (AtomicU32::new(7), Duration::from_millis(1));
    assert!(Threads::wait_for(&cell, 7, soon), "time is up");
    assert!(!Threads::wait_for(&cell, 8, soon), "it holds another value");
    Threads::latch_clear();
    assert!(Threads::poll_for(soon), "time is up");
    assert!(!Threads::latch_test());
    Threads::latch_set();
    assert!(!Threads::poll_for(soon), "it is set");
}
