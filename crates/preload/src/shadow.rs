//! This library's record of each mutex, and the table of the records.
//!
//! A shadow is created at the first `lock` of a mutex, and the mutex itself points to it. The table finds it by the
//! address of the mutex. It is needed for mutexes that are never destroyed: those of C++ run no code at their end. A
//! new mutex at the same address inherits the shadow, so there are never more shadows than addresses that mutexes
//! have had.
//!
//! A shadow is never freed, only passed on. POSIX allows a thread to destroy a mutex and free its memory while the
//! thread that has released the mutex is still releasing the shadow's lock. That thread then releases a lock that
//! exists and works. The lock may already belong to another mutex, whose users wait a moment longer. The same holds
//! for locks that access themselves after their release.
//!
//! A mutex that was copied or moved, which POSIX forbids but C programs do, points to a shadow with another address.
//! It gets its own shadow.

use std::cell::{Cell, UnsafeCell};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use overspin_native::{Kind, NamedLock, served_id};

use crate::fork_lock::ForkLock;
use crate::mutex::Mutex;
use crate::record::{Ended, Record, Recorded};
use crate::waiters::Kept;
use crate::watched::kind;

pub(crate) struct Shadow {
    address: AtomicUsize,
    /// The thread that holds both the mutex and `lock`, as [`Holder`]; 0 if there is none. Written by the holder of
    /// the mutex, or by the thread that acts in its name (see [`bypass`](crate::bypass)).
    holder: AtomicU64,
    /// The mutex has been released past this library, and works without `lock`.
    bypassed: AtomicBool,
    /// Replaced in the child of a fork, where there is only one thread.
    lock: UnsafeCell<Box<dyn NamedLock>>,
    /// Releases so far that left a sleeper behind. Used by the holder of the mutex.
    passed: Cell<u32>,
    /// Waiters that the next release of the mutex wakes.
    pub(crate) kept: Kept,
    pub(crate) uses: Uses,
    /// What is recorded about the mutex, on request.
    record: Option<&'static Record>,
}

// SAFETY: `lock` changes only while there is one thread; only the holder of the mutex uses `passed`; the rest is
// atomic.
unsafe impl Sync for Shadow {}

/// The use counts of a mutex. Written by its holder only.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) acquisitions: AtomicU64,
    pub(crate) contended: AtomicU64,
    /// The place where it was first locked: a return address.
    pub(crate) caller: AtomicUsize,
}

impl Uses {
    /// Adds one acquisition. For the holder of the mutex.
    pub(crate) fn count(&self, contended: bool) {
        // Not a read-modify-write: there is only one holder at a time.
        let add = |counter: &AtomicU64, by| counter.store(counter.load(Relaxed) + by, Relaxed);
        add(&self.acquisitions, 1);
        add(&self.contended, u64::from(contended));
    }

    fn clear(&self) {
        self.acquisitions.store(0, Relaxed);
        self.contended.store(0, Relaxed);
    }
}

struct Table {
    kind: Kind,
    of: BTreeMap<usize, &'static Shadow>,
    /// Shadows without a mutex.
    free: Vec<&'static Shadow>,
    /// All shadows.
    all: Vec<&'static Shadow>,
    /// Uses of mutexes that have ended, by caller: mutexes, acquisitions, contended.
    ended: BTreeMap<usize, [u64; 3]>,
    /// What was recorded about them.
    ended_records: Ended,
}

static TABLE: OnceLock<ForkLock<Table>> = OnceLock::new();
/// The locks serve threads with numbers below this.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);

/// Activates the table: from now on mutexes get shadows with locks of this kind.
pub(crate) fn start(kind: Kind) {
    CAPACITY.store(kind.capacity(), Relaxed);
    // The table is not set yet, because this is called once.
    let _ = TABLE.set(ForkLock::new(Table {
        kind,
        of: BTreeMap::new(),
        free: Vec::new(),
        all: Vec::new(),
        ended: BTreeMap::new(),
        ended_records: Ended::default(),
    }));
}

/// A thread that holds a lock: the kernel's number of it, which no other thread has, and its number in the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder(NonZeroU64);

