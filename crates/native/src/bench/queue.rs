//! Threads that meet under a lock with condition variables: a bounded queue, and a ring.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::case::Case;
use super::contestants::Locking;

/// Items that fit.
const CAPACITY: u32 = 16;

/// Where threads meet, behind a table of functions.
pub(super) trait Queue: Sync {
    /// Does the part of the thread of this number as soon as that is possible, and runs `section` with the lock held. It
    /// gives up waiting when `over` holds, and then changes nothing.
    fn pass(&self, thread: usize, over: &dyn Fn() -> bool, section: &mut dyn FnMut());
    /// Wakes all waiters. `over` holds by now.
    fn end(&self);
}

/// A condition variable for a lock of type `L`.
pub(super) trait Condition<L>: Sync + 'static {
    /// Acquires `lock`, waits until `ready` holds, and runs `section` with the lock held.
    fn wait_until(&self, lock: &L, ready: &dyn Fn() -> bool, section: &mut dyn FnMut());
    /// Wakes one waiter, if there is one.
    fn notify_one(&self);
    /// Wakes all waiters.
    fn notify_all(&self);
}

/// What the threads of a case meet in.
pub(super) fn of<L: Locking, C: Condition<L>>(
    case: Case,
    threads: usize,
    condition: impl Fn() -> C,
) -> Box<dyn Queue> {
    match case {
        Case::Ring => Box::new(Ring::<L, C>::new(threads, condition)),
        _ => Box::new(Bounded::<L, C>::new(case == Case::CondvarHeld, condition)),
    }
}

/// A queue that counts its items, because only the waiting is measured. Threads of even numbers put items in. Every access to
/// the count is with the lock held, which orders it.
pub(super) struct Bounded<L, C> {
    lock: Box<L>,
    items: AtomicU32,
    not_full: C,
    not_empty: C,
    /// Whether a thread notifies with the lock held.
    notifies_held: bool,
}

impl<L: Locking, C: Condition<L>> Bounded<L, C> {
    /// An empty one.
    fn new(notifies_held: bool, condition: impl Fn() -> C) -> Self {
        let (not_full, not_empty) = (condition(), condition());
        Self { lock: L::boxed(), items: AtomicU32::new(0), not_full, not_empty, notifies_held }
    }
}

impl<L: Locking, C: Condition<L>> Queue for Bounded<L, C> {
    fn pass(&self, thread: usize, over: &dyn Fn() -> bool, section: &mut dyn FnMut()) {
        let puts = thread.is_multiple_of(2);
        let possible = || match self.items.load(Relaxed) {
            0 => puts,
            CAPACITY => !puts,
            _ => true,
        };
        let (mine, others) = match puts {
            true => (&self.not_full, &self.not_empty),
            false => (&self.not_empty, &self.not_full),
        };
        mine.wait_until(&self.lock, &|| possible() || over(), &mut || {
            section();
            if possible() {
                let items = self.items.load(Relaxed);
                self.items.store(if puts { items + 1 } else { items - 1 }, Relaxed);
            }
            if self.notifies_held {
                others.notify_one();
            }
        });
        if !self.notifies_held {
            others.notify_one();
        }
    }

    fn end(&self) {
        // A waiter that has just found `over` false waits by the time the lock is free.
        self.lock.with(|| ());
        self.not_full.notify_all();
        self.not_empty.notify_all();
    }
}

/// A ring: the threads pass one after another. Every access to the turn is with the lock held.
struct Ring<L, C> {
    lock: Box<L>,
    turn: AtomicUsize,
    /// Of each thread.
    conditions: Vec<C>,
}

impl<L: Locking, C: Condition<L>> Ring<L, C> {
    fn new(threads: usize, condition: impl Fn() -> C) -> Self {
        let conditions = (0..threads).map(|_| condition()).collect();
        Self { lock: L::boxed(), turn: AtomicUsize::new(0), conditions }
    }
}

impl<L: Locking, C: Condition<L>> Queue for Ring<L, C> {
    fn pass(&self, thread: usize, over: &dyn Fn() -> bool, section: &mut dyn FnMut()) {
        let next = (thread + 1) % self.conditions.len();
        let is_turn = || self.turn.load(Relaxed) == thread;
        self.conditions[thread].wait_until(&self.lock, &|| is_turn() || over(), &mut || {
            section();
            if is_turn() {
                self.turn.store(next, Relaxed);
            }
        });
        self.conditions[next].notify_one();
    }

    fn end(&self) {
        // As for the queue.
        self.lock.with(|| ());
        self.conditions.iter().for_each(C::notify_all);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// Two threads pass 1000 times each, and find the queue within its bounds.
    fn pass(queue: &dyn Queue, items: &dyn Fn() -> u32) -> u32 {
        let passed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in [0, 1] {
                let passed = &passed;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        queue.pass(thread, &|| false, &mut || {
                            passed.fetch_add(1, Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(items(), 0);
        passed.into_inner()
    }

    #[test]
    fn waiters_wait_for_items_and_for_room() {
        for held in [false, true] {
            let queue = Bounded::<Mutex<()>, _>::new(held, Condvar::new);
            assert_eq!(pass(&queue, &|| queue.items.load(Relaxed)), 2000);
        }
    }

    #[test]
    fn a_ring_comes_back_to_its_first_thread() {
        let ring = Ring::<Mutex<()>, _>::new(2, Condvar::new);
        assert_eq!(pass(&ring, &|| ring.turn.load(Relaxed) as u32), 2000);
    }

    #[test]
    fn a_waiter_leaves_when_it_is_over() {
        let queue = Bounded::<Mutex<()>, _>::new(false, Condvar::new);
        queue.pass(1, &|| true, &mut || ());
        assert_eq!(queue.items.into_inner(), 0);
        let ring = Ring::<Mutex<()>, _>::new(2, Condvar::new);
        ring.pass(1, &|| true, &mut || ());
        assert_eq!(ring.turn.into_inner(), 0);
    }
}
