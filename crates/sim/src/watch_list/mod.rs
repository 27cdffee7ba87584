//! The spinners of a line: what they spin on, in order of arrival.
//!
//! A write asks which of their conditions hold. A few watches are asked one by one. Many that wait for different values
//! of one cell, such as tickets, have an index: a write then finds those that wait for the new value, and asks no others.
//! All else is asked one by one, however many they are.
//!
//! Both give the same answers in the same order, so no run depends on which of them it used.

use crate::memory::NONE;
use crate::vcpu::Vcpu;
use crate::watch::{Watch, held};
use std::iter;
use std::ops::Range;

/// So many watches need no index. Up to here it costs more than it saves.
const FEW: usize = 16;

/// The watches of a line.
#[derive(Debug, Default)]
pub(crate) struct WatchList {
    /// In order of arrival. With an index, a watch that is removed leaves a hole, whose vCPU is `NONE`.
    watches: Vec<Watch>,
    index: Option<Box<Index>>,
}

/// Finds watches that are alike by the value that they wait for. Each place in the list may hold one.
#[derive(Debug)]
pub(crate) struct Index {
    /// All watches are like this one, which may have been removed.
    like: Watch,
    /// Number of watches that are not removed.
    live: usize,
    /// What is known of the watch at each place.
    entries: Vec<Entry>,
    /// First and last place of each chain: of the watches whose values have the same hash, in order of arrival. There are
    /// as many chains as places, a power of two.
    chains: Vec<(u32, u32)>,
    /// One bit for each place: a watch is there, and its vCPU is on a pCPU.
    running: Vec<u64>,
    /// The words of `running` before this one are 0.
    first_running: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    wanted: u64,
    /// The neighbours in its chain, or `NONE`.
    before: u32,
    after: u32,
}

impl WatchList {
    /// Appends the watch of a vCPU.
    #[inline]
    pub(crate) fn push(&mut self, watch: Watch, vcpus: &[Vcpu]) {
        self.watches.push(watch);
        if self.index.is_some() || self.watches.len() > FEW {
            self.pushed_to_many(watch, vcpus);
        }
    }

    /// Adds the last watch to the index, if there is one or shall be one.
    #[inline(never)]
    fn pushed_to_many(&mut self, watch: Watch, vcpus: &[Vcpu]) {
        let place = self.watches.len() - 1;
        if let Some(index) = &mut self.index
            && place < index.entries.len()
            && index.like.is_like(&watch)
        {
            index.add(place, &watch);
            // It watches because it runs.
            index.set_running(place, true);
            vcpus[watch.vcpu as usize].spin.place.set(place as u32);
        } else if self.index.is_some() || self.are_alike() {
            self.rebuild(vcpus);
        }
    }

    fn are_alike(&self) -> bool {
        self.watches.iter().all(|w| w.is_like(&self.watches[0]))
    }

    /// Removes the holes, and makes the index anew if the watches still need and allow one.
    #[cold]
    fn rebuild(&mut self, vcpus: &[Vcpu]) {
        self.watches.retain(|w| w.vcpu != NONE);
        let indexed = self.watches.len() > FEW && self.are_alike();
        self.index = indexed.then(|| Box::new(Index::new(&self.watches)));
        for (place, watch) in self.watches.iter().enumerate() {
            let v = &vcpus[watch.vcpu as usize];
            v.spin.place.set(if indexed { place as u32 } else { NONE });
            if let Some(index) = &mut self.index {
                index.set_running(place, v.run.is_on());
            }
        }
    }

    /// Removes the watch of `v`.
    #[inline]
    pub(crate) fn remove(&mut self, v: &Vcpu) {
        if self.index.is_some() {
            self.remove_from_index(v);
            return;
        }
        let at = self.watches.iter().position(|w| w.vcpu == v.id).expect("it is in the list");
        self.watches.remove(at);
    }

    #[inline(never)]
    fn remove_from_index(&mut self, v: &Vcpu) {
        let Some(index) = &mut self.index else { return };
        let place = v.spin.place.replace(NONE) as usize;
        self.watches[place].vcpu = NONE;
        index.remove(place);
        if index.live == 0 {
            self.watches.clear();
            self.index = None;
        }
    }

