//! The platform of this library's locks: threads that look around now and then while they wait in a lock
//! ([`bypass::look`]). If the holder of a lock never releases it, only these looks free its waiters.
//!
//! Everything else is [`Threads`], with the same thread numbers. An acquisition that does not wait runs the same
//! code as there.

use std::cell::Cell;
use std::hint;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};
use std::time::Duration;

use overspin_locks::{
    AtomicCell, Budget, Platform, RawLock, Waiters, WrappedCell, for_each_lock, forward_platform,
};
use overspin_native::Threads;

use crate::bypass;
use crate::placed::Kind;

/// Rounds of a wait loop between two looks: 20 to 200 us, depending on the machine's pause instruction.
const ROUNDS: u32 = 4096;
/// Rounds that a yield counts for. A yield takes at least a microsecond, and milliseconds if other threads compute.
const ROUNDS_OF_A_YIELD: u32 = 256;
/// Waits up to this length that end well are not counted.
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

/// The platform.
#[derive(Debug)]
pub(crate) struct WatchedThreads;

/// Waiters look around.
impl Waiters for WatchedThreads {
    #[inline]
    fn spin<C: AtomicCell>(
        cell: &C,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value> {
        let (mut evaluations, mut since_look) = (0u32, 0u32);
        let result = loop {
            // Acquire: `spin_until` promises it.
            let value = cell.load(Acquire);
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
        // A failed wait counts however short it is: some locks wait by short ones only.
        if since_look > FEW || result.is_err() {
            waited(since_look);
        }
        result
    }
}

impl Platform for WatchedThreads {
    // Not `paravirtual`: nobody sets that branch here.
    forward_platform!(
        Threads,
        except cells, poll, paravirtual, yield_now, yield_if_cheap, nap
    );

    type U8 = WrappedCell<AtomicU8, Self>;
    type U16 = WrappedCell<AtomicU16, Self>;
    type U32 = WrappedCell<AtomicU32, Self>;
    type Usize = WrappedCell<AtomicUsize, Self>;

    fn poll() {
        while Threads::poll_for(SLEEP) {
            bypass::look();
        }
    }

    fn wait(cell: &Self::U32, value: u32) {
        while Threads::wait_for(cell.inner(), value, SLEEP) {
            bypass::look();
        }
    }

    fn wake_one(address: *const Self::U32) {
        Threads::wake_one(address.cast());
    }

    fn yield_now() {
        Threads::yield_now();
        waited(ROUNDS_OF_A_YIELD);
    }

    fn yield_if_cheap() {
        Threads::yield_if_cheap();
        waited(ROUNDS_OF_A_YIELD);
    }

    fn nap(nanos: u64) {
        Threads::nap(nanos);
        waited(ROUNDS);
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
