//! A hash table of shadows by the address of their mutex. The shadows are linked by `next`, so the table itself is one
//! pointer for each chain: 4 to 8 bytes a mutex.

use std::ptr;

use crate::pages;
use crate::shadow::Shadow;

/// Chains without memory of their own: enough for twice as many mutexes.
const FEW: usize = 32;
/// Chains in memory of their own, at least: a page on most machines.
const LEAST: usize = 4096 / size_of::<*mut Shadow>();
/// Mutexes for each chain at which the table grows.
const LONG: usize = 2;
/// The table shrinks to an eighth when it has more than this many chains for each mutex, but not below [`LEAST`].
const SPARSE: usize = 32;

pub(crate) struct ByAddress {
    few: [*mut Shadow; FEW],
    /// More chains, from the kernel; null if `few` are in use.
    more: *mut *mut Shadow,
    /// The number of chains, a power of two.
    chains: usize,
    count: usize,
}

// SAFETY: the table belongs to no particular thread.
unsafe impl Send for ByAddress {}

/// Fibonacci hashing: the best bits are the topmost.
#[inline]
pub(crate) fn hash(address: usize) -> usize {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl ByAddress {
    pub(crate) const fn new() -> Self {
        Self { few: [ptr::null_mut(); FEW], more: ptr::null_mut(), chains: FEW, count: 0 }
    }

    /// The chain of this hash.
    #[inline]
    fn chain(&mut self, hash: usize) -> &mut *mut Shadow {
        let index = hash >> (usize::BITS - self.chains.trailing_zeros());
        if self.more.is_null() {
            return &mut self.few[index % FEW];
        }
        // SAFETY: there are `chains` of them.
        unsafe { &mut *self.more.add(index) }
    }

    /// The shadow of the mutex at `address`.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<&'static Shadow> {
        let mut next = *self.chain(hash(address));
        // SAFETY: null, or a shadow in the table; here and below.
        while let Some(shadow) = unsafe { next.as_ref() } {
            if shadow.address() == address {
                return Some(shadow);
            }
            next = shadow.next.get();
        }
        None
    }

    /// Adds a shadow that is not in the table, under its address.
    #[inline]
    pub(crate) fn insert(&mut self, shadow: &'static Shadow) {
        self.count += 1;
        if self.count > LONG * self.chains {
            self.resize((2 * self.chains).max(LEAST));
        }
        self.link(shadow);
    }

    #[inline]
    fn link(&mut self, shadow: &'static Shadow) {
        let chain = self.chain(hash(shadow.address()));
        shadow.next.set(*chain);
        *chain = ptr::from_ref(shadow).cast_mut();
    }

    /// Removes a shadow that is in the table.
    #[inline]
    pub(crate) fn remove(&mut self, shadow: &'static Shadow) {
        let chain = self.chain(hash(shadow.address()));
        if ptr::eq(*chain, shadow) {
            *chain = shadow.next.get();
        } else {
            let mut next = *chain;
            // SAFETY: as in `find`.
            while let Some(before) = unsafe { next.as_ref() } {
                next = before.next.get();
                if ptr::eq(next, shadow) {
                    before.next.set(shadow.next.get());
                    break;
                }
            }
        }
        self.count -= 1;
        if self.count < self.chains / SPARSE && self.chains > LEAST {
            self.resize((self.chains / 8).max(LEAST));
        }
    }

    /// Moves all shadows to a table of this many chains. Without memory, the table stays as it is, and its
    /// chains become longer.
    #[cold]
    fn resize(&mut self, chains: usize) {
        let size = chains * size_of::<*mut Shadow>();
        let more = pages::map(size).cast::<*mut Shadow>();
        if more.is_null() {
            return;
        }
        let mut new = Self { more, chains, ..Self::new() };
        self.each(|shadow| new.link(shadow));
        new.count = self.count;
        if !self.more.is_null() {
            // SAFETY: the old table is from `map`, and ends here.
            unsafe { pages::unmap(self.more.cast(), self.chains * size_of::<*mut Shadow>()) };
        }
        *self = new;
    }

    /// Calls `f` with each shadow in the table. `f` may link it elsewhere.
    pub(crate) fn each(&mut self, mut f: impl FnMut(&'static Shadow)) {
        for index in 0..self.chains {
            let mut next = if self.more.is_null() {
                self.few[index]
            } else {
                // SAFETY: there are `chains` of them.
                unsafe { *self.more.add(index) }
            };
            // SAFETY: as in `find`.
            while let Some(shadow) = unsafe { next.as_ref() } {
                next = shadow.next.get();
                f(shadow);
            }
        }
    }
}