    /// The index, if there is one.
    #[inline(always)]
    pub(crate) fn index(&self) -> Option<&Index> {
        self.index.as_deref()
    }

    /// The places of the watches whose condition holds now, in order, in a list without an index.
    #[inline(always)]
    pub(crate) fn held(&self) -> impl Iterator<Item = usize> {
        held(&self.watches)
    }

    /// The vCPU whose watch is at a place.
    #[inline(always)]
    pub(crate) fn vcpu(&self, place: usize) -> u32 {
        self.watches[place].vcpu
    }

    /// The number of vCPUs on a pCPU whose watches are at these places.
    #[inline]
    pub(crate) fn running(&self, places: Range<usize>, vcpus: &[Vcpu]) -> u64 {
        match &self.index {
            Some(index) => index.running(places),
            None => {
                let watches = self.watches[places].iter();
                watches.filter(|w| vcpus[w.vcpu as usize].run.is_on()).count() as u64
            }
        }
    }

    /// Records that the vCPU whose watch is at a place of the index goes to a pCPU or leaves it.
    pub(crate) fn set_running(&mut self, place: u32, runs: bool) {
        if let Some(index) = &mut self.index {
            index.set_running(place as usize, runs);
        }
    }
}

impl Index {
    /// Makes an index of some watches without holes, which are alike. It has places for twice as many, so that few
    /// additions need a new one.
    fn new(watches: &[Watch]) -> Self {
        let places = (2 * watches.len()).next_power_of_two();
        let mut index = Self {
            like: watches[0],
            live: 0,
            entries: vec![Entry { wanted: 0, before: NONE, after: NONE }; places],
            chains: vec![(NONE, NONE); places],
            running: vec![0; places.div_ceil(64)],
            first_running: 0,
        };
        for (place, watch) in watches.iter().enumerate() {
            index.add(place, watch);
        }
        index
    }

    /// The chain of a value. The upper bits of this product depend on all bits of the value.
    fn chain(&self, wanted: u64) -> usize {
        let hash = wanted.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (64 - self.chains.len().trailing_zeros())) as usize
    }

    fn add(&mut self, place: usize, watch: &Watch) {
        let wanted = watch.wanted().expect("a watch that is like an equality is one");
        let chain = self.chain(wanted);
        let (first, last) = self.chains[chain];
        self.entries[place] = Entry { wanted, before: last, after: NONE };
        if last == NONE {
            self.chains[chain] = (place as u32, place as u32);
        } else {
            self.entries[last as usize].after = place as u32;
            self.chains[chain] = (first, place as u32);
        }
        self.live += 1;
    }

    fn remove(&mut self, place: usize) {
        let Entry { wanted, before, after } = self.entries[place];
        let chain = self.chain(wanted);
        match before {
            NONE => self.chains[chain].0 = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.chains[chain].1 = before,
            after => self.entries[after as usize].before = before,
        }
        self.live -= 1;
        self.set_running(place, false);
    }

    /// The places of the watches whose condition holds now, in order.
    pub(crate) fn held(&self) -> impl Iterator<Item = usize> {
        let value = self.like.part().expect("an equality");
        let mut next = self.chains[self.chain(value)].0;
        iter::from_fn(move || {
            while next != NONE {
                let (place, entry) = (next as usize, self.entries[next as usize]);
                next = entry.after;
                if entry.wanted == value {
                    return Some(place);
                }
            }
            None
        })
    }

    fn set_running(&mut self, place: usize, runs: bool) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        if runs {
            self.running[word] |= bit;
            self.first_running = self.first_running.min(word);
            return;
        }
        self.running[word] &= !bit;
        while self.running.get(self.first_running) == Some(&0) {
            self.first_running += 1;
        }
    }

    fn running(&self, Range { start, end }: Range<usize>) -> u64 {
        let mut count = 0;
        for word in self.first_running.max(start / 64)..end.div_ceil(64) {
            let mut bits = self.running[word];
            if word == start / 64 {
                bits &= u64::MAX << (start % 64);
            }
            if word == end / 64 {
                bits &= !(u64::MAX << (end % 64));
            }
            count += u64::from(bits.count_ones());
        }
        count
    }
}

#[cfg(test)]
mod tests;
