//! Short-lived mutexes: a thread remembers where it has created mutexes lately, and finds their shadows again without a
//! lock. A program that creates and destroys a mutex in a loop does so at a few addresses.
//!
//! Each thread has [`PLACES`] places, by its number; the next thread with that number inherits them. A place has a *hint*:
//! the shadow of a mutex that the thread has created or destroyed.
//!
//! | Event, by the thread `me` | Shadow | Place |
//! |---|---|---|
//! | a mutex is created, by [`shards`] | live | the shadow |
//! | it is destroyed ([`park`]) | parked by `me`; it stays in the table | the shadow |
//! | the next mutex at the address is created ([`again`]) | live | the same |
//! | another shadow gets the place | free, if `me` has parked it ([`evict`]) | the other one |
//! | another thread creates a mutex at the address | live; that thread finds it in the table | a stale hint |
//!
//! **When a hint is right.** [`again`] wants the shadow for a new mutex at the address `a`. It takes the shadow if
//!
//! 1. its parker is nobody or `me`, read first;
//! 2. then, its address is `a`;
//! 3. then, it has no holder.
//!
//! *It stays the shadow for `a`*: only a thread that removes it from the table changes its address. That is (i) a thread that
//! destroys the mutex at `a`, or creates one there and finds the shadow held: the mutex before is over, and this one is in
//! use; or (ii) the thread that has parked it, in [`evict`], under the lock of the shard and only if it is still the parker.
//! If `me` is the parker, this is `me`. If nobody is, no eviction can begin; and one that has ended has cleared the
//! address before the parker, so that step 2 would have failed.
//!
//! *No older parker is overlooked*: a thread that has destroyed a mutex at `a` has written the parker before that, and the
//! creation of the next mutex there comes after the destruction.
//!
//! Other threads that lock the same new mutex find the same shadow, here or in the table.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use overspin_native::MAX_THREADS;

use crate::by_address::hash;
use crate::shadow::{Shadow, served_number};
use crate::{ledger, shards};

/// Places of a thread: a cache line.
const PLACES: usize = 8;

#[repr(align(64))]
struct Places([AtomicPtr<Shadow>; PLACES]);

static ALL: [Places; MAX_THREADS] =
    [const { Places([const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES]) }; MAX_THREADS];

/// The place for a mutex at `address`, and this thread as a parker. `None` if the thread has no number, and with accounts:
/// each mutex has its own.
#[inline]
fn place(address: usize) -> Option<(&'static AtomicPtr<Shadow>, u16)> {
    if ledger::is_open() {
        return None;
    }
    let number = served_number()?;
    // Other bits than those of the shards and the chains.
    let place = &ALL.get(number)?.0[(hash(address) >> 24) % PLACES];
    // Numbers are below `MAX_THREADS`.
    Some((place, number as u16 + 1))
}

#[inline]
fn hint(place: &AtomicPtr<Shadow>) -> Option<&'static Shadow> {
    // SAFETY: null, or a shadow, or zeros where one was; see `slots.rs`.
    unsafe { place.load(Relaxed).as_ref() }
}

/// The shadow for a new mutex at `address`, if this thread remembers it.
#[inline]
pub(crate) fn again(address: usize) -> Option<&'static Shadow> {
    let (place, me) = place(address)?;
    let shadow = hint(place)?;
    // In this order: see "When a hint is right".
    let parker = shadow.parker();
    if (parker != 0 && parker != me) || shadow.address() != address || shadow.holder().is_some() {
        return None;
    }
    if parker != 0 {
        shadow.set_parker(0);
    }
    Some(shadow)
}

/// Remembers the shadow of a new mutex.
#[inline]
pub(crate) fn note(shadow: &'static Shadow, address: usize) {
    if let Some((place, me)) = place(address) {
        fill(place, me, shadow);
    }
}

/// Parks the shadow of the mutex at `address`, which has been destroyed. Returns false if this thread cannot.
#[inline]
pub(crate) fn park(shadow: &'static Shadow, address: usize) -> bool {
    let Some((place, me)) = place(address) else { return false };
    shadow.set_parker(me);
    fill(place, me, shadow);
    true
}

/// Puts a hint into a place. If this thread has parked the previous one, that shadow becomes free.
#[inline]
fn fill(place: &AtomicPtr<Shadow>, me: u16, shadow: &'static Shadow) {
    let Some(before) = hint(place) else {
        return place.store(std::ptr::from_ref(shadow).cast_mut(), Relaxed);
    };
    if !std::ptr::eq(before, shadow) {
        place.store(std::ptr::from_ref(shadow).cast_mut(), Relaxed);
        if before.parker() == me {
            evict(before, me);
        }
    }
}

#[cold]
fn evict(shadow: &'static Shadow, me: u16) {
    // As long as this thread is the parker, the address stays.
    let address = shadow.address();
    shards::remove_if(shadow, address, |shadow| shadow.parker() == me);
}
