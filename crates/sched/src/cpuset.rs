//! Sets of pCPUs as bit masks, with the cyclic walks that the schedulers specification uses.
//!
//! An operation costs at most O(words), with 64 pCPUs per word. Only construction allocates.
//! Operations over two sets work on their intersection without building it.

use crate::ids::PcpuId;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

const BITS: u32 = u64::BITS;

/// A set of pCPUs with indices below a fixed number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet {
    words: Vec<u64>,
}

/// The bits of word `word` that lie in `range`.
fn range_mask(word: usize, range: &Range<u32>) -> u64 {
    let base = word as u32 * BITS;
    let low = range.start.saturating_sub(base).min(BITS);
    let high = range.end.saturating_sub(base).min(BITS);
    let below = |n: u32| if n == BITS { u64::MAX } else { (1 << n) - 1 };
    below(high) & !below(low)
}

impl CpuSet {
    /// The empty set, with room for pCPUs `0..pcpus`.
    pub fn empty(pcpus: u32) -> Self {
        Self { words: vec![0; pcpus.div_ceil(BITS) as usize] }
    }

    /// The set of all pCPUs `0..pcpus`.
    pub fn all(pcpus: u32) -> Self {
        let words = (0..pcpus.div_ceil(BITS) as usize).map(|w| range_mask(w, &(0..pcpus)));
        Self { words: words.collect() }
    }

    /// Whether `p` is a member.
    pub fn contains(&self, p: PcpuId) -> bool {
        self.words[(p.0 / BITS) as usize] >> (p.0 % BITS) & 1 == 1
    }

    /// Adds `p`.
    pub fn insert(&mut self, p: PcpuId) {
        self.words[(p.0 / BITS) as usize] |= 1 << (p.0 % BITS);
    }

    /// Removes `p`.
    pub fn remove(&mut self, p: PcpuId) {
        self.words[(p.0 / BITS) as usize] &= !(1 << (p.0 % BITS));
    }