impl Holder {
    /// Creates a holder. `tid` is not 0.
    #[inline]
    pub(crate) fn new(tid: i32, number: usize) -> Option<Self> {
        // Numbers are small.
        NonZeroU64::new((number as u64) << 32 | u64::from(tid.cast_unsigned())).map(Self)
    }

    #[inline]
    pub(crate) fn tid(self) -> i32 {
        // The lower half.
        (self.0.get() as u32).cast_signed()
    }

    #[inline]
    pub(crate) fn number(self) -> usize {
        // The upper half.
        (self.0.get() >> 32) as usize
    }
}

/// Returns the number of this thread, if the locks serve it.
#[inline]
pub(crate) fn served_number() -> Option<usize> {
    // Relaxed: a thread that has a shadow comes after `start`.
    served_id(CAPACITY.load(Relaxed))
}

impl Shadow {
    #[inline]
    pub(crate) fn lock(&self) -> &dyn NamedLock {
        // SAFETY: it changes only while there is one thread, which is then not here.
        unsafe { &**self.lock.get() }
    }

    #[inline]
    pub(crate) fn holder(&self) -> Option<Holder> {
        NonZeroU64::new(self.holder.load(Relaxed)).map(Holder)
    }

    /// For a thread that has just acquired, or is about to release, both mutex and lock, or that acts for such a
    /// thread.
    #[inline]
    pub(crate) fn set_holder(&self, thread: Option<Holder>) {
        self.holder.store(thread.map_or(0, |Holder(thread)| thread.get()), Relaxed);
    }

    /// Whether the mutex works without the lock.
    #[inline]
    pub(crate) fn is_bypassed(&self) -> bool {
        self.bypassed.load(Relaxed)
    }

    pub(crate) fn set_bypassed(&self, bypassed: bool) {
        self.bypassed.store(bypassed, Relaxed);
    }

    pub(crate) fn address(&self) -> usize {
        self.address.load(Relaxed)
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
        const TURN: u32 = 16;
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
    // SAFETY: null, or a shadow; shadows are never freed. A new mutex of ours has zero there, and only `attach`
    // writes it.
    let shadow = unsafe { noted.as_ref() }?;
    (shadow.address.load(Relaxed) == ptr::from_ref(mutex).addr()).then_some(shadow)
}

/// Returns the mutex's shadow, and creates it if necessary. `None` if this library is not active, or while a thread
/// forks.
#[inline]
pub(crate) fn of(mutex: &Mutex, caller: usize) -> Option<&'static Shadow> {
    attached(mutex).or_else(|| attach(mutex, caller))
}

#[cold]
fn attach(mutex: &Mutex, caller: usize) -> Option<&'static Shadow> {
    crate::startup::start_once();
    TABLE.get()?.with_unless_closed(|table| {
        if let Some(shadow) = attached(mutex) {
            return shadow;
        }
        // Exposed: see `left_behind`.
        let address = ptr::from_ref(mutex).expose_provenance();
        let left = table.of.remove(&address);
        if let Some(shadow) = left {
            // The previous mutex at this address has ended without notice.
            table.end(shadow);
        }
        // If it was held at its end, its lock is lost.
        let free = left.filter(|shadow| shadow.holder().is_none()).or_else(|| table.free.pop());
        let shadow = free.unwrap_or_else(|| table.new_shadow());
        shadow.address.store(address, Relaxed);
        shadow.set_bypassed(false);
        shadow.uses.caller.store(caller, Relaxed);
        table.of.insert(address, shadow);
        // Release: a thread that finds the shadow also finds its address.
        mutex.shadow().store(ptr::from_ref(shadow).cast_mut(), Release);
        shadow
    })
}

/// Retires `shadow`, whose mutex has been destroyed.
pub(crate) fn retire(shadow: &'static Shadow) {
    let Some(table) = TABLE.get() else { return };
    // While a thread forks, the shadow stays in the table for the next mutex at the address.
    table.with_unless_closed(|table| {
        table.of.remove(&shadow.address.swap(0, Relaxed));
        table.end(shadow);
        // If the mutex was destroyed while held, its lock is lost.
        if shadow.holder().is_none() {
            table.free.push(shadow);
        }
    });
}

