//! pft: page faults a second of processes or threads that touch fresh memory, as the tests of 2005 measured them beside
//! packets at several rates. Christoph Lameter's benchmark, from its description: 128 MB in all, five times over.
//!
//! Processes share no memory, so they meet only in the kernel's allocator. Threads share their address space, so that
//! they also meet at its locks. Both kinds take the same code, which after `fork` may call nothing but the kernel:
//!
//! ```text
//!   parent                                child, N times
//!   shared page: gate, results            never sees Ctrl-C; ends with its parent
//!   waits until all have arrived          arrives at the gate, yields until it opens
//!   clock; opens the gate                 maps, touches each page, unmaps; five times over
//!   waits for all of them                 writes its usage and its end into the shared page, and ends
//! ```

use crate::benchmark::{Benchmark, Outcome};
use crate::count::{Doubts, beside, own_usage, place, with_traffic};
use crate::packets;
use crate::{Cancel, Failed};
use overspin_scenario::Metric;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Faults by the clock.
pub static FAULTS: Metric =
    Metric::new("faults", "1/s", "page faults a second of all workers (`fault/wsec`)");
/// Faults by CPU time.
pub static PER_CPU: Metric = Metric::new(
    "faults-per-cpu",
    "1/s",
    "page faults in a second of CPU time of a worker (`flt/cpu/s`)",
);
/// Elapsed time.
pub static ELAPSED: Metric =
    Metric::new("elapsed", "s", "from the moment all may begin to the end of the last worker");
/// User time.
pub static USER: Metric = Metric::new("user", "s", "user time of all workers");
/// System time.
pub static SYSTEM: Metric = Metric::new("system", "s", "system time of all workers");
/// All of its own; those of packets follow.
pub static METRICS: [&Metric; 8] = [
    &FAULTS,
    &PER_CPU,
    &ELAPSED,
    &USER,
    &SYSTEM,
    &crate::count::SWITCHES,
    &crate::count::PACKETS,
    &crate::count::ANSWERS,
];

/// The most workers of a run: their results fit into the shared page.
pub const MOST: u32 = 64;
/// Pages between two looks at whether to stop.
const PIECE: usize = 1024;
/// How often the parent looks.
const LOOK: Duration = Duration::from_millis(5);

/// What the workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// Processes: no memory in common.
    Processes,
    /// Threads: one address space.
    Threads,
}

/// The benchmark.
#[derive(Clone, Debug)]
pub struct Pft {
    /// Memory of all workers together, in bytes.
    pub bytes: usize,
    /// How often each worker touches all of its memory.
    pub repeats: u32,
    /// The workers to compare.
    pub workers: Vec<(Workers, u32)>,
    /// Packets a second to compare; 0 is none.
    pub rates: Vec<u32>,
    doubts: Doubts,
}

impl Pft {
    /// The benchmark with these workers: 128 MB, five times over, no packets.
    #[must_use]
    pub fn new(workers: Vec<(Workers, u32)>) -> Self {
        Self { bytes: 128 << 20, repeats: 5, workers, rates: vec![0], doubts: Doubts::default() }
    }

    fn place(&self, place: usize) -> ((Workers, u32), u32) {
        (self.workers[place / self.rates.len()], self.rates[place % self.rates.len()])
    }
}

/// What the workers and their parent share. All zeros is its beginning.
#[derive(Debug)]
#[repr(C)]
struct Shared {
    arrived: AtomicU32,
    open: AtomicBool,
    stop: AtomicBool,
    failed: AtomicBool,
    results: [Report; MOST as usize],
}

/// What a worker reports: times in nanoseconds, the end by the clock that all processes share.
#[derive(Debug, Default)]
#[repr(C)]
struct Report {
    user: AtomicU64,
    system: AtomicU64,
    switches: AtomicU64,
    end: AtomicU64,
}

/// Memory that processes share; unmapped at the end.
struct SharedPage(*mut Shared);

impl SharedPage {
    fn new() -> Result<Self, Failed> {
        let (read_write, shared) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping without a file.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), read_write, shared, -1, 0)
        };
        if at == libc::MAP_FAILED {
            let cause = format!("cannot map memory: {}", std::io::Error::last_os_error());
            return Err(Failed::needs(cause, "free some memory"));
        }
        Ok(Self(at.cast()))
    }

    fn get(&self) -> &Shared {
        // SAFETY: the mapping is large enough and aligned to a page; all zeros is a valid value; it holds only atomics,
        // and lives as long as `self`.
        unsafe { &*self.0 }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody refers to it any more.
        unsafe { libc::munmap(self.0.cast(), size_of::<Shared>()) };
    }
}

/// Nanoseconds of the clock that never jumps. Async-signal-safe.
fn now() -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a variable that the kernel fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut at) };
    at.tv_sec.cast_unsigned() * 1_000_000_000 + at.tv_nsec.cast_unsigned()
}