    /// Adds `p` if `member`, else removes it.
    pub fn set(&mut self, p: PcpuId, member: bool) {
        if member { self.insert(p) } else { self.remove(p) }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Number of members.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// Whether the two sets have a common member.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every member is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Makes this set a copy of `other`, which must have room for the same pCPUs. Allocates
    /// nothing.
    pub fn copy_from(&mut self, other: &Self) {
        self.words.copy_from_slice(&other.words);
    }

    /// Keeps only the members that are also in `other`.
    pub fn intersect_with(&mut self, other: &Self) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= b;
        }
    }

    /// Removes the members of `other` that lie in `range`.
    pub fn remove_within(&mut self, other: &Self, range: Range<u32>) {
        for word in Self::words_of(&range) {
            self.words[word] &= !(other.words[word] & range_mask(word, &range));
        }
    }

    /// Removes all members in `range`.
    pub fn remove_range(&mut self, range: Range<u32>) {
        for word in Self::words_of(&range) {
            self.words[word] &= !range_mask(word, &range);
        }
    }

    /// Number of members in `range`.
    pub fn count_range(&self, range: Range<u32>) -> u32 {
        Self::words_of(&range).map(|w| (self.words[w] & range_mask(w, &range)).count_ones()).sum()
    }

    /// The lowest member.
    pub fn first(&self) -> Option<PcpuId> {
        self.next_in(0..self.words.len() as u32 * BITS)
    }

    /// The lowest member in `range`.
    pub fn next_in(&self, range: Range<u32>) -> Option<PcpuId> {
        Self::find(&range, |w| self.words[w])
    }

    /// The lowest member above `x`, else the lowest member.
    pub fn cycle(&self, x: PcpuId) -> Option<PcpuId> {
        self.cycle_within(x, 0..self.words.len() as u32 * BITS)
    }

    /// As [`Self::cycle`], among the members in `range` only.
    pub fn cycle_within(&self, x: PcpuId, range: Range<u32>) -> Option<PcpuId> {
        let above = (x.0 + 1).clamp(range.start, range.end);
        self.next_in(above..range.end).or_else(|| self.next_in(range.start..above))
    }

    /// `x` if it is a member, else [`Self::cycle`].
    pub fn toc(&self, x: PcpuId) -> Option<PcpuId> {
        if self.contains(x) { Some(x) } else { self.cycle(x) }
    }

    /// As [`Self::cycle`], in the intersection with `other`.
    pub fn cycle_and(&self, x: PcpuId, other: &Self) -> Option<PcpuId> {
        let end = self.words.len() as u32 * BITS;
        let both = |w: usize| self.words[w] & other.words[w];
        let above = (x.0 + 1).min(end);
        Self::find(&(above..end), both).or_else(|| Self::find(&(0..above), both))
    }

    /// As [`Self::toc`], in the intersection with `other`.
    pub fn toc_and(&self, x: PcpuId, other: &Self) -> Option<PcpuId> {
        if self.contains(x) && other.contains(x) { Some(x) } else { self.cycle_and(x, other) }
    }

    /// As [`Self::cycle_within`], in the intersection with `other`.
    pub fn cycle_and_within(&self, x: PcpuId, other: &Self, range: Range<u32>) -> Option<PcpuId> {
        let both = |w: usize| self.words[w] & other.words[w];
        let above = (x.0 + 1).clamp(range.start, range.end);
        Self::find(&(above..range.end), both).or_else(|| Self::find(&(range.start..above), both))
    }

    /// All members, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PcpuId> + '_ {
        let end = self.words.len() as u32 * BITS;
        let mut from = 0;
        core::iter::from_fn(move || {
            let p = self.next_in(from..end)?;
            from = p.0 + 1;
            Some(p)
        })
    }

    fn words_of(range: &Range<u32>) -> Range<usize> {
        (range.start / BITS) as usize..range.end.div_ceil(BITS) as usize
    }

    /// The lowest set bit in `range`; `word` returns the words.
    fn find(range: &Range<u32>, word: impl Fn(usize) -> u64) -> Option<PcpuId> {
        Self::words_of(range).find_map(|w| {
            let bits = word(w) & range_mask(w, range);
            (bits != 0).then(|| PcpuId(w as u32 * BITS + bits.trailing_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u32]) -> CpuSet {
        let mut s = CpuSet::empty(200);
        members.iter().for_each(|m| s.insert(PcpuId(*m)));
        s
    }

    #[test]
    fn cycle_and_toc_follow_the_notation() {
        let s = set(&[3, 64, 130]);
        assert_eq!(s.cycle(PcpuId(3)), Some(PcpuId(64)));
        assert_eq!(s.cycle(PcpuId(130)), Some(PcpuId(3)));
        assert_eq!(s.toc(PcpuId(64)), Some(PcpuId(64)));
        assert_eq!(s.toc(PcpuId(65)), Some(PcpuId(130)));
        assert_eq!(set(&[]).cycle(PcpuId(5)), None);
        assert_eq!(s.cycle_within(PcpuId(130), 60..140), Some(PcpuId(64)));
        assert_eq!(s.cycle_and(PcpuId(3), &set(&[3, 130])), Some(PcpuId(130)));
        assert_eq!(s.toc_and(PcpuId(3), &set(&[3, 130])), Some(PcpuId(3)));
        assert_eq!(s.toc_and(PcpuId(64), &set(&[3, 130])), Some(PcpuId(130)));
        assert_eq!(s.cycle_and_within(PcpuId(199), &set(&[3, 130]), 64..200), Some(PcpuId(130)));
    }

    #[test]
    fn ranges_cross_words() {
        let mut s = CpuSet::all(200);
        assert_eq!(s.len(), 200);
        assert_eq!(s.count_range(60..70), 10);
        s.remove_range(60..70);
        assert_eq!((s.len(), s.next_in(60..80)), (190, Some(PcpuId(70))));
        s.remove_within(&set(&[0, 1, 100]), 1..150);
        assert!(s.contains(PcpuId(0)) && !s.contains(PcpuId(1)) && !s.contains(PcpuId(100)));
        assert_eq!(set(&[5, 63, 64]).iter().map(|p| p.0).collect::<Vec<_>>(), [5, 63, 64]);
    }
}
