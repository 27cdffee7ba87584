//! The recording of `overspin exec --record`: how long each mutex is held, waited for and left alone.
//!
//! A mutex that is recorded has its lock inside a [`Recorded`], which reads the clock around every operation. Without a
//! request there is no such thing, and no instruction more than without this file. What goes past the lock is not
//! recorded: acquisitions with a time limit that have to wait.
//!
//! The holder of the lock writes the record, with plain loads and stores of atomics.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use overspin_native::{NamedLock, try_thread_id};

use crate::shadow;
use crate::stats::Place;
use crate::system::say;

/// Buckets of a histogram: 8 of 1 ns, then 4 for each doubling, up to 18 minutes.
const BUCKETS: usize = 8 + 37 * 4;
/// Numbers of threads are below 64 times this.
const WORDS: usize = 16;
/// Mutexes of which a thread remembers when it released them. A program that takes more in turn loses some times
/// outside.
const REMEMBERED: usize = 16;

/// The request, and when it began.
struct Request {
    file: OsString,
    began: u64,
}

static REQUEST: OnceLock<Request> = OnceLock::new();

thread_local! {
    /// Records whose locks this thread has released, by address, and when.
    static LEFT: [Cell<(usize, u64)>; REMEMBERED] = const { [const { Cell::new((0, 0)) }; REMEMBERED] };
}

/// Reads `PROCESS:FILE` from the environment. Other processes than that one, which it has started, write
/// `FILE.PROCESS`.
pub(crate) fn start() {
    let Some(text) = env::var_os("OVERSPIN_RECORD") else { return };
    let bytes = text.as_bytes();
    let Some(colon) = bytes.iter().position(|byte| *byte == b':') else { return };
    let mut file = OsString::from_vec(bytes[colon + 1..].to_vec());
    let me = process::id().to_string();
    if bytes[..colon] != *me.as_bytes() {
        file.push(".");
        file.push(me);
    }
    if REQUEST.set(Request { file, began: now() }).is_ok() {
        // SAFETY: the function lives as long as the process: the library is never unloaded. If it fails, there is no
        // recording, which the reader of the file notices.
        unsafe { libc::atexit(write) };
    }
}

/// Nanoseconds of a clock that only goes forward.
fn now() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock exists, and the call writes `time`.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Durations in nanoseconds.
struct Histogram {
    counts: [AtomicU64; BUCKETS],
    /// The sum of the durations in each bucket.
    sums: [AtomicU64; BUCKETS],
}

fn add(to: &AtomicU64, by: u64) {
    // Not a read-modify-write: only the holder of the lock writes.
    to.store(to.load(Relaxed).wrapping_add(by), Relaxed);
}

fn bucket(ns: u64) -> usize {
    match ns.checked_ilog2() {
        Some(octave @ 3..) => {
            let quarter = (ns >> (octave - 2)) & 3;
            (8 + (octave as usize - 3) * 4 + quarter as usize).min(BUCKETS - 1)
        }
        _ => ns as usize,
    }
}

/// The least duration in a bucket.
fn least(bucket: usize) -> u64 {
    match bucket.checked_sub(8) {
        None => bucket as u64,
        Some(above) => (4 + above as u64 % 4) << (above / 4 + 1),
    }
}

impl Histogram {
    const fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; BUCKETS],
            sums: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    fn record(&self, ns: u64) {
        add(&self.counts[bucket(ns)], 1);
        add(&self.sums[bucket(ns)], ns);
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.counts.iter().chain(&self.sums)
    }
}

/// What happened at a mutex, or at several that were first locked at the same place.
pub(crate) struct Record {
    mutexes: AtomicU64,
    contended: AtomicU64,
    /// The first and the last acquisition; the first is `u64::MAX` before there is one.
    first: AtomicU64,
    last: AtomicU64,
    /// When the present holder got the lock.
    got: AtomicU64,
    threads: [AtomicU64; WORDS],
    section: Histogram,
    wait: Histogram,
    outside: Histogram,
}

