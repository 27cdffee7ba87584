//! The cost of memory: each cache line knows its owner, its sharers, and until when it is busy.
//!
//! Values live in ordinary cells inside one arena, so that the address of a cell gives its line
//! and real `#[repr(C)]` structs have their real false sharing. Decisions depend only on numbers of
//! lines and pCPUs, never on an address: runs are the same on every machine.
//!
//! | line is | load by pCPU c | store or read-modify-write by pCPU c |
//! |---|---|---|
//! | owned by c, no copies elsewhere | hit | hit |
//! | c has a copy | hit | waits its turn, invalidates the copies: one transfer |
//! | elsewhere only | waits its turn, one transfer, then shared | waits its turn, one transfer, then owned |
//!
//! A line serves one transfer after another: a second requester waits until the first is served.
//! A read-modify-write costs `atomic` in addition.

use crate::prefetch::touch;
use crate::watch_list::WatchList;
use overspin_scenario::{Costs, Host, Picos};
use std::alloc::Layout;
use std::cell::{Cell, RefCell, RefMut};
use std::fmt;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Stands for "none": no owner, list, line, lock or pCPU.
pub(crate) const NONE: u32 = u32::MAX;
/// Re-reads of a changed line by its spinners follow each other at one `SERVICE_PART`-th of a transfer:
/// requests queue at the line, but their latencies overlap.
const SERVICE_PART: u64 = 4;

/// How an operation uses its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    Atomic,
}

#[derive(Debug)]
struct Line {
    owner: Cell<u32>,
    /// Another pCPU than the owner may hold a copy.
    shared: Cell<bool>,
    busy_until: Cell<Picos>,
    /// vCPUs that spin on this line and are on a pCPU.
    spinning: Cell<u32>,
    /// Index of its list of spinners; `NONE` before the first spinner.
    list: Cell<u32>,
}

/// The arena and the state of its lines.
pub(crate) struct Memory {
    base: usize,
    layout: Layout,
    used: Cell<usize>,
    lines: Vec<Line>,
    /// One list for each line with spinners.
    lists: RefCell<Vec<WatchList>>,
    /// One bit per line and pCPU: the pCPU has a copy. A line has `words` words.
    sharers: Vec<Cell<u64>>,
    words: usize,
    /// Core and socket of each pCPU.
    places: Vec<(u32, u32)>,
    hit: Picos,
    atomic: Picos,
    same_core: Picos,
    cross_core: Picos,
    cross_socket: Picos,
    /// Cost for an owner to invalidate the copies of others: a transfer from the farthest pCPU possible.
    invalidate: Picos,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// Makes a memory of `lines` cache lines for `host`.
    pub(crate) fn new(host: &Host, lines: usize) -> Self {
        let layout = Layout::from_size_align(lines * LINE, 4096).expect("a size that fits");
        // SAFETY: the layout's size is not zero, since callers ask for at least one line.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        if base.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        let words = (host.pcpus() as usize).div_ceil(64);
        let Costs { cache_hit, atomic, same_core, cross_core, cross_socket, .. } = host.costs;
        Self {
            base: base as usize,
            layout,
            used: Cell::new(0),
            lines: (0..lines)
                .map(|_| Line {
                    owner: Cell::new(NONE),
                    shared: Cell::new(false),
                    busy_until: Cell::new(Picos::ZERO),
                    spinning: Cell::new(0),
                    list: Cell::new(NONE),
                })
                .collect(),
            lists: RefCell::default(),
            sharers: vec![Cell::new(0); lines * words],
            words,
            places: (0..host.pcpus())
                .map(|p| (p / host.threads, p / (host.threads * host.cores)))
                .collect(),
            hit: cache_hit,
            atomic,
            same_core,
            cross_core,
            cross_socket,
            invalidate: if host.sockets > 1 { cross_socket } else { cross_core },
        }
    }

