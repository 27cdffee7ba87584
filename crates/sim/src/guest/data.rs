//! The kernel's data beside its locks: words in simulated memory, where the workload's structs have
//! them, and what the holders of the locks meet there.
//!
//! Counted is each access by a holder to its data, with the time that it took: an access that finds its
//! line at hand takes a hit, one whose line somebody has taken away takes a transfer, and its turn.
//! Interrupts that come in between count as well; they are rare.

use crate::cell::SimCell;
use crate::memory::{LINE, Region};
use crate::world::World;
use overspin_locks::AtomicCell;
use overspin_scenario::{LineOutcome, Picos};
use overspin_workload::{Layout, WordId};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// The data of one guest's kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelData {
    words: Vec<Word>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Word {
    cell: &'static SimCell<usize>,
    line: usize,
}

/// What was met at a line.
#[derive(Debug)]
struct Line {
    names: Vec<String>,
    accesses: Cell<u64>,
    misses: Cell<u64>,
    stalled: Cell<Picos>,
}

impl KernelData {
    /// Puts the words of `layout` into its region; the locks are there already.
    pub(crate) fn new(layout: &Layout, region: &Region<'_>) -> Self {
        let mut fields: Vec<_> = layout.locks.iter().chain(&layout.words).collect();
        fields.sort_by_key(|(_, offset)| *offset);
        let names = |line: usize| {
            let here = fields.iter().filter(|(_, offset)| offset / LINE == line);
            here.map(|(name, _)| (*name).into()).collect()
        };
        let line = |line| Line {
            names: names(line),
            accesses: Cell::new(0),
            misses: Cell::new(0),
            stalled: Cell::new(0),
        };
        let word = |(_, offset): &(_, usize)| Word {
            cell: region.put(*offset, SimCell::new(0)),
            line: offset / LINE,
        };
        Self {
            words: layout.words.iter().map(word).collect(),
            lines: (0..layout.size.div_ceil(LINE)).map(line).collect(),
        }
    }

    /// Reads a word.
    pub(crate) fn read(&self, world: &World, word: WordId) -> usize {
        let word = &self.words[word];
        self.count(world, word.line, || word.cell.load(Relaxed))
    }

    /// Writes a word.
    pub(crate) fn write(&self, world: &World, word: WordId, value: usize) {
        let word = &self.words[word];
        self.count(world, word.line, || word.cell.store(value, Relaxed));
    }

    fn count<R>(&self, world: &World, line: usize, access: impl FnOnce() -> R) -> R {
        let line = &self.lines[line];
        let before = world.now.get();
        let result = access();
        let took = world.now.get() - before;
        let costs = &world.scenario.host.costs;
        line.accesses.set(line.accesses.get() + 1);
        if took > costs.cache_hit {
            line.misses.set(line.misses.get() + 1);
        }
        line.stalled.set(line.stalled.get() + took);
        result
    }

    /// What was met at each line with anything in it.
    pub(crate) fn outcome(&self) -> Vec<LineOutcome> {
        let named = self.lines.iter().filter(|l| !l.names.is_empty());
        named
            .map(|l| LineOutcome {
                names: l.names.clone(),
                accesses: l.accesses.get(),
                misses: l.misses.get(),
                stalled: l.stalled.get(),
            })
            .collect()
    }
}
