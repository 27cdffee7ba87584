//! The platform of locks in this world: [`Threads`], with counts of waiting, and a way to end a run.
//!
//! A wait loop counts its turns in a value of its thread. That is how the world knows whether an acquisition had
//! to wait, without a shared word that would cost a cache miss. At the end of a run every turn also gives the CPU
//! up: a queue of descheduled waiters would otherwise need a time slice for each of them to dissolve.

use std::cell::Cell;
use std::fmt::Debug;
use std::hint;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use overspin_locks::{AtomicCell, Budget, CpuId, Platform};

use crate::Threads;

/// The number of runs that are ending in this process. A process usually makes one run at a time; a run beside an
/// ending one yields in its wait loops for some milliseconds, which is harmless.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// What a thread did in lock operations since it last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Turns of wait loops.
    pub turns: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Wake-ups of others.
    pub kicks: u64,
}

thread_local! {
    static TURNS: Cell<u64> = const { Cell::new(0) };
    static SLEEPS: Cell<u64> = const { Cell::new(0) };
    static KICKS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the counts of this thread, and begins anew.
#[inline]
pub(super) fn counts() -> Counts {
    Counts { turns: TURNS.replace(0), sleeps: SLEEPS.replace(0), kicks: KICKS.replace(0) }
}

/// As long as this exists, waiters give their CPUs up.
#[derive(Debug)]
pub(super) struct Ending(());

impl Ending {
    pub(super) fn begin() -> Self {
        ENDING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[inline]
fn turn() {
    TURNS.set(TURNS.get() + 1);
    hint::spin_loop();
    // Relaxed: the number stands alone, and nobody writes it during a run.
    if ENDING.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
}

fn one_more(count: &'static thread::LocalKey<Cell<u64>>) {
    count.set(count.get() + 1);
}

/// The platform of locks of a run on threads; see the files beside this one.
#[derive(Debug)]
pub struct RunThreads;

/// An atomic of the machine whose wait loop counts its turns.
#[derive(Debug)]
#[repr(transparent)]
pub struct Counting<A>(A);

macro_rules! cells {
    ($($atomic:ty => $value:ty;)+) => {$(
        impl AtomicCell for Counting<$atomic> {
            type Value = $value;

            #[inline]
            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, success, failure)
            }
            #[inline]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange_weak(current, new, success, failure)
            }
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, order)
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, order)
            }
            #[inline]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, order)
            }
            #[inline]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, order)
            }
            #[inline]
            fn spin_until(
                &self,
                until: impl Fn($value) -> bool + Copy,
                budget: Budget,
            ) -> Result<$value, $value> {
                let mut evaluations = 0;
                loop {
                    // Acquire: promised by `spin_until`.
                    let value = self.0.load(Ordering::Acquire);
                    if until(value) {
                        return Ok(value);
                    }
                    if let Budget::Iterations(limit) = budget {
                        evaluations += 1;
                        if evaluations >= limit {
                            return Err(value);
                        }
                    }
                    turn();
                }
            }
        }
    )+};
}

cells! {
    AtomicU8 => u8;
    AtomicU16 => u16;
    AtomicU32 => u32;
    AtomicUsize => usize;
}

impl Platform for RunThreads {
    type U8 = Counting<AtomicU8>;
    type U16 = Counting<AtomicU16>;
    type U32 = Counting<AtomicU32>;
    type Usize = Counting<AtomicUsize>;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = ();

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        Threads::slots(len, init)
    }
    #[inline]
    fn cpu_id() -> CpuId {
        Threads::cpu_id()
    }
    #[inline]
    fn relax() {
        turn();
    }
    #[inline]
    fn fence(order: Ordering) {
        Threads::fence(order);
    }
    #[inline]
    fn irq_save() {}
    #[inline]
    fn irq_restore((): ()) {}
    #[inline]
    fn irqs_were_on((): ()) -> bool {
        false
    }
    fn latch_clear() {
        Threads::latch_clear();
    }
    fn latch_set() {
        Threads::latch_set();
    }
    fn latch_test() -> bool {
        Threads::latch_test()
    }
    fn poll() {
        one_more(&SLEEPS);
        Threads::poll();
    }
    fn kick(cpu: CpuId) {
        one_more(&KICKS);
        Threads::kick(cpu);
    }
    fn wait(cell: &Self::U32, value: u32) {
        one_more(&SLEEPS);
        Threads::wait(&cell.0, value);
    }
    fn wake_one(address: *const Self::U32) {
        one_more(&KICKS);
        // The cell is the atomic, and the address is only compared.
        Threads::wake_one(address.cast());
    }
    fn numa_node() -> usize {
        Threads::numa_node()
    }
    fn yield_now() {
        TURNS.set(TURNS.get() + 1);
        Threads::yield_now();
    }
    fn now() -> u64 {
        Threads::now()
    }
}
