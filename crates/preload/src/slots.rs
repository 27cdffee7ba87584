//! The memory of shadows and their locks: slots of one size, in units, in chunks.
//!
//! A *unit* is a page (or more, if slots are large); a *chunk* is [`UNITS`] units, aligned to its size, so that the address
//! of a slot leads to its chunk. The chunk's head is in its first unit.
//!
//! | A unit | `used` | Memory |
//! |---|---|---|
//! | untouched | 0 | none: the kernel has not been asked for it |
//! | in use | > 0 | a page |
//! | empty | 0 | a page, until there are more than [`KEPT`] of them; then untouched |
//!
//! A new slot comes from the first unit that has one, so that mutexes gather in few units and others become empty. But the
//! first 200 mutexes of a shard are spread, so that a program with few mutexes has no two locks in a cache line, where
//! threads that use different mutexes would slow each other down: slots are first used in two or three passes over a unit, a
//! line apart, and the first passes over the first units ([`SPREAD`]) come first.
//!
//! **Memory goes back by `madvise`, not by `munmap`.** Addresses of old shadows survive: in mutexes that the program has
//! copied. Reading one finds zeros, which is the shadow of no mutex. A slot that has
//! never been used is such a shadow, too; only its lock has to be made.
//!
//! **When a slot may lose its memory.** POSIX allows a thread to destroy a mutex while the thread that has released the
//! mutex is still releasing the shadow's lock. A free slot keeps its lock, so that such a thread finds it. Memory that goes
//! back must have no such thread:
//!
//! | Step | By | Order |
//! |---|---|---|
//! | 1. the [`Seat`](crate::bypass::Seat) gets the shadow | the releasing thread | before 2, in program order |
//! | 2. the mutex is released | the same | release |
//! | 3. the mutex is found free, and destroyed | another thread | acquire; so 1 happens before 4 |
//! | 4. the seats are read: a unit with an occupied shadow stays | the thread that gives memory back | acquire |
//! | 5. the seat is left, after the last access to the lock | the releasing thread | release: pairs with 4 |
//!
//! So 4 reads the shadow or something later, and then 5 and all accesses are over. The thread of `bypass` that releases a
//! lock in another one's name has no seat: while it acts, nothing goes back.

use std::ptr;

use crate::shadow::Shadow;
use crate::{bypass, pages};

/// Units of a chunk, which is 256 KiB with pages of 4 KiB.
const UNITS: usize = u64::BITS as usize;
/// Empty units that keep their memory. They save the system calls and the page faults if the program creates mutexes again.
const KEPT: usize = 12;
/// A unit has at least this many slots; the first one of a chunk half of that.
const SLOTS: usize = 8;
/// Bytes of a cache line.
const LINE: usize = 64;
/// The first 8 units of a chunk, less than [`KEPT`]: their first passes, of 20 to 28 slots, are used before anything else.
const SPREAD: u64 = 0xff;

/// The sizes of all slots and units of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    slot: usize,
    unit: usize,
    /// From one slot to the next one of a pass: a line is between them.
    step: usize,
    /// Where the slots of the first unit begin.
    first: usize,
    /// Whether memory may go back.
    gives_back: bool,
}

impl Sizes {
    /// For slots of `size` bytes and this alignment.
    pub(crate) fn new(size: usize, align: usize, gives_back: bool) -> Self {
        let slot = size.next_multiple_of(align);
        let first = size_of::<Chunk>().next_multiple_of(align);
        let unit = pages::page_size().max((SLOTS * slot).max(2 * first).next_power_of_two());
        let step = slot + LINE.next_multiple_of(slot);
        Self { slot, step, unit, first, gives_back }
    }

    fn chunk(&self) -> usize {
        UNITS * self.unit
    }

