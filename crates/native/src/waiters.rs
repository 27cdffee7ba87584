//! What condition variables know about the threads that wait.
//!
//! A thread has one [`Waiter`], from its first wait to its end. Then the next thread that waits gets it. The number of a
//! waiter is its place in a table. The table grows in pieces, each twice as long as the one before; it never moves or
//! shrinks. So there is no limit on threads. A waiter has 24 bytes. There are at least 32, and at most three times as many
//! as threads have ever waited at one time.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, OnceLock, PoisonError};

use overspin_locks::condvar::{Parking, Waiter};

use crate::{Threads, futex};

/// The first piece has this many waiters, as a power of two.
const FIRST: u32 = 5;

const PIECES: usize = (u32::BITS - FIRST) as usize;
static TABLE: [OnceLock<Box<[Waiter<Threads>]>>; PIECES] = [const { OnceLock::new() }; PIECES];

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { last: 0, returned: Vec::new() });

struct Numbers {
    last: u32,
    returned: Vec<u32>,
}

impl Numbers {
    fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        // Nothing panics half-way.
        work(&mut NUMBERS.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number of a thread's waiter.
struct Own(u32);

impl Own {
    fn take() -> Self {
        Self(Numbers::with(|it| {
            it.returned.pop().unwrap_or_else(|| {
                it.last += 1;
                it.last
            })
        }))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        Numbers::with(|it| it.returned.push(self.0));
    }
}

thread_local! {
    static OWN: Own = Own::take();
    /// For a thread that waits in the last destructors of its thread-local values; 0 if it has not done so. No thread uses the
    /// number again.
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// The proof that [`RawMutex::wait`](crate::RawMutex) calls.
#[derive(Debug)]
pub struct Permit(());

impl Permit {
    /// # Safety
    /// The caller keeps the rules of [`Condvar::wait`](overspin_locks::Condvar::wait). The mutex stays where it is until that
    /// returns.
    pub(crate) unsafe fn new() -> Self {
        Self(())
    }
}

impl Parking for Threads {
    type Waiter = &'static Waiter<Self>;
    type Permit = Permit;

    fn own_waiter() -> u32 {
        OWN.try_with(|own| own.0).unwrap_or_else(|_| {
            if LAST.get() == 0 {
                let own = ManuallyDrop::new(Own::take());
                LAST.set(own.0);
            }
            LAST.get()
        })
    }

    fn waiter(number: u32) -> &'static Waiter<Self> {
        let place = number - 1 + (1 << FIRST);
        let piece = place.ilog2();
        let zero = || AtomicU32::new(0);
        let waiter = |_| Waiter::of(zero(), zero(), zero(), zero(), AtomicUsize::new(0), zero());
        let piece_of_table = TABLE[(piece - FIRST) as usize]
            .get_or_init(|| (0..1usize << piece).map(waiter).collect());
        &piece_of_table[(place - (1 << piece)) as usize]
    }

    fn requeue(from: *const AtomicU32, to: *const AtomicU32) {
        futex::requeue(from, to);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ptr;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn each_number_has_a_waiter_of_its_own() {
        let addresses: HashSet<_> = (1..=1000).map(|n| ptr::from_ref(Threads::waiter(n))).collect();
        assert_eq!(addresses.len(), 1000);
        assert!(ptr::eq(Threads::waiter(33), Threads::waiter(33)));
    }

    #[test]
    fn a_thread_keeps_its_number_and_no_other_thread_has_it() {
        let mine = Threads::own_waiter();
        // All at the same time.
        let barrier = Barrier::new(40);
        let number = || {
            let number = Threads::own_waiter();
            barrier.wait();
            number
        };
        let others: HashSet<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..40).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(others.len(), 40);
        assert!(!others.contains(&mine) && Threads::own_waiter() == mine);
    }
}
