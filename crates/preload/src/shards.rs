//! Which shadow belongs to which mutex: tables by address, and free shadows.
//!
//! The addresses are divided into shards, each with its own lock, table and memory. All mutexes in a block of [`BLOCK`] bytes
//! are in one shard: a thread has its own stack and, in most allocators, its own part of the heap, so threads that create and
//! destroy mutexes rarely meet, and the data of a shard stays in the cache of one CPU. Most short-lived mutexes do not come
//! here at all: see [`recent`](crate::recent).
//!
//! The tables find shadows of mutexes that are never destroyed: those of C++ run no code at their end. A new mutex at the
//! same address inherits the shadow, so there are never more shadows than addresses that mutexes have had.
//!
//! **Races for one mutex.** Two threads may lock a new mutex at the same time, one here and one by `recent.rs`, which takes no
//! lock of a shard. Both find the same shadow, and what they write is the same. If the thread here finds that the shadow has
//! a holder, the other one may already have locked; then the mutex points to the shadow. Else the mutex before was held at
//! its end.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use crate::by_address::{ByAddress, hash};
use crate::fork_lock::ForkLock;
use crate::ledger::{self, Account};
use crate::mutex::Mutex;
use crate::placed::{self, Kind};
use crate::recent::Place;
use crate::shadow::{Shadow, attach, attached};
use crate::slots::{Sizes, Slots};
use crate::{record, startup};

const BITS: u32 = 6;
/// The number of shards.
const NUMBER: usize = 1 << BITS;
/// With mutexes spread over all shards by single addresses, two threads that each created 512 objects took four times as
/// long: most accesses missed the cache.
const BLOCK: usize = 1 << 14;

struct Shard {
    table: ByAddress,
    slots: Slots,
}

/// Shards do not share cache lines.
#[repr(align(128))]
struct Apart(ForkLock<Shard>);

static SHARDS: [Apart; NUMBER] =
    [const { Apart(ForkLock::new(Shard { table: ByAddress::new(), slots: Slots::new() })) };
        NUMBER];
static SIZES: OnceLock<Sizes> = OnceLock::new();

/// The number of the shard for mutexes at `address`.
#[inline]
fn number(address: usize) -> usize {
    hash(address / BLOCK) >> (usize::BITS - BITS)
}

#[inline]
fn shard(address: usize) -> &'static ForkLock<Shard> {
    // As many bits as there are shards.
    &SHARDS[number(address)].0
}

/// Activates the tables: from now on mutexes get shadows with locks of this kind.
pub(crate) fn start(kind: &'static Kind) {
    let size = Account::reserve(kind.size);
    placed::start(record::recorded(kind));
    // Memory with accounts stays: recordings are never freed.
    let sizes = Sizes::new(size, kind.align.max(align_of::<Account>()), !ledger::is_open());
    // Last, because it lets mutexes get shadows. They are not set yet, because this is called once.
    let _ = SIZES.set(sizes);
}

#[cold]
fn start_and_get() -> Option<&'static Sizes> {
    startup::start_once();
    SIZES.get()
}

/// Returns the mutex's shadow, and creates it if necessary. `None` if this library is not active, or while a thread
/// forks.
#[inline]
pub(crate) fn of(mutex: &Mutex, caller: usize) -> Option<&'static Shadow> {
    attached(mutex).or_else(|| create(mutex, caller))
}

#[inline(never)]
fn create(mutex: &Mutex, caller: usize) -> Option<&'static Shadow> {
    // Exposed: see `Shadow::left_behind`.
    let address = ptr::from_ref(mutex).expose_provenance();
    let place = Place::of(address);
    if let Some(shadow) = place.and_then(|place| place.again(address)) {
        shadow.set_bypassed(false);
        attach(mutex, shadow);
        return Some(shadow);
    }
    let sizes = SIZES.get().or_else(start_and_get)?;
    let shadow = shard(address)
        .with_unless_closed(|shard| {
            let parked = place.and_then(Place::parked);
            if let Some(parked) = parked.filter(|its| number(its.address()) == number(address)) {
                shard.remove(sizes, parked);
            }
            shard.create(sizes, mutex, address, caller)
        })
        .flatten()?;
    if let Some(place) = place {
        place.fill(shadow);
    }
    Some(shadow)
}