    /// The slot that is first used after the one at this offset, in a unit within these bounds. The end if there is none.
    fn after(&self, offset: usize, (start, end): (usize, usize)) -> usize {
        let fits = |offset: usize| offset + self.slot <= end;
        let next_pass = start + (offset - start) % self.step + self.slot;
        if fits(offset + self.step) {
            offset + self.step
        } else if next_pass < start + self.step && fits(next_pass) {
            next_pass
        } else {
            end
        }
    }

    /// Where the slots of a unit begin and end, as offsets in the chunk.
    fn bounds(&self, unit: usize) -> (usize, usize) {
        let start = if unit == 0 { self.first } else { unit * self.unit };
        (start, (unit + 1) * self.unit)
    }

    fn untouched(&self, number: usize) -> Unit {
        // Chunks are far below 4 GiB.
        Unit { free: ptr::null_mut(), untouched: self.bounds(number).0 as u32, used: 0 }
    }

    fn place(&self, slot: *const Shadow) -> (*mut Chunk, usize) {
        let offset = slot.addr() & (self.chunk() - 1);
        (slot.cast::<u8>().wrapping_sub(offset).cast_mut().cast(), offset / self.unit)
    }
}

#[derive(Clone, Copy)]
struct Unit {
    /// The first free slot; null if there is none. They are linked by `next`.
    free: *mut Shadow,
    /// Offset of the next slot that has never been used; the end of the unit if there is none.
    untouched: u32,
    used: u32,
}

/// The head of a chunk.
struct Chunk {
    /// The next one of the shard.
    next: *mut Chunk,
    /// The next one with room, if this one is in that list.
    next_open: *mut Chunk,
    /// Units with room.
    open: u64,
    /// Units of [`SPREAD`] with slots in the first pass.
    roomy: u64,
    /// Empty units, without the first one, which stays.
    empty: u64,
    units: [Unit; UNITS],
}

/// Slots for the mutexes of a shard.
pub(crate) struct Slots {
    all: *mut Chunk,
    open: *mut Chunk,
    /// Empty units of all chunks.
    empty: usize,
}

// SAFETY: the chunks belong to no particular thread.
unsafe impl Send for Slots {}

impl Slots {
    pub(crate) const fn new() -> Self {
        Self { all: ptr::null_mut(), open: ptr::null_mut(), empty: 0 }
    }

