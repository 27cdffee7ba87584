//! A reader-writer lock for general use: readers and writers take turns, and neither starves.
//!
//! | `word` | Meaning |
//! |---|---|
//! | `WRITER` | a writer holds it, or waits for the readers to leave; no reader may enter |
//! | `PENDING` | a writer that holds the mutex of the writers waits, or holds the lock |
//! | `ASLEEP` | readers sleep, or are about to; whoever ends a `WRITER` wakes them all |
//! | `READER` × n | n readers hold it |
//! | `WAITER` × n | n readers insist: they have slept so often that the next writer lets them in first |
//! | `QUEUED` × n | n writers wait for the mutex of the writers |
//!
//! `WRITER`, `PENDING` and `QUEUED` bar readers that have just come. A reader that insists enters if there is no `WRITER`.
//!
//! Idle is 0. A writer that finds it idle takes it by setting `WRITER`. Otherwise it queues at a mutex, which is a lock
//! of its own, and sets `PENDING` when it has that. With `PENDING` it waits until there is no `WRITER` and no
//! `WAITER`; then it sets `WRITER` and waits until there is no `READER`.
//!
//! **Why no thread starves.** A barred reader sleeps until a writer leaves. If it is barred again each time, it insists after
//! some sleeps. If it finds a `WRITER` then, it is counted, and `WRITER` is not set again before it is in. A writer with
//! `PENDING` waits for the readers that are there and for one writer that was faster: the lock is not idle any more, so no
//! other writer takes it without the mutex. Which of the queued writers is next is up to the mutex. Threads without a CPU get
//! one by [turns](Pace): a waiter that spins yields now and then.
//!
//! **Why queued writers bar readers.** With more threads than CPUs, a woken writer gets a CPU when a running reader sleeps or
//! has used up its slice. Readers that always got in would run for whole slices of milliseconds, and a writer behind 30 of them
//! would wait for 100 ms. Barred readers sleep, and the writer runs at once. For the same reason a writer does not wait for
//! each reader that the last one has woken, and leaves the mutex before it wakes them.
//!
//! **No wake-up is lost.** A waiter reads the count of wake-ups of its kind, then the word, and sleeps unless the count has
//! changed. A thread that makes the word right for the waiter changes the count afterwards, and wakes. So the waiter sees
//! the word, or it sees the count, or it is woken. Waiting readers are all woken by the end of a writer, and by a writer that
//! gives up if no other one bars them. The writer is woken by the last reader to leave, the last counted reader to enter or
//! give up, or the faster writer. `ASLEEP` is cleared before the count changes: a reader that found it set, and relies on it,
//! then sees the changed count.
//!
//! **Order.** Entering acquires, leaving releases. All changes of the word are read-modify-writes, so a writer that sees no
//! `READER` comes after all readers that have left. The counts of wake-ups are read with acquire and changed with
//! release: a waiter that reads a changed count sees the word that it stands for.
//!
//! **Properties.** A thread that holds the lock as a reader and enters again can wait for a writer that waits for it. At most
//! [32,767](MOST_READERS) readers hold it; one that finds so many gives up, or looks again and again until its deadline. At
//! most 127 readers that insist and 127 writers that queue are counted; the next ones wait uncounted. A reader that may
//! upgrade holds the mutex and insists at once: the writers that bar readers wait for it. As with the
//! [mutex](crate::mutex), a thread that leaves looks at the lock afterwards: it must stay in place until then.
//!
//! **Uncontended**: two read-modify-writes for a reader, and for a writer.
//!
//! **Source.** Our own. Turns as in phase-fair locks (Brandenburg and Anderson, "Spin-Based Reader-Writer
//! Synchronization for Multiprocessor Real-Time Systems", 2010), a mutex for the writers as in Go's `RWMutex`.

mod reader;
mod upgradable;
mod writer;

use core::fmt::{self, Debug};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::turn::{Pace, Turns};
use crate::{AtomicCell, Platform, RawLock};

