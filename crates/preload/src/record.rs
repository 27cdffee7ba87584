//! The recording of `overspin exec --record`: how long each mutex is held, waited for and left alone.
//!
//! With a request, the operations of all locks are those of this file, which read the clock around every operation of the
//! lock inside. Without a request there is not an instruction more than without this file. What goes past the lock is not
//! recorded: acquisitions with a time limit that have to wait.
//!
//! The holder of the lock writes the record, with plain loads and stores of atomics. A mutex takes some 2 KiB, and 1 KiB for
//! each half of a power of two in which it has durations of a kind.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use overspin_histogram::{BUCKETS, bucket, lower_end};
use overspin_native::try_thread_id;

use crate::placed::{Kind, Operation};
use crate::shadow::Shadow;
use crate::stats::Place;
use crate::system::say;
use crate::{arena, ledger};

/// Buckets that get their memory together: half a power of two. Most locks use few of them.
const TOGETHER: usize = 64;
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

/// Whether there is a request.
pub(crate) fn is_on() -> bool {
    REQUEST.get().is_some()
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

/// Durations in nanoseconds. A part is null until there is a duration in it. (A `OnceLock` would stay half set in a child that
/// is forked meanwhile.)
struct Histogram([AtomicPtr<Buckets>; BUCKETS / TOGETHER]);

struct Buckets {
    counts: [AtomicU64; TOGETHER],
    /// The sum of the durations in each bucket.
    sums: [AtomicU64; TOGETHER],
}

fn add(to: &AtomicU64, by: u64) {
    // Not a read-modify-write: only the holder of the lock writes.
    to.store(to.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Histogram {
    const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS / TOGETHER])
    }

    /// Its buckets of this part.
    fn part(&self, part: usize) -> Option<&'static Buckets> {
        // Acquire: pairs with `record`, for the thread that writes the file.
        let part = self.0[part].load(Acquire);
        // SAFETY: it is null, or from `arena::keep` and lives for ever.
        unsafe { part.as_ref() }
    }

    /// Counts durations. Those of a part that has no memory yet are lost while a thread forks.
    fn record(&self, bucket: usize, count: u64, sum: u64) {
        let bucket = bucket.min(BUCKETS - 1);
        let (part, i) = (bucket / TOGETHER, bucket % TOGETHER);
        let buckets = self.part(part).or_else(|| {
            let zeros = || [const { AtomicU64::new(0) }; TOGETHER];
            let new = arena::keep(Buckets { counts: zeros(), sums: zeros() })?;
            // Only the holder of the lock comes here.
            self.0[part].store(ptr::from_ref(new).cast_mut(), Release);
            Some(new)
        });
        if let Some(buckets) = buckets {
            add(&buckets.counts[i], count);
            add(&buckets.sums[i], sum);
        }
    }

    fn record_one(&self, ns: u64) {
        self.record(bucket(ns), 1, ns);
    }

    /// The buckets that are not empty, with number and sum of their durations.
    fn buckets(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let parts = (0..self.0.len()).filter_map(|i| Some((i, self.part(i)?)));
        let all = parts.flat_map(|(i, part)| {
            let both = part.counts.iter().zip(&part.sums).enumerate();
            both.map(move |(j, (n, sum))| (i * TOGETHER + j, n.load(Relaxed), sum.load(Relaxed)))
        });
        all.filter(|(_, n, _)| *n > 0)
    }

    fn clear(&self) {
        let parts = (0..self.0.len()).filter_map(|i| self.part(i));
        parts
            .flat_map(|part| part.counts.iter().chain(&part.sums))
            .for_each(|n| n.store(0, Relaxed));
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
        self.wait.buckets().map(|(_, n, _)| n).sum()
    }

    /// For the thread that has just got the lock, for which it asked at `asked`.
    fn acquired(&self, asked: u64, contended: bool) {
        let got = if contended { now() } else { asked };
        let me = ptr::from_ref(self).addr();
        let left = LEFT.with(|left| left[place(me)].get());
        if left.0 == me {
            self.outside.record_one(asked.saturating_sub(left.1));
        }
        self.wait.record_one(got - asked);
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
        self.section.record_one(left.saturating_sub(self.got.load(Relaxed)));
        let me = ptr::from_ref(self).addr();
        LEFT.with(|all| all[place(me)].set((me, left)));
    }

    /// Forgets everything: another mutex begins, or another process.
    pub(crate) fn clear(&self) {
        self.contended.store(0, Relaxed);
        self.first.store(u64::MAX, Relaxed);
        self.last.store(0, Relaxed);
        self.threads.iter().for_each(|word| word.store(0, Relaxed));
        self.histograms().into_iter().for_each(Histogram::clear);
    }

    /// Adds what happened at another mutex, which has ended.
    fn join(&self, other: &Self) {
        for (mine, its) in self.histograms().into_iter().zip(other.histograms()) {
            its.buckets().for_each(|(bucket, n, sum)| mine.record(bucket, n, sum));
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
pub(crate) struct Ended(BTreeMap<usize, Box<Record>>);

impl Ended {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

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

    /// Forgets everything. The records stay: their buckets never become free.
    pub(crate) fn clear(&self) {
        for sum in self.0.values() {
            sum.clear();
            sum.mutexes.store(0, Relaxed);
        }
    }
}

/// The kind of the locks inside, if there is a request.
static INNER: OnceLock<&'static Kind> = OnceLock::new();

/// Returns the kind whose locks write the records beside their shadows: `kind` itself without a request. Called once.
pub(crate) fn recorded(kind: &'static Kind) -> &'static Kind {
    if !is_on() || INNER.set(kind).is_err() {
        return kind;
    }
    Box::leak(Box::new(kind.with(lock, try_lock, unlock)))
}

/// Acquires `shadow`'s lock by the operation `of` of the kind inside.
unsafe fn inner<R>(shadow: &Shadow, of: impl FnOnce(&Kind) -> Operation<R>) -> R {
    let Some(kind) = INNER.get() else { unreachable!("a recorded kind has one inside") };
    // SAFETY: as the caller promises.
    unsafe { of(kind)(shadow) }
}

fn record_of(shadow: &Shadow) -> Option<&'static Record> {
    shadow.account()?.record
}

unsafe fn lock(shadow: &Shadow) {
    let asked = now();
    // SAFETY: as the caller promises, here and below.
    let contended = !unsafe { inner(shadow, |kind| kind.try_lock) };
    if contended {
        // SAFETY: as above.
        unsafe { inner(shadow, |kind| kind.lock) };
    }
    if let Some(record) = record_of(shadow) {
        record.acquired(asked, contended);
    }
}

unsafe fn try_lock(shadow: &Shadow) -> bool {
    let asked = now();
    // SAFETY: as the caller promises.
    let got = unsafe { inner(shadow, |kind| kind.try_lock) };
    if got && let Some(record) = record_of(shadow) {
        record.acquired(asked, false);
    }
    got
}

unsafe fn unlock(shadow: &Shadow) {
    if let Some(record) = record_of(shadow) {
        record.released();
    }
    // SAFETY: as the caller promises.
    unsafe { inner(shadow, |kind| kind.unlock) };
}

/// Writes the file, at the end of the process.
extern "C" fn write() {
    let Some(request) = REQUEST.get() else { return };
    let text = ledger::with_records(|lock, records| json(request, lock, records));
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
            let text = |(bucket, n, sum)| format!("[{}, {n}, {sum}]", lower_end(bucket));
            let buckets: Vec<String> = histogram.buckets().map(text).collect();
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