    /// Takes a slot. `put` completes a slot that has never been used. `None` if there is no memory.
    #[inline]
    pub(crate) fn take(
        &mut self,
        sizes: &Sizes,
        put: impl FnOnce(&Shadow),
    ) -> Option<&'static Shadow> {
        if self.open.is_null() {
            self.grow(sizes)?;
        }
        let base = self.open;
        // SAFETY: a chunk of ours, which this thread has to itself.
        let chunk = unsafe { &mut *base };
        let roomy = chunk.open & chunk.roomy;
        let number = if roomy == 0 { chunk.open } else { roomy }.trailing_zeros() as usize;
        let unit = &mut chunk.units[number];
        let slot = if let Some(free) = ptr::NonNull::new(unit.free) {
            // SAFETY: a free slot has a shadow.
            unit.free = unsafe { free.as_ref() }.next.get();
            free.as_ptr()
        } else {
            let slot = base.cast::<u8>().wrapping_add(unit.untouched as usize).cast::<Shadow>();
            let after = sizes.after(unit.untouched as usize, sizes.bounds(number));
            if after != unit.untouched as usize + sizes.step {
                chunk.roomy &= !(1 << number);
            }
            // Chunks are far below 4 GiB.
            unit.untouched = after as u32;
            // SAFETY: memory for a shadow, all zeros.
            put(unsafe { &*slot });
            slot
        };
        unit.used += 1;
        if chunk.empty & 1 << number != 0 {
            chunk.empty &= !(1 << number);
            self.empty -= 1;
        }
        if unit.free.is_null() && unit.untouched as usize == sizes.bounds(number).1 {
            chunk.open &= !(1 << number);
            if chunk.open == 0 {
                self.open = chunk.next_open;
            }
        }
        // SAFETY: zeros are a shadow, and it stays one.
        Some(unsafe { &*slot })
    }

    /// Takes a slot back. Its lock stays usable until its memory goes back.
    #[inline]
    pub(crate) fn give(&mut self, sizes: &Sizes, slot: &'static Shadow) {
        let (base, number) = sizes.place(slot);
        // SAFETY: the head of the slot's chunk, which is ours.
        let chunk = unsafe { &mut *base };
        if chunk.open == 0 {
            chunk.next_open = self.open;
            self.open = base;
        }
        chunk.open |= 1 << number;
        let unit = &mut chunk.units[number];
        slot.next.set(unit.free);
        unit.free = ptr::from_ref(slot).cast_mut();
        unit.used -= 1;
        if unit.used == 0 && number != 0 {
            chunk.empty |= 1 << number;
            self.empty += 1;
            if self.empty > KEPT && sizes.gives_back {
                self.give_back(sizes);
            }
        }
    }

    #[cold]
    fn grow(&mut self, sizes: &Sizes) -> Option<()> {
        let base = pages::map_aligned(sizes.chunk()).cast::<Chunk>();
        if base.is_null() {
            return None;
        }
        // Exposed: the locks behind the shadows are reached by address.
        let _ = base.expose_provenance();
        let chunk = Chunk {
            next: self.all,
            next_open: ptr::null_mut(),
            open: u64::MAX,
            roomy: SPREAD,
            empty: 0,
            units: std::array::from_fn(|number| sizes.untouched(number)),
        };
        // SAFETY: new memory, aligned to its size.
        unsafe { base.write(chunk) };
        self.all = base;
        self.open = base;
        Some(())
    }

    /// Gives the memory of empty units back to the kernel, except where a thread is in a lock.
    #[cold]
    fn give_back(&mut self, sizes: &Sizes) {
        if bypass::is_acting() {
            return;
        }
        let mut base = self.all;
        // SAFETY: null, or a chunk of ours.
        while let Some(chunk) = unsafe { base.as_mut() } {
            let mut units = chunk.empty;
            if units != 0 {
                bypass::each_occupied(|shadow| {
                    let (its, number) = sizes.place(shadow);
                    if its == base {
                        units &= !(1 << number);
                    }
                });
            }
            while units != 0 {
                let first = units.trailing_zeros() as usize;
                let length = (units >> first).trailing_ones() as usize;
                let all = (u64::MAX >> (UNITS - length)) << first;
                units &= !all;
                let memory = base.cast::<u8>().wrapping_add(first * sizes.unit);
                // SAFETY: these units have no mutexes, and no thread is in their locks; see the module documentation.
                if unsafe { pages::empty(memory, length * sizes.unit) } {
                    chunk.empty &= !all;
                    chunk.roomy |= all & SPREAD;
                    self.empty -= length;
                    for number in first..first + length {
                        chunk.units[number] = sizes.untouched(number);
                    }
                }
            }
            base = chunk.next;
        }
    }

    /// Calls `f` with each shadow in memory, whether a mutex has it, or had it, or not.
    pub(crate) fn each(&self, sizes: &Sizes, mut f: impl FnMut(&'static Shadow)) {
        let mut base = self.all;
        // SAFETY: null, or a chunk of ours.
        while let Some(chunk) = unsafe { base.as_ref() } {
            for (number, unit) in chunk.units.iter().enumerate() {
                let (start, end) = sizes.bounds(number);
                if unit.untouched as usize != start {
                    for offset in (start..=end - sizes.slot).step_by(sizes.slot) {
                        // SAFETY: zeros are a shadow, and it stays one.
                        f(unsafe { &*base.cast::<u8>().wrapping_add(offset).cast::<Shadow>() });
                    }
                }
            }
            base = chunk.next;
        }
    }
}
