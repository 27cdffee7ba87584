//! Dense numbers for threads.
//!
//! Locks keep records per CPU, and a thread is the CPU here. A number is a bit in `TAKEN`; a thread takes
//! the lowest that is free when it first needs one, and returns it when it ends.
//!
//! The next owner of a number also owns the records that the last one left: whose node is free, for
//! one, is known to the owner only. Hence the release on return and the acquire on taking.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Most threads that may have a number at one time; the ones that have ended do not count.
///
/// Locks that serve fewer say so in their `max_cpus`. What is beyond either limit panics at its next
/// `lock` or `try_lock`, before it has touched the lock. It is a constant because every lock kind has
/// records for all of them: 1024 is 16 times what a large machine has in threads that can run, and
/// 512 KiB for the hungriest lock.
pub const MAX_THREADS: usize = 1024;

const BITS: usize = u64::BITS as usize;
const NONE: usize = usize::MAX;

static TAKEN: [AtomicU64; MAX_THREADS / BITS] = [const { AtomicU64::new(0) }; MAX_THREADS / BITS];

thread_local! {
    // Without a destructor, so that it can be read at any time in a thread's life.
    static ID: Cell<usize> = const { Cell::new(NONE) };
    static RETURN: Return = const { Return };
}

/// Returns the thread's number when the thread ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let id = ID.replace(NONE);
        if id != NONE {
            // Release: see the module documentation.
            TAKEN[id / BITS].fetch_and(!(1 << (id % BITS)), Release);
        }
    }
}

/// The number of the calling thread, from 0; it gets one if it has none.
///
/// A thread that first uses a lock in the destructor of a thread-local value, after this module's own
/// has run, never returns the number that it gets then.
///
/// # Panics
/// If [`MAX_THREADS`] threads have one.
#[inline]
pub fn thread_id() -> usize {
    match ID.get() {
        NONE => take(),
        id => id,
    }
}

#[cold]
fn take() -> usize {
    let id = TAKEN.iter().enumerate().find_map(|(index, word)| {
        // Acquire: see the module documentation.
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = word.fetch_update(Acquire, Relaxed, lowest).ok()?;
        Some(index * BITS + before.trailing_ones() as usize)
    });
    let Some(id) = id else { panic!("more than {MAX_THREADS} threads use locks at a time") };
    ID.set(id);
    // Fails at the very end of the thread only. The number is then lost, see `thread_id`.
    let _ = RETURN.try_with(|_| ());
    id
}
