//! Affinity: whether sections take longer where the last one ran on another processor.
//!
//! What a lock protects is in the cache of the processor that ran the last section. A section elsewhere first fetches
//! what it uses. Most sections use little, and then it costs next to nothing to give the lock to the thread that has
//! waited longest. But where sections of 5 us use 256 KiB, they take 12 us elsewhere, and a lock that changes processors
//! at each section has half the throughput.
//!
//! **The rule.** The lock keeps two medians of the length of a section: one where the section before it ran on the same
//! processor, and one where it did not. The difference is the price of a move. The affinity is strong if the price is at least
//! a quarter of a section, and at least [`PRICE_NS`]. Then the lock moves seldom: waiters do not spin, and a sleeper that is
//! woken and finds the lock held goes back to sleep. Rotations come after some 80 sections ([`READINGS`]), or at the first
//! reading of the clock after [`MOST`] times the usual time. Why sections and not time: a section cannot use more than it
//! has time to touch. So a move costs one section or two, and a rotation for each 80 of them a few per cent of the throughput.
//!
//! **Medians**, because a section in which the thread lost its CPU takes milliseconds. Each section moves its median up
//! or down by a step of 0.4 to 0.8 %.
//!
//! **What is measured.** Sections that begin while other threads sleep, and sections that begin after a wait. Reading the
//! clock lengthens a section, so only one in eight is measured of those on the same processor and of those after short waits.
//! Where each thread has a processor no thread sleeps, and each section after a wait is on another processor than the one
//! before. So a lock that knows no length on the same processor counts as bound. Then waiters sleep until it knows one.
//!
//! **State**, in one cell, because the lock should stay small. All accesses are relaxed, and some updates are lost: these are
//! hints.
//!
//! | Bits | Meaning |
//! |---|---|
//! | 0 to 4 | processor of the last section, modulo 32 |
//! | 5 to 7 | readings of the clock since the last rotation, while the affinity is strong |
//! | 8 to 19 | median where the section before ran on the same processor, as a [`code`] |
//! | 20 to 31 | median where it ran on another one |

use core::sync::atomic::Ordering::Relaxed;

use crate::AtomicCell;

/// The least price of a move, in nanoseconds, for which a lock avoids it. It is above the price of the cache lines of the
/// lock itself.
pub(super) const PRICE_NS: u64 = 1000;

/// With a strong affinity, a rotation is due after this many times the usual time in any case.
pub(super) const MOST: u64 = 16;

/// Readings of the clock between two rotations where the affinity is strong. The clock is read for one in 8 to 16 releases. With
/// 5 readings, threads that share a SQLite connection have a third less of the longest waits, and 2 % less throughput.
const READINGS: u32 = 7;

const PROCESSOR: u32 = 31;
const READING: u32 = 1 << 5;
const READ: u32 = 7 * READING;
const HERE: u32 = 8;
const ELSEWHERE: u32 = 20;
const CODE: u32 = 0xfff;

/// Where the section before this one ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// No thread slept then, so it was not noted.
    Unknown,
    Here,
    Elsewhere,
}

#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Affinity<C>(C);

/// A length as a number of 12 bits, in order of length: 7 bits after the first 1, and an exponent. The unit is 16 ns. Never
/// 0, which says that there is none.
fn code(nanos: u64) -> u32 {
    // No section takes longer than the limit, which is 68 s.
    let units = u32::try_from(nanos / 16).unwrap_or(u32::MAX).max(1);
    let exponent = units.ilog2().saturating_sub(7);
    (exponent << 7) + (units >> exponent)
}

/// The length of a code, in nanoseconds.
fn nanos(code: u32) -> u64 {
    let exponent = (code >> 7).saturating_sub(1);
    (u64::from(code - (exponent << 7)) << exponent) * 16
}

/// A median after one more value.
fn moved(median: u32, value: u32) -> u32 {
    match median {
        0 => value,
        _ if value > median => median + 1,
        _ if value < median => median - 1,
        _ => median,
    }
}

impl<C: AtomicCell<Value = u32>> Affinity<C> {
    /// Makes one from a cell that is 0.
    pub const fn of(cell: C) -> Self {
        Self(cell)
    }

    /// A section begins on `processor`. Returns where the last one ran.
    pub fn begin(&self, processor: usize) -> Before {
        let processor = processor as u32 & PROCESSOR;
        let found = self.0.load(Relaxed);
        if found & PROCESSOR == processor {
            return Before::Here;
        }
        self.0.store(found & !PROCESSOR | processor, Relaxed);
        Before::Elsewhere
    }