    /// Moves `value` into the arena, at the start of a line of its own. The value is never dropped; the
    /// arena holds only cells. The reference must not outlive the memory: callers keep it in the engine
    /// that owns the memory.
    ///
    /// # Panics
    /// If the arena is full. Its size comes from the scenario, so a full arena is a bug.
    pub(crate) fn place<T>(&self, value: T) -> &'static T {
        let place = (self.base + self.take(size_of::<T>(), align_of::<T>())) as *mut T;
        // SAFETY: `place` is inside the arena and aligned, and these bytes were given to no other value.
        unsafe {
            place.write(value);
            &*place
        }
    }

    /// Moves `len` values into consecutive places. They have the layout of a real array, whose first
    /// element begins a line.
    pub(crate) fn place_array<T>(
        &self,
        len: usize,
        mut init: impl FnMut(usize) -> T,
    ) -> &'static [T] {
        let place = (self.base + self.take(len * size_of::<T>(), align_of::<T>())) as *mut T;
        for i in 0..len {
            // SAFETY: the place is inside the arena, as `take` asserts, and reserved for this array.
            unsafe { place.add(i).write(init(i)) };
        }
        // SAFETY: all `len` values were just written.
        unsafe { std::slice::from_raw_parts(place, len) }
    }

    /// Reserves `number` lines for data that has a cost and no value; returns the first.
    pub(crate) fn lines(&self, number: usize) -> usize {
        self.take(number * LINE, LINE) / LINE
    }

    /// Reserves a region for values at given offsets (see [`Region::put`]). It begins at the start of a line.
    ///
    /// # Panics
    /// If the arena is full, as for [`Memory::place`].
    pub(crate) fn region(&self, size: usize, align: usize) -> Region<'_> {
        Region { memory: self, at: self.take(size, align), size, taken: RefCell::default() }
    }

    /// Reserves whole lines for `size` bytes and returns the offset of the first.
    fn take(&self, size: usize, align: usize) -> usize {
        let at = (self.base + self.used.get()).next_multiple_of(align.max(LINE)) - self.base;
        assert!(at + size <= self.layout.size(), "the simulated memory is full");
        self.used.set((at + size).next_multiple_of(LINE));
        at
    }

    /// The line of a cell. `None` if the cell is not in the arena: such data is private and always a hit.
    #[inline]
    pub(crate) fn line_of<T>(&self, cell: &T) -> Option<usize> {
        let line = (std::ptr::from_ref(cell) as usize).wrapping_sub(self.base) / LINE;
        (line < self.lines.len()).then_some(line)
    }

    /// Prefetches the record of a cell's line.
    pub(crate) fn fetch_line_of<T>(&self, cell: &T) {
        if let Some(line) = self.line_of(cell) {
            touch(&raw const self.lines[line], 1);
        }
    }

    /// The cost of a transfer from pCPU `a` to pCPU `b`.
    pub(crate) fn distance(&self, a: u32, b: u32) -> Picos {
        let (a, b) = (self.places[a as usize], self.places[b as usize]);
        if a.0 == b.0 {
            self.same_core
        } else if a.1 == b.1 {
            self.cross_core
        } else {
            self.cross_socket
        }
    }

    #[inline]
    fn has_copy(&self, line: usize, pcpu: u32) -> bool {
        self.sharers[line * self.words + pcpu as usize / 64].get() >> (pcpu % 64) & 1 != 0
    }

    fn add_copy(&self, line: usize, pcpu: u32) {
        let word = &self.sharers[line * self.words + pcpu as usize / 64];
        word.set(word.get() | 1 << (pcpu % 64));
    }

    /// Charges an access by `pcpu` that starts at `now`; returns the time at which it ends.
    #[inline]
    pub(crate) fn access(
        &self,
        line: Option<usize>,
        pcpu: u32,
        access: Access,
        now: Picos,
    ) -> Picos {
        let extra = if access == Access::Atomic { self.atomic } else { Picos::ZERO };
        let Some(line) = line else { return now + self.hit + extra };
        let l = &self.lines[line];
        if l.owner.get() == pcpu && (!l.shared.get() || access == Access::Load) {
            return now + self.hit + extra;
        }
        self.miss(line, pcpu, access, now) + extra
    }

    fn miss(&self, line: usize, pcpu: u32, access: Access, now: Picos) -> Picos {
        let l = &self.lines[line];
        let owner = l.owner.get();
        if access == Access::Load {
            if owner == NONE {
                l.owner.set(pcpu);
                return now + self.cross_core;
            }
            if l.shared.get() && self.has_copy(line, pcpu) {
                return now + self.hit;
            }
            let end = now.max(l.busy_until.get()) + self.distance(owner, pcpu);
            self.add_copy(line, pcpu);
            l.shared.set(true);
            l.busy_until.set(end);
            return end;
        }
        let cost = if owner == NONE {
            self.cross_core
        } else if owner != pcpu {
            self.distance(owner, pcpu)
        } else {
            self.invalidate
        };
        let end = now.max(l.busy_until.get()) + cost;
        l.owner.set(pcpu);
        if l.shared.get() {
            l.shared.set(false);
            for word in &self.sharers[line * self.words..(line + 1) * self.words] {
                word.set(0);
            }
        }
        l.busy_until.set(end);
        end
    }

    /// The number of vCPUs that spin on the line and are on a pCPU.
    #[inline]
    pub(crate) fn spinning(&self, line: usize) -> &Cell<u32> {
        &self.lines[line].spinning
    }

    /// The line's list of spinners.
    #[inline(always)]
    pub(crate) fn watchers(&self, line: usize) -> RefMut<'_, WatchList> {
        if self.lines[line].list.get() == NONE {
            self.make_list(line);
        }
        RefMut::map(self.lists.borrow_mut(), |lists| {
            &mut lists[self.lines[line].list.get() as usize]
        })
    }

    /// Once for each line that a vCPU ever spins on.
    #[cold]
    #[inline(never)]
    fn make_list(&self, line: usize) {
        let mut lists = self.lists.borrow_mut();
        self.lines[line].list.set(lists.len() as u32);
        lists.push(WatchList::default());
    }

    /// Lets `spinners` vCPUs read the line again after a write that ended at `now`: the line is shared with
    /// them, and busy until the last is served.
    pub(crate) fn refetch(&self, line: usize, spinners: u64, now: Picos) {
        let l = &self.lines[line];
        l.shared.set(true);
        let end = now + self.cross_core + spinners * self.cross_core / SERVICE_PART;
        l.busy_until.set(l.busy_until.get().max(end));
    }

    /// When the `position`-th of these spinners, on `pcpu`, has the line.
    pub(crate) fn served(&self, line: usize, pcpu: u32, position: u64, now: Picos) -> Picos {
        self.add_copy(line, pcpu);
        let owner = self.lines[line].owner.get();
        let transfer = if owner == NONE { self.cross_core } else { self.distance(owner, pcpu) };
        now + transfer + position * self.cross_core / SERVICE_PART
    }
}

