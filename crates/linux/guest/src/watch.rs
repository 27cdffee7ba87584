//! What the kernel counts, read each second.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::root::text;
use crate::talk::{Reading, Watched};

/// The kernel's counts of events of its own queued locks.
const LOCK_EVENTS: &str = "/sys/kernel/debug/lock_event_counts";
/// Those of acquisitions that found the lock taken: the second in a queue waits for the holder, all others for their turn.
const SLOW_PATHS: [&str; 2] = ["lock_pending", "lock_slowpath"];
/// The kernel's account of each class of locks.
const LOCK_STAT: &str = "/proc/lock_stat";

/// A thread that reads until it is dropped.
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Reading>>,
    lock_events: Vec<(String, u64)>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        // A zero clears the account; most kernels have none.
        let _ = fs::write(LOCK_STAT, "0");
        let lock_events = lock_events();
        let (stop, asked) = channel();
        let thread = thread::spawn(move || read(&asked));
        Self { stop, thread, lock_events }
    }

    pub(crate) fn end(self) -> Result<Watched, String> {
        // First, for it also counts what follows.
        let lock_stat = fs::read_to_string(LOCK_STAT).ok();
        drop(self.stop);
        let readings = self.thread.join().map_err(|_| "the watch has ended early".to_owned())?;
        let before = |name: &str| {
            self.lock_events.iter().find(|(known, _)| known == name).map_or(0, |e| e.1)
        };
        let grown = lock_events().into_iter().map(|(name, count)| {
            let since = count.saturating_sub(before(&name));
            (name, since)
        });
        let lock_events = grown.filter(|(_, since)| *since > 0).collect();
        Ok(Watched { readings, lock_events, lock_stat })
    }
}

fn read(asked: &Receiver<()>) -> Vec<Reading> {
    let began = Instant::now();
    let mut readings = vec![reading(began)];
    loop {
        let due = Duration::from_secs(readings.len() as u64);
        let over = asked.recv_timeout(due.saturating_sub(began.elapsed()))
            == Err(RecvTimeoutError::Disconnected);
        readings.push(reading(began));
        if over {
            return readings;
        }
    }
}

fn reading(began: Instant) -> Reading {
    let lines = |path: &str, names: &[&str]| -> String {
        let told = |line: &&str| line.split(' ').next().is_some_and(|name| names.contains(&name));
        // `intr` goes on with a number for each interrupt.
        let short = |line: &str| line.split(' ').take(9).collect::<Vec<_>>().join(" ") + "\n";
        text(path).lines().filter(told).map(short).collect()
    };
    let count = |name| text(format!("{LOCK_EVENTS}/{name}")).trim().parse::<u64>().unwrap_or(0);
    Reading {
        at_s: began.elapsed().as_secs_f64(),
        stat: lines("/proc/stat", &["cpu", "intr", "ctxt", "procs_running", "procs_blocked"]),
        vmstat: lines("/proc/vmstat", &["pgpgin", "pgpgout", "pgfault"]),
        slow_paths: SLOW_PATHS.into_iter().map(count).sum(),
    }
}

fn lock_events() -> Vec<(String, u64)> {
    let mut events = Vec::new();
    for entry in fs::read_dir(LOCK_EVENTS).into_iter().flatten().flatten() {
        // `.reset_counts` is not to be read.
        if let Ok(count) = text(entry.path()).trim().parse() {
            events.push((entry.file_name().to_string_lossy().into_owned(), count));
        }
    }
    events.sort();
    events
}
