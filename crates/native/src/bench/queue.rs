//! A bounded queue under a lock with condition variables: the case `condvar`.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::contestants::Locking;

/// Items that fit.
const CAPACITY: u32 = 16;

/// A queue of some capacity, behind a table of functions.
pub(super) trait Queue: Sync {
    /// Puts an item in, or takes one out, as soon as that is possible, and runs `section` with the lock held. It gives
    /// up waiting when `over` holds, and then leaves the queue as it is.
    fn pass(&self, puts: bool, over: &dyn Fn() -> bool, section: &mut dyn FnMut());
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

/// A queue that counts its items, because only the waiting is measured. Every access to the count is with the lock
/// held, which orders it.
pub(super) struct Bounded<L, C> {
    lock: Box<L>,
    items: AtomicU32,
    not_full: C,
    not_empty: C,
}

impl<L: Locking, C: Condition<L>> Bounded<L, C> {
    /// An empty one.
    pub(super) fn new(condition: impl Fn() -> C) -> Self {
        let items = AtomicU32::new(0);
        Self { lock: L::boxed(), items, not_full: condition(), not_empty: condition() }
    }
}

impl<L: Locking, C: Condition<L>> Queue for Bounded<L, C> {
    fn pass(&self, puts: bool, over: &dyn Fn() -> bool, section: &mut dyn FnMut()) {
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
        });
        others.notify_one();
    }

    fn end(&self) {
        // A waiter that has just found `over` false waits by the time the lock is free.
        self.lock.with(|| ());
        self.not_full.notify_all();
        self.not_empty.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    #[test]
    fn waiters_wait_for_items_and_for_room() {
        let queue = Bounded::<Mutex<()>, _>::new(Condvar::new);
        let passed = AtomicU32::new(0);
        let never = || false;
        std::thread::scope(|scope| {
            for puts in [true, false] {
                let (queue, passed) = (&queue, &passed);
                scope.spawn(move || {
                    for _ in 0..1000 {
                        queue.pass(puts, &never, &mut || {
                            assert!(queue.items.load(Relaxed) <= CAPACITY);
                            passed.fetch_add(1, Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!((passed.into_inner(), queue.items.into_inner()), (2000, 0));
    }

    #[test]
    fn a_waiter_leaves_when_it_is_over() {
        let queue = Bounded::<Mutex<()>, _>::new(Condvar::new);
        queue.pass(false, &|| true, &mut || ());
        assert_eq!(queue.items.into_inner(), 0);
    }
}
