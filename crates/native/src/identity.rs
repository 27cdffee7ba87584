//! Who a thread is: the one room for all names of threads.
//!
//! | Name | What it is for | From | Until | Its next owner |
//! |---|---|---|---|---|
//! | number: [`thread_id`], [`try_thread_id`], [`served_id`] | the records that locks keep for each CPU, for a thread is the CPU here; hence dense | its first use | the thread's end | the next thread that needs one |
//! | serial: [`thread_serial`] | to know the holder of a lock again, also when it has ended | its first use | for ever | nobody |
//! | kernel's number: [`kernel_thread_id`] | to compare with what the C library and the kernel note | the thread's start | the thread's end | as the kernel likes |
//!
//! # The states of a number
//! A number is a bit in `TAKEN`. A thread takes the lowest that is free.
//!
//! | State of a thread | `thread_id` | `try_thread_id` | What comes next |
//! |---|---|---|---|
//! | `NONE`: it has never used a lock | takes one, or panics if all are taken | takes one, or `None` | its own number |
//! | its own number | that | that | `RETURNED`, in the last round of destructors |
//! | `RETURNED`: it is at its end | takes one, which is never returned | `None` | |
//! | another thread's number, in [`with_number_of`] | that | that | the state before |
//!
//! **Exit.** A destructor of thread-specific data tells that a thread ends. It needs no memory: allocators use locks too,
//! and these may be ours. It runs after the destructors of thread-local values, and puts itself off to the last round,
//! since other such destructors may use locks.
//!
//! **Records.** The next owner of a number also owns the records that the last one left: whose node is free, for one, is
//! known to the owner only. Hence the release on return and the acquire on taking.
//!
//! **Fork.** In the child there is one thread. [`forget_other_threads`] keeps its number and its serial, returns all other
//! numbers, and forgets the kernel's number, which is another one now. Whoever uses locks in the child calls it there
//! first. This crate has no fork handler of its own: the locks from before the fork would still know the others as
//! waiters and holders.
//!
//! **Not here.** The CPUs of a test or of a simulated machine are numbered by whoever makes them.

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
    // Without destructors, so that they can be read at any time in a thread's life.
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    /// 0 before it was asked for.
    static SERIAL: Cell<u64> = const { Cell::new(0) };
    /// 0 before it was asked for.
    static KERNEL: Cell<i32> = const { Cell::new(0) };
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
    let number = NUMBER.replace(RETURNED);
    if number < MAX_THREADS {
        // Release: see the module documentation.
        TAKEN[number / BITS].fetch_and(!(1 << (number % BITS)), Release);
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
    let number = NUMBER.get();
    if number < MAX_THREADS { number } else { take_or_panic() }
}

/// The number of the calling thread, as [`thread_id`] gives it; `None` if all are taken, or if the
/// thread is at its end and has returned its number.
#[inline]
pub fn try_thread_id() -> Option<usize> {
    match NUMBER.get() {
        NONE => take(),
        RETURNED => None,
        number => Some(number),
    }
}

/// The number of the calling thread, as [`try_thread_id`] gives it, if a lock serves it that has records for numbers
/// below `capacity`. Once there is one for a capacity, it stays so until the last destructors of the thread.
#[inline]
pub fn served_id(capacity: usize) -> Option<usize> {
    try_thread_id().filter(|&number| number < capacity)
}

/// The serial of the calling thread, from 1. No two threads of a process ever have the same.
///
/// A holder that is noted by its number would be taken for the next thread with that number, if it ended and left the
/// lock locked.
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

/// The kernel's number of the calling thread. No other thread has it as long as this one lives.
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
            NUMBER.set(self.0);
        }
    }
    let _back = Back(NUMBER.replace(number));
    f()
}

/// For the child of a fork, where the other threads do not exist: returns their numbers. Locks that they held or
/// waited for must not be used any more.
pub fn forget_other_threads() {
    KERNEL.set(0);
    let own = NUMBER.get();
    for (index, word) in TAKEN.iter().enumerate() {
        let bit = if own / BITS == index { 1 << (own % BITS) } else { 0 };
        // Relaxed: there is nobody else.
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
