//! What a guest counts and traces. The host reads it at any time, also while the guest runs.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use overspin_histogram::{BUCKETS, bucket};

/// Waits, counted by their buckets.
#[derive(Debug)]
#[repr(C)]
pub struct Waits([AtomicU32; BUCKETS]);

impl Waits {
    /// Counts a wait. Only one vCPU may call this.
    pub fn record(&self, ns: u64) {
        let count = &self.0[bucket(ns).min(BUCKETS - 1)];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The buckets, and how many waits each has.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed).into()).enumerate()
    }
}

/// What one vCPU, or one task that takes it in user mode, did at one lock. Times are in nanoseconds.
#[derive(Debug)]
#[repr(C)]
pub struct LockStats {
    /// Acquisitions.
    pub acquisitions: AtomicU64,
    /// Acquisitions that had to wait.
    pub contended: AtomicU64,
    /// Total time from the first failed attempt to the acquisition.
    pub wait_total: AtomicU64,
    /// Longest wait.
    pub wait_max: AtomicU64,
    /// Total time from acquisition to release.
    pub hold_total: AtomicU64,
    /// Longest hold.
    pub hold_max: AtomicU64,
    /// How often it slept while it waited.
    pub slow_paths: AtomicU64,
    /// Kicks that it sent in its releases.
    pub kicks: AtomicU64,
    /// Holds in which it was descheduled.
    pub preempted: AtomicU64,
    /// The waits.
    pub waits: Waits,
}

/// What a task did.
#[derive(Debug)]
#[repr(C)]
pub struct TaskStats {
    /// Its name, in UTF-8; the bytes after it are 0. The host knows the names of the first tasks.
    pub name: [AtomicU64; 4],
    /// 1: it has begun.
    pub begun: AtomicU64,
    /// CPU time that it used, in nanoseconds, of a task that shares vCPUs with others.
    pub cpu: AtomicU64,
    /// How often another task took its vCPU over, although it wanted to go on.
    pub preemptions: AtomicU64,
    /// Time that ticks charged to it, which found it in user mode, and in kernel mode. In nanoseconds.
    pub ticks: [AtomicU64; 2],
    /// Work items.
    pub items: AtomicU64,
    /// Sleeps.
    pub sleeps: AtomicU64,
    /// When it ended, in nanoseconds plus one; 0: it did not end.
    pub ended: AtomicU64,
    /// Answers to requesters.
    pub answers: AtomicU64,
    /// Their total wait, in nanoseconds.
    pub waited: AtomicU64,
    /// Their longest wait.
    pub longest: AtomicU64,
    /// Their waits.
    pub waits: Waits,
}

/// TLB shootdowns of a vCPU: it waits until others have flushed. Times are in nanoseconds.
#[derive(Debug)]
#[repr(C)]
pub struct Unmaps {
    /// How many there were.
    pub shootdowns: AtomicU64,
    /// Events that it sent for them.
    pub interrupts: AtomicU64,
    /// vCPUs that needed none, because they had no pCPU.
    pub skipped: AtomicU64,
    /// Total time that it waited.
    pub waited: AtomicU64,
    /// The part of that for which the last vCPU to answer had no pCPU.
    pub preempted: AtomicU64,
}

/// A moment at a lock.
#[derive(Debug)]
#[repr(C)]
pub struct Traced {
    /// Its time, in nanoseconds.
    pub at: AtomicU64,
    /// [`kind`] in the first 8 bits, the lock in the next 24, and a number plus one in the last 32: for [`kind::WAIT`]
    /// the vCPU or task that holds the lock, for kinds of tasks a task.
    pub what: AtomicU64,
}

/// Kinds of traced moments.
pub mod kind {
    /// The vCPU starts to wait.
    pub const WAIT: u8 = 1;
    /// It has the lock, and was alone.
    pub const ACQUIRED: u8 = 2;
    /// It has the lock, and had to wait, or others wait.
    pub const ACQUIRED_CONTENDED: u8 = 3;
    /// It begins to release.
    pub const RELEASED: u8 = 4;
    /// It has released.
    pub const FREED: u8 = 5;
    /// The vCPU runs this task from now on; 0: none.
    pub const TASK: u8 = 6;
    /// This task sleeps in a wait for a lock.
    pub const SLEEPS: u8 = 7;
    /// It is woken.
    pub const WAKES: u8 = 8;
    /// Its sleep is over.
    pub const RETURNS: u8 = 9;
    /// Added to one of the first kinds: the task that the vCPU runs does it, in user mode.
    pub const USER: u8 = 1 << 7;
}

/// Adds to a counter that only the calling vCPU writes.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Raises a maximum that only the calling vCPU writes.
pub(crate) fn raise(maximum: &AtomicU64, n: u64) {
    if n > maximum.load(Ordering::Relaxed) {
        maximum.store(n, Ordering::Relaxed);
    }
}

impl LockStats {
    /// Counts a wait.
    pub fn waited(&self, ns: u64) {
        add(&self.contended, 1);
        add(&self.wait_total, ns);
        raise(&self.wait_max, ns);
        self.waits.record(ns);
    }

    /// Counts an acquisition and its release after `ns`.
    pub fn held(&self, ns: u64) {
        add(&self.hold_total, ns);
        raise(&self.hold_max, ns);
    }

    /// Adds to one of the counters.
    pub fn add(counter: &AtomicU64, n: u64) {
        add(counter, n);
    }
}

impl TaskStats {
    /// Counts an answer to a requester that has waited for `ns`.
    pub fn answered(&self, ns: u64) {
        add(&self.answers, 1);
        add(&self.waited, ns);
        raise(&self.longest, ns);
        self.waits.record(ns);
    }

    /// Adds to one of the counters. Tasks of several vCPUs may share them.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Names the task. What does not fit is cut off.
    pub fn set_name(&self, name: &str) {
        for (word, bytes) in self.name.iter().zip(name.as_bytes().chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
    }

    /// Its name, as bytes.
    pub fn name(&self) -> [u8; 32] {
        let mut name = [0; 32];
        for (to, word) in name.chunks_mut(8).zip(&self.name) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        name
    }
}

impl Traced {
    /// Writes a moment.
    pub fn write(&self, at: u64, kind: u8, lock: u32, holder: u32) {
        self.at.store(at, Ordering::Relaxed);
        let what = u64::from(kind) | u64::from(lock & 0xff_ffff) << 8 | u64::from(holder) << 32;
        self.what.store(what, Ordering::Relaxed);
    }
}
