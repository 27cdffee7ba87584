//! Cells over loom's atomics.
//!
//! A store is an exchange whose result is dropped. loom keeps the modification order of a cell as a
//! partial order, and leaves a plain store unordered with an exchange by another thread. A later
//! exchange may then read the value that the store has overwritten. No machine does that, and
//! correct locks would fail. The price: a store here continues the release sequence that it should
//! break. The locks only store to what they released themselves, so the models lose nothing for
//! them.

use std::cell::Cell;
use std::rc::Rc;

use loom::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use overspin_locks::ticket::{self, TicketWord};
use overspin_locks::{AtomicCell, Budget, LockInfo, spin_with};

use super::world::{Point, world};
use crate::Mutation;

/// Returns the order to use where the lock asks for `order`.
fn mutated(order: Ordering) -> Ordering {
    world().mutation.order(order)
}

/// Width of `tail` in the one ticket word that a mutant compares by its tail only.
const TAIL_BITS: u32 = 2;

/// A loom atomic, and its newest value, hidden from the model.
#[derive(Debug)]
struct Raw<A, V: Copy> {
    atomic: A,
    newest: Cell<V>,
}

macro_rules! loom_cell {
    ($cell:ident$(<const $bits:ident>)?, $atomic:ty, $raw:ty, $value:ty, $wrap:expr, $unwrap:expr) => {
        /// See the module documentation.
        #[derive(Debug)]
        pub struct $cell$(<const $bits: u32>)?(Rc<Raw<$atomic, $raw>>);

        impl$(<const $bits: u32>)? $cell$(<$bits>)? {
            /// Runs `write`, which returns the old value, and records `new` of it as the newest
            /// value.
            fn write(
                &self,
                write: impl FnOnce(&$atomic) -> $raw,
                new: impl FnOnce($raw) -> $raw,
            ) -> $value {
                world().access(self, || {
                    let old = write(&self.0.atomic);
                    self.0.newest.set(new(old));
                    world().progress();
                    $wrap(old)
                })
            }
        }

        impl$(<const $bits: u32>)? AtomicCell for $cell$(<$bits>)? {
            type Value = $value;

            fn new(value: $value) -> Self {
                let value = $unwrap(value);
                Self(Rc::new(Raw { atomic: <$atomic>::new(value), newest: Cell::new(value) }))
            }

            fn load(&self, order: Ordering) -> $value {
                world().access(self, || $wrap(self.0.atomic.load(mutated(order))))
            }

            fn store(&self, value: $value, order: Ordering) {
                let (value, order) = ($unwrap(value), mutated(order));
                // The locks store addresses in their registrations only.
                if size_of::<$raw>() == size_of::<usize>() {
                    let leaving = world().take_leaving();
                    match world().mutation {
                        Mutation::NoRestore if leaving => {
                            self.write(|it| it.swap(0, order), |_| 0);
                            return;
                        }
                        Mutation::LateRegistration if value != 0 => {
                            let raw = Rc::clone(&self.0);
                            world().defer(move || _ = raw.atomic.swap(value, order));
                            return;
                        }
                        _ => {}
                    }
                }
                self.write(|it| it.swap(value, order), |_| value);
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                if world().mutation == Mutation::SplitSwap {
                    let found = self.load(order);
                    self.store(value, order);
                    return found;
                }
                let value = $unwrap(value);
                self.write(|it| it.swap(value, mutated(order)), |_| value)
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (mut current, mut new) = ($unwrap(current), $unwrap(new));
                world().access(self, || {
                    loop {
                        let result =
                            self.0.atomic.compare_exchange(current, new, mutated(success), failure);
                        match result {
                            Ok(old) => {
                                self.0.newest.set(new);
                                world().progress();
                                return Ok($wrap(old));
                            }
                            // `tail` is the same: continue as if the whole word were.
                            Err(found)
                                if world().mutation == Mutation::TailOnlyCas
                                    && (found ^ current).leading_zeros() >= TAIL_BITS =>
                            {
                                (current, new) = (found, found.wrapping_add(new - current));
                            }
                            Err(found) => return Err($wrap(found)),
                        }
                    }
                })
            }

            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if world().takes_weak_failure() {
                    // It reads the newest value, as an exchange would.
                    let found = self.fetch_or($wrap(0), failure);
                    return Err(found);
                }
                self.compare_exchange(current, new, success, failure)
            }

            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let value = $unwrap(value);
                self.write(|it| it.fetch_add(value, mutated(order)), |old| old.wrapping_add(value))
            }

            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                world().counted_out();
                let value = $unwrap(value);
                self.write(|it| it.fetch_sub(value, mutated(order)), |old| old.wrapping_sub(value))
            }

            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                let value = $unwrap(value);
                self.write(|it| it.fetch_or(value, mutated(order)), |old| old | value)
            }

            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                let value = $unwrap(value);
                self.write(|it| it.fetch_and(value, mutated(order)), |old| old & value)
            }

            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                spin_with(self, &until, budget, || {
                    world().interrupt(Some(Point::Spin));
                    // With a budget, the next look counts whatever it finds.
                    let bounded = budget != Budget::Forever;
                    if !bounded {
                        world().may_wait();
                    }
                    world().wait(|| bounded || until($wrap(self.0.newest.get())));
                })
            }
        }
    };
}

loom_cell!(LoomU8, AtomicU8, u8, u8, |raw| raw, |value: u8| value);
loom_cell!(LoomU16, AtomicU16, u16, u16, |raw| raw, |value: u16| value);
loom_cell!(LoomU32, AtomicU32, u32, u32, |raw| raw, |value: u32| value);
loom_cell!(LoomUsize, AtomicUsize, usize, usize, |raw| raw, |value: usize| value);
loom_cell!(TinyCell<const BITS>, AtomicU8, u8, Tiny<BITS>, Tiny, |value: Tiny<BITS>| value.0);

/// A word with tickets of `BITS` bits, at the top of a byte so that the carry out of `tail` drops
/// off. It makes the shipped ticket lock wrap after two or four acquisitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiny<const BITS: u32>(u8);

impl<const BITS: u32> Tiny<BITS> {
    const TAIL: u32 = 8 - BITS;
    const HEAD: u32 = 8 - 2 * BITS;
    const MASK: u8 = (1 << BITS) - 1;
}

impl<const BITS: u32> TicketWord for Tiny<BITS> {
    type Ticket = u8;
    const INFO: LockInfo = LockInfo { max_cpus: Self::MASK as u32, ..ticket::SMALL_INFO };
    const IDLE: Self = Self(0);
    const DRAW: Self = Self(1 << Self::TAIL);

    fn head(self) -> u8 {
        self.0 >> Self::HEAD & Self::MASK
    }

    fn tail(self) -> u8 {
        self.0 >> Self::TAIL
    }

    fn outstanding(self) -> u32 {
        (self.tail().wrapping_sub(self.head()) & Self::MASK).into()
    }

    fn drawn(self) -> Self {
        Self(self.0.wrapping_add(Self::DRAW.0))
    }

    fn serve_next(head: u8) -> Self {
        let next = if world().mutation == Mutation::CarryingHead {
            head + 1
        } else {
            head.wrapping_add(1) & Self::MASK
        };
        Self((next << Self::HEAD).wrapping_sub(head << Self::HEAD))
    }
}
