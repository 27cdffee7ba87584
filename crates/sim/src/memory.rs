//! Memory as cost: each cache line knows its owner, its sharers, and until when it is busy.
//!
//! Contents live in ordinary cells inside one arena, so that the address of a cell gives its line
//! and real `#[repr(C)]` structs have their real false sharing. Only numbers of lines and pCPUs
//! enter a decision, never an address: runs are the same on every machine.
//!
//! | line is | load by c | store or read-modify-write by c |
//! |---|---|---|
//! | owned by c, no copies elsewhere | hit | hit |
//! | c has a copy | hit | waits its turn, invalidates the copies: one transfer |
//! | elsewhere only | waits its turn, one transfer, then shared | waits its turn, one transfer, then owned |
//!
//! A line serves one transfer after another: a second requester waits until the first is served.
//! A read-modify-write costs the atomic's extra on top.

use crate::foresight::touch;
use crate::watchers::Watch;
use overspin_scenario::{Costs, Host, Picos};
use std::alloc::Layout;
use std::cell::{Cell, RefCell, RefMut};
use std::fmt;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// "Nobody", for owners and list links.
pub(crate) const NONE: u32 = u32::MAX;
/// A spinner's re-read of a changed line follows the one before it by this part of a transfer:
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
    /// Some other pCPU than the owner may hold a copy.
    shared: Cell<bool>,
    busy_until: Cell<Picos>,
    /// vCPUs that spin on this line and are on a pCPU.
    spinning: Cell<u32>,
    /// Its list of spinners, made with the first one; `NONE` before.
    list: Cell<u32>,
}

/// The arena and the state of its lines.
pub(crate) struct Memory {
    base: usize,
    layout: Layout,
    used: Cell<usize>,
    lines: Vec<Line>,
    /// What vCPUs spin on, by line, in order of arrival.
    lists: RefCell<Vec<Vec<Watch>>>,
    /// One bit per line and pCPU; `words` words a line.
    sharers: Vec<Cell<u64>>,
    words: usize,
    /// Core and socket of each pCPU.
    places: Vec<(u32, u32)>,
    hit: Picos,
    atomic: Picos,
    same_core: Picos,
    cross_core: Picos,
    cross_socket: Picos,
    /// An owner takes back the copies of others: as far as the farthest could be.
    invalidate: Picos,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// Memory of `lines` cache lines for the host.
    pub(crate) fn new(host: &Host, lines: usize) -> Self {
        let layout = Layout::from_size_align(lines * LINE, 4096).expect("a size that fits");
        // SAFETY: the layout's size is not zero: callers ask for at least one line.
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

    /// Moves `value` into the arena, at the start of a line of its own unless `packed`. Its drop
    /// never runs: what lives here is cells. The reference must not outlive the memory, which the
    /// callers ensure by keeping it in the engine that owns the memory.
    ///
    /// # Panics
    /// If the arena is full; it is sized from the scenario, so that is a bug.
    pub(crate) fn place<T>(&self, value: T) -> &'static T {
        let align = align_of::<T>().max(LINE);
        let at = (self.base + self.used.get()).next_multiple_of(align) - self.base;
        assert!(at + size_of::<T>() <= self.layout.size(), "the simulated memory is full");
        self.used.set((at + size_of::<T>()).next_multiple_of(LINE));
        let place = (self.base + at) as *mut T;
        // SAFETY: `place` is inside the arena, aligned, and nobody else was given these bytes.
        unsafe {
            place.write(value);
            &*place
        }
    }

