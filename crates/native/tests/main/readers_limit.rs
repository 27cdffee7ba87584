//! Readers of the reader-writer lock at their limit.

use overspin_locks::rwlock::{RwLock as Algorithm, Shared, TooManyReaders};
use overspin_locks::{Futex, Pace, Platform, RawLock, Tuning, WakeAll, forward_platform};
use overspin_native::{RwLock, Threads};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(600);

/// The limit of the lock's documentation.
const MOST: usize = 32_767;

/// The message of the panic of `what`.
fn panic_of(what: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(what)).expect_err("it panics");
    panic.downcast_ref::<String>().expect("its message has a number").clone()
}

#[test]
fn readers_beyond_the_limit_are_refused() {
    let lock = RwLock::new(0);
    let mut guards: Vec<_> = (0..MOST - 1).map(|_| lock.read()).collect();
    // One below the limit, each kind of read enters, as the last one.
    drop(lock.read());
    drop(lock.try_read().unwrap());
    drop(lock.try_read_for(SHORT).unwrap());
    drop(lock.upgradable_read());
    guards.push(lock.read());
    // At the limit, none does.
    let message = "too many active read locks on RwLock: 32767 readers hold it";
    assert_eq!(panic_of(|| _ = lock.read()), message);
    assert_eq!(panic_of(|| _ = lock.upgradable_read()), message);
    assert!(lock.try_read().is_none() && lock.try_upgradable_read().is_none());
    let begin = Instant::now();
    assert!(lock.try_read_for(SHORT).is_none());
    assert!(begin.elapsed() >= SHORT, "too early");
    // The refused ones are not counted, and the mutex of the writers is free.
    guards.pop();
    let upgradable = lock.try_upgradable_read().unwrap();
    assert!(lock.try_read().is_none(), "the upgradable reader is one of them");
    drop(upgradable);
    drop(guards);
    *lock.try_write().unwrap() = 1;
    assert_eq!(lock.into_inner(), 1);
}

/// A read with a time limit waits at the limit, and enters when another reader has left.
#[test]
fn a_reader_with_a_time_limit_waits_for_a_free_number() {
    let lock = RwLock::new(0);
    let mut guards: Vec<_> = (0..MOST).map(|_| lock.read()).collect();
    let (begins, entered) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            begins.wait();
            assert!(lock.try_read_for(LONG).is_some());
            entered.store(true, Relaxed);
        });
        begins.wait();
        thread::sleep(SHORT);
        assert!(!entered.load(Relaxed), "there was no number for it");
        guards.pop();
    });
    assert!(entered.load(Relaxed));
}

thread_local! {
    /// What happens while the thread sleeps.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Threads that do not sleep, but do what happens meanwhile.
#[derive(Debug)]
struct Scripted;

impl Platform for Scripted {
    forward_platform!(Threads, except cells);

    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;

    fn wait(_: &AtomicU32, _: u32) {
        let what = MEANWHILE.take().expect("it sleeps once");
        what();
    }
    fn wait_until(cell: &AtomicU32, value: u32, _: u64) {
        Self::wait(cell, value);
    }
    fn wake_one(_: *const AtomicU32) {}
}

impl WakeAll for Scripted {
    fn wake_all(_: *const AtomicU32) {}
}

/// A reader waits for a writer. Before it is awake, others have all numbers. So it gives up, and nobody counts it any more.
#[test]
fn a_reader_that_waited_for_a_writer_is_refused_like_others() {
    type Small = Futex<Scripted>;
    let enters = |deadline_ns: Option<u64>| {
        let zero = || AtomicU32::new(0);
        let lock = Algorithm::<Scripted, Small>::of(zero(), zero(), zero(), zero(), Small::new());
        let writers = Small::shared(1, Tuning::DEFAULT).unwrap();
        let shared = Shared { writers, spin_budget: 0, patience: 0, pace: Pace::SELDOM };
        let both = Rc::new((lock, shared));
        let (lock, shared) = &*both;
        let token = lock.lock_exclusive(shared);
        let of_others = Rc::clone(&both);
        MEANWHILE.set(Some(Box::new(move || {
            let (lock, shared) = &*of_others;
            lock.unlock_exclusive(shared, token);
            (0..MOST).for_each(|_| lock.lock_shared(shared).unwrap());
        })));
        let entered = match deadline_ns {
            Some(at) => lock.lock_shared_until(shared, at).then_some(()).ok_or(TooManyReaders),
            None => lock.lock_shared(shared),
        };
        assert!(MEANWHILE.take().is_none(), "it has slept");
        (0..MOST).for_each(|_| lock.unlock_shared());
        // Neither a reader nor a waiting one is left in the word.
        assert!(lock.try_lock_exclusive().is_some());
        entered
    };
    assert_eq!(enters(None), Err(TooManyReaders));
    assert_eq!(enters(Some(Threads::now() + 1_000_000)), Err(TooManyReaders));
}
