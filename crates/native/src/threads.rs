//! Threads as CPUs.

use std::cell::Cell;
use std::fmt::Debug;
use std::hint;
use std::ptr;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, fence};
use std::thread;
use std::time::Duration;

use overspin_locks::{CachePadded, CpuId, Note, Platform};

use crate::sightings::{Sightings, processor};
use crate::yields::Yields;
use crate::{MAX_THREADS, futex, thread_id};

/// The latch of each thread, by thread number.
///
/// | Value | Meaning |
/// |---|---|
/// | `CLEAR` | not kicked |
/// | `SET` | kicked |
/// | `ASLEEP` | not kicked, and its thread sleeps on it or is about to |
///
/// Only its own thread writes `CLEAR` and `ASLEEP`. A thread that replaces `ASLEEP` wakes the owner.
/// A latch left set by the previous owner of the number costs the next one a poll that returns at
/// once.
static LATCHES: [CachePadded<AtomicU32>; MAX_THREADS] =
    [const { CachePadded::new(AtomicU32::new(CLEAR)) }; MAX_THREADS];
const CLEAR: u32 = 0;
const SET: u32 = 1;
const ASLEEP: u32 = 2;

/// What yields of this process cost.
static YIELDS: Yields = Yields::new();

/// Where threads of this process have been.
static SIGHTINGS: Sightings = Sightings::new();

thread_local! {
    static NOTE: Cell<Note> = const { Cell::new(Note { lock: 0, released: 0, held: 0, owed: 0 }) };
    static NODE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The platform of real threads, without interrupts or nested contexts.
///
/// A thread cannot learn whether another one runs, when it will be preempted itself, or how long its
/// slice lasts. All these hints are "don't know".
#[derive(Debug)]
pub struct Threads;

fn latch() -> &'static AtomicU32 {
    &LATCHES[thread_id()]
}

impl Threads {
    /// [`Platform::poll`] for at most `limit`. Returns true if the limit ended it.
    ///
    /// It is for platforms of other crates that wrap this one and have work to do meanwhile.
    pub fn poll_for(limit: Duration) -> bool {
        sleep_on_latch(|latch| futex::wait_for(latch, ASLEEP, limit))
    }

    /// [`Platform::wait`] for at most `limit`. Returns true if the limit ended it.
    pub fn wait_for(cell: &AtomicU32, value: u32, limit: Duration) -> bool {
        futex::wait_for(cell, value, limit)
    }
}

/// Sleeps by `sleep` unless this thread's latch is set. Returns the result of `sleep`, or false if
/// the latch is set.
fn sleep_on_latch(sleep: impl FnOnce(&AtomicU32) -> bool) -> bool {
    let latch = latch();
    // Acquire, here and below: pairs with `kick`. This is more than the platform promises, and free.
    if latch.compare_exchange(CLEAR, ASLEEP, Acquire, Acquire).is_err() {
        return false;
    }
    let result = sleep(latch);
    // Back to `CLEAR` after a spurious wake-up; a kick that came stays.
    latch.compare_exchange(ASLEEP, CLEAR, Acquire, Acquire).is_ok() && result
}

impl Platform for Threads {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = ();

    // As a loop: of `collect` there would be a thousand lines of code for each type.
    fn slots<T: Debug + 'static>(len: usize, mut init: impl FnMut(usize) -> T) -> Box<[T]> {
        let mut slots = Vec::with_capacity(len);
        for i in 0..len {
            slots.push(init(i));
        }
        slots.into_boxed_slice()
    }

    #[inline]
    fn cpu_id() -> CpuId {
        thread_id()
    }

    #[inline]
    fn relax() {
        hint::spin_loop();
    }

    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }

    #[inline]
    fn irq_save() {}

    #[inline]
    fn irq_restore((): ()) {}

    #[inline]
    fn irqs_were_on((): ()) -> bool {
        false
    }

    fn latch_clear() {
        latch().store(CLEAR, Relaxed);
    }

    fn latch_set() {
        latch().store(SET, Relaxed);
    }

    fn latch_test() -> bool {
        latch().load(Relaxed) == SET
    }

    fn poll() {
        sleep_on_latch(|latch| {
            futex::wait(latch, ASLEEP);
            false
        });
    }

    fn kick(cpu: CpuId) {
        // Release: see `sleep_on_latch`.
        if LATCHES[cpu].swap(SET, Release) == ASLEEP {
            futex::wake(ptr::from_ref(&*LATCHES[cpu]), 1);
        }
    }

    fn wait(cell: &AtomicU32, value: u32) {
        futex::wait(cell, value);
    }

    fn wait_until(cell: &AtomicU32, value: u32, deadline_ns: u64) {
        let left = deadline_ns.saturating_sub(Self::now());
        futex::wait_for(cell, value, Duration::from_nanos(left));
    }

    fn wake_one(address: *const AtomicU32) {
        futex::wake(address, 1);
    }

    /// The key decides for all systems; `nopvspin` has no effect.
    #[cfg(feature = "static-branch")]
    #[inline(always)]
    fn paravirtual(_told: bool) -> bool {
        crate::static_branch::is_paravirtual()
    }

    /// The NUMA node at the thread's first call. It must not change between lock and unlock, and
    /// threads seldom change nodes.
    fn numa_node() -> usize {
        NODE.get().unwrap_or_else(|| {
            let node = current_node();
            NODE.set(Some(node));
            node
        })
    }

    fn processor() -> usize {
        processor()
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn yield_if_cheap() {
        YIELDS.yield_if_cheap(Self::now, thread::yield_now, || SIGHTINGS.last());
    }

    fn yield_is_dear() -> bool {
        YIELDS.are_dear(Self::now)
    }

    /// On a word that nobody changes: unlike `nanosleep`, this is no cancellation point, and a thread that waits for a
    /// mutex must not be cancelled.
    fn nap(nanos: u64) {
        futex::wait_for(&AtomicU32::new(0), 0, Duration::from_nanos(nanos));
    }

    fn recall() -> Note {
        NOTE.get()
    }

    fn remember(note: Note) {
        NOTE.set(note);
    }

    fn now() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours to write. The call cannot fail: the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        // Neither is negative: the clock counts from boot.
        let now = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        SIGHTINGS.note(now);
        now
    }
}

fn current_node() -> usize {
    let mut node: libc::c_uint = 0;
    let nowhere = ptr::null_mut::<libc::c_void>();
    // SAFETY: `node` is ours to write, and null is allowed for unwanted results. If the call is
    // forbidden, the node stays 0, which is right on most machines and harmless on the others.
    unsafe { libc::syscall(libc::SYS_getcpu, nowhere, &raw mut node, nowhere) };
    node as usize
}
