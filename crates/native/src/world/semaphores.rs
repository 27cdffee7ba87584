//! Counting semaphores of a domain, on which tasks sleep.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use overspin_workload::Semaphore;

#[derive(Debug, Default)]
struct One {
    count: Mutex<u32>,
    raised: Condvar,
}

/// The semaphores of a domain, in the order in which tasks made them.
#[derive(Debug, Default)]
pub(super) struct Semaphores(Mutex<Vec<Arc<One>>>);

impl Semaphores {
    pub(super) fn add(&self, count: u32) -> Semaphore {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(One { count: Mutex::new(count), raised: Condvar::new() }));
        Semaphore(all.len() - 1)
    }

    fn one(&self, semaphore: Semaphore) -> Option<Arc<One>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(semaphore.0).cloned()
    }

    /// Takes one unit; sleeps until there is one or the run is `over`.
    pub(super) fn down(&self, semaphore: Semaphore, over: impl Fn() -> bool) {
        let Some(one) = self.one(semaphore) else { return };
        let mut count = one.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count == 0 && !over() {
            count = one.raised.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        *count = count.saturating_sub(1);
    }

    /// Gives one unit.
    pub(super) fn up(&self, semaphore: Semaphore) {
        let Some(one) = self.one(semaphore) else { return };
        *one.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        one.raised.notify_one();
    }

    /// Wakes all sleepers: the run is over.
    pub(super) fn release_all(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in all.iter() {
            // A sleeper that has looked already sleeps before this lock is free.
            drop(one.count.lock().unwrap_or_else(PoisonError::into_inner));
            one.raised.notify_all();
        }
    }
}
