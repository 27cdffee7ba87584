//! Cells over shuttle's atomics. Every order is `SeqCst`: shuttle knows no other.

use shuttle::sync::atomic::Ordering::SeqCst;
use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use overspin_locks::{AtomicCell, Budget};

use super::platform::{one_in, world};

/// Most looks of a bounded spin. There is no time here, only turns: more looks would be more of the
/// same.
const LOOKS: u32 = 3;
/// One weak exchange in so many fails for no reason.
const FAILURE_ONE_IN: u32 = 8;

macro_rules! schedule_cell {
    ($cell:ident, $atomic:ty, $value:ty) => {
        /// An atomic whose every access is a point where another CPU may go on.
        #[derive(Debug)]
        pub struct $cell($atomic);

        impl $cell {
            /// Where this cell is, which is how those who wait for a write to it are known.
            pub(super) fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }

            fn write<R>(&self, write: impl FnOnce(&$atomic) -> R) -> R {
                let result = world().access(self.address(), || write(&self.0));
                world().written(self.address());
                result
            }
        }

        impl AtomicCell for $cell {
            type Value = $value;

            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }

            fn load(&self, _: Ordering) -> $value {
                world().access(self.address(), || self.0.load(SeqCst))
            }

            fn store(&self, value: $value, _: Ordering) {
                self.write(|it| it.store(value, SeqCst));
            }

            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.write(|it| it.swap(value, SeqCst))
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                self.write(|it| it.compare_exchange(current, new, SeqCst, SeqCst))
            }

            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if one_in(FAILURE_ONE_IN) && self.load(SeqCst) == current {
                    return Err(current);
                }
                self.compare_exchange(current, new, success, failure)
            }

            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.write(|it| it.fetch_add(value, SeqCst))
            }

            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.write(|it| it.fetch_sub(value, SeqCst))
            }

            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.write(|it| it.fetch_or(value, SeqCst))
            }

            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.write(|it| it.fetch_and(value, SeqCst))
            }

            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                let mut looks = 0;
                loop {
                    let value = self.load(SeqCst);
                    if until(value) {
                        return Ok(value);
                    }
                    let Budget::Iterations(limit) = budget else {
                        // Nobody else runs between the look and the parking.
                        world().await_write(self.address());
                        continue;
                    };
                    // After the last look too: a loop around a bounded spin gives way like the spin.
                    shuttle::thread::yield_now();
                    looks += 1;
                    if looks >= limit.min(LOOKS) {
                        return Err(value);
                    }
                }
            }
        }
    };
}

schedule_cell!(ScheduleU8, AtomicU8, u8);
schedule_cell!(ScheduleU16, AtomicU16, u16);
schedule_cell!(ScheduleU32, AtomicU32, u32);
schedule_cell!(ScheduleUsize, AtomicUsize, usize);
