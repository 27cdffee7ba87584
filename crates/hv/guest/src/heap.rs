//! The heap. Its lock is taken with upcalls masked: a handler on top of a holder would wait for it for ever, and so might a
//! task that took over.

use crate::{cpu, upcall};
use core::alloc::{GlobalAlloc, Layout};
use linked_list_allocator::LockedHeap;

/// The memory that this guest allocates from.
pub struct Heap(LockedHeap);

impl Heap {
    /// Without memory.
    pub const fn empty() -> Self {
        Self(LockedHeap::empty())
    }

    /// Gives it `len` bytes at `start`.
    ///
    /// # Safety
    /// Nobody else uses that memory. Nobody has called this before.
    pub unsafe fn init(&self, start: *mut u8, len: usize) {
        // SAFETY: the caller vouches for it.
        unsafe { self.0.lock().init(start, len) };
    }
}

// SAFETY: all is done by the heap inside.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let masked = cpu::mask();
        // SAFETY: as the caller promises.
        let memory = unsafe { self.0.alloc(layout) };
        upcall::restore(masked);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let masked = cpu::mask();
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(memory, layout) };
        upcall::restore(masked);
    }
}
