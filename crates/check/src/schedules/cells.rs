//! Cells in the [memory](super::memory) of a plan.

use std::sync::atomic::Ordering;

use overspin_locks::{AtomicCell, Budget};

use super::memory::Loaded;
use super::world::world;
use crate::Mutation;

/// Most looks of a bounded spin. This world has turns instead of time, so more looks would only
/// repeat the same.
const LOOKS: u32 = 3;

macro_rules! schedule_cell {
    ($cell:ident, $value:ty) => {
        /// A cell. Each access to it is a point where another CPU may go on.
        #[derive(Debug)]
        pub struct $cell(u32);

        impl $cell {
            /// The address of this cell. It identifies the waiters for a write to the cell.
            pub(super) fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }

            pub(super) fn find(&self, order: Ordering, newest: bool) -> ($value, bool) {
                let Loaded { value, newest } = world().load(self.address(), self.0, order, newest);
                (value as $value, newest)
            }

            fn update(&self, order: Ordering, new: impl Fn($value) -> $value) -> $value {
                let new = |old| Some(new(old as $value) as u64);
                let old = world().update(self.address(), self.0, order, Ordering::Relaxed, new);
                old.unwrap_or_else(|old| old) as $value
            }
        }

        impl AtomicCell for $cell {
            type Value = $value;

            fn new(value: $value) -> Self {
                Self(world().cell(value as u64))
            }

            fn load(&self, order: Ordering) -> $value {
                self.find(order, false).0
            }

            fn store(&self, value: $value, order: Ordering) {
                world().store(self.address(), self.0, value as u64, order);
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                if world().mutation == Mutation::SplitSwap {
                    let found = self.load(order);
                    self.store(value, order);
                    return found;
                }
                self.update(order, |_| value)
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let new = |old| (old as $value == current).then_some(new as u64);
                match world().update(self.address(), self.0, success, failure, new) {
                    Ok(old) => Ok(old as $value),
                    Err(old) => Err(old as $value),
                }
            }

            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if world().fails_weakly() && self.load(failure) == current {
                    return Err(current);
                }
                self.compare_exchange(current, new, success, failure)
            }

            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_add(value))
            }

            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_sub(value))
            }

            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old | value)
            }

            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old & value)
            }

            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                let (mut looks, mut must_be_newest) = (0, false);
                if let Budget::Iterations(most) = budget {
                    world().looks(most);
                }
                loop {
                    let (value, newest) = self.find(Ordering::Acquire, must_be_newest);
                    if until(value) {
                        return Ok(value);
                    }
                    let Budget::Iterations(limit) = budget else {
                        if newest {
                            // No other CPU runs between the look and the parking.
                            world().await_write(self.address());
                        } else {
                            // A stored value becomes visible eventually.
                            must_be_newest = true;
                        }
                        continue;
                    };
                    // Also yield after the last look: a loop around a bounded spin gives way like
                    // the spin.
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

schedule_cell!(ScheduleU8, u8);
schedule_cell!(ScheduleU16, u16);
schedule_cell!(ScheduleU32, u32);
schedule_cell!(ScheduleUsize, usize);