    /// Moves `len` values into consecutive places (real array layout, first one line-aligned).
    pub(crate) fn place_array<T>(
        &self,
        len: usize,
        mut init: impl FnMut(usize) -> T,
    ) -> &'static [T] {
        let align = align_of::<T>().max(LINE);
        let at = (self.base + self.used.get()).next_multiple_of(align) - self.base;
        let bytes = len * size_of::<T>();
        assert!(at + bytes <= self.layout.size(), "the simulated memory is full");
        self.used.set((at + bytes).next_multiple_of(LINE));
        let place = (self.base + at) as *mut T;
        for i in 0..len {
            // SAFETY: inside the arena by the assertion above; freshly reserved for this array.
            unsafe { place.add(i).write(init(i)) };
        }
        // SAFETY: all `len` values were just written.
        unsafe { std::slice::from_raw_parts(place, len) }
    }

    /// Reserves a region for values at given offsets (see [`Region::put`]). It begins a line.
    ///
    /// # Panics
    /// As [`Memory::place`].
    pub(crate) fn region(&self, size: usize, align: usize) -> Region<'_> {
        let align = align.max(LINE);
        let at = (self.base + self.used.get()).next_multiple_of(align) - self.base;
        assert!(at + size <= self.layout.size(), "the simulated memory is full");
        self.used.set((at + size).next_multiple_of(LINE));
        Region { memory: self, at, size, taken: RefCell::default() }
    }

    /// The line of a cell, `None` if the cell is not in the arena (private data: always a hit).
    #[inline]
    pub(crate) fn line_of<T>(&self, cell: &T) -> Option<usize> {
        let line = (std::ptr::from_ref(cell) as usize).wrapping_sub(self.base) / LINE;
        (line < self.lines.len()).then_some(line)
    }

    /// Has the processor fetch what is known of the line of a cell.
    pub(crate) fn fetch_line_of<T>(&self, cell: &T) {
        if let Some(line) = self.line_of(cell) {
            touch(&raw const self.lines[line], 1);
        }
    }

    fn distance(&self, a: u32, b: u32) -> Picos {
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

    /// Charges an access by `pcpu` that starts at `now`; returns when it ends.
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

    /// How many vCPUs spin on the line that are on a pCPU.
    #[inline]
    pub(crate) fn spinning(&self, line: usize) -> &Cell<u32> {
        &self.lines[line].spinning
    }

    /// The line's list of spinners.
    pub(crate) fn watchers(&self, line: usize) -> RefMut<'_, Vec<Watch>> {
        RefMut::map(self.lists.borrow_mut(), |lists| {
            let list = &self.lines[line].list;
            if list.get() == NONE {
                list.set(lists.len() as u32);
                lists.push(Vec::new());
            }
            &mut lists[list.get() as usize]
        })
    }

    /// `spinners` vCPUs read the line again after a write that ended at `now`: it is shared with
    /// them, and busy until the last is served.
    pub(crate) fn refetch(&self, line: usize, spinners: u64, now: Picos) {
        let l = &self.lines[line];
        l.shared.set(true);
        let end = now + self.cross_core + spinners * self.cross_core / SERVICE_PART;
        l.busy_until.set(l.busy_until.get().max(end));
    }

    /// When the `position`-th of them, on `pcpu`, has the line.
    pub(crate) fn served(&self, line: usize, pcpu: u32, position: u64, now: Picos) -> Picos {
        self.add_copy(line, pcpu);
        let owner = self.lines[line].owner.get();
        let transfer = if owner == NONE { self.cross_core } else { self.distance(owner, pcpu) };
        now + transfer + position * self.cross_core / SERVICE_PART
    }
}

/// A part of the arena that is filled value by value.
#[derive(Debug)]
pub(crate) struct Region<'a> {
    memory: &'a Memory,
    at: usize,
    size: usize,
    /// Offsets of the values that are there, and of what is behind each.
    taken: RefCell<Vec<(usize, usize)>>,
}

impl Region<'_> {
    /// Moves `value` to an offset. The same is to be said of drops and lifetimes as for
    /// [`Memory::place`].
    ///
    /// # Panics
    /// If the value does not fit, overlaps another one, or the offset does not suit its type: offsets
    /// are those of the fields of a struct.
    pub(crate) fn put<T>(&self, offset: usize, value: T) -> &'static T {
        let end = offset + size_of::<T>();
        let mut taken = self.taken.borrow_mut();
        let free = taken.iter().all(|(first, behind)| end <= *first || *behind <= offset);
        assert!(free && end <= self.size, "fields do not overlap");
        let place = self.memory.base + self.at + offset;
        assert!(place.is_multiple_of(align_of::<T>()), "fields are aligned");
        taken.push((offset, end));
        let place = place as *mut T;
        // SAFETY: inside the arena, aligned, and nobody else was given these bytes, by the assertions
        // here and in `region`.
        unsafe {
            place.write(value);
            &*place
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { std::alloc::dealloc(self.base as *mut u8, self.layout) };
    }
}