/// Retires `shadow`, whose mutex has been destroyed.
#[inline]
pub(crate) fn retire(shadow: &'static Shadow) {
    let address = shadow.address();
    match Place::of(address) {
        // If the mutex was destroyed while held, its lock is lost.
        Some(place) if shadow.holder().is_none() => place.park(shadow),
        _ => remove_if(shadow, address, |_| true),
    }
}

/// Removes the shadow of the mutex at `address` from the table if the condition holds under the lock of the shard. While a
/// thread forks, the shadow stays in the table for the next mutex at the address.
#[inline(never)]
pub(crate) fn remove_if(
    shadow: &'static Shadow,
    address: usize,
    condition: impl FnOnce(&Shadow) -> bool,
) {
    let Some(sizes) = SIZES.get() else { return };
    shard(address).with_unless_closed(|shard| {
        if shadow.address() == address && condition(shadow) {
            shard.remove(sizes, shadow);
        }
    });
}

impl Shard {
    fn create(
        &mut self,
        sizes: &Sizes,
        mutex: &Mutex,
        address: usize,
        caller: usize,
    ) -> Option<&'static Shadow> {
        if let Some(shadow) = attached(mutex) {
            return Some(shadow);
        }
        let shadow = match self.inherited(sizes, mutex, address) {
            Some(shadow) => shadow,
            None => {
                let shadow = self.slots.take(sizes, put)?;
                shadow.set_address(address);
                self.table.insert(shadow);
                shadow
            }
        };
        shadow.set_bypassed(false);
        if let Some(account) = shadow.account() {
            account.caller.store(caller, Relaxed);
        }
        attach(mutex, shadow);
        Some(shadow)
    }

    /// The shadow of the previous mutex at this address, which has ended without notice or is parked.
    fn inherited(
        &mut self,
        sizes: &Sizes,
        mutex: &Mutex,
        address: usize,
    ) -> Option<&'static Shadow> {
        let shadow = self.table.find(address)?;
        let is_held = shadow.holder().is_some();
        if is_held && attached(mutex).is_some() {
            // See "Races for one mutex".
            return Some(shadow);
        }
        if is_held {
            // The mutex was held at its end: its lock is lost.
            self.remove(sizes, shadow);
            return None;
        }
        if let Some(account) = shadow.account() {
            account.close();
        }
        shadow.set_parker(0);
        Some(shadow)
    }

    /// Removes a shadow from the table, and frees it unless its lock is held.
    fn remove(&mut self, sizes: &Sizes, shadow: &'static Shadow) {
        self.table.remove(shadow);
        if let Some(account) = shadow.account() {
            account.close();
        }
        // In this order: see `recent.rs`.
        shadow.set_address(0);
        shadow.set_parker(0);
        if shadow.holder().is_none() {
            self.slots.give(sizes, shadow);
        }
    }
}

/// Makes the lock and the account of a slot that has never been used.
fn put(slot: &Shadow) {
    // SAFETY: the slot has room for the lock of its shadow, which no mutex has yet.
    unsafe { slot.put_lock() };
    Account::open(slot);
}

/// Calls `f` with each shadow that has an address.
pub(crate) fn each_live(mut f: impl FnMut(&'static Shadow)) {
    for shard in &SHARDS {
        shard.0.with(|shard| shard.table.each(&mut f));
    }
}

/// Keeps other threads out of the tables during a fork.
pub(crate) fn close() {
    SHARDS.iter().for_each(|shard| shard.0.close());
    // After the shards, which use it.
    ledger::close();
}

/// Ends [`close`].
pub(crate) fn open() {
    ledger::open();
    SHARDS.iter().for_each(|shard| shard.0.open());
}

/// In the child of a fork, gives each shadow a new lock without holder or waiters. The accounts from before the fork
/// belong to the parent.
pub(crate) fn renew_locks() {
    let Some(sizes) = SIZES.get() else { return };
    ledger::forget();
    placed::renew_records();
    let renew = |shadow: &'static Shadow| {
        // SAFETY: this is the only thread, and it is not in a lock.
        unsafe { shadow.put_lock() };
        shadow.set_holder(None);
        // Their threads do not exist.
        let _ = shadow.kept.take();
        if let Some(account) = shadow.account() {
            account.clear();
        }
    };
    for shard in &SHARDS {
        shard.0.with(|shard| shard.slots.each(sizes, renew));
    }
}
