//! Which shadow belongs to which mutex: tables by address, and free shadows.
//!
//! Most mutexes never come here: a mutex gets a shadow when a thread first has to wait for it, or waits with it
//! ([`come_late`]). Until then it costs what it costs without this library, and no memory.
//!
//! The addresses are divided into shards, each with its own lock, table and memory. All mutexes in a block of [`BLOCK`] bytes
//! are in one shard: a thread has its own stack and, in most allocators, its own part of the heap, so threads that create and
//! destroy mutexes rarely meet, and the data of a shard stays in the cache of one CPU.
//!
//! The tables find shadows of mutexes that are never destroyed: those of C++ run no code at their end. A new mutex at the
//! same address that needs a shadow inherits it, so there are never more shadows than addresses that mutexes have had.
//!
//! **Several threads may need the shadow of a mutex** at the same time. The first one under the lock of the shard attaches it,
//! and the others find it attached.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use crate::by_address::{ByAddress, hash};
use crate::fork_lock::ForkLock;
use crate::ledger::{self, Account};
use crate::mutex::Mutex;
use crate::placed::{self, Kind};
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

/// The shard for mutexes at `address`.
#[inline]
fn shard(address: usize) -> &'static ForkLock<Shard> {
    // As many bits as there are shards.
    &SHARDS[hash(address / BLOCK) >> (usize::BITS - BITS)].0
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

/// Whether mutexes get their shadows late: when a thread first has to wait for them, or waits with them. Accounts want all
/// acquisitions of all mutexes. False as long as this library is not active.
#[inline]
pub(crate) fn come_late() -> bool {
    SIZES.get().is_some() && !ledger::is_open()
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
    let sizes = SIZES.get().or_else(start_and_get)?;
    shard(address).with_unless_closed(|shard| shard.create(sizes, mutex, address, caller)).flatten()
}

/// Retires `shadow`, whose mutex at `address` has been destroyed. While a thread forks, it stays in the table for the next
/// mutex at the address.
pub(crate) fn retire(shadow: &'static Shadow, address: usize) {
    let Some(sizes) = SIZES.get() else { return };
    shard(address).with_unless_closed(|shard| {
        // Unless the program destroys the mutex twice, at the same time.
        if shadow.address() == address {
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
        let shadow = match self.inherited(sizes, address) {
            Some(shadow) => shadow,
            None => {
                let shadow = self.slots.take(sizes, put)?;
                shadow.set_address(address);
                self.table.insert(shadow);
                shadow
            }
        };
        shadow.begin();
        if let Some(account) = shadow.account() {
            account.caller.store(caller, Relaxed);
        }
        attach(mutex, shadow);
        Some(shadow)
    }

    /// The shadow of the previous mutex at this address, which has ended without notice.
    fn inherited(&mut self, sizes: &Sizes, address: usize) -> Option<&'static Shadow> {
        let shadow = self.table.find(address)?;
        if shadow.holder().is_some() {
            // The mutex was held at its end: its lock is lost.
            self.remove(sizes, shadow);
            return None;
        }
        if let Some(account) = shadow.account() {
            account.close();
        }
        Some(shadow)
    }

    /// Removes a shadow from the table, and frees it unless its lock is held.
    fn remove(&mut self, sizes: &Sizes, shadow: &'static Shadow) {
        self.table.remove(shadow);
        if let Some(account) = shadow.account() {
            account.close();
        }
        shadow.set_address(0);
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
