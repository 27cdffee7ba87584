//! Memory from the kernel, and back to it.

use std::ptr;

/// Returns zeroed memory at a page boundary, or null.
pub(crate) fn map(size: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
}

/// Returns zeroed memory at a multiple of its size, or null. `size` is a power of two, at least a page. The kernel gives it
/// page by page: a huge page would be memory that nothing uses, and could not go back in part.
pub(crate) fn map_aligned(size: usize) -> *mut u8 {
    let Some(twice) = size.checked_mul(2) else { return ptr::null_mut() };
    let start = map(twice);
    if start.is_null() {
        return start;
    }
    let before = start.addr().next_multiple_of(size) - start.addr();
    let memory = start.wrapping_add(before);
    // SAFETY: all belongs to the new mapping, which nothing uses yet.
    unsafe {
        unmap(start, before);
        unmap(memory.wrapping_add(size), size - before);
        // Ignored: a kernel without huge pages refuses.
        libc::madvise(memory.cast(), size, libc::MADV_NOHUGEPAGE);
    }
    memory
}

/// Gives memory back together with its addresses.
///
/// # Safety
/// `memory` is from this file, `size` is a multiple of pages, and nothing uses the memory any more.
pub(crate) unsafe fn unmap(memory: *mut u8, size: usize) {
    if size != 0 {
        // SAFETY: as the caller promises. If it fails, the memory stays, unused.
        unsafe { libc::munmap(memory.cast(), size) };
    }
}

/// Gives memory back and keeps its addresses: the next access finds zeros. Returns false if the kernel keeps the memory,
/// for example because the program has locked it.
///
/// # Safety
/// As [`unmap`], but reads are allowed.
pub(crate) unsafe fn empty(memory: *mut u8, size: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { libc::madvise(memory.cast(), size, libc::MADV_DONTNEED) == 0 }
}

/// The kernel's unit of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: it has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
