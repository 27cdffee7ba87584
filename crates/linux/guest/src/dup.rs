//! Threads of one process duplicate a file descriptor and close it: both take the spinlock of its table of files.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A count of one thread, on a line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicU64);

/// Returns the pairs of calls of all threads in each second. A waiting thread still counts what it has done.
pub(crate) fn run(threads: u32, seconds: u32) -> Result<Vec<u64>, String> {
    let file = File::open("/proc/cmdline").map_err(|e| e.to_string())?;
    let counts: Vec<Count> = (0..threads).map(|_| Count::default()).collect();
    let over = AtomicBool::new(false);
    let sum = || counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum::<u64>();
    let mut totals = vec![0];
    thread::scope(|scope| {
        for count in &counts {
            let (file, over) = (&file, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    drop(file.try_clone());
                    count.0.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let began = Instant::now();
        for second in 1..=seconds {
            let due = Duration::from_secs(u64::from(second));
            thread::sleep(due.saturating_sub(began.elapsed()));
            totals.push(sum());
        }
        over.store(true, Ordering::Relaxed);
    });
    Ok(totals.windows(2).map(|pair| pair[1] - pair[0]).collect())
}
