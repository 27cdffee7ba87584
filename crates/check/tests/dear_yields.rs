//! The mutex beside processes that compute, on one CPU: a waiter that neither sleeps nor naps keeps the holder from
//! running. Here the holder runs when the waiter does one of the two.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use overspin_locks::mutex::{Mutex, Shared, Token};
use overspin_locks::{CpuId, Platform, RawLock};

static LOCK: Mutex<OneCpu> = Mutex::of(zero(), zero(), zero(), zero());
static SHARED: Shared = Shared::DEFAULT;

const fn zero() -> AtomicU32 {
    AtomicU32::new(0)
}

/// More than the naps of a woken thread before it is the heir.
const NAPS: u32 = 40;
/// Yields that are none: each is after some looks at the lock.
const MOST_YIELDS: u32 = 100;

thread_local! {
    static HOLDS: Cell<Option<Token>> = const { Cell::new(None) };
    static NAPPED: Cell<u32> = const { Cell::new(0) };
    static YIELDED: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug)]
struct OneCpu;

impl Platform for OneCpu {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = ();

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }
    fn cpu_id() -> CpuId {
        0
    }
    fn relax() {}
    fn fence(_: Ordering) {}
    fn irq_save() {}
    fn irq_restore((): ()) {}
    fn irqs_were_on((): ()) -> bool {
        false
    }
    fn latch_clear() {}
    fn latch_set() {}
    fn latch_test() -> bool {
        true
    }
    fn poll() {}
    fn kick(_: CpuId) {}
    fn wake_one(_: *const AtomicU32) {}

    /// The holder releases the lock, which wakes the waiter, and takes it again before the waiter runs.
    fn wait(_: &AtomicU32, _: u32) {
        LOCK.unlock(&SHARED, HOLDS.take().expect("it is held"));
        HOLDS.set(LOCK.try_lock(&SHARED));
    }

    fn yield_is_dear() -> bool {
        true
    }

    fn yield_if_cheap() {
        YIELDED.set(YIELDED.get() + 1);
        assert!(YIELDED.get() <= MOST_YIELDS, "the heir keeps the CPU of the holder");
    }

    /// The holder needs many slices for its section.
    fn nap(_: u64) {
        NAPPED.set(NAPPED.get() + 1);
        if NAPPED.get() == NAPS {
            LOCK.unlock(&SHARED, HOLDS.take().expect("it is held"));
        }
    }

    fn now() -> u64 {
        0
    }
}

#[test]
fn an_heir_naps_until_the_holder_has_run() {
    HOLDS.set(Some(LOCK.lock(&SHARED)));
    let token = LOCK.lock(&SHARED);
    assert_eq!(NAPPED.get(), NAPS);
    LOCK.unlock(&SHARED, token);
    assert!(!LOCK.is_locked(&SHARED) && !LOCK.is_contended(&SHARED));
}
