//! Work for the locks of the guest's own kernel: the threads of all vCPUs want the same ones.

use crate::clock;
use crate::env::Task;
use overspin_scenario::{MS, Picos};
use overspin_workload::Env;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::fs::File;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations between two looks at the clock.
const BATCH: u64 = 64;
/// Pages that a thread maps, touches and unmaps.
const PAGES: usize = 1024;
const PAGE: usize = 4096;
/// All threads of a host start within this time.
const START_WITHIN: Picos = MS;
const SECOND: u64 = 1_000_000_000;

/// Work of a thread. All threads share the kernel's objects, because they belong to one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelWork {
    /// Duplicates a file descriptor and closes the copy: both take the spinlock of the process's table of files.
    Dup,
    /// Touches fresh pages: the locks of the page tables and of the memory map.
    Pft,
}

impl KernelWork {
    pub(crate) fn of(words: &[String]) -> Option<Self> {
        match words {
            [one] if one == "dup" => Some(Self::Dup),
            [one] if one == "pft" => Some(Self::Pft),
            _ => None,
        }
    }

    /// Works until the run is over. Reports at its start, each second, and at the end. The seed decides when the thread
    /// starts. `count` tells the operations so far, even while the thread waits for a lock.
    pub(crate) fn run(self, task: &Task, count: &AtomicU64) {
        task.all_up();
        task.sleep(task.offset(START_WITHIN));
        let mut done = Progress { task, operations: 0, count, next: 0 };
        done.look();
        match self {
            Self::Dup => dup(&mut done),
            Self::Pft => pft(&mut done),
        }
    }
}

struct Progress<'a> {
    task: &'a Task,
    operations: u64,
    count: &'a AtomicU64,
    /// When to report next, in nanoseconds.
    next: u64,
}

impl Progress<'_> {
    fn add(&mut self) {
        self.operations += 1;
        if self.operations.is_multiple_of(BATCH) {
            self.look();
        }
    }

    fn look(&mut self) {
        self.count.store(self.operations, Ordering::Relaxed);
        let now = self.task.since_start(clock::now());
        if now >= self.next.min(self.task.length()) {
            self.task.sample(now, self.operations);
            self.next += SECOND;
        }
        self.task.stay_if_over();
    }
}

fn dup(done: &mut Progress<'_>) {
    let Ok(file) = File::open("/proc/cmdline") else { return };
    loop {
        drop(file.try_clone());
        done.add();
    }
}

fn pft(done: &mut Progress<'_>) {
    loop {
        // SAFETY: the kernel chooses the place, so that nothing else is there.
        let map = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                PAGES * PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let Ok(map) = map else { return };
        for page in 0..PAGES {
            // SAFETY: the byte is in the map, which is writable and which nobody else knows.
            unsafe { map.cast::<u8>().add(page * PAGE).write_volatile(1) };
            done.add();
        }
        // SAFETY: it is the whole map, and nothing points to it any more.
        if unsafe { munmap(map, PAGES * PAGE) }.is_err() {
            return;
        }
    }
}
