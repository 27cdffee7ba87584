//! The accounts of mutexes, for statistics and recordings. Without a request for one of these there are none.
//!
//! An account lies behind the lock of its shadow, in the same slot. When a mutex ends, what its account says is added up by
//! the place where the mutex was first locked.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::fork_lock::ForkLock;
use crate::record::{Ended, Record};
use crate::shadow::Shadow;
use crate::shards;
use crate::{placed, record, stats};

/// What is counted and recorded about a mutex.
pub(crate) struct Account {
    pub(crate) acquisitions: AtomicU64,
    pub(crate) contended: AtomicU64,
    /// The place where the mutex was first locked: a return address.
    pub(crate) caller: AtomicUsize,
    pub(crate) record: Option<&'static Record>,
}

/// Where the account is in a slot; 0 without accounts.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// Whether there are accounts.
#[inline]
pub(crate) fn is_open() -> bool {
    PLACE.load(Relaxed) != 0
}

impl Account {
    /// The account beside a shadow, if there are accounts.
    #[inline]
    pub(crate) fn of(shadow: &Shadow) -> Option<&Self> {
        let place = PLACE.load(Relaxed);
        if place == 0 {
            return None;
        }
        let account = ptr::from_ref(shadow).addr() + place;
        // SAFETY: `open` has written one there, because slots are made after `reserve`. The provenance of the slot's memory
        // is exposed (`slots.rs`).
        Some(unsafe { &*ptr::with_exposed_provenance::<Self>(account) })
    }

    /// Reserves room for accounts in slots of `size` bytes if something has asked for them. Returns the size with that.
    /// Called once, before there are slots.
    pub(crate) fn reserve(size: usize) -> usize {
        if !stats::are_on() && !record::is_on() {
            return size;
        }
        let place = size.next_multiple_of(align_of::<Self>());
        PLACE.store(place, Relaxed);
        place + size_of::<Self>()
    }

    /// Writes the account of a new slot.
    pub(crate) fn open(slot: &Shadow) {
        let place = PLACE.load(Relaxed);
        if place != 0 {
            let account = Self {
                acquisitions: AtomicU64::new(0),
                contended: AtomicU64::new(0),
                caller: AtomicUsize::new(0),
                record: Record::new(),
            };
            let at = ptr::with_exposed_provenance_mut::<Self>(ptr::from_ref(slot).addr() + place);
            // SAFETY: the slot is new, and has room at that place.
            unsafe { at.write(account) };
        }
    }

    /// Adds one acquisition. For the holder of the mutex.
    pub(crate) fn count(&self, contended: bool) {
        // Not a read-modify-write: there is only one holder at a time.
        let add = |counter: &AtomicU64, by| counter.store(counter.load(Relaxed) + by, Relaxed);
        add(&self.acquisitions, 1);
        add(&self.contended, u64::from(contended));
    }

    /// Forgets everything but the caller.
    pub(crate) fn clear(&self) {
        self.acquisitions.store(0, Relaxed);
        self.contended.store(0, Relaxed);
        if let Some(record) = self.record {
            record.clear();
        }
    }

    /// Moves what it says to the accounts of mutexes that have ended. Not while a thread forks.
    pub(crate) fn close(&self) {
        let caller = self.caller.load(Relaxed);
        let acquisitions = self.acquisitions.load(Relaxed);
        ENDED.with(|ended| {
            if acquisitions != 0 {
                let sum = ended.sums.entry(caller).or_default();
                let more = [1, acquisitions, self.contended.load(Relaxed)];
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
            if let Some(record) = self.record {
                ended.records.take(caller, record);
            }
        });
        self.clear();
    }
}

/// Mutexes that have ended, by caller.
struct All {
    /// Mutexes, acquisitions, contended.
    sums: BTreeMap<usize, [u64; 3]>,
    records: Ended,
}

static ENDED: ForkLock<All> = ForkLock::new(All { sums: BTreeMap::new(), records: Ended::new() });

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
    let kind = placed::kind()?;
    let mut lines = Vec::new();
    shards::each_live(|shadow| {
        if let Some(account) = shadow.account() {
            lines.push(Line {
                address: shadow.address(),
                mutexes: 1,
                caller: account.caller.load(Relaxed),
                acquisitions: account.acquisitions.load(Relaxed),
                contended: account.contended.load(Relaxed),
            });
        }
    });
    ENDED.with(|ended| {
        lines.extend(ended.sums.iter().map(|(&caller, &[mutexes, acquisitions, contended])| {
            Line { address: 0, mutexes, caller, acquisitions, contended }
        }));
    });
    lines.retain(|line| line.acquisitions != 0);
    Some((kind.name, lines))
}

/// Calls `write` with the name of the lock and all records, each with the address of its mutex (0 for mutexes that have
/// ended) and the place where that was first locked. `None` if this library is not active.
pub(crate) fn with_records<R>(
    write: impl FnOnce(&str, &[(usize, usize, &Record)]) -> R,
) -> Option<R> {
    let kind = placed::kind()?;
    let mut records = Vec::new();
    shards::each_live(|shadow| {
        if let Some(account) = shadow.account()
            && let Some(record) = account.record
        {
            records.push((shadow.address(), account.caller.load(Relaxed), record));
        }
    });
    Some(ENDED.with(|ended| {
        let mut all: Vec<(usize, usize, &Record)> = records;
        all.extend(ended.records.all().map(|(caller, record)| (0, caller, record)));
        write(kind.name, &all)
    }))
}

/// Keeps other threads out during a fork.
pub(crate) fn close() {
    ENDED.close();
}

/// Ends [`close`].
pub(crate) fn open() {
    ENDED.open();
}

/// In the child of a fork: what has ended belongs to the parent.
pub(crate) fn forget() {
    ENDED.with(|ended| {
        ended.sums.clear();
        ended.records.clear();
    });
}
