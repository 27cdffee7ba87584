//! The platform of this library's locks: threads that look around now and then while they wait in a lock
//! ([`bypass::look`]). If the holder of a lock never releases it, only these looks free its waiters.
//!
//! Everything else is [`Threads`], with the same thread numbers. An acquisition that does not wait runs the same
//! code as there.

use std::cell::Cell;
use std::fmt::Debug;
use std::hint;
use std::sync::atomic::Ordering::{self, Acquire};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};
use std::time::Duration;

use overspin_locks::{AtomicCell, Budget, CpuId, Note, Platform, RawLock, for_each_lock};
use overspin_native::Threads;

use crate::bypass;
use crate::placed::Kind;

/// Rounds of a wait loop between two looks: 20 to 200 us, depending on the machine's pause instruction.
const ROUNDS: u32 = 4096;
/// Rounds that a yield counts for. A yield takes at least a microsecond, and milliseconds if other threads compute.
const ROUNDS_OF_A_YIELD: u32 = 256;
/// Waits up to this length are not counted.
const FEW: u32 = 16;
/// The interval at which a sleeper wakes up to look. Ten looks per second cost some 0.01 % of a CPU.
const SLEEP: Duration = Duration::from_millis(100);

thread_local! {
    /// Rounds since the last look, from shorter waits.
    static WAITED: Cell<u32> = const { Cell::new(0) };
}

#[cold]
fn waited(rounds: u32) {
    let sum = WAITED.get().saturating_add(rounds);
    if sum < ROUNDS {
        WAITED.set(sum);
    } else {
        WAITED.set(0);
        bypass::look();
    }
}

/// A cell of the machine whose waiters look around.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Watched<A>(A);

impl<A: AtomicCell> AtomicCell for Watched<A> {
    type Value = A::Value;

    #[inline]
    fn new(value: A::Value) -> Self {
        Self(A::new(value))
    }

    #[inline]
    fn load(&self, order: Ordering) -> A::Value {
        self.0.load(order)
    }

    #[inline]
    fn store(&self, value: A::Value, order: Ordering) {
        self.0.store(value, order);
    }

    #[inline]
    fn swap(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.swap(value, order)
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: A::Value,
        new: A::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<A::Value, A::Value> {
        self.0.compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn compare_exchange_weak(
        &self,
        current: A::Value,
        new: A::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<A::Value, A::Value> {
        self.0.compare_exchange_weak(current, new, success, failure)
    }

    #[inline]
    fn fetch_add(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_add(value, order)
    }

    #[inline]
    fn fetch_sub(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_sub(value, order)
    }

    #[inline]
    fn fetch_or(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_or(value, order)
    }

    #[inline]
    fn fetch_and(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_and(value, order)
    }

    #[inline]
    fn spin_until(
        &self,
        until: impl Fn(A::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<A::Value, A::Value> {
        let (mut evaluations, mut since_look) = (0u32, 0u32);
        let result = loop {
            // Acquire: `spin_until` promises it.
            let value = self.0.load(Acquire);
            if until(value) {
                break Ok(value);
            }
            since_look += 1;
            if let Budget::Iterations(limit) = budget {
                evaluations += 1;
                if evaluations >= limit {
                    break Err(value);
                }
            }
            if since_look == ROUNDS {
                since_look = 0;
                waited(ROUNDS);
            }
            hint::spin_loop();
        };
        if since_look > FEW {
            waited(since_look);
        }
        result
    }
}

/// The platform.
#[derive(Debug)]
pub(crate) struct WatchedThreads;

impl Platform for WatchedThreads {
    type U8 = Watched<AtomicU8>;
    type U16 = Watched<AtomicU16>;
    type U32 = Watched<AtomicU32>;
    type Usize = Watched<AtomicUsize>;
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
        Threads::relax();
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
        while Threads::poll_for(SLEEP) {
            bypass::look();
        }
    }

    fn kick(cpu: CpuId) {
        Threads::kick(cpu);
    }

    fn wait(cell: &Self::U32, value: u32) {
        while Threads::wait_for(&cell.0, value, SLEEP) {
            bypass::look();
        }
    }

    fn wake_one(address: *const Self::U32) {
        Threads::wake_one(address.cast());
    }

    fn numa_node() -> usize {
        Threads::numa_node()
    }

    fn yield_now() {
        Threads::yield_now();
        waited(ROUNDS_OF_A_YIELD);
    }

    fn yield_if_cheap() {
        Threads::yield_if_cheap();
        waited(ROUNDS_OF_A_YIELD);
    }

    fn processor() -> usize {
        Threads::processor()
    }

    fn yield_is_dear() -> bool {
        Threads::yield_is_dear()
    }

    fn nap(nanos: u64) {
        Threads::nap(nanos);
        waited(ROUNDS);
    }

    fn recall() -> Note {
        Threads::recall()
    }

    fn remember(note: Note) {
        Threads::remember(note);
    }

    fn now() -> u64 {
        Threads::now()
    }
}

macro_rules! every_lock {
    ($($lock:ident)+) => {
        /// Returns the lock of that name or alias.
        pub(crate) fn kind(name: &str) -> Option<&'static Kind> {
            let name = overspin_locks::find(name)?.name;
            $(
                type $lock = overspin_locks::$lock<WatchedThreads>;
                if name == <$lock as RawLock<WatchedThreads>>::INFO.name {
                    // SAFETY: the locks of the registry keep the promises on every platform, as the model checker
                    // checks, and this platform has the same thread numbers.
                    return Some(unsafe { Kind::of::<$lock>() });
                }
            )+
            None
        }
    };
}
for_each_lock!(every_lock);