/// A part of the arena that its owner fills value by value.
#[derive(Debug)]
pub(crate) struct Region<'a> {
    memory: &'a Memory,
    at: usize,
    size: usize,
    /// The first offset of each value that is there, and the offset behind it.
    taken: RefCell<Vec<(usize, usize)>>,
}

impl Region<'_> {
    /// Moves `value` to an offset, like a field of a struct. The rules for drops and lifetimes are those of
    /// [`Memory::place`].
    ///
    /// # Panics
    /// If the value does not fit, overlaps another one, or is not aligned for its type.
    pub(crate) fn put<T>(&self, offset: usize, value: T) -> &'static T {
        let place = self.take(offset, size_of::<T>(), align_of::<T>()) as *mut T;
        // SAFETY: by the assertions in `take` and in `Memory::take`, the place is inside the arena and aligned, and
        // these bytes were given to no other value.
        unsafe {
            place.write(value);
            &*place
        }
    }

    /// Reserves `size` bytes at `offset` and returns their address.
    fn take(&self, offset: usize, size: usize, align: usize) -> usize {
        let end = offset + size;
        let mut taken = self.taken.borrow_mut();
        let free = taken.iter().all(|(first, behind)| end <= *first || *behind <= offset);
        assert!(free && end <= self.size, "fields do not overlap");
        let place = self.memory.base + self.at + offset;
        assert!(place.is_multiple_of(align), "fields are aligned");
        taken.push((offset, end));
        place
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` allocated this memory with this layout.
        unsafe { std::alloc::dealloc(self.base as *mut u8, self.layout) };
    }
}
