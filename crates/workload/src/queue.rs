//! A first-in, first-out queue of numbers that tasks share, whatever they run on. It is made of atomics,
//! because a program knows neither the threads nor the locks of its world.
//!
//! It is bounded, and its users guarantee that it never overflows. A task first claims a slot (by moving
//! `first` or `last`) and then fills or empties it. In between, another task may have to wait in a loop for
//! that store or load. In the simulated world nothing happens between the two steps, so no task ever waits.

use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// An empty slot; a slot keeps its number plus one.
const EMPTY: usize = 0;

#[derive(Debug)]
pub(crate) struct Queue {
    slots: Vec<AtomicUsize>,
    /// Numbers taken so far.
    first: AtomicUsize,
    /// Numbers put in so far.
    last: AtomicUsize,
}

impl Queue {
    /// A queue for at most `most` numbers.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            slots: (0..most.max(1)).map(|_| AtomicUsize::new(EMPTY)).collect(),
            first: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
        }
    }

    /// Puts a number behind the others. `number` must be less than `usize::MAX`.
    pub(crate) fn push(&self, number: usize) {
        // `Relaxed`: the claim orders nothing; the slot publishes what came before.
        let at = self.last.fetch_add(1, Relaxed);
        let slot = &self.slots[at % self.slots.len()];
        // The slot is empty unless the task that has claimed its last number has not taken it yet.
        while slot.compare_exchange(EMPTY, number + 1, Release, Relaxed).is_err() {
            spin_loop();
        }
    }

    /// Takes the first number; `None` if there is none.
    pub(crate) fn pop(&self) -> Option<usize> {
        let claim = |first| (first != self.last.load(Relaxed)).then_some(first + 1);
        let at = self.first.fetch_update(Relaxed, Relaxed, claim).ok()?;
        let slot = &self.slots[at % self.slots.len()];
        loop {
            // `Acquire`: pairs with the store of `push`.
            match slot.swap(EMPTY, Acquire) {
                EMPTY => spin_loop(),
                number => return Some(number - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn first_in_first_out_round_and_round() {
        let queue = Queue::new(3);
        assert_eq!(queue.pop(), None);
        for i in 0..10 {
            queue.push(i);
            queue.push(i + 100);
            assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(i), Some(i + 100), None));
        }
    }

    #[test]
    fn threads_lose_nothing_and_get_nothing_twice() {
        const EACH: usize = 20_000;
        let queue = Queue::new(3 * EACH);
        let mut all: Vec<usize> = thread::scope(|s| {
            let queue = &queue;
            for of in 0..3 {
                s.spawn(move || (0..EACH).for_each(|i| queue.push(of * EACH + i)));
            }
            let take = move || {
                let mut got = Vec::new();
                while got.len() < EACH {
                    match queue.pop() {
                        Some(number) => got.push(number),
                        None => thread::yield_now(),
                    }
                }
                got
            };
            let takers: Vec<_> = (0..3).map(|_| s.spawn(take)).collect();
            takers.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert!(all.into_iter().eq(0..3 * EACH));
    }
}
