//! Waits for the kernel's own locks, counted by the kernel's tracepoint `lock:contention_begin` (Linux 5.19).
//!
//! We make a trace instance of our own, so that nobody else's tracing is disturbed, and never read its events: the
//! kernel counts those that are in the buffer and those that it has overwritten, and the sum is what we want. The
//! instance is removed at the end. If we are killed, it stays until the next start of the machine, and the next
//! measurement removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the kernel may show its tracing. Only an administrator sees it.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/lock/contention_begin/enable";
/// How the names of our instances begin; the number of the process and a number of our own follow.
const PREFIX: &str = "overspin-";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Our instance.
#[derive(Debug)]
pub(crate) struct Contention {
    instance: PathBuf,
}

impl Contention {
    /// Begins to count; `None` if the kernel does not tell us.
    pub(crate) fn watch() -> Option<Self> {
        let instances = TRACING.map(|root| Path::new(root).join("instances"));
        let instances = instances.into_iter().find(|path| path.is_dir())?;
        remove_orphans(&instances);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = instances.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&instance).ok()?;
        let this = Self { instance };
        // The smallest buffer: its content does not matter.
        fs::write(this.instance.join("buffer_size_kb"), "4").ok()?;
        fs::write(this.instance.join(EVENT), "1").ok()?;
        Some(this)
    }

    /// Waits that have begun so far.
    pub(crate) fn begun(&self) -> Option<u64> {
        let cpus = fs::read_dir(self.instance.join("per_cpu")).ok()?;
        let of = |path: PathBuf| Some(events(&fs::read_to_string(path.join("stats")).ok()?));
        cpus.map(|cpu| of(cpu.ok()?.path())).sum()
    }
}

impl Drop for Contention {
    fn drop(&mut self) {
        // A directory of this kind is removed as if it were empty. If that fails, the next measurement tries again.
        let _ = fs::write(self.instance.join(EVENT), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

/// The events that a buffer has seen, by its `stats`.
fn events(stats: &str) -> u64 {
    let number = |line: &str| -> Option<u64> {
        let (name, value) = line.split_once(':')?;
        ["entries", "overrun", "read events"].contains(&name).then(|| value.trim().parse().ok())?
    };
    stats.lines().filter_map(number).sum()
}

/// Removes instances of processes that are no more.
fn remove_orphans(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        if process.is_some_and(|(process, _)| !Path::new("/proc").join(process).exists()) {
            // Another measurement may have been faster.
            let _ = fs::write(entry.path().join(EVENT), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_events_count_whether_they_were_kept_or_not() {
        let stats = "entries: 2330\noverrun: 10875\ncommit overrun: 0\nbytes: 65560\n\
                     oldest event ts:  1691.158480\nnow ts:  1691.688907\ndropped events: 0\n\
                     read events: 7\n";
        assert_eq!(events(stats), 2330 + 10875 + 7);
        assert_eq!(events(""), 0);
    }

    #[test]
    fn waits_for_a_kernel_lock_are_counted() {
        let Some(contention) = Contention::watch() else {
            overspin_testing::skip("this kernel does not show tracing to us");
            return;
        };
        assert!(contention.instance.exists());
        // Threads that map and unmap want one write lock of their memory.
        let map = || {
            for _ in 0..20_000 {
                // SAFETY: a new mapping without a file; it is unmapped as a whole and never used.
                unsafe {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                    let at = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
                    libc::munmap(at, 4096);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(map);
            }
        });
        let begun = contention.begun().unwrap();
        if crate::cpus() == 1 {
            overspin_testing::skip("with one CPU, threads seldom meet");
        } else {
            assert!(begun > 0);
        }
        let instance = contention.instance.clone();
        drop(contention);
        assert!(!instance.exists());
    }
}
