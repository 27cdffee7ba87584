//! Hapax lock: a waiter knows its predecessor by a value that no other acquisition has. First come, first served,
//! without queue nodes.
//!
//! Each acquisition draws a value of its own, the *hapax*, and swaps it into `arrive`. What it finds there is the value
//! of its predecessor. It waits until `depart` has that value.
//!
//! | `arrive` | `depart` | State |
//! |---|---|---|
//! | v | v | free, the idle state; v is 0 or the value of the last holder |
//! | v | u | held; the last in line has v, and the predecessor of the holder had u |
//!
//! `depart` does not name the holder: only the holder knows its own value. A waiter knows its predecessor's
//! CPU, which is in the value.
//!
//! **Waiting.** A waiter does not look at `depart` again and again, but at a counter in an array that all locks share. Lock
//! and predecessor choose the counter. A release writes `depart`, then counts up the counter of its own value. Two waiters
//! whose counters collide wake each other for nothing: they look again.
//!
//! **No wake-up is lost.** The waiter reads its counter *before* it reads `depart`; the releaser writes `depart` before it
//! counts, and both writes release. So the waiter either finds its predecessor's value in `depart`, or has read the counter
//! before the count that is still to come. `depart` keeps that value until the waiter itself releases.
//!
//! **Values repeat, and that is safe.** A value is a number of its context, times a power of two, plus the number of
//! that context, so two contexts never draw the same one. The first half of a context's numbers is drawn once. With words
//! of 64 bits that is 2^47 draws, or 160 days at ten million a second; with words of 32 bits it is 32,768. From then on
//! it goes round in the second half, and does not draw a value that `depart` has. That one value
//! is the danger: a successor would take the departure of the old episode for that of the new one. Nothing but an
//! episode of this context can write the value into `depart` again, and the context is busy with this one. So what
//! it has seen stays true. **Order:** the swap of `arrive` releases and acquires, so that the successor does not
//! read a `depart` that is older than the one that its predecessor has seen.
//!
//! A context is one of the four levels of a CPU: a handler that tries to lock between two steps of a draw draws from
//! its own numbers.
//!
//! **Properties.** Fair: no CPU overtakes. As bad as a ticket lock when the holder or a waiter is descheduled. Each
//! waiter spins on a line of its own, unless two locks collide. A hand-over costs about three misses: `depart`, the
//! counter, and `depart` again. Uncontended: two read-modify-writes and a store; the counter's line is that of the CPU.
//! After `depart` is written, `unlock` uses only the address of the lock.
//!
//! **`try_lock`** does not wait, unless the CPU that left the lock free has drawn its second half of numbers between
//! two steps of the try, and has the lock: then the try has queued behind it.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Dice and Kogan, "Hapax Locks: Value-Based Mutual Exclusion", PPoPP 2026, arXiv 2511.14608, written from
//! its description. Deviations: published values are blocks of a global counter, and must never repeat; the published
//! array has 4096 slots, chosen by value, and this one has a line for each context of each CPU; `waits`, which only
//! [`RawLock::is_contended`] reads.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS};
use crate::{
    AtomicCell, Budget, CachePadded, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};

/// A value that is none.
const NONE: usize = 0;
/// Bits for the number of a context, from 1 on, at the low end of a value.
const CONTEXT_BITS: u32 = 16;
/// From one value of a context to its next.
const STEP: usize = 1 << CONTEXT_BITS;
/// Values from here on are drawn again and again.
const AGAIN: usize = 1 << (usize::BITS - 1);