    /// Whether the last section that was noted began on `processor`.
    pub fn was_on(&self, processor: usize) -> bool {
        self.0.load(Relaxed) & PROCESSOR == processor as u32 & PROCESSOR
    }

    /// A section took `nanos`.
    pub fn end(&self, before: Before, nanos: u64) {
        let shift = match before {
            Before::Unknown => return,
            Before::Here => HERE,
            Before::Elsewhere => ELSEWHERE,
        };
        let found = self.0.load(Relaxed);
        let median = moved(found >> shift & CODE, code(nanos));
        let new = found & !(CODE << shift) | median << shift;
        // The next holder may note its processor just now. That counts for more than one length.
        let _ = self.0.compare_exchange(found, new, Relaxed, Relaxed);
    }

    /// Whether the lock should seldom move. `price_ns` is the least price for which that is so.
    pub fn is_strong(&self, price_ns: u64) -> bool {
        let found = self.0.load(Relaxed);
        let here = nanos(found >> HERE & CODE);
        let price = nanos(found >> ELSEWHERE & CODE).saturating_sub(here);
        price >= price_ns && price >= here / 4
    }

    /// Counts a reading of the clock. Returns whether there have been enough since the last rotation for the next one.
    pub fn has_stayed(&self) -> bool {
        let found = self.0.load(Relaxed);
        let enough = found & READ >= READINGS * READING;
        if !enough {
            let _ = self.0.compare_exchange(found, found + READING, Relaxed, Relaxed);
        }
        enough
    }

    /// The lock is about to go to the thread that has slept longest.
    pub fn rotate(&self) {
        let found = self.0.load(Relaxed);
        if found & READ != 0 {
            let _ = self.0.compare_exchange(found, found & !READ, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    fn affinity() -> Affinity<AtomicU32> {
        Affinity::of(AtomicU32::new(0))
    }

    /// Sections of `here` and `elsewhere` nanoseconds, in turn on two processors, eight times each. In one of ten the thread
    /// loses its CPU.
    fn sections(here: u64, elsewhere: u64) -> Affinity<AtomicU32> {
        let it = affinity();
        for n in 0..50_000 {
            let before = it.begin(n / 8 % 2);
            let length = if before == Before::Here { here } else { elsewhere };
            it.end(before, if n % 10 == 0 { 3_000_000 } else { length });
        }
        it
    }

    #[test]
    fn sections_that_take_longer_elsewhere_bind_the_lock() {
        assert!(sections(5_000, 12_000).is_strong(PRICE_NS));
        assert!(sections(50_000, 70_000).is_strong(PRICE_NS));
    }

    #[test]
    fn a_low_price_does_not() {
        assert!(!sections(5_000, 5_000).is_strong(PRICE_NS));
        // A fifth of a section.
        assert!(!sections(50_000, 60_000).is_strong(PRICE_NS));
        // Nine times a section, and yet short.
        assert!(!sections(100, 900).is_strong(PRICE_NS));
        assert!(!affinity().is_strong(PRICE_NS));
    }

    #[test]
    fn a_lock_that_knows_no_section_on_the_same_processor_tries_some() {
        let it = affinity();
        it.end(Before::Elsewhere, 5_000);
        assert!(it.is_strong(PRICE_NS));
        it.end(Before::Here, 4_900);
        assert!(!it.is_strong(PRICE_NS));
    }

    #[test]
    fn the_processor_is_noted() {
        let it = affinity();
        assert_eq!(it.begin(3), Before::Elsewhere);
        assert_eq!(it.begin(3), Before::Here);
        it.end(Before::Elsewhere, u64::MAX);
        it.end(Before::Here, 0);
        assert!(it.was_on(3) && !it.was_on(2));
        assert_eq!(it.begin(2), Before::Elsewhere);
        assert!(it.is_strong(PRICE_NS));
    }

    #[test]
    fn readings_since_a_rotation_are_counted() {
        let it = affinity();
        it.begin(31);
        for _ in 0..2 {
            assert!((0..READINGS).all(|_| !it.has_stayed()));
            assert!((0..100).all(|_| it.has_stayed()));
            it.rotate();
        }
        assert!(it.was_on(31));
    }

    #[test]
    fn codes_are_in_order_and_precise() {
        let mut last = 0;
        for exponent in 7..36 {
            for eighth in 8..16 {
                let length = (1 << exponent) * eighth / 8;
                let coded = code(length);
                assert!(coded > last && coded <= CODE, "{length}");
                let back = nanos(coded);
                assert!(back <= length && length - back <= 16 + length / 128, "{length} {back}");
                last = coded;
            }
        }
        assert_eq!(code(0), 1);
        assert!(code(u64::MAX) < CODE);
        assert_eq!(moved(1, 1), 1);
    }
}
