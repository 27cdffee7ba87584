//! A value on cache lines of its own.
//!
//! Each CPU writes its own record, and other CPUs scan it. If two records shared a line, each write
//! of one CPU would cause a miss for its neighbour. None of the published systems had that cost:
//! their per-CPU areas are pages apart.

use core::ops::Deref;

/// Aligns `T` to 64 bytes, the cache line of every x86-64 and of most AArch64 processors. It does
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
