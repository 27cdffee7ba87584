//! The machine's own atomics as cells, for every world that runs on real threads.
//!
//! Each method forwards to the method of the same name, so that a lock over these cells compiles
//! to what a hand-written one compiles to.

use core::hint;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use crate::{AtomicCell, Budget};

/// [`AtomicCell::spin_until`] as a loop that calls `relax` between two looks.
///
/// # Errors
/// The last value seen, if the budget ran out.
// Always: inlined in one step, it compiles to what a loop in its place compiles to.
#[inline(always)]
pub fn spin_with<C: AtomicCell>(
    cell: &C,
    until: impl Fn(C::Value) -> bool,
    budget: Budget,
    mut relax: impl FnMut(),
) -> Result<C::Value, C::Value> {
    let mut evaluations = 0;
    loop {
        // Acquire: promised by `spin_until`; free on x86, and a waiter that leaves
        // the loop is about to need it.
        let value = cell.load(Ordering::Acquire);
        if until(value) {
            return Ok(value);
        }
        if let Budget::Iterations(limit) = budget {
            evaluations += 1;
            if evaluations >= limit {
                return Err(value);
            }
        }
        relax();
    }
}

/// Methods of a cell that call the methods of the same names of another value.
macro_rules! updates {
    ($this:ident, $value:ty => $other:expr; $($name:ident)+) => {$(
        #[inline]
        fn $name(&$this, value: $value, order: Ordering) -> $value {
            $other.$name(value, order)
        }
    )+};
}
pub(crate) use updates;

macro_rules! core_cells {
    ($($atomic:ty => $value:ty;)+) => {$(
        impl AtomicCell for $atomic {
            type Value = $value;

            #[inline]
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }

            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            #[inline]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange_weak(current, new, success, failure)
            }

            updates!(self, $value => self; swap fetch_add fetch_sub fetch_or fetch_and);

            #[inline]
            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                spin_with(self, until, budget, hint::spin_loop)
            }
        }
    )+};
}

core_cells! {
    AtomicU8 => u8;
    AtomicU16 => u16;
    AtomicU32 => u32;
    AtomicUsize => usize;
}
