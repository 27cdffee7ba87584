//! When a thread gets a CPU and loses it, from the kernel's performance events.
//!
//! Linux writes a record of each switch of a thread into memory that it shares with the process
//! (`perf_event_open`, `context_switch`; see its manual page for the layout). This needs no privilege for the user's own
//! processes where `kernel.perf_event_paranoid` is at most 2. Containers often forbid the call; then the world does without.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::kernel::this_cpu;
use crate::Threads;
use overspin_locks::Platform as _;

/// Pages of records of one thread: some 2,000 switches between two looks. What every user may have, for some tens
/// of threads (`kernel.perf_event_mlock_kb`).
const PAGES: usize = 16;
/// Size of the description of an event, of Linux 3.12 and later (`PERF_ATTR_SIZE_VER3`).
const ATTR_SIZE: usize = 96;
/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_DUMMY`: the event counts nothing; only its records are wanted.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// Each record ends with the thread, the time and the CPU (`PERF_SAMPLE_TID`, `_TIME`, `_CPU`).
const SAMPLE: u64 = 0x2 | 0x4 | 0x80;
/// `exclude_kernel`, `exclude_hv`, `sample_id_all`, `use_clockid`, `context_switch`.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 18 | 1 << 25 | 1 << 26;
/// Types of records, and bits of `misc`.
const LOST: u32 = 2;
const SWITCH: u32 = 14;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// Offsets of the writer's and the reader's position in the first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// What a switch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchKind {
    /// The thread began to run.
    In,
    /// It lost its CPU although it could run.
    Preempted,
    /// It went to sleep.
    Slept,
}

/// A switch of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// By the monotonic clock of this machine, that of [`Threads`].
    pub at_ns: u64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// What happened.
    pub what: SwitchKind,
}

/// Whether a thread with these switches had a CPU at this time; nothing if it is before all of them.
#[must_use]
pub fn has_cpu(switches: &[Switch], at_ns: u64) -> Option<bool> {
    let i = switches.partition_point(|s| s.at_ns <= at_ns).checked_sub(1)?;
    Some(switches[i].what == SwitchKind::In)
}

/// How often a thread with these switches began to run on another CPU than before.
#[must_use]
pub fn migrations(switches: &[Switch]) -> u64 {
    let ins: Vec<u32> =
        switches.iter().filter(|s| s.what == SwitchKind::In).map(|s| s.cpu).collect();
    ins.windows(2).filter(|w| w[0] != w[1]).count() as u64
}

/// The records of one thread.
#[derive(Debug)]
pub struct Switches {
    fd: libc::c_int,
    pages: NonNull<u8>,
    page: usize,
    /// When it began.
    since_ns: u64,
    /// What has been read so far.
    pub seen: Vec<Switch>,
    /// Whether records were lost, because nobody read them in time.
    pub lost: bool,
}

// SAFETY: the mapping belongs to this value, and any thread may read it.
unsafe impl Send for Switches {}

impl Switches {
    /// Begins to record the calling thread; `None` if the kernel does not let it.
    pub(super) fn of_this_thread() -> Option<Self> {
        let mut switches = Self::of(0)?;
        // It runs now.
        let (at_ns, cpu) = (switches.since_ns, this_cpu());
        switches.seen.push(Switch { at_ns, cpu, what: SwitchKind::In });
        Some(switches)
    }

    /// Begins to record a thread, by its number; `None` if there is none, or the kernel does not let this process do it.
    #[must_use]
    pub fn of_thread(tid: u32) -> Option<Self> {
        Self::of(libc::pid_t::try_from(tid).ok()?)
    }

    /// 0: the calling thread.
    fn of(tid: libc::pid_t) -> Option<Self> {
        let mut attr = [0_u8; ATTR_SIZE];
        let mut put = |at: usize, bytes: &[u8]| attr[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &SOFTWARE.to_ne_bytes());
        put(4, &(ATTR_SIZE as u32).to_ne_bytes());
        put(8, &DUMMY.to_ne_bytes());
        put(24, &SAMPLE.to_ne_bytes());
        put(40, &FLAGS.to_ne_bytes());
        put(92, &libc::CLOCK_MONOTONIC.to_ne_bytes());
        // SAFETY: the kernel reads `ATTR_SIZE` bytes of `attr`. -1: on any CPU.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attr.as_ptr(),
                tid,
                -1,
                -1,
                8_u64, // PERF_FLAG_FD_CLOEXEC
            )
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: a query without pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a new mapping of the event's own memory, at an address that the kernel chooses.
        let pages = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), page * (1 + PAGES), both, libc::MAP_SHARED, fd, 0)
        };
        if pages == libc::MAP_FAILED {
            // SAFETY: it is ours.
            unsafe { libc::close(fd) };
            return None;
        }
        let (pages, seen, since_ns) = (NonNull::new(pages.cast())?, Vec::new(), Threads::now());
        Some(Self { fd, pages, page, since_ns, seen, lost: false })
    }

    /// Reads the records that have come since the last call.
    pub fn read(&mut self) {
        // SAFETY: both words are in the first page of the mapping, aligned, and written by the kernel and by us as
        // atomics.
        let (head, tail) = unsafe {
            let word = |at: usize| &*self.pages.as_ptr().add(at).cast::<AtomicU64>();
            (word(HEAD), word(TAIL))
        };
        // Acquire: the records before the head are complete.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let size = self.record(at);
            if size == 0 {
                break;
            }
            at += size;
        }
        // Release: the kernel may overwrite what has been read.
        tail.store(end, Ordering::Release);
    }

    /// Reads the record at this position; returns its size, 0 if it makes no sense.
    fn record(&mut self, at: u64) -> u64 {
        // The header: type, misc, size.
        let header = self.word(at);
        let (kind, misc) = (header as u32, (header >> 32) as u16);
        let size = header >> 48;
        match kind {
            LOST => self.lost = true,
            SWITCH if size >= 32 => {
                let what = match (misc & OUT != 0, misc & PREEMPTED != 0) {
                    (false, _) => SwitchKind::In,
                    (true, true) => SwitchKind::Preempted,
                    (true, false) => SwitchKind::Slept,
                };
                let (at_ns, cpu) = (self.word(at + 16), self.word(at + 24) as u32);
                if self.seen.is_empty() && what != SwitchKind::In {
                    // It ran from the begin.
                    let at_ns = self.since_ns.min(at_ns);
                    self.seen.push(Switch { at_ns, cpu, what: SwitchKind::In });
                }
                self.seen.push(Switch { at_ns, cpu, what });
            }
            _ => {}
        }
        size
    }

    /// The 8 bytes at a position, a multiple of 8, of the ring.
    fn word(&self, at: u64) -> u64 {
        let ring = (self.page * PAGES) as u64;
        // It is less than the size of the mapping.
        let offset = self.page + (at % ring) as usize;
        // SAFETY: the offset is within the mapping, and a multiple of 8 as records are. The kernel does not write
        // between tail and head.
        unsafe { self.pages.as_ptr().add(offset).cast::<u64>().read() }
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: the mapping and the descriptor are ours, and nobody uses them any more.
        unsafe {
            libc::munmap(self.pages.as_ptr().cast(), self.page * (1 + PAGES));
            libc::close(self.fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_switch_out_and_a_switch_in() {
        let Some(mut switches) = Switches::of_this_thread() else {
            overspin_testing::skip("this kernel does not let a thread record its switches");
            return;
        };
        let before = Threads::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        switches.read();
        let all = &switches.seen;
        let slept = all.iter().position(|s| s.what == SwitchKind::Slept).unwrap();
        assert!(all[slept].at_ns >= before, "{all:?}");
        assert_eq!(all[slept + 1].what, SwitchKind::In);
        assert!(all[slept + 1].at_ns - all[slept].at_ns >= 1_900_000, "{all:?}");
    }
}
