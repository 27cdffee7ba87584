//! A value on cache lines of its own.
//!
//! Per-CPU records are written by their CPU and scanned by others. Two of them on one line would
//! make each write of one CPU a miss for its neighbour, a cost that none of the published systems
//! had: their per-CPU areas are pages apart.

use core::ops::Deref;

/// Aligns `T` to 64 bytes, the cache line of every x86-64 and of most AArch64 processors. We do
/// not use 128 (two lines, against the adjacent-line prefetcher): the machines modelled here move
/// single lines, and the simulator would charge nothing for the difference.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Puts `value` on lines of its own.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

const _: () = assert!(size_of::<CachePadded<u8>>() == 64 && align_of::<CachePadded<u8>>() == 64);
