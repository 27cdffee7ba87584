//! A guest: does its work on each vCPU when the host says so, and reports.

use crate::clock;
use crate::env::{Over, Task};
use crate::kernel_work::KernelWork;
use crate::runstate::{Times, Xen};
use overspin_workload::{Load, WorkerArgs};
use overspin_xl::{Line, Sample, Start, WORK};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use std::io::{BufRead, Write};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Operations in a second of CPU time, in millions, in which the command line is told: the worker counts operations,
/// so that any number serves.
const RATE: u32 = 1000;
/// After the end of a run the threads have this long to finish, in nanoseconds.
const GRACE: u64 = 100_000_000;

/// The reports of all threads.
pub(crate) type Samples = Arc<Mutex<Vec<Sample>>>;
/// Operations of the thread of each vCPU so far.
type Counts = Arc<[AtomicU64]>;
type Part = Box<dyn FnOnce(&Task) + Send>;

pub(crate) fn main(command_line: &str) -> Result<(), String> {
    let value = |key: &str| {
        let word = command_line.split_whitespace().find_map(|w| w.strip_prefix(key));
        word.and_then(|w| w.strip_prefix('='))
    };
    let work: Vec<String> = value(WORK).unwrap_or_default().split(',').map(str::to_owned).collect();
    let seed = value("overspin.seed").and_then(|s| s.parse().ok()).unwrap_or(1);
    let vcpus = thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let xen = Arc::new(Xen::open()?);
    // Sleeps end in time, not within the 50 us by which the kernel joins wake-ups.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    say(&Line::Ready { now: clock::now() });
    let start = heard()?;
    let over = Over { start: start.at, end: start.at + start.seconds * 1_000_000_000 };
    let samples = Samples::default();
    let counts: Counts = (0..vcpus).map(|_| AtomicU64::new(0)).collect();
    for (vcpu, part) in (0_u32..).zip(parts(&work, vcpus, &counts)?) {
        let task = Task::new(vcpu, RATE, seed, over, xen.clone(), samples.clone());
        thread::spawn(move || {
            // The threads of a guest keep to their vCPUs, as the tasks of a simulated guest do.
            let mut cpu = CpuSet::new();
            cpu.set(vcpu as usize);
            let _ = sched_setaffinity(None, &cpu);
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            part(&task);
        });
    }
    clock::sleep_until(over.end + GRACE);
    let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if KernelWork::of(&work).is_some() {
        // A thread that waits for a lock since before the end has not reported since then.
        let at = clock::now() - over.start;
        for (vcpu, count) in (0..).zip(&*counts) {
            if !samples.iter().any(|s| s.vcpu == vcpu && s.at >= over.end - over.start) {
                let operations = count.load(Ordering::Relaxed);
                samples.push(counted(vcpu, at, operations, xen.times(vcpu).unwrap_or_default()));
            }
        }
    }
    for sample in &samples {
        say(&Line::Sample(*sample));
    }
    say(&Line::End { samples: samples.len() as u64 });
    loop {
        thread::park();
    }
}

/// A report of a thread that counts operations itself.
pub(crate) fn counted(vcpu: u32, at: u64, operations: u64, times: Times) -> Sample {
    let Times { running, ready, blocked } = times;
    Sample { vcpu, at, operations, cpu_time: running, ready, blocked, ..Sample::default() }
}

/// What the thread of each vCPU does.
fn parts(work: &[String], vcpus: u32, counts: &Counts) -> Result<Vec<Part>, String> {
    if let Some(kernel) = KernelWork::of(work) {
        let part = |vcpu| -> Part {
            let counts = counts.clone();
            Box::new(move |task: &Task| kernel.run(task, &counts[vcpu as usize]))
        };
        return Ok((0..vcpus).map(part).collect());
    }
    let worker = WorkerArgs::parse(work).map_err(|e| e.to_string())?;
    let part = |start: overspin_workload::Start| -> Part {
        Box::new(move |task: &Task| (start.program)(task))
    };
    Ok(worker.workload(RATE).start(vcpus).into_iter().map(part).collect())
}

/// Waits for the host's line.
fn heard() -> Result<Start, String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("the console cannot be read: {e}"))?;
        if let Some(start) = Start::of_text(&line) {
            return Ok(start);
        }
    }
    Err("the console is closed".into())
}

fn say(line: &Line) {
    let mut out = std::io::stdout().lock();
    // Without a console nobody would read about the failure.
    let _ = writeln!(out, "{}", line.to_text()).and_then(|()| out.flush());
}
