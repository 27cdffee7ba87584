//! The identity of a thread: the one module for all names of threads.
//!
//! | Name | Purpose | From | Until | Its next owner |
//! |---|---|---|---|---|
//! | number: [`thread_id`], [`try_thread_id`], [`served_id`] | index of the records that locks keep for each CPU (a thread is a CPU here); hence dense | its first use | the thread's end | the next thread that needs one |
//! | serial: [`thread_serial`] | to recognise the holder of a lock, even after its end | its first use | for ever | none |
//! | kernel's number: [`kernel_thread_id`] | to compare with the notes of the C library and the kernel | the thread's start | the thread's end | the kernel decides |
//!
//! # The states of a number
//! A number is a bit in `TAKEN`. A thread takes the lowest free number.
//!
//! | State of a thread | `thread_id` | `try_thread_id` | Next state |
//! |---|---|---|---|
//! | `NONE`: it has never used a lock | takes one, or panics if all are taken | takes one, or `None` | its own number |
//! | its own number | that number | that number | `RETURNED`, in the last round of destructors |
//! | `RETURNED`: it is at its end | takes one, which is never returned | `None` | |
//! | another thread's number, in [`with_number_of`] | that number | that number | the state before |
//!
//! **Exit.** A destructor of thread-specific data detects the end of a thread. It needs no memory: allocators use
//! locks too, perhaps ours. It runs after the destructors of thread-local values, and postpones itself to the last
//! round, because other destructors of thread-specific data may use locks.
//!
//! **Records.** The next owner of a number also owns the records of the previous one: for example, only the owner
//! knows which of its nodes are free. Hence the release on return and the acquire on taking.
//!
//! **Fork.** The child has one thread. [`forget_other_threads`] keeps its number and its serial, returns all other
//! numbers, and forgets the kernel's number, which has changed. A child that uses locks must call it first. This
//! crate installs no fork handler: locks from before the fork would still know the other threads as waiters and
//! holders.
//!
//! **Not here.** The creator of a test or of a simulated machine numbers its CPUs.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The largest number of threads that may have a number at one time. Threads that have ended do not count.
///
/// Locks that serve fewer say so in their `max_cpus`. A thread beyond either limit panics at its next `lock` or
/// `try_lock`, before it touches the lock. The limit is a constant because every kind of lock has records for all
/// threads. 1024 is 16 times the number of runnable threads of a large machine, and takes 512 KiB for the hungriest
/// lock.
pub const MAX_THREADS: usize = 1024;

const BITS: usize = u64::BITS as usize;
/// The thread has no number yet.
const NONE: usize = usize::MAX;
/// The thread is at its end, and has returned its number.
const RETURNED: usize = usize::MAX - 1;
/// Rounds of destructors at the end of a thread. POSIX guarantees this many, and glibc and musl do them.
const ROUNDS: usize = 4;

static TAKEN: [AtomicU64; MAX_THREADS / BITS] = [const { AtomicU64::new(0) }; MAX_THREADS / BITS];
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

thread_local! {
    // Without destructors, so that they can be read at any time in a thread's life.
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    /// 0 until it is first asked for.
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// 0 until it is first asked for.
    static KERNEL: Cell<i32> = const { Cell::new(0) };
}

/// Runs `give_back` at the end of this thread. If there is no key or no memory left, the number is never returned.
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
    let number = NUMBER.replace(RETURNED);
    if number < MAX_THREADS {
        // Release: see the module documentation.
        TAKEN[number / BITS].fetch_and(!(1 << (number % BITS)), Release);
    }
}

/// Returns the number of the calling thread, from 0. A thread without a number gets one.
///
/// A thread that first uses a lock in the last destructors of its thread-specific data never returns the number that
/// it gets then.
///
/// # Panics
/// If [`MAX_THREADS`] threads have a number.
#[inline]
pub fn thread_id() -> usize {
    let number = NUMBER.get();
    if number < MAX_THREADS { number } else { take_or_panic() }
}

/// Returns the number of the calling thread, as [`thread_id`] does. Returns `None` if all numbers are taken, or if
/// the thread is at its end and has returned its number.
#[inline]
pub fn try_thread_id() -> Option<usize> {
    match NUMBER.get() {
        NONE => take(),
        RETURNED => None,
        number => Some(number),
    }
}

/// Returns the number of the calling thread, as [`try_thread_id`] does, if a lock with records for numbers below
/// `capacity` serves it. Once this returns a number for a capacity, it does so until the last destructors of the
/// thread.
#[inline]
pub fn served_id(capacity: usize) -> Option<usize> {
    try_thread_id().filter(|&number| number < capacity)
}

/// Returns the serial of the calling thread, from 1. No two threads of a process ever have the same serial.
///
/// A number cannot identify a holder in this way: if the holder ended and left the lock locked, the next thread with
/// that number would be taken for the holder.
#[inline]
pub fn thread_serial() -> u64 {
    #[cold]
    fn next() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let serial = LAST.fetch_add(1, Relaxed) + 1;
        SERIAL.set(serial);
        serial
    }
    match SERIAL.get() {
        0 => next(),
        serial => serial,
    }
}

/// Returns the kernel's number of the calling thread. No other thread has it while this one lives.
#[inline]
pub fn kernel_thread_id() -> i32 {
    #[cold]
    fn ask() -> i32 {
        // SAFETY: it has no preconditions.
        let id = unsafe { libc::gettid() };
        KERNEL.set(id);
        id
    }
    match KERNEL.get() {
        0 => ask(),
        id => id,
    }
}

/// Runs `f` with `number` as the number of the calling thread. It serves to release a lock that another thread has
/// left behind and can no longer release itself.
///
/// # Safety
/// Until `f` has returned, no other thread with that number is in a lock, except one that waits in `lock`. The
/// records of the number belong to `f`.
pub unsafe fn with_number_of<R>(number: usize, f: impl FnOnce() -> R) -> R {
    assert!(number < MAX_THREADS, "{number} is no number of a thread");
    /// Restores the number, also if `f` unwinds.
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            NUMBER.set(self.0);
        }
    }
    let _back = Back(NUMBER.replace(number));
    f()
}

/// Returns the numbers of the other threads, in the child of a fork, where those threads do not exist. Locks that
/// they held or waited for must not be used any more.
pub fn forget_other_threads() {
    KERNEL.set(0);
    let own = NUMBER.get();
    for (index, word) in TAKEN.iter().enumerate() {
        let bit = if own / BITS == index { 1 << (own % BITS) } else { 0 };
        // Relaxed: there is no other thread.
        word.store(bit, Relaxed);
    }
}

#[cold]
fn take_or_panic() -> usize {
    let Some(number) = take() else {
        panic!("more than {MAX_THREADS} threads use locks at a time")
    };
    number
}

#[cold]
fn take() -> Option<usize> {
    let number = TAKEN.iter().enumerate().find_map(|(index, word)| {
        // Acquire: see the module documentation.
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = word.fetch_update(Acquire, Relaxed, lowest).ok()?;
        Some(index * BITS + before.trailing_ones() as usize)
    })?;
    if NUMBER.replace(number) == NONE {
        at_end(1);
    }
    Some(number)
}
