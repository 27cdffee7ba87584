//! Records of the kernel's performance events, in memory that it shares with this process.
//!
//! See the manual page of `perf_event_open` for the layout. `switches.rs` says what is recorded.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the description of an event, of Linux 3.12 and later (`PERF_ATTR_SIZE_VER3`).
const ATTR_SIZE: usize = 96;
/// `sample_id_all`, `use_clockid`.
const FLAGS: u64 = 1 << 18 | 1 << 25;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// Offsets of the writer's and the reader's position in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// An event, by the names of `perf_event_attr`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub kind: u32,
    pub config: u64,
    /// What each record has; the time is that of the monotonic clock.
    pub sample: u64,
    pub flags: u64,
    /// 0: the calling thread; -1: all.
    pub thread: libc::pid_t,
    /// -1: any.
    pub cpu: libc::c_int,
    /// Pages of records, a power of two.
    pub pages: usize,
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub kind: u32,
    /// Further bits of the kind.
    pub misc: u16,
    ring: &'a Records,
    at: u64,
    size: u64,
}

impl Record<'_> {
    /// The 8 bytes at a position, a multiple of 8 from the header on; 0 if the record is shorter.
    pub(super) fn word(&self, at: u64) -> u64 {
        if at + 8 <= self.size { self.ring.word(self.at + at) } else { 0 }
    }
}

/// The records of an event.
#[derive(Debug)]
pub(super) struct Records {
    fd: libc::c_int,
    mapped: NonNull<u8>,
    page: usize,
    pages: usize,
    /// Whether some were lost, because nobody read them in time.
    pub lost: bool,
}

// SAFETY: the mapping belongs to this value, and any thread may read it.
unsafe impl Send for Records {}

impl Records {
    /// Begins to record; `None` if the kernel does not let it.
    pub(super) fn of(event: Event) -> Option<Self> {
        let mut attr = [0_u8; ATTR_SIZE];
        let mut put = |at: usize, bytes: &[u8]| attr[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &event.kind.to_ne_bytes());
        put(4, &(ATTR_SIZE as u32).to_ne_bytes());
        put(8, &event.config.to_ne_bytes());
        // Each event has a record, not one of several.
        put(16, &1_u64.to_ne_bytes());
        put(24, &event.sample.to_ne_bytes());
        put(40, &(FLAGS | event.flags).to_ne_bytes());
        put(92, &libc::CLOCK_MONOTONIC.to_ne_bytes());
        // SAFETY: the kernel reads `ATTR_SIZE` bytes of `attr`.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attr.as_ptr(),
                event.thread,
                event.cpu,
                -1,
                8_u64, // PERF_FLAG_FD_CLOEXEC
            )
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: a query without pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a new mapping of the event's own memory, at an address that the kernel chooses.
        let mapped = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let size = page * (1 + event.pages);
            libc::mmap(ptr::null_mut(), size, both, libc::MAP_SHARED, fd, 0)
        };
        if mapped == libc::MAP_FAILED {
            // SAFETY: it is ours.
            unsafe { libc::close(fd) };
            return None;
        }
        let mapped = NonNull::new(mapped.cast())?;
        Some(Self { fd, mapped, page, pages: event.pages, lost: false })
    }

    /// Hands over the records that have come since the last call.
    pub(super) fn read(&mut self, mut each: impl FnMut(Record<'_>)) {
        // SAFETY: both words are in the first page of the mapping, aligned, and written by the kernel and by us as
        // atomics.
        let (head, tail) = unsafe {
            let word = |at: usize| &*self.mapped.as_ptr().add(at).cast::<AtomicU64>();
            (word(HEAD), word(TAIL))
        };
        // Acquire: the records before the head are complete.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut lost = false;
        while at < end {
            // The header: type, misc, size.
            let header = self.word(at);
            let (kind, misc, size) = (header as u32, (header >> 32) as u16, header >> 48);
            // It makes no sense.
            if size == 0 {
                break;
            }
            lost |= kind == LOST;
            each(Record { kind, misc, ring: self, at, size });
            at += size;
        }
        self.lost |= lost;
        // Release: the kernel may overwrite what has been read.
        tail.store(end, Ordering::Release);
    }

    /// The 8 bytes at a position, a multiple of 8, of the ring.
    fn word(&self, at: u64) -> u64 {
        let ring = (self.page * self.pages) as u64;
        // It is less than the size of the mapping.
        let offset = self.page + (at % ring) as usize;
        // SAFETY: the offset is within the mapping, and a multiple of 8 as records are. The kernel does not write
        // between tail and head.
        unsafe { self.mapped.as_ptr().add(offset).cast::<u64>().read() }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // SAFETY: the mapping and the descriptor are ours, and nobody uses them any more.
        unsafe {
            libc::munmap(self.mapped.as_ptr().cast(), self.page * (1 + self.pages));
            libc::close(self.fd);
        }
    }
}
