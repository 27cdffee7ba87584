//! A bounded queue under a lock with condition variables: the case `condvar`.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::contestants::{Condition, Contestant};

/// Items that fit.
const CAPACITY: u32 = 16;

/// A queue that counts its items, because only the waiting is measured. Every access to the count is with the lock
/// held, which orders it.
pub(super) struct Queue<C: Contestant> {
    items: AtomicU32,
    not_full: Box<dyn Condition<C>>,
    not_empty: Box<dyn Condition<C>>,
}

impl<C: Contestant> Queue<C> {
    /// An empty one; `None` if the lock has no condition variable.
    pub(super) fn new() -> Option<Self> {
        let items = AtomicU32::new(0);
        Some(Self { items, not_full: C::condition()?, not_empty: C::condition()? })
    }

    /// Puts an item in, or takes one out, as soon as that is possible, and runs `section` with the lock held. It gives
    /// up waiting when `over` holds, and then leaves the queue as it is.
    pub(super) fn pass(
        &self,
        lock: &C,
        puts: bool,
        over: &dyn Fn() -> bool,
        section: &mut dyn FnMut(),
    ) {
        let possible = || match self.items.load(Relaxed) {
            0 => puts,
            CAPACITY => !puts,
            _ => true,
        };
        let (mine, others) = match puts {
            true => (&self.not_full, &self.not_empty),
            false => (&self.not_empty, &self.not_full),
        };
        mine.wait_until(lock, &|| possible() || over(), &mut || {
            section();
            if possible() {
                let items = self.items.load(Relaxed);
                self.items.store(if puts { items + 1 } else { items - 1 }, Relaxed);
            }
        });
        others.notify_one();
    }

    /// Wakes all waiters. `over` holds by now.
    pub(super) fn end(&self, lock: &C) {
        // A waiter that has just found `over` false waits by the time the lock is free.
        lock.with(|| ());
        self.not_full.notify_all();
        self.not_empty.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn waiters_wait_for_items_and_for_room() {
        let (queue, lock) = (Queue::<Mutex<()>>::new().unwrap(), Mutex::new(()));
        let passed = AtomicU32::new(0);
        let never = || false;
        std::thread::scope(|scope| {
            for puts in [true, false] {
                let (queue, lock, passed) = (&queue, &lock, &passed);
                scope.spawn(move || {
                    for _ in 0..1000 {
                        queue.pass(lock, puts, &never, &mut || {
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
        let (queue, lock) = (Queue::<Mutex<()>>::new().unwrap(), Mutex::new(()));
        queue.pass(&lock, false, &|| true, &mut || ());
        assert_eq!(queue.items.into_inner(), 0);
    }
}
