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

/// The methods of a cell that all cells have, except `new` and the spins: they call those of the same names of another value.
macro_rules! accesses {
    ($this:ident, $value:ty => $other:expr) => {
        #[inline]
        fn load(&$this, order: Ordering) -> $value {
            $other.load(order)
        }

        #[inline]
        fn store(&$this, value: $value, order: Ordering) {
            $other.store(value, order);
        }

        $crate::core_cells::accesses! { @updates $this, $value => $other; swap fetch_add fetch_sub fetch_or fetch_and }
        $crate::core_cells::accesses! { @exchanges $this, $value => $other; compare_exchange compare_exchange_weak }
    };
    (@updates $this:ident, $value:ty => $other:expr; $($name:ident)+) => {$(
        #[inline]
        fn $name(&$this, value: $value, order: Ordering) -> $value {
            $other.$name(value, order)
        }
    )+};
    (@exchanges $this:ident, $value:ty => $other:expr; $($name:ident)+) => {$(
        #[inline]
        fn $name(
            &$this,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            $other.$name(current, new, success, failure)
        }
    )+};
}
pub(crate) use accesses;

macro_rules! core_cells {
    ($($atomic:ty => $value:ty;)+) => {$(
        impl AtomicCell for $atomic {
            type Value = $value;

            #[inline]
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }

            accesses!(self, $value => self);

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
