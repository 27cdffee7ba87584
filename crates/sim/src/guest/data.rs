//! The kernel's data beside its locks: words in simulated memory, laid out as in the workload's structs,
//! and the cache misses of lock holders on them.
//!
//! `KernelData` counts each access by a holder to its data, and the time of the access. An access takes a
//! hit if the line is in the holder's cache; otherwise it waits its turn and takes a transfer.
//!
//! A holder *loses* a line that it has had since it took the lock, by taking the lock or by an earlier
//! access, and must fetch again, or that it had exclusively and must regain exclusively before writing.
//! Only a vCPU that does not hold the lock can have taken the line. A first write after reads only is no
//! loss: the holder never had the line exclusively. An access that an interrupt prolongs counts as a miss
//! too; such accesses are rare.

use crate::engine::Engine;
use crate::memory::{LINE, Region};
use crate::platform::SimCell;
use overspin_locks::AtomicCell;
use overspin_scenario::{LineOutcome, Picos};
use overspin_workload::{Layout, LockId, WordId};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// The data of one guest's kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelData {
    words: Vec<Word>,
    /// The line of each lock that lies among the data.
    locks: Vec<usize>,
    lines: Vec<Line>,
    sections: Cell<Section>,
}

/// The number of a critical section.
pub(crate) type Section = u64;

#[derive(Debug)]
struct Word {
    cell: &'static SimCell<usize>,
    line: usize,
}

/// Counts of the accesses to a line.
#[derive(Debug)]
struct Line {
    names: Vec<String>,
    accesses: Cell<u64>,
    misses: Cell<u64>,
    lost: Cell<u64>,
    /// The last section that accessed the line, and whether it has the line exclusively.
    section: Cell<Section>,
    own: Cell<bool>,
    stalled: Cell<Picos>,
}

impl KernelData {
    /// Puts the words of `layout` into `region`; the locks are there already.
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
            lost: Cell::new(0),
            section: Cell::new(0),
            own: Cell::new(false),
            stalled: Cell::new(Picos::ZERO),
        };
        let word = |(_, offset): &(_, usize)| Word {
            cell: region.put(*offset, SimCell::new(0)),
            line: offset / LINE,
        };
        Self {
            words: layout.words.iter().map(word).collect(),
            locks: layout.locks.iter().map(|(_, offset)| offset / LINE).collect(),
            sections: Cell::new(0),
            lines: (0..layout.size.div_ceil(LINE)).map(line).collect(),
        }
    }

    /// Notes that `lock` was taken, and its line with it. Returns the number of the section that begins.
    pub(crate) fn enter(&self, lock: LockId) -> Section {
        let section = self.sections.get() + 1;
        self.sections.set(section);
        if let Some(line) = self.locks.get(lock) {
            // Taking a lock writes it.
            self.lines[*line].section.set(section);
            self.lines[*line].own.set(true);
        }
        section
    }

    /// Reads a word in a section.
    pub(crate) fn read(&self, engine: &Engine, section: Section, word: WordId) -> usize {
        let word = &self.words[word];
        self.count(engine, section, word.line, false, || word.cell.load(Relaxed))
    }

    /// Writes a word in a section.
    pub(crate) fn write(&self, engine: &Engine, section: Section, word: WordId, value: usize) {
        let word = &self.words[word];
        self.count(engine, section, word.line, true, || word.cell.store(value, Relaxed));
    }

    fn count<R>(
        &self,
        engine: &Engine,
        section: Section,
        line: usize,
        writes: bool,
        access: impl FnOnce() -> R,
    ) -> R {
        let line = &self.lines[line];
        let before = engine.now();
        let result = access();
        let took = engine.now() - before;
        let costs = &engine.scenario.host.costs;
        line.accesses.set(line.accesses.get() + 1);
        let had = line.section.replace(section) == section;
        let had_own = had && line.own.get();
        let missed = took > costs.cache_hit;
        line.own.set(writes || (had_own && !missed));
        if missed {
            line.misses.set(line.misses.get() + 1);
            if had_own || (had && !writes) {
                line.lost.set(line.lost.get() + 1);
            }
        }
        line.stalled.set(line.stalled.get() + took);
        result
    }

    /// The counts of each line that holds a word or a lock.
    pub(crate) fn outcome(&self) -> Vec<LineOutcome> {
        let named = self.lines.iter().filter(|l| !l.names.is_empty());
        named
            .map(|l| LineOutcome {
                names: l.names.clone(),
                accesses: l.accesses.get(),
                misses: l.misses.get(),
                lost: l.lost.get(),
                stalled: l.stalled.get(),
            })
            .collect()
    }
}