/// Bytes of a page.
fn page() -> usize {
    // SAFETY: it only asks.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// What a worker does. It allocates nothing and takes no lock: it may run in a process that `fork` has made.
fn work(shared: &Shared, number: usize, bytes: usize, page: usize, repeats: u32) {
    let (user, system, switches) = own_usage();
    shared.arrived.fetch_add(1, Ordering::Release);
    while !shared.open.load(Ordering::Acquire) && !shared.stop.load(Ordering::Relaxed) {
        // SAFETY: it concerns nobody's memory.
        unsafe { libc::sched_yield() };
    }
    for _ in 0..repeats {
        if shared.stop.load(Ordering::Relaxed) {
            break;
        }
        if !touch(shared, bytes, page) {
            shared.failed.store(true, Ordering::Relaxed);
            break;
        }
    }
    let end = now();
    let (user_then, system_then, switches_then) = own_usage();
    let result = &shared.results[number];
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    result.user.store(ns(user_then - user), Ordering::Relaxed);
    result.system.store(ns(system_then - system), Ordering::Relaxed);
    result.switches.store(switches_then - switches, Ordering::Relaxed);
    result.end.store(end, Ordering::Release);
}

/// Maps memory, touches each page, and unmaps it. False if there is no memory.
fn touch(shared: &Shared, bytes: usize, page: usize) -> bool {
    let (read_write, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping without a file.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
    if at == libc::MAP_FAILED {
        return false;
    }
    // One fault a page: without this, the kernel may give 512 pages at a time.
    // SAFETY: the mapping that was just made.
    unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
    for (i, offset) in (0..bytes).step_by(page).enumerate() {
        if i % PIECE == 0 && shared.stop.load(Ordering::Relaxed) {
            break;
        }
        // SAFETY: inside the mapping.
        unsafe { at.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the same mapping.
    unsafe { libc::munmap(at, bytes) };
    true
}

/// Starts a process that works and ends; its number. Ctrl-C is not for it: the parent's handler would run in it, too.
fn fork(shared: &Shared, number: usize, bytes: usize, page: usize, repeats: u32) -> Option<i32> {
    // SAFETY: sets of signals, which the calls fill.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: as above. The child calls only functions of the kernel, and never returns.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            work(shared, number, bytes, page, repeats);
            libc::_exit(0);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        (child > 0).then_some(child)
    }
}

/// Opens the gate as soon as all have arrived; the moment.
fn open(shared: &Shared, workers: u32, cancel: Cancel) -> u64 {
    while shared.arrived.load(Ordering::Acquire) < workers && !shared.failed.load(Ordering::Relaxed)
    {
        std::thread::sleep(Duration::from_micros(100));
        if cancel() {
            shared.stop.store(true, Ordering::Relaxed);
            break;
        }
    }
    let at = now();
    shared.open.store(true, Ordering::Release);
    at
}

/// Waits for processes; asks them to stop if the user wishes it.
fn wait(children: &[i32], shared: &Shared, cancel: Cancel) {
    for &child in children {
        loop {
            let mut status = 0;
            // SAFETY: a variable that the kernel fills. The child is ours.
            let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            if ended != 0 {
                let well =
                    ended == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
                if !well {
                    shared.failed.store(true, Ordering::Relaxed);
                }
                break;
            }
            std::thread::sleep(LOOK);
            if cancel() {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Runs all workers; the moment when the gate opened.
fn run_all(
    pft: &Pft,
    (kind, workers): (Workers, u32),
    page_of_all: &SharedPage,
    cancel: Cancel,
) -> u64 {
    let (shared, page) = (page_of_all.get(), page());
    let bytes = (pft.bytes / workers as usize).next_multiple_of(page);
    let numbers = 0..workers as usize;
    match kind {
        Workers::Processes => {
            let children: Vec<i32> =
                numbers.filter_map(|i| fork(shared, i, bytes, page, pft.repeats)).collect();
            if children.len() < workers as usize {
                shared.failed.store(true, Ordering::Relaxed);
                shared.stop.store(true, Ordering::Relaxed);
            }
            let opened = open(shared, workers, cancel);
            wait(&children, shared, cancel);
            opened
        }
        Workers::Threads => std::thread::scope(|scope| {
            let threads: Vec<_> = numbers
                .map(|i| scope.spawn(move || work(shared, i, bytes, page, pft.repeats)))
                .collect();
            let opened = open(shared, workers, cancel);
            while threads.iter().any(|t| !t.is_finished()) {
                std::thread::sleep(LOOK);
                if cancel() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
            opened
        }),
    }
}

impl Benchmark for Pft {
    fn name(&self) -> &'static str {
        "pft"
    }

    fn description(&self) -> String {
        let mib = self.bytes as f64 / f64::from(1 << 20);
        format!("{mib} MiB in all, touched {} times over.", self.repeats)
    }

    fn places(&self) -> Vec<String> {
        let of = |(kind, n): &(Workers, u32)| {
            let workers = match kind {
                Workers::Processes => format!("processes-{n}"),
                Workers::Threads => format!("threads-{n}"),
            };
            let rates = self.rates.iter();
            rates.map(move |rate| format!("{workers}.{}", place(*rate))).collect::<Vec<_>>()
        };
        self.workers.iter().flat_map(of).collect()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        let few = self.workers.iter().any(|(_, n)| *n == 0 || *n > MOST);
        if few {
            let cause = "the number of workers is not from 1 to 64";
            return Err(Failed::usage(cause, "choose other numbers of workers"));
        }
        Ok(())
    }

    fn run(&mut self, place: usize, _: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let (workers, rate) = self.place(place);
        let shared = SharedPage::new()?;
        let cpu = packets::meeting_cpu();
        let began = Instant::now();
        let (opened, traffic) = beside(rate, cpu, || run_all(self, workers, &shared, cancel))?;
        let results = &shared.get().results[..workers.1 as usize];
        if cancel() {
            return Err(Failed::Stopped);
        }
        let ended = results.iter().map(|r| r.end.load(Ordering::Acquire)).max().unwrap_or(0);
        if shared.get().failed.load(Ordering::Relaxed) || ended <= opened {
            let cause = format!(
                "a worker got no memory, or was killed, after {:.1} s",
                began.elapsed().as_secs_f64()
            );
            return Err(Failed::needs(cause, "use less with --memory, or free some"));
        }
        let sum = |of: fn(&Report) -> &AtomicU64| {
            results.iter().map(|r| of(r).load(Ordering::Relaxed)).sum::<u64>() as f64
        };
        let (user, system) = (sum(|r| &r.user) / 1e9, sum(|r| &r.system) / 1e9);
        let elapsed = (ended - opened) as f64 / 1e9;
        let pages = (self.bytes / workers.1 as usize).div_ceil(page()) * workers.1 as usize;
        let faults = pages as f64 * f64::from(self.repeats);
        let outcome = Outcome::default()
            .with(&FAULTS, faults / elapsed)
            .with(&PER_CPU, faults / (user + system).max(1e-9))
            .with(&ELAPSED, elapsed)
            .with(&USER, user)
            .with(&SYSTEM, system)
            .with(&crate::count::SWITCHES, sum(|r| &r.switches));
        self.doubts.note(rate, &traffic);
        Ok(with_traffic(outcome, &traffic))
    }

    fn doubts(&self) -> Vec<String> {
        self.doubts.in_words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Plan, measure_all};

    /// Page faults of this process and of children that have ended.
    fn faults() -> u64 {
        [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
            .map(|who| {
                // SAFETY: all zeros is a valid value, which the kernel then fills.
                let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
                // SAFETY: as above.
                unsafe { libc::getrusage(who, &raw mut usage) };
                usage.ru_minflt.cast_unsigned()
            })
            .iter()
            .sum()
    }

    #[test]
    fn each_page_is_a_fault_and_the_figures_agree() {
        let workers = vec![(Workers::Processes, 2), (Workers::Threads, 2)];
        let mut pft = Pft { bytes: 16 << 20, ..Pft::new(workers) };
        let plan = Plan { runs: 1, time: None, seed: 1 };
        let before = faults();
        let measured = measure_all(&mut pft, &plan, &|| false).unwrap();
        assert!(measured.failed.is_none(), "{:?}", measured.failed);
        // 4096 pages, five times, two places, each with a warm-up; other threads of the tests add some.
        assert!(faults() - before >= 4096 * 5 * 4, "{}", faults() - before);
        assert_eq!(measured.places, ["processes-2.packets-0", "threads-2.packets-0"]);
        for run in &measured.runs {
            let value = |i: usize| run.outcome.figures[i].value;
            let (rate, elapsed, cpu) = (value(0), value(2), value(3) + value(4));
            assert!((rate * elapsed - 20_480.0).abs() < 1.0, "{rate} {elapsed}");
            // Two workers cannot use more than two CPUs; the clock of usage has steps.
            assert!(cpu <= 2.0 * elapsed + 0.05, "{cpu} {elapsed}");
        }
    }

    #[test]
    fn the_user_stops_it() {
        let mut pft = Pft { repeats: 1_000_000, ..Pft::new(vec![(Workers::Processes, 2)]) };
        let began = Instant::now();
        let cancel = || began.elapsed() > Duration::from_millis(200);
        let plan = Plan { runs: 1, time: None, seed: 1 };
        let measured = measure_all(&mut pft, &plan, &cancel).unwrap();
        assert!(matches!(measured.failed, Some(Failed::Stopped)));
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for n in [0, MOST + 1] {
            let mut pft = Pft::new(vec![(Workers::Threads, n)]);
            assert!(matches!(pft.prepare(&|| false), Err(Failed::Usage { .. })));
        }
    }
}
