//! The memory of this library. It does not come from malloc: allocators use mutexes, and a mutex that called
//! malloc at its first use would re-enter the allocator that is about to lock it.
//!
//! Blocks are powers of two, carved from chunks of the kernel's memory. Free blocks are kept in one list per
//! size. Nothing is returned to the kernel: the only allocations are one set of records for threads, and what
//! statistics and recordings keep. The records of mutexes have memory of their own, see `slots.rs`.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use crate::fork_lock::ForkLock;
use crate::pages;

/// Bytes requested from the kernel at a time. Larger blocks have a chunk of their own.
const CHUNK: usize = 1 << 18;
/// The smallest block. It holds the link of a free block.
const SMALLEST: usize = size_of::<*mut u8>();

pub(crate) struct Arena;

struct Blocks {
    /// First free block of each power of two; the first word of a free block is the next one.
    free: [*mut u8; usize::BITS as usize],
    /// The rest of the chunk.
    next: *mut u8,
    left: usize,
}

// SAFETY: the blocks belong to no particular thread.
unsafe impl Send for Blocks {}

static BLOCKS: ForkLock<Blocks> = ForkLock::new(Blocks {
    free: [ptr::null_mut(); usize::BITS as usize],
    next: ptr::null_mut(),
    left: 0,
});

/// Keeps other threads out during a fork.
pub(crate) fn close() {
    BLOCKS.close();
}

/// Ends [`close`].
pub(crate) fn open() {
    BLOCKS.open();
}

/// Returns the size of the block for `layout`, at least its alignment. Blocks are aligned to their size.
fn block_size(layout: Layout) -> Option<usize> {
    layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()
}

impl Blocks {
    fn take(&mut self, size: usize) -> *mut u8 {
        let list = &mut self.free[size.trailing_zeros() as usize];
        if !list.is_null() {
            let block = *list;
            // SAFETY: the first word of a free block points to the next one.
            *list = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        if size >= CHUNK {
            return pages::map(size);
        }
        let misaligned = self.next.addr() & (size - 1);
        let skip = if misaligned == 0 { 0 } else { size - misaligned };
        if self.left < skip + size {
            let chunk = pages::map(CHUNK);
            if chunk.is_null() {
                return chunk;
            }
            self.next = chunk;
            self.left = CHUNK;
            // A new chunk is aligned to a page only.
            return self.take(size);
        }
        let block = self.next.wrapping_add(skip);
        self.next = block.wrapping_add(size);
        self.left -= skip + size;
        block
    }
}

/// Keeps a value for ever. `None` without memory, and while a thread forks: the holder of a mutex must not wait for that
/// ([`ForkLock::with_unless_closed`]).
pub(crate) fn keep<T>(value: T) -> Option<&'static T> {
    let size = block_size(Layout::new::<T>())?;
    let block = BLOCKS.with_unless_closed(|blocks| blocks.take(size))?.cast::<T>();
    if block.is_null() {
        return None;
    }
    // SAFETY: the block is large enough, is aligned to its size, and belongs to nobody else.
    unsafe {
        block.write(value);
        Some(&*block)
    }
}

// SAFETY: a block is at least as large as requested, and aligned to its size, which is at least the alignment.
// It is in one place only: with its user, in a list, or in the rest of the chunk. Blocks of a whole chunk or
// more are aligned to a page; `alloc` checks that this suffices.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        const PAGE: usize = 4096;
        match block_size(layout) {
            Some(size) if layout.align() <= PAGE => BLOCKS.with(|blocks| blocks.take(size)),
            _ => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(size) = block_size(layout) else { return };
        BLOCKS.with(|blocks| {
            let list = &mut blocks.free[size.trailing_zeros() as usize];
            // SAFETY: the block is free, large enough and aligned for a pointer.
            unsafe { block.cast::<*mut u8>().write(*list) };
            *list = block;
        });
    }
}
