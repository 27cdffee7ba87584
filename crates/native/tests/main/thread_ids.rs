//! Numbers of threads. The test runs in its own process, because thread numbers are global to the process.

use crate::alone::in_own_process;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;

use overspin_native::{MAX_THREADS, locks, thread_id};

#[test]
fn dense_recycled_and_limited() {
    in_own_process("thread_ids::dense_recycled_and_limited", numbers);
}

fn numbers() {
    let mutex = locks::Mcs::new(0);
    let all_in = Barrier::new(MAX_THREADS + 1);
    let may_end = Barrier::new(MAX_THREADS + 1);
    let ids = thread::scope(|scope| {
        let work = || {
            // Catch panics, so that a failure does not leave the other threads at the barrier.
            let ids = catch_unwind(|| (thread_id(), thread_id()));
            all_in.wait();
            may_end.wait();
            let (id, again) = ids.expect("there is a number for it");
            assert_eq!(again, id, "a thread keeps its number");
            id
        };
        let start = |_| {
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, work).expect("a thread")
        };
        let threads: Vec<_> = (0..MAX_THREADS).map(start).collect();
        all_in.wait();
        // This thread has no number yet, and none is left.
        std::panic::set_hook(Box::new(|_| {}));
        let no_number = catch_unwind(thread_id);
        let no_lock = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock())));
        let _ = std::panic::take_hook();
        may_end.wait();
        assert!(no_number.is_err());
        assert!(no_lock.is_err());
        assert!(!mutex.is_locked(), "the panic came before the lock was touched");
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<BTreeSet<_>>()
    });
    assert_eq!(ids, (0..MAX_THREADS).collect());

    // All threads have ended: the lowest number is free again, and its records work.
    assert_eq!(thread_id(), 0);
    *mutex.lock() += 1;
    assert_eq!(thread::spawn(thread_id).join().expect("no panic"), 1);
    assert_eq!(thread::spawn(thread_id).join().expect("no panic"), 1);
}
