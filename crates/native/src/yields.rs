//! What it costs to yield the CPU: little beside other waiters, a slice beside processes that compute.
//!
//! A thread that yields is queued behind all others of its CPU. Other waiters yield in turn, or take the lock and wait
//! again, so it is back after microseconds. A process that computes keeps the CPU for a slice, some milliseconds. One
//! slow yield says little: every machine has background work. So yields are dear when slow ones are frequent. Then
//! only one thread tries, from time to time, whether they still are.
//!
//! A thread of the same process may keep the CPU for a slice too, if it finds its locks free. That is no loss: it is
//! the thread for which the CPU was given away, or another one that uses the locks. So what counts is the time from the
//! last [sighting](crate::sightings) of such a thread on the CPU. Without this rule, yields that are avoided would stay
//! dear: threads that do not yield to each other keep the CPU for whole slices.

use std::hint;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A yield of this length, in nanoseconds, is slow: the shortest slice of the kernel is 3 ms (0.75 ms on one CPU), and
/// switching through 32 threads of a busy lock takes less than 1 ms.
const SLOW_NS: u64 = 2_000_000;

/// What a slow yield adds to the score. A quick one takes 1 away.
const SLOW: u32 = 8;

/// Yields are dear from this score on: two slow ones within eight.
const DEAR: u32 = 2 * SLOW - 7;

/// The highest score.
const MOST: u32 = 4 * SLOW;

/// How long yields then count as dear, in nanoseconds: long beside a yield that only tries.
const AVOID_NS: u64 = 100_000_000;

/// The yields of all threads. Accesses are relaxed, and concurrent updates may be lost: it is for hints.
pub(crate) struct Yields {
    score: AtomicU32,
    /// Time until which yields are dear; 0 if they are not.
    until: AtomicU64,
}

impl Yields {
    pub(crate) const fn new() -> Self {
        Self { score: AtomicU32::new(0), until: AtomicU64::new(0) }
    }

    /// Whether yields are dear. It reads the clock only if they have been.
    pub(crate) fn are_dear(&self, clock: impl FnOnce() -> u64) -> bool {
        match self.until.load(Relaxed) {
            0 => false,
            until => clock() < until,
        }
    }

    /// Yields, unless that is dear. `seen` is when a thread of this process was last seen on the CPU.
    pub(crate) fn yield_if_cheap(
        &self,
        clock: impl Fn() -> u64,
        yields: impl FnOnce(),
        seen: impl FnOnce() -> u64,
    ) {
        let asked = clock();
        let until = self.until.load(Relaxed);
        // The first thread after that time tries; until it is back, the others still avoid it.
        let tries = || {
            let next = asked + AVOID_NS;
            self.until.compare_exchange(until, next, Relaxed, Relaxed).is_ok()
        };
        if until != 0 && (asked < until || !tries()) {
            hint::spin_loop();
            return;
        }
        yields();
        // Before the clock is read, which is a sighting of this thread.
        let seen = seen().max(asked);
        let back = clock();
        let slow = back.saturating_sub(seen) >= SLOW_NS;
        let score = match self.score.load(Relaxed) {
            score if slow => (score + SLOW).min(MOST),
            score if back - asked < SLOW_NS => score.saturating_sub(1),
            // Threads of ours ran; another process may have run before them, and then one of them has noticed it.
            score => score,
        };
        self.score.store(score, Relaxed);
        if slow && score >= DEAR {
            self.until.store(back + AVOID_NS, Relaxed);
        } else if until != 0 {
            self.until.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Yields that take `length`; returns whether there was one.
    fn yields(it: &Yields, now: &Cell<u64>, length: u64) -> bool {
        let before = now.get();
        it.yield_if_cheap(|| now.get(), || now.set(now.get() + length), || 0);
        now.get() != before
    }

    #[test]
    fn rare_slow_yields_are_cheap() {
        let (it, now) = (Yields::new(), Cell::new(1));
        for _ in 0..100 {
            assert!(yields(&it, &now, SLOW_NS));
            for _ in 0..SLOW {
                assert!(yields(&it, &now, 1_000));
            }
        }
        assert!(!it.are_dear(|| now.get()));
    }

    #[test]
    fn frequent_slow_yields_are_avoided_until_one_is_quick() {
        let (it, now) = (Yields::new(), Cell::new(1));
        assert!(yields(&it, &now, SLOW_NS) && yields(&it, &now, SLOW_NS));
        assert!(it.are_dear(|| now.get()) && !yields(&it, &now, SLOW_NS));
        now.set(now.get() + AVOID_NS);
        // It tries, and is slow again.
        assert!(yields(&it, &now, SLOW_NS) && it.are_dear(|| now.get()));
        now.set(now.get() + AVOID_NS);
        assert!(yields(&it, &now, 1_000) && !it.are_dear(|| now.get()));
        assert!(yields(&it, &now, 1_000));
    }

    #[test]
    fn threads_that_wait_for_the_same_slice_count_once() {
        let (it, now, seen) = (Yields::new(), Cell::new(1), Cell::new(0));
        let clock = || {
            seen.set(now.get());
            now.get()
        };
        let inner = || {
            it.yield_if_cheap(clock, || now.set(now.get() + SLOW_NS), || seen.get());
        };
        // The second begins and ends within the first.
        it.yield_if_cheap(clock, inner, || seen.get());
        assert!(!it.are_dear(|| now.get()));
        inner();
        assert!(it.are_dear(|| now.get()));
    }

    #[test]
    fn a_slice_of_a_thread_of_the_same_process_costs_nothing() {
        let (it, now) = (Yields::new(), Cell::new(1));
        // One of ours was seen until a moment before the yield ended; in the other case, another process ran after it.
        let yields = |unseen: u64| {
            let slice = || now.set(now.get() + 2 * SLOW_NS);
            it.yield_if_cheap(|| now.get(), slice, || now.get() - unseen);
        };
        for _ in 0..100 {
            yields(SLOW_NS - 1);
        }
        assert!(!it.are_dear(|| now.get()));
        yields(SLOW_NS);
        yields(SLOW_NS);
        assert!(it.are_dear(|| now.get()));
        // It finds out that the other process is gone, although its own threads keep the CPU.
        now.set(now.get() + AVOID_NS);
        yields(1_000);
        assert!(!it.are_dear(|| now.get()));
    }

    #[test]
    fn only_one_thread_tries() {
        let (it, now) = (Yields::new(), Cell::new(1));
        assert!(yields(&it, &now, SLOW_NS) && yields(&it, &now, SLOW_NS));
        now.set(now.get() + AVOID_NS);
        let second = Cell::new(true);
        it.yield_if_cheap(|| now.get(), || second.set(yields(&it, &now, SLOW_NS)), || 0);
        assert!(!second.get());
    }
}
