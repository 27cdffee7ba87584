//! Which waiter to wake when a lock is released: a hash table from lock to queue node.
//!
//! An entry is free if its `lock` is null. A context is in the table at most once. So with as many
//! entries as contexts, there is always a free entry.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::{AtomicCell, Platform};

/// Entries for each CPU: one for each context that can nest on it.
const PER_CPU: usize = 4;
/// Entries in a cache line: a search begins with a line.
const PER_LINE: usize = 4;
/// `lock` of a free entry.
const NO_LOCK: usize = 0;

/// Number of entries that `cpus` CPUs need.
pub(super) fn entries(cpus: usize) -> usize {
    cpus.saturating_mul(PER_CPU).max(PER_LINE).next_power_of_two()
}

#[derive(Debug)]
#[repr(C, align(16))]
struct Entry<P: Platform> {
    lock: P::Usize,
    node: P::U32,
}

/// The table. All locks of a system share it.
#[derive(Debug)]
pub(super) struct Table<P: Platform>(P::Slots<Entry<P>>);

impl<P: Platform> Table<P> {
    pub(super) fn new(entries: usize) -> Self {
        assert!(
            entries.is_power_of_two() && entries >= PER_LINE,
            "a search begins with a line chosen by a mask"
        );
        Self(P::slots(entries, |_| Entry {
            lock: P::Usize::new(NO_LOCK),
            node: P::U32::new(crate::nodes::NIL),
        }))
    }

    /// The entries in the order in which to search them for `lock`.
    fn probe(&self, lock: usize) -> impl Iterator<Item = &Entry<P>> {
        let place = P::place(lock, self.0.as_ptr().addr()) as u64;
        // Knuth's multiplicative hash; its high bits are well mixed.
        let hash = (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let first = hash.wrapping_mul(PER_LINE);
        (0..self.0.len()).map(move |step| &self.0[first.wrapping_add(step) & (self.0.len() - 1)])
    }

    /// Inserts `node` as the node to wake for `lock`.
    pub(super) fn insert(&self, lock: usize, node: u32) {
        loop {
            for entry in self.probe(lock) {
                // Acquire: pairs with the release in `remove`, so the last user has read its node.
                // Relaxed for the node: the lock's word publishes the entry.
                match entry.lock.compare_exchange(NO_LOCK, lock, Acquire, Relaxed) {
                    Ok(_) => {
                        entry.node.store(node, Relaxed);
                        return;
                    }
                    Err(other) => debug_assert_ne!(other, lock, "a lock has one entry at most"),
                }
            }
            // Entries became free behind us, and others were taken before us: there is a free one now.
        }
    }

    /// Removes the node to wake for `lock`, and returns it. The caller knows that there is one.
    pub(super) fn remove(&self, lock: usize) -> u32 {
        let entry = self
            .probe(lock)
            .find(|entry| entry.lock.load(Relaxed) == lock)
            .expect("a waiter is in the table before it is announced");
        let node = entry.node.load(Relaxed);
        entry.lock.store(NO_LOCK, Release);
        node
    }
}
