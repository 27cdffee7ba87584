//! This library's record of a mutex: the shadow. The lock is behind it in the same slot of memory
//! ([`placed`]).
//!
//! A shadow is created when a thread first has to wait for a mutex or waits with it, or, with accounts, at the first `lock`.
//! The mutex itself points to it.
//! [`shards`](crate::shards) keeps the shadows by the addresses of their mutexes, and says when a shadow is passed on to
//! another mutex.
//!
//! A free shadow keeps its lock. POSIX allows a thread to destroy a mutex and free its memory while the thread that has
//! released the mutex is still releasing the shadow's lock. That thread then releases a lock that exists and works. The
//! lock may already belong to another mutex, whose users wait a moment longer. The same holds for locks that access
//! themselves after their release. Memory goes back to the kernel only without such threads ([`slots`](crate::slots)).
//!
//! A mutex that was copied or moved, which POSIX forbids but C programs do, points to a shadow with another address.
//! It gets its own shadow.
//!
//! A live shadow has the address of its mutex, which points to it, or did until it ended without notice. A free one has the
//! address 0. A shadow is in the table of its shard exactly if it has an address.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use overspin_native::{MAX_THREADS, served_id};

use crate::ledger::Account;
use crate::mutex::Mutex;
use crate::placed;
use crate::waiters::Kept;

/// All zeros is a free shadow.
#[repr(C)]
pub(crate) struct Shadow {
    address: AtomicUsize,
    /// The next one in a chain of the table, or in a list of free slots. Under the lock of the shard.
    pub(crate) next: Cell<*mut Shadow>,
    /// Waiters that the next release of the mutex wakes.
    pub(crate) kept: Kept,
    /// The thread that holds both the mutex and the lock, as [`Holder`]; 0 if there is none. Written by the holder of
    /// the mutex, or by the thread that acts in its name (see [`bypass`](crate::bypass)).
    holder: AtomicU32,
    /// Releases so far that left a sleeper behind. Used by the holder of the mutex.
    passed: Cell<u8>,
    /// The mutex has been released past this library, and works without the lock.
    bypassed: AtomicBool,
}

// With the 20 bytes of the lock `mutex` and the 4 of a token a slot has 56 bytes: see docs/preload.md.
const _: () = assert!(size_of::<Shadow>() == 32);

// SAFETY: only the holder of a shard's lock uses `next`, only the holder of the mutex uses `passed`; the rest is atomic.
unsafe impl Sync for Shadow {}

/// A thread that holds a lock: the kernel's number of it, which no other thread has, and its number in the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder(NonZeroU32);

/// The kernel's numbers of threads are below 2^22 (`PID_MAX_LIMIT`).
const TID_BITS: u32 = 22;
const _: () = assert!(MAX_THREADS <= 1 << (u32::BITS - TID_BITS));

impl Holder {
    /// Creates a holder. `tid` is not 0.
    #[inline]
    pub(crate) fn new(tid: i32, number: usize) -> Option<Self> {
        let tid = tid.cast_unsigned();
        if tid >> TID_BITS != 0 {
            return None;
        }
        // Numbers are below `MAX_THREADS`.
        NonZeroU32::new((number as u32) << TID_BITS | tid).map(Self)
    }

    #[inline]
    pub(crate) fn tid(self) -> i32 {
        (self.0.get() & ((1 << TID_BITS) - 1)).cast_signed()
    }

    #[inline]
    pub(crate) fn number(self) -> usize {
        (self.0.get() >> TID_BITS) as usize
    }
}

/// Returns the number of this thread, if the locks serve it.
#[inline]
pub(crate) fn served_number() -> Option<usize> {
    served_id(placed::kind()?.capacity)
}

impl Shadow {
    #[inline]
    pub(crate) fn holder(&self) -> Option<Holder> {
        // Acquire: pairs with `set_holder`.
        NonZeroU32::new(self.holder.load(Acquire)).map(Holder)
    }

    /// For a thread that has just acquired, or is about to release, both mutex and lock, or that acts for such a
    /// thread.
    #[inline]
    pub(crate) fn set_holder(&self, thread: Option<Holder>) {
        // Release: a thread that sees the holder also sees it in the mutex; see `left_behind`.
        self.holder.store(thread.map_or(0, |Holder(thread)| thread.get()), Release);
    }

    /// Whether the mutex works without the lock.
    #[inline]
    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypassed.load(Relaxed)
    }

    /// Begins the service of another mutex. No thread uses the shadow, but one may still release its lock.
    pub(crate) fn begin(&self) {
        self.set_bypassed(false);
        self.passed.set(0);
    }

    #[inline]
    pub(crate) fn set_bypassed(&self, bypassed: bool) {
        self.bypassed.store(bypassed, Relaxed);
    }

    /// The address of its mutex; 0 if it is free.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        // Acquire: pairs with `set_address`.
        self.address.load(Acquire)
    }

    /// For the holder of the shard's lock.
    #[inline]
    pub(crate) fn set_address(&self, address: usize) {
        // Release: a thread that sees the address also sees the lock.
        self.address.store(address, Release);
    }

    /// What is counted and recorded about the mutex, on request.
    #[inline]
    pub(crate) fn account(&self) -> Option<&Account> {
        Account::of(self)
    }

    /// Returns the holder of the lock if it has left the lock behind: it does not own the mutex. For a thread that
    /// uses the mutex, so that the mutex exists.
    pub(crate) fn left_behind(&self) -> Option<Holder> {
        let holder = self.holder()?;
        if self.is_bypassed() {
            return Some(holder);
        }
        let mutex = ptr::with_exposed_provenance::<Mutex>(self.address());
        // SAFETY: null, or a mutex that exists, as the caller says; all of its fields are atomic.
        let mutex = unsafe { mutex.as_ref() }?;
        mutex.is_not_held_by(holder.tid()).then_some(holder)
    }

    /// Counts a release that leaves a sleeper behind. Returns true for one in sixteen. For the holder.
    #[inline]
    pub(crate) fn is_sleepers_turn(&self) -> bool {
        const TURN: u8 = 16;
        let passed = self.passed.get().wrapping_add(1);
        self.passed.set(passed);
        passed.is_multiple_of(TURN)
    }
}

/// Returns the mutex's shadow if it has one.
#[inline]
pub(crate) fn attached(mutex: &Mutex) -> Option<&'static Shadow> {
    // Acquire: pairs with `attach`.
    let noted = mutex.shadow().load(Acquire);
    // SAFETY: null, or a shadow, or zeros where one was; the addresses of shadows stay theirs. A new mutex of ours has zero
    // there, and only `attach` writes it.
    let shadow = unsafe { noted.as_ref() }?;
    (shadow.address() == ptr::from_ref(mutex).addr()).then_some(shadow)
}

/// Makes the mutex point to its shadow.
#[inline]
pub(crate) fn attach(mutex: &Mutex, shadow: &'static Shadow) {
    // Release: a thread that finds the shadow also finds its lock.
    mutex.shadow().store(ptr::from_ref(shadow).cast_mut(), Release);
}