impl Record {
    /// A record that lives for ever, if there is a request.
    pub(crate) fn new() -> Option<&'static Self> {
        REQUEST.get()?;
        Some(Box::leak(Box::new(Self::empty())))
    }

    const fn empty() -> Self {
        Self {
            mutexes: AtomicU64::new(1),
            contended: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            got: AtomicU64::new(0),
            threads: [const { AtomicU64::new(0) }; WORDS],
            section: Histogram::new(),
            wait: Histogram::new(),
            outside: Histogram::new(),
        }
    }

    fn histograms(&self) -> [&Histogram; 3] {
        [&self.section, &self.wait, &self.outside]
    }

    fn acquisitions(&self) -> u64 {
        self.wait.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// For the thread that has just got the lock, for which it asked at `asked`.
    fn acquired(&self, asked: u64, contended: bool) {
        let got = if contended { now() } else { asked };
        let me = std::ptr::from_ref(self).addr();
        let left = LEFT.with(|left| left[place(me)].get());
        if left.0 == me {
            self.outside.record(asked.saturating_sub(left.1));
        }
        self.wait.record(got - asked);
        add(&self.contended, contended.into());
        self.first.store(self.first.load(Relaxed).min(got), Relaxed);
        self.last.store(got, Relaxed);
        if let Some(id) = try_thread_id()
            && let Some(word) = self.threads.get(id / 64)
        {
            word.store(word.load(Relaxed) | 1 << (id % 64), Relaxed);
        }
        self.got.store(got, Relaxed);
    }

    /// For the holder, which is about to release the lock.
    fn released(&self) {
        let left = now();
        self.section.record(left.saturating_sub(self.got.load(Relaxed)));
        let me = std::ptr::from_ref(self).addr();
        LEFT.with(|all| all[place(me)].set((me, left)));
    }

    /// Forgets everything: another mutex begins, or another process.
    pub(crate) fn clear(&self) {
        self.contended.store(0, Relaxed);
        self.first.store(u64::MAX, Relaxed);
        self.last.store(0, Relaxed);
        let counts = self.histograms().into_iter().flat_map(Histogram::all);
        counts.chain(&self.threads).for_each(|count| count.store(0, Relaxed));
    }

    /// Adds what happened at another mutex, which has ended.
    fn join(&self, other: &Self) {
        for (mine, its) in self.histograms().into_iter().zip(other.histograms()) {
            mine.all().zip(its.all()).for_each(|(mine, its)| add(mine, its.load(Relaxed)));
        }
        add(&self.mutexes, other.mutexes.load(Relaxed));
        add(&self.contended, other.contended.load(Relaxed));
        self.first.store(self.first.load(Relaxed).min(other.first.load(Relaxed)), Relaxed);
        self.last.store(self.last.load(Relaxed).max(other.last.load(Relaxed)), Relaxed);
        for (mine, its) in self.threads.iter().zip(&other.threads) {
            mine.store(mine.load(Relaxed) | its.load(Relaxed), Relaxed);
        }
    }
}

/// The place of a record among those that a thread remembers.
fn place(address: usize) -> usize {
    (address / size_of::<Record>()) % REMEMBERED
}

/// What happened at mutexes that have ended, by the place where they were first locked.
#[derive(Default)]
pub(crate) struct Ended(BTreeMap<usize, Box<Record>>);

impl Ended {
    /// Moves what happened at a mutex that has ended.
    pub(crate) fn take(&mut self, caller: usize, record: &Record) {
        if record.acquisitions() > 0 {
            let sum = self.0.entry(caller).or_insert_with(|| {
                let record = Record::empty();
                record.mutexes.store(0, Relaxed);
                Box::new(record)
            });
            sum.join(record);
        }
        record.clear();
    }

    /// All of them, with their callers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.0.iter().map(|(caller, record)| (*caller, &**record))
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A lock that is recorded.
pub(crate) struct Recorded {
    pub(crate) lock: Box<dyn NamedLock>,
    pub(crate) record: &'static Record,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("lock", &self.lock).finish_non_exhaustive()
    }
}

