//! The mutex with one real thread. What the other threads do, and when, is a script: they run when this one sleeps, naps or
//! yields.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};

use overspin_check::threads::StdPlatform;
use overspin_locks::mutex::{Mutex, Shared, Token};
use overspin_locks::{CpuId, Platform, RawLock, forward_platform};

type Lock = Mutex<Scripted>;

const fn lock() -> Lock {
    const fn zero() -> AtomicU32 {
        AtomicU32::new(0)
    }
    Mutex::of(zero(), zero(), zero(), zero(), zero())
}

/// What happens meanwhile, and what the platform answers.
#[derive(Clone, Copy)]
struct Script {
    sleep: fn(),
    nap: fn(),
    yields: fn(),
    yields_are_dear: bool,
    now: u64,
    processor: usize,
}

fn must_not() {
    panic!("not in this script");
}

thread_local! {
    static SCRIPT: Cell<Script> = const {
        Cell::new(Script {
            sleep: must_not,
            nap: must_not,
            yields: must_not,
            yields_are_dear: false,
            now: 0,
            processor: 0,
        })
    };
    /// The token of the scripted holder.
    static HOLDS: Cell<Option<Token>> = const { Cell::new(None) };
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

fn script(change: impl FnOnce(&mut Script)) {
    let mut script = SCRIPT.get();
    change(&mut script);
    SCRIPT.set(script);
}

/// Counts one more; returns how many there are.
fn count() -> u32 {
    COUNT.set(COUNT.get() + 1);
    COUNT.get()
}

fn holder_releases(lock: &Lock, shared: &Shared) {
    lock.unlock(shared, HOLDS.take().expect("it is held"));
}

#[derive(Debug)]
struct Scripted;

impl Platform for Scripted {
    forward_platform!(
        StdPlatform,
        except cells, cpu_id, processor, yield_now, yield_if_cheap, yield_is_dear, nap, now
    );

    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;

    fn cpu_id() -> CpuId {
        0
    }
    fn wake_one(_: *const AtomicU32) {}
    fn wait(_: &AtomicU32, _: u32) {
        (SCRIPT.get().sleep)();
    }
    fn yield_now() {}
    fn yield_is_dear() -> bool {
        SCRIPT.get().yields_are_dear
    }
    fn yield_if_cheap() {
        (SCRIPT.get().yields)();
    }
    fn nap(_: u64) {
        (SCRIPT.get().nap)();
    }
    fn now() -> u64 {
        SCRIPT.get().now
    }
    fn processor() -> usize {
        SCRIPT.get().processor
    }
}

/// Beside processes that compute, on one CPU, a waiter that neither sleeps nor naps keeps the holder from running.
#[test]
fn an_heir_naps_until_the_holder_has_run() {
    static LOCK: Lock = lock();
    static SHARED: Shared = Shared::DEFAULT;
    /// More than the naps of a woken thread before it is the heir.
    const NAPS: u32 = 40;
    thread_local!(static YIELDED: Cell<u32> = const { Cell::new(0) });

    script(|it| {
        it.yields_are_dear = true;
        // The release wakes the waiter, and the holder takes the lock again before the waiter runs.
        it.sleep = || {
            holder_releases(&LOCK, &SHARED);
            HOLDS.set(LOCK.try_lock(&SHARED));
        };
        // These are none: each is after some looks at the lock.
        it.yields = || {
            YIELDED.set(YIELDED.get() + 1);
            assert!(YIELDED.get() <= 100, "the heir keeps the CPU of the holder");
        };
        // The holder needs many slices for its section.
        it.nap = || {
            if count() == NAPS {
                holder_releases(&LOCK, &SHARED);
            }
        };
    });
    HOLDS.set(Some(LOCK.lock(&SHARED)));
    let token = LOCK.lock(&SHARED);
    assert_eq!(COUNT.get(), NAPS);
    LOCK.unlock(&SHARED, token);
    assert!(!LOCK.is_locked(&SHARED) && !LOCK.is_contended(&SHARED));
}

/// Other threads have sections while this one sleeps, eight in a row on each of two processors.
fn sections(lock: &Lock, shared: &Shared, here: u64, elsewhere: u64) {
    for n in 0..2000 {
        script(|it| it.processor = n / 8 % 2);
        let token = lock.lock(shared);
        script(|it| it.now += if n % 8 == 0 { elsewhere } else { here });
        lock.unlock(shared, token);
    }
}

/// A thread is woken and finds the lock held again. Returns how often it has slept before it gets the lock.
fn sleeps_of_a_woken_thread(lock: &'static Lock, shared: &'static Shared, sleep: fn()) -> u32 {
    COUNT.set(0);
    HOLDS.set(Some(lock.lock(shared)));
    script(|it| it.sleep = sleep);
    let token = lock.lock(shared);
    lock.unlock(shared, token);
    assert!(!lock.is_locked(shared) && !lock.is_contended(shared));
    COUNT.get()
}

/// The script of a lock whose sections take 5 us, and `$elsewhere` on another processor than before.
macro_rules! sleeps {
    ($elsewhere:literal) => {{
        static LOCK: Lock = lock();
        static SHARED: Shared = Shared::ON_THREADS;
        script(|it| it.yields = || ());
        let learn = || {
            count();
            holder_releases(&LOCK, &SHARED);
            sections(&LOCK, &SHARED, 5_000, $elsewhere);
        };
        assert_eq!(sleeps_of_a_woken_thread(&LOCK, &SHARED, learn), 1);
        // It is the heir now, or sleeps again: then the holder releases.
        script(|it| {
            it.yields = || {
                if LOCK.is_locked(&SHARED) {
                    holder_releases(&LOCK, &SHARED);
                }
            };
        });
        let held_again = || {
            holder_releases(&LOCK, &SHARED);
            if count() < 3 {
                HOLDS.set(LOCK.try_lock(&SHARED));
            }
        };
        sleeps_of_a_woken_thread(&LOCK, &SHARED, held_again)
    }};
}

#[test]
fn a_woken_thread_sleeps_again_where_moves_are_dear() {
    assert_eq!(sleeps!(12_000), 3);
}

/// It goes back to sleep once, and insists at its second wake-up.
#[test]
fn a_woken_thread_insists_the_second_time_where_they_are_not() {
    assert_eq!(sleeps!(5_500), 2);
}