const WRITER: u32 = 1;
const PENDING: u32 = 1 << 1;
const ASLEEP: u32 = 1 << 2;
const READER: u32 = 1 << 3;
const WAITER: u32 = 1 << 18;
const QUEUED: u32 = 1 << 25;
/// Writers look for an idle lock for this part of the spin budget before they queue.
const IDLE_PART: u32 = 4;
/// Pauses between two such looks: about a microsecond.
const MOST_PAUSES: u32 = 32;
const MOST: u32 = (1 << 15) - 1;
/// Maximum number of readers that are counted while they wait, and of writers that are counted while they queue.
const MOST_COUNTED: u32 = (1 << 7) - 1;
/// Maximum number of readers that hold a lock at a time.
pub const MOST_READERS: u32 = MOST;

/// Platforms that can wake all sleepers of a word.
pub trait WakeAll: Platform {
    /// As [`Platform::wake_one`], for all CPUs that sleep there.
    fn wake_all(address: *const Self::U32);
}

/// The algorithm over a mutex `M`. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct RwLock<P: Platform, M> {
    word: P::U32,
    /// How often waiting readers have been woken; they sleep on it.
    reader_wakes: P::U32,
    /// How often a writer with `PENDING` has been woken; it sleeps on it.
    writer_wakes: P::U32,
    turns: Turns<P::U32>,
    writers: M,
}

/// Patience.
#[derive(Debug)]
pub struct Shared<S> {
    /// Of the mutex of the writers.
    pub writers: S,
    /// Looks of a waiter before it sleeps.
    pub spin_budget: u32,
    /// Sleeps of a reader before it enters ahead of writers that wait.
    pub patience: u32,
    /// How often waiters that spin give their CPU away.
    pub pace: Pace,
}

/// What a writer must return.
#[derive(Debug)]
#[must_use = "the lock stays held until `unlock_exclusive` gets it"]
pub struct Token<T> {
    /// Of the mutex, if the writer has queued there.
    queued: Option<T>,
}

/// The error of a reader that cannot enter because [`MOST_READERS`] hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyReaders;

impl fmt::Display for TooManyReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many active read locks on RwLock: {MOST_READERS} readers hold it")
    }
}

impl core::error::Error for TooManyReaders {}

fn readers(word: u32) -> u32 {
    (word / READER) & MOST
}

fn waiters(word: u32) -> u32 {
    (word / WAITER) & MOST_COUNTED
}

fn queued(word: u32) -> u32 {
    word / QUEUED
}

/// Whether writers wait, so that a reader that has just come does not enter.
fn bars_readers(word: u32) -> bool {
    word & (WRITER | PENDING) != 0 || queued(word) > 0
}

fn admits_readers(word: u32) -> bool {
    !bars_readers(word) && readers(word) < MOST
}

fn admits_a_reader_that_insists(word: u32) -> bool {
    word & WRITER == 0 && readers(word) < MOST
}

fn admits_a_writer(word: u32) -> bool {
    word & WRITER == 0 && waiters(word) == 0
}

impl<P: WakeAll, M: RawLock<P>> RwLock<P, M> {
    /// A free lock. The cells are 0, and the mutex is free.
    pub const fn of(
        word: P::U32,
        reader_wakes: P::U32,
        writer_wakes: P::U32,
        turns: P::U32,
        writers: M,
    ) -> Self {
        Self { word, reader_wakes, writer_wakes, turns: Turns::of(turns), writers }
    }

    fn try_change(&self, found: u32, new: u32) -> bool {
        // Acquire: pairs with the releases of those that left.
        self.word.compare_exchange_weak(found, new, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn wake_writer(&self) {
        // Release: see "Order".
        self.writer_wakes.fetch_add(1, Release);
        P::wake_one(ptr::from_ref(&self.writer_wakes));
    }

    #[cold]
    fn wake_readers(&self) {
        // Relaxed: the count has the order.
        let forget = || _ = self.word.fetch_and(!ASLEEP, Relaxed);
        right!(forget(), P, L9RwLockForgetsReadersLate, ());
        // Release: see "Order".
        self.reader_wakes.fetch_add(1, Release);
        let address = ptr::from_ref(&self.reader_wakes);
        right!(P::wake_all(address), P, L5RwLockWakesOneReader, P::wake_one(address));
        right!((), P, L9RwLockForgetsReadersLate, forget());
    }

    /// Advisory: whether a writer holds it, or will next.
    pub fn is_locked_exclusive(&self) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }

    /// Advisory: whether anybody holds it.
    pub fn is_locked(&self) -> bool {
        let word = self.word.load(Relaxed);
        word & WRITER != 0 || readers(word) > 0
    }
}
