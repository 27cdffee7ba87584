//! The memory of a guest.
//!
//! Guest and host access it at the same time. So the host has no reference to plain data in it: it copies bytes
//! with volatile accesses, and shares structures that consist of atomics. Every access checks the bounds.

use overspin_guest_abi::{LockStats, SharedInfo, TaskStats, Traced, VcpuPage};
use std::io;
use std::ptr::NonNull;

/// A structure that may be shared with a guest.
///
/// # Safety
/// All its fields are atomics, so every sequence of bytes is a value of it, and it may change at any time.
pub(crate) unsafe trait Shared {}

// SAFETY: all fields are atomics, or arrays or structures of atomics.
unsafe impl Shared for SharedInfo {}
// SAFETY: as above.
unsafe impl Shared for VcpuPage {}
// SAFETY: as above.
unsafe impl Shared for LockStats {}
// SAFETY: as above.
unsafe impl Shared for TaskStats {}
// SAFETY: as above.
unsafe impl Shared for Traced {}

/// Memory that a virtual machine sees from address 0 on.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its mapping, and all accesses are volatile or atomic.
unsafe impl Send for GuestMemory {}
// SAFETY: as above.
unsafe impl Sync for GuestMemory {}

impl GuestMemory {
    /// Zeroed memory of `len` bytes.
    ///
    /// # Errors
    /// If the system has not so much.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Its first byte, for the kernel.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of `len` bytes at `at`, if they are inside.
    fn inside(&self, at: u64, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(at).ok()?;
        if at.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: it is inside the mapping, as just checked.
        Some(unsafe { self.start.as_ptr().add(at) })
    }

    /// The structure at `at`, if it is inside and aligned.
    pub(crate) fn shared<T: Shared>(&self, at: u64) -> Option<&T> {
        let here = self.inside(at, size_of::<T>())?.cast::<T>();
        // SAFETY: it is inside and aligned, it lives as long as the mapping, and `Shared` promises that any bytes
        // are a value.
        here.is_aligned().then(|| unsafe { &*here })
    }

    /// Writes bytes; returns whether they fit.
    #[must_use]
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> bool {
        let Some(to) = self.inside(at, bytes.len()) else { return false };
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: `inside` has checked the range.
            unsafe { to.add(i).write_volatile(*byte) };
        }
        true
    }

    /// Writes a word; returns whether it fits.
    #[must_use]
    pub(crate) fn write_word(&self, at: u64, word: u64) -> bool {
        self.write(at, &word.to_le_bytes())
    }

    /// Gives pages back to the system; they are zero again when somebody touches them.
    pub(crate) fn forget(&self, at: u64, len: u64) {
        let Ok(len) = usize::try_from(len) else { return };
        let Some(start) = self.inside(at, len) else { return };
        // SAFETY: the range is inside the mapping, to which nobody has a reference but to atomics, and zeros are a value
        // of these. If the system refuses, the pages stay as they are.
        unsafe { libc::madvise(start.cast(), len, libc::MADV_REMOVE) };
    }

    /// Reads bytes, if they are inside.
    pub(crate) fn read(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let from = self.inside(at, len)?;
        // SAFETY: `inside` has checked the range.
        Some((0..len).map(|i| unsafe { from.add(i).read_volatile() }).collect())
    }
}

impl Drop for GuestMemory {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and nobody has a reference into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_touched() {
        let memory = GuestMemory::new(2 * 4096).unwrap();
        assert!(memory.write(8189, b"end"));
        assert!(!memory.write(8190, b"end"));
        assert!(!memory.write(u64::MAX, b"x"));
        assert_eq!(memory.read(8189, 3).unwrap(), b"end");
        assert_eq!(memory.read(8189, 4), None);
        assert_eq!(memory.read(u64::MAX - 1, 4), None);
        assert!(memory.shared::<VcpuPage>(4096).is_some());
        assert!(memory.shared::<VcpuPage>(8192).is_none());
        assert!(memory.shared::<VcpuPage>(2048).is_none(), "it is not aligned");
    }
}