impl Table {
    fn new_shadow(&mut self) -> &'static Shadow {
        let record = Record::new();
        let lock = new_lock(&self.kind, record);
        let shadow: &Shadow = Box::leak(Box::new(Shadow {
            address: AtomicUsize::new(0),
            holder: AtomicU64::new(0),
            bypassed: AtomicBool::new(false),
            lock: UnsafeCell::new(lock),
            passed: Cell::new(0),
            kept: Kept::new(),
            uses: Uses::default(),
            record,
        }));
        self.all.push(shadow);
        shadow
    }

    /// Moves the counts of a mutex that has ended.
    fn end(&mut self, shadow: &Shadow) {
        let uses = &shadow.uses;
        let acquisitions = uses.acquisitions.load(Relaxed);
        if acquisitions != 0 {
            let sum = self.ended.entry(uses.caller.load(Relaxed)).or_default();
            for (sum, more) in sum.iter_mut().zip([1, acquisitions, uses.contended.load(Relaxed)]) {
                *sum += more;
            }
        }
        if let Some(record) = shadow.record {
            self.ended_records.take(uses.caller.load(Relaxed), record);
        }
        uses.clear();
    }
}

/// A free lock, which writes `record` if there is one.
fn new_lock(kind: &Kind, record: Option<&'static Record>) -> Box<dyn NamedLock> {
    let lock = kind.new_lock();
    match record {
        None => lock,
        Some(record) => Box::new(Recorded { lock, record }),
    }
}

/// One line of the statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Address of a mutex; 0 for all ended mutexes of the same caller.
    pub(crate) address: usize,
    pub(crate) mutexes: u64,
    pub(crate) caller: usize,
    pub(crate) acquisitions: u64,
    pub(crate) contended: u64,
}

/// Returns the name of the lock, and all counts so far that are not zero, in no particular order. `None` if this
/// library is not active.
pub(crate) fn lines() -> Option<(&'static str, Vec<Line>)> {
    TABLE.get().map(|table| {
        table.with(|table| {
            let live = table.of.iter().map(|(&address, shadow)| Line {
                address,
                mutexes: 1,
                caller: shadow.uses.caller.load(Relaxed),
                acquisitions: shadow.uses.acquisitions.load(Relaxed),
                contended: shadow.uses.contended.load(Relaxed),
            });
            let ended = table.ended.iter().map(|(&caller, &[mutexes, acquisitions, contended])| {
                Line { address: 0, mutexes, caller, acquisitions, contended }
            });
            (table.kind.name(), live.chain(ended).filter(|line| line.acquisitions != 0).collect())
        })
    })
}

/// Calls `write` with the name of the lock and all records, each with the address of its mutex (0 for mutexes that have
/// ended) and the place where that was first locked. `None` if this library is not active.
pub(crate) fn with_records<R>(
    write: impl FnOnce(&str, &[(usize, usize, &Record)]) -> R,
) -> Option<R> {
    TABLE.get().map(|table| {
        table.with(|table| {
            let live = table.of.iter().filter_map(|(&address, shadow)| {
                Some((address, shadow.uses.caller.load(Relaxed), shadow.record?))
            });
            let ended = table.ended_records.all().map(|(caller, record)| (0, caller, record));
            write(table.kind.name(), &live.chain(ended).collect::<Vec<_>>())
        })
    })
}

/// Keeps other threads out of the table during a fork.
pub(crate) fn close() {
    if let Some(table) = TABLE.get() {
        table.close();
    }
}

/// Ends [`close`].
pub(crate) fn open() {
    if let Some(table) = TABLE.get() {
        table.open();
    }
}

/// In the child of a fork, gives each shadow a new lock without holder or waiters. The counts from before the fork
/// belong to the parent.
pub(crate) fn renew_locks() {
    let Some(table) = TABLE.get() else { return };
    table.with(|table| {
        table.ended.clear();
        table.ended_records.clear();
        let Some(kind) = kind(table.kind.name()) else { return };
        for shadow in &table.all {
            // SAFETY: this is the only thread, and it is not in a lock.
            unsafe { *shadow.lock.get() = new_lock(&kind, shadow.record) };
            if let Some(record) = shadow.record {
                record.clear();
            }
            shadow.set_holder(None);
            // Their threads do not exist.
            let _ = shadow.kept.take();
            shadow.uses.clear();
        }
        table.kind = kind;
    });
}