/// Properties of [`Hapax`].
pub const INFO: LockInfo = LockInfo {
    name: "hapax",
    brief: "Queue of values instead of nodes; waiters wait in an array: first come, first served.",
    source: "Dice and Kogan, PPoPP 2026",
    fair: true,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 2 * size_of::<usize>(),
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Hapax<P: Platform> {
    /// The value of the last in line.
    arrive: P::Usize,
    /// The value of the last that has released. Only the holder writes it.
    depart: P::Usize,
}

/// What a context of a CPU keeps. Only the context writes it.
#[derive(Debug)]
struct Record<P: Platform> {
    /// The next value to draw.
    next: P::Usize,
    /// The value with which it waits.
    waits: P::Usize,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    records: ContextNodes<P, Record<P>>,
    /// The waiting array: counts of departures.
    counters: P::Slots<CachePadded<P::U32>>,
    /// From one value of a context to its next: [`STEP`], or more in a checker, whose values repeat soon.
    step: usize,
}

/// Proof of an acquisition: its value.
#[derive(Debug)]
pub struct Token(usize);

impl<P: Platform> Shared<P> {
    /// Shared state whose waiting array has `counters` counters. Each context has `values` values, all of which it draws
    /// again and again. It is for a checker; locks in use want [`RawLock::shared`].
    ///
    /// # Panics
    /// If one of the numbers is not a power of two, or if there is one value only.
    pub fn with(cpus: usize, counters: usize, values: usize) -> Self {
        assert!(values.is_power_of_two() && values > 1, "a context needs a second value");
        Self::from(cpus, counters, AGAIN, AGAIN / values)
    }

    fn from(cpus: usize, counters: usize, first: usize, step: usize) -> Self {
        assert!(counters.is_power_of_two(), "the counter is chosen by a mask");
        let none = || P::Usize::new(NONE);
        let records =
            ContextNodes::new(cpus, || Record { next: P::Usize::new(first), waits: none() });
        let counters = P::slots(counters, |_| CachePadded::new(P::U32::new(0)));
        Self { records, counters, step }
    }

    /// The record of the context that drew `value`.
    fn record(&self, value: usize) -> &Record<P> {
        self.records.get((value % STEP) as u32)
    }

    /// The counter of departures of `value` from `lock`.
    fn counter(&self, lock: &Hapax<P>, value: usize) -> &P::U32 {
        // Locks are at least their size apart. One context's values share a counter: its line stays with the CPU.
        let place = P::place(ptr::from_ref(lock).addr(), self.counters.as_ptr().addr());
        let hash = (value % STEP) ^ (place / size_of::<Hapax<P>>());
        &self.counters[hash & (self.counters.len() - 1)]
    }
}

/// The number after `number`.
const fn after(number: usize, step: usize) -> usize {
    match number.checked_add(step) {
        Some(next) => next,
        // Not from 0: the numbers of the first half are drawn once.
        None => AGAIN,
    }
}

impl<P: Platform> Hapax<P> {
    /// Draws a value for an acquisition.
    #[inline(always)]
    fn draw(&self, shared: &Shared<P>) -> usize {
        let context = shared.records.mine();
        let next = &shared.records.get(context).next;
        // Relaxed: only this context uses it.
        let mut number = next.load(Relaxed);
        if number >= AGAIN {
            number = self.not_departed(number, context, shared.step);
        }
        next.store(after(number, shared.step), Relaxed);
        number | context as usize
    }

    /// `number`, or the next if the last value that departed has this one: see "Values repeat, and that is safe".
    #[cold]
    fn not_departed(&self, number: usize, context: u32, step: usize) -> usize {
        // Relaxed: a value that this context wrote, or a later one.
        let departed = self.depart.load(Relaxed) == number | context as usize;
        let departed = right!(departed, P, Z2HapaxDrawsWhatHasDeparted, false);
        if departed { after(number, step) } else { number }
    }

    #[cold]
    fn wait(&self, shared: &Shared<P>, mine: usize, before: usize) {
        let waits = &shared.record(mine).waits;
        // Relaxed, both: a hint.
        waits.store(mine, Relaxed);
        let counter = shared.counter(self, before);
        loop {
            // Acquire, both: see "No wake-up is lost". If the counter were read second, it could already be counted up,
            // and would not be counted up again.
            let look = || self.depart.load(Acquire) == before;
            let (seen, departed) =
                right!((counter.load(Acquire), look()), P, Z1HapaxDepartBeforeCounter, {
                    let departed = look();
                    (counter.load(Acquire), departed)
                });
            if departed {
                break;
            }
            let _ = counter.spin_until(|count| count != seen, Budget::Forever);
        }
        waits.store(NONE, Relaxed);
    }
}

impl<P: Platform> RawLock<P> for Hapax<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        let counters = ContextNodes::<P, Record<P>>::number(cpus) + 1;
        Ok(Shared::from(cpus, counters.next_power_of_two(), 0, STEP))
    }

    fn new() -> Self {
        Self { arrive: P::Usize::new(NONE), depart: P::Usize::new(NONE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let mine = self.draw(shared);
        // Acquire and release: see "Order".
        let before = right!(self.arrive.swap(mine, AcqRel), P, Z3HapaxArrivesRelaxed, {
            self.arrive.swap(mine, Relaxed)
        });
        // Acquire: pairs with the release in `unlock`.
        if self.depart.load(Acquire) != before {
            self.wait(shared, mine, before);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        // Acquire: pairs with the release in `unlock`.
        let last = self.depart.load(Acquire);
        if self.arrive.load(Relaxed) != last {
            return None;
        }
        let mine = self.draw(shared);
        self.arrive.compare_exchange(last, mine, AcqRel, Relaxed).is_ok().then(|| {
            // At once, unless `last` was drawn again since the look: see "`try_lock`".
            let _ = self.depart.spin_until(|departed| departed == last, Budget::Forever);
            Token(mine)
        })
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(mine): Token) {
        let counter = shared.counter(self, mine);
        // Release: what the holder did happens before the next acquisition.
        self.depart.store(mine, Release);
        // Release: a CPU that sees the count sees the departure.
        counter.fetch_add(1, Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.arrive.load(Relaxed) != self.depart.load(Relaxed)
    }

    /// The last in line waits if it is not the holder.
    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let last = self.arrive.load(Relaxed);
        last != NONE && shared.record(last).waits.load(Relaxed) == last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first number is never drawn again, because it is drawn without a look.
    #[test]
    fn numbers_go_round_in_the_second_half() {
        assert_eq!(after(0, STEP), STEP);
        assert_eq!(after(AGAIN - STEP, STEP), AGAIN);
        assert_eq!(after(usize::MAX - (STEP - 1), STEP), AGAIN);
        assert_eq!(after(AGAIN + AGAIN / 2, AGAIN / 2), AGAIN);
    }
}
