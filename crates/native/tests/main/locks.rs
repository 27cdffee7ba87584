//! Every lock of the registry as a mutex over real threads, and the mutexes outside the registry.
//!
//! `overspin-check` tests the locks themselves; these tests cover the platform and the adapter. There are few
//! rounds because spinning waiters do not yield: with more threads than CPUs each of them may cost a slice.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use lock_api::{Mutex, RawMutex};

const THREADS: usize = 3;
const ROUNDS: usize = 60;

/// The counter is not atomic: a second thread in the section would lose updates.
fn exclusion<R: RawMutex + Sync>() {
    let count = Mutex::<R, usize>::new(0);
    let inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (count, inside) = (&count, &inside);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // One of the threads tries first.
                    let tried = if thread == 0 { count.try_lock() } else { None };
                    let mut count = tried.unwrap_or_else(|| count.lock());
                    assert_eq!(inside.fetch_add(1, Relaxed), 0);
                    *count += 1;
                    // Some sections are long enough for the others to fall asleep.
                    if round % 10 == 0 {
                        thread::yield_now();
                    }
                    assert_eq!(inside.fetch_sub(1, Relaxed), 1);
                }
            });
        }
    });
    assert_eq!(count.into_inner(), THREADS * ROUNDS);
}

fn try_lock_and_is_locked<R: RawMutex>() {
    let mutex = Mutex::<R, ()>::new(());
    assert!(!mutex.is_locked());
    let guard = mutex.try_lock().expect("it is free");
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none(), "it is held");
    drop(guard);
    assert!(!mutex.is_locked());
    drop(mutex.lock());
    assert!(!mutex.is_locked());
}

/// Holds more locks than a thread has queue nodes, and releases them in the order of acquisition.
fn many_held_at_once<R: RawMutex>() {
    let mutexes: [Mutex<R, ()>; 20] = std::array::from_fn(|_| Mutex::new(()));
    for _ in 0..2 {
        let guards: Vec<_> = mutexes.iter().map(Mutex::lock).collect();
        assert!(mutexes.iter().all(Mutex::is_locked));
        guards.into_iter().for_each(drop);
        assert!(!mutexes.iter().any(Mutex::is_locked));
    }
}

/// No poisoning: a panic releases the lock and leaves the data.
fn panic_releases<R: RawMutex + Sync>() {
    struct Silent;
    let mutex = Mutex::<R, u32>::new(0);
    let ended = thread::scope(|scope| {
        let work = || {
            let mut value = mutex.lock();
            *value = 1;
            // Without a panic message.
            std::panic::resume_unwind(Box::new(Silent));
        };
        scope.spawn(work).join()
    });
    assert!(ended.expect_err("it panicked").is::<Silent>());
    assert_eq!(*mutex.try_lock().expect("the panic released it"), 1);
}

/// A forgotten guard never releases. The mutex can still be moved and dropped.
fn forgotten_guard<R: RawMutex>() {
    for _ in 0..20 {
        let mutex = Mutex::<R, u32>::new(1);
        std::mem::forget(mutex.lock());
        let mutex = Box::new(mutex);
        assert!(mutex.try_lock().is_none());
        assert_eq!(mutex.into_inner(), 1);
    }
    try_lock_and_is_locked::<R>();
}

/// A waiter gets the lock after its release, however late that is.
fn waiter_is_woken<R: RawMutex + Sync>() {
    let mutex = Mutex::<R, ()>::new(());
    let got_it = AtomicBool::new(false);
    let guard = mutex.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            drop(mutex.lock());
            got_it.store(true, Relaxed);
        });
        // Long enough for the waiter to sleep on most machines. The test does not assert that it sleeps.
        thread::sleep(std::time::Duration::from_millis(5));
        assert!(!got_it.load(Relaxed));
        // `drop` needs the thread that locked: a guard is not `Send`.
        drop(guard);
        waiter.join().expect("it does not panic");
    });
    assert!(got_it.into_inner());
}

/// The counterpart of `compile_fail`: a mutex of data that is `Send` can be sent and shared, and a guard can
/// be shared if the data can.
fn is_send_and_sync<R: RawMutex + Send + Sync + 'static>()
where
    R::Guard: Sync,
{
    fn send_and_sync<T: Send + Sync>() {}
    fn sync<T: Sync>() {}
    send_and_sync::<Mutex<R, Cell<u32>>>();
    sync::<lock_api::MutexGuard<'static, R, u32>>();
}

macro_rules! tests {
    ($($name:ident: $raw:ty;)+) => {$(
        #[allow(non_snake_case, reason = "the name of the lock's type")]
        mod $name {
            #[test]
            fn exclusion() {
                crate::locks::exclusion::<$raw>();
            }

            #[test]
            fn try_lock_and_is_locked() {
                crate::locks::try_lock_and_is_locked::<$raw>();
            }

            #[test]
            fn many_held_at_once() {
                crate::locks::many_held_at_once::<$raw>();
            }

            #[test]
            fn panic_releases() {
                crate::locks::panic_releases::<$raw>();
            }

            #[test]
            fn forgotten_guard() {
                crate::locks::forgotten_guard::<$raw>();
            }

            #[test]
            fn waiter_is_woken() {
                crate::locks::waiter_is_woken::<$raw>();
            }

            #[test]
            fn is_send_and_sync() {
                crate::locks::is_send_and_sync::<$raw>();
            }
        }
    )+};
}

/// The locks of the registry, whose types have names that are used here as well.
mod registry {
    macro_rules! every_lock {
        ($($lock:ident)+) => {
            tests! { $($lock: overspin_native::Raw<overspin_locks::$lock<overspin_native::Threads>>;)+ }
        };
    }
    overspin_locks::for_each_lock!(every_lock);
}

tests! {
    mutex: overspin_native::RawMutex;
    mutexee: overspin_native::RawMutexee;
}
