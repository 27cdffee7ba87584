//! Dense numbers for threads.
//!
//! Locks keep records per CPU, and a thread is the CPU here. A number is a bit in `TAKEN`; a thread takes
//! the lowest that is free when it first needs one, and returns it when it ends.
//!
//! That it ends is told by a destructor of thread-specific data, which needs no memory: allocators use
//! locks too, and these may be ours. It runs after the destructors of thread-local values, and puts
//! itself off to the last round, since other such destructors may use locks.
//!
//! The next owner of a number also owns the records that the last one left: whose node is free, for
//! one, is known to the owner only. Hence the release on return and the acquire on taking.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
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
/// The thread has no number yet.
const NONE: usize = usize::MAX;
/// The thread is at its end, and has returned its number.
const RETURNED: usize = usize::MAX - 1;
/// Rounds of destructors at the end of a thread: what POSIX guarantees, and what glibc and musl do.
const ROUNDS: usize = 4;

static TAKEN: [AtomicU64; MAX_THREADS / BITS] = [const { AtomicU64::new(0) }; MAX_THREADS / BITS];
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

thread_local! {
    // Without a destructor, so that it can be read at any time in a thread's life.
    static ID: Cell<usize> = const { Cell::new(NONE) };
}

/// Runs `give_back` at the end of this thread. If there is no key or no memory left, the number is lost.
fn at_end(round: usize) {
    // SAFETY: `pthread_key_create` writes to a local; the destructor takes any value.
    let key = KEY.get_or_init(|| unsafe {
        let mut key = 0;
        (libc::pthread_key_create(&raw mut key, Some(give_back)) == 0).then_some(key)
    });
    if let Some(key) = *key {
        // SAFETY: the key is never deleted; the value is a number and never dereferenced.
        unsafe { libc::pthread_setspecific(key, ptr::without_provenance(round)) };
    }
}

extern "C" fn give_back(round: *mut c_void) {
    if round.addr() < ROUNDS {
        return at_end(round.addr() + 1);
    }
    let id = ID.replace(RETURNED);
    if id < MAX_THREADS {
        // Release: see the module documentation.
        TAKEN[id / BITS].fetch_and(!(1 << (id % BITS)), Release);
    }
}

/// The number of the calling thread, from 0; it gets one if it has none.
///
/// A thread that first uses a lock in the last destructors of its thread-specific data never returns the
/// number that it gets then.
///
/// # Panics
/// If [`MAX_THREADS`] threads have one.
#[inline]
pub fn thread_id() -> usize {
    let id = ID.get();
    if id < MAX_THREADS { id } else { take_or_panic() }
}

/// The number of the calling thread, as [`thread_id`] gives it; `None` if all are taken, or if the
/// thread is at its end and has returned its number.
#[inline]
pub fn try_thread_id() -> Option<usize> {
    match ID.get() {
        NONE => take(),
        RETURNED => None,
        id => Some(id),
    }
}

/// Runs `f` with `number` as the number of the calling thread, for what another thread can no longer do
/// itself: to release a lock that it has left behind.
///
/// # Safety
/// Until `f` has returned, no other thread with that number is in a lock, but for one that waits in `lock`: the
/// records of the number are `f`'s.
pub unsafe fn with_number_of<R>(number: usize, f: impl FnOnce() -> R) -> R {
    assert!(number < MAX_THREADS, "{number} is no number of a thread");
    /// Also if `f` unwinds.
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            ID.set(self.0);
        }
    }
    let _back = Back(ID.replace(number));
    f()
}

/// Returns the numbers of all threads but the calling one: for the child of a fork, where the others do
/// not exist. Locks that they held or waited for must not be used any more.
pub fn forget_other_threads() {
    let own = ID.get();
    for (index, word) in TAKEN.iter().enumerate() {
        let bit = if own / BITS == index { 1 << (own % BITS) } else { 0 };
        // Relaxed: there is nobody else.
        word.store(bit, Relaxed);
    }
}

#[cold]
fn take_or_panic() -> usize {
    let Some(id) = take() else { panic!("more than {MAX_THREADS} threads use locks at a time") };
    id
}

#[cold]
fn take() -> Option<usize> {
    let id = TAKEN.iter().enumerate().find_map(|(index, word)| {
        // Acquire: see the module documentation.
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = word.fetch_update(Acquire, Relaxed, lowest).ok()?;
        Some(index * BITS + before.trailing_ones() as usize)
    })?;
    if ID.replace(id) == NONE {
        at_end(1);
    }
    Some(id)
}
