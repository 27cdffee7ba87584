//! Short-lived mutexes: a thread remembers where it has created mutexes lately, and finds their shadows again without a
//! lock. A program that creates and destroys a mutex in a loop does so at a few addresses.
//!
//! Each thread has [`PLACES`] places, by its number; the next thread with that number inherits them. A place has a *hint*:
//! the shadow of a mutex that the thread has created or destroyed.
//!
//! | Event, by the thread `me` | Shadow | Place |
//! |---|---|---|
//! | a mutex is created, by [`shards`] | live | the shadow |
//! | it is destroyed ([`Place::park`]) | parked by `me`; it stays in the table | the shadow |
//! | the next mutex at the address is created ([`Place::again`]) | live | the same |
//! | another shadow gets the place | free, if `me` has parked it ([`Place::fill`], [`Place::parked`]) | the other one |
//! | another thread creates a mutex at the address | live; that thread finds it in the table | a stale hint |
//!
//! **When a hint is right.** [`Place::again`] wants the shadow for a new mutex at the address `a`. It takes the shadow if
//!
//! 1. its parker is nobody or `me`, read first;
//! 2. then, its address is `a`;
//! 3. then, it has no holder.
//!
//! *It stays the shadow for `a`*: only a thread that removes it from the table changes its address. That is (i) a thread that
//! destroys the mutex at `a`, or creates one there and finds the shadow held: the mutex before is over, and this one is in
//! use; or (ii) the thread that has parked it, to free it, under the lock of the shard and only if it is still the parker.
//! If `me` is the parker, this is `me`. If nobody is, no eviction can begin; and one that has ended has cleared the
//! address before the parker, so that step 2 would have failed.
//!
//! *No older parker is overlooked*: a thread that has destroyed a mutex at `a` has written the parker before that, and the
//! creation of the next mutex there comes after the destruction.
//!
//! Other threads that lock the same new mutex find the same shadow, here or in the table.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use overspin_native::MAX_THREADS;

use crate::by_address::hash;
use crate::shadow::{Shadow, served_number};
use crate::{ledger, shards};

const BITS: u32 = 5;
/// Places of a thread.
const PLACES: usize = 1 << BITS;

#[repr(align(64))]
struct Places([AtomicPtr<Shadow>; PLACES]);

static ALL: [Places; MAX_THREADS] =
    [const { Places([const { AtomicPtr::new(ptr::null_mut()) }; PLACES]) }; MAX_THREADS];

/// A place of this thread.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    hint: &'static AtomicPtr<Shadow>,
    /// This thread as a parker.
    me: u16,
}

impl Place {
    /// The place for a mutex at `address`. `None` if the thread has no number, and with accounts: then each mutex has its
    /// own.
    #[inline]
    pub(crate) fn of(address: usize) -> Option<Self> {
        if ledger::is_open() {
            return None;
        }
        let number = served_number()?;
        let hint = &ALL.get(number)?.0[hash(address) >> (usize::BITS - BITS)];
        // Numbers are below `MAX_THREADS`.
        Some(Self { hint, me: number as u16 + 1 })
    }

    #[inline]
    fn hint(self) -> Option<&'static Shadow> {
        // SAFETY: null, or a shadow, or zeros where one was; see `slots.rs`.
        unsafe { self.hint.load(Relaxed).as_ref() }
    }

    /// The shadow for a new mutex at `address`, if this thread remembers it.
    #[inline]
    pub(crate) fn again(self, address: usize) -> Option<&'static Shadow> {
        let shadow = self.hint()?;
        // In this order: see "When a hint is right".
        let parker = shadow.parker();
        let is_mine = parker == 0 || parker == self.me;
        if !is_mine || shadow.address() != address || shadow.holder().is_some() {
            return None;
        }
        if parker != 0 {
            shadow.set_parker(0);
        }
        Some(shadow)
    }

    /// The shadow here if this thread has parked it. It stays parked while this thread holds the lock of its shard.
    #[inline]
    pub(crate) fn parked(self) -> Option<&'static Shadow> {
        self.hint().filter(|shadow| shadow.parker() == self.me)
    }

    /// Parks a shadow whose mutex has been destroyed, and remembers it.
    #[inline]
    pub(crate) fn park(self, shadow: &'static Shadow) {
        shadow.set_parker(self.me);
        self.fill(shadow);
    }

    /// Remembers a shadow. If this thread has parked the previous one, that becomes free.
    #[inline]
    pub(crate) fn fill(self, shadow: &'static Shadow) {
        let before = self.hint();
        if before.is_some_and(|before| ptr::eq(before, shadow)) {
            return;
        }
        self.hint.store(ptr::from_ref(shadow).cast_mut(), Relaxed);
        if let Some(before) = before.filter(|before| before.parker() == self.me) {
            // As long as this thread is the parker, the address stays.
            shards::remove_if(before, before.address(), |shadow| shadow.parker() == self.me);
        }
    }
}
