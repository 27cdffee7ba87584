//! The memory of this library, which is not malloc's: allocators use mutexes, and a mutex that called malloc at
//! its first use would come back into the allocator that is about to lock it.
//!
//! Blocks are powers of two, carved from chunks that the kernel gives, and kept in a list for each size
//! when they are free. Nothing goes back to the kernel: what is allocated is a record for each mutex and
//! one set of records for threads.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use crate::gate::Gate;

/// Memory asked from the kernel at a time, in bytes. Larger blocks have a chunk of their own.
const CHUNK: usize = 1 << 18;
/// The smallest block holds the link of a free one.
const SMALLEST: usize = size_of::<*mut u8>();

pub(crate) struct Arena;

struct Blocks {
    /// First free block of each power of two; the first word of a free block is the next one.
    free: [*mut u8; usize::BITS as usize],
    /// What is left of the chunk.
    next: *mut u8,
    left: usize,
}

// SAFETY: the blocks belong to nobody's thread.
unsafe impl Send for Blocks {}

static BLOCKS: Gate<Blocks> = Gate::new(Blocks {
    free: [ptr::null_mut(); usize::BITS as usize],
    next: ptr::null_mut(),
    left: 0,
});

/// Keeps other threads out over a fork.
pub(crate) fn close() {
    BLOCKS.close();
}

/// Ends [`close`].
pub(crate) fn open() {
    BLOCKS.open();
}

/// Size of the block for `layout`: at least its alignment, to which blocks are aligned.
fn block_size(layout: Layout) -> Option<usize> {
    layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()
}

/// Zeroed memory at a page boundary, or null.
fn from_kernel(size: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
}

impl Blocks {
    fn take(&mut self, size: usize) -> *mut u8 {
        let list = &mut self.free[size.trailing_zeros() as usize];
        if !list.is_null() {
            let block = *list;
            // SAFETY: a free block has the next one in its first word.
            *list = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        if size >= CHUNK {
            return from_kernel(size);
        }
        let misaligned = self.next.addr() & (size - 1);
        let skip = if misaligned == 0 { 0 } else { size - misaligned };
        if self.left < skip + size {
            let chunk = from_kernel(CHUNK);
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

// SAFETY: a block is at least as large as asked for and aligned to its size, which is at least the
// alignment; it is in one place only: its user's, the list's, or the rest of the chunk. Blocks of a whole chunk
// or more are aligned to a page, which `alloc` sees to be enough.
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