impl NamedLock for Recorded {
    fn admits(&self) -> bool {
        self.lock.admits()
    }

    fn lock(&self) {
        let asked = now();
        let contended = !self.lock.try_lock();
        if contended {
            self.lock.lock();
        }
        self.record.acquired(asked, contended);
    }

    fn try_lock(&self) -> bool {
        let asked = now();
        let got = self.lock.try_lock();
        if got {
            self.record.acquired(asked, false);
        }
        got
    }

    unsafe fn unlock(&self) {
        self.record.released();
        // SAFETY: as the caller promises.
        unsafe { self.lock.unlock() };
    }
}

/// Writes the file, at the end of the process.
extern "C" fn write() {
    let Some(request) = REQUEST.get() else { return };
    let text = shadow::with_records(|lock, records| json(request, lock, records));
    let Some(text) = text else { return };
    if let Err(error) = fs::write(&request.file, text) {
        say(format_args!("cannot write the recording {}: {error}", request.file.display()));
    }
}

/// The recording: `overspin-recording/1`, which docs/fit.md describes.
fn json(request: &Request, lock: &str, records: &[(usize, usize, &Record)]) -> String {
    let end = now();
    // The least of many readings, each with the reading after it.
    let clock = (0..100).map(|_| now().abs_diff(now())).min().unwrap_or_default();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes `usage`, and zeros are legal without it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let program = env::args_os().next().unwrap_or_default();
    // Writing to a String cannot fail, here and below.
    let mut out = format!(
        "{{\n  \"schema\": \"overspin-recording/1\",\n  \"version\": \"{}\",\n  \"lock\": \"{lock}\",\n  \"program\": {},\n  \
         \"cpus\": {cpus},\n  \"elapsed_ns\": {},\n  \"cpu_ns\": {},\n  \"clock_ns\": {clock},\n  \"mutexes\": [",
        env!("CARGO_PKG_VERSION"),
        Quoted(&program.to_string_lossy()),
        end - request.began,
        ns(usage.ru_utime) + ns(usage.ru_stime),
    );
    let mut used: Vec<_> = records.iter().filter(|(.., r)| r.acquisitions() > 0).collect();
    used.sort_by_key(|(address, caller, r)| (u64::MAX - r.acquisitions(), *address, *caller));
    for (i, (address, caller, record)) in used.into_iter().enumerate() {
        let threads: u32 = record.threads.iter().map(|w| w.load(Relaxed).count_ones()).sum();
        let [mutexes, contended, first, last] =
            [&record.mutexes, &record.contended, &record.first, &record.last]
                .map(|n| n.load(Relaxed));
        let _ = write!(
            out,
            "{}\n    {{\n      \"address\": \"{address:#x}\",\n      \"mutexes\": {mutexes},\n      \"first_locked_at\": {},\n      \
             \"threads\": {threads},\n      \"acquisitions\": {},\n      \"contended\": {contended},\n      \"from_ns\": {},\n      \
             \"to_ns\": {}",
            if i == 0 { "" } else { "," },
            Quoted(&Place(*caller).to_string()),
            record.acquisitions(),
            first.saturating_sub(request.began),
            last.saturating_sub(request.began),
        );
        for (name, histogram) in
            [("section", &record.section), ("wait", &record.wait), ("outside", &record.outside)]
        {
            let load = |(bucket, (n, sum)): (usize, (&AtomicU64, &AtomicU64))| {
                let n = n.load(Relaxed);
                (n > 0).then(|| format!("[{}, {n}, {}]", least(bucket), sum.load(Relaxed)))
            };
            let both = histogram.counts.iter().zip(&histogram.sums).enumerate();
            let buckets: Vec<String> = both.filter_map(load).collect();
            let _ = write!(out, ",\n      \"{name}\": [{}]", buckets.join(", "));
        }
        out.push_str("\n    }");
    }
    out.push_str("\n  ]\n}\n");
    out
}

/// A text in JSON.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
