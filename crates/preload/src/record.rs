//! The recording of `overspin exec --record`: how long each mutex is held, waited for and left alone.
//!
//! With a request, the operations of all locks are those of this file, which read the clock around every operation of the
//! lock inside. Without a request there is not an instruction more than without this file. What goes past the lock is not
//! recorded: acquisitions with a time limit that have to wait.
//!
//! The holder of the lock writes the record, with plain loads and stores of atomics. A mutex takes some 5 KiB, and 1 KiB for
//! each half of a power of two in which it has durations of a kind.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::{env, process, ptr};

use overspin_histogram::{BUCKETS, bucket, lower_end};
use overspin_native::try_thread_id;

use crate::place::{Place, build_ids};
use crate::placed::{Kind, Operation};
use crate::shadow::Shadow;
use crate::system::say;
use crate::{arena, ledger, tally};

/// Buckets that get their memory together: half a power of two. Most locks use few of them.
const TOGETHER: usize = 64;
/// Numbers of threads are below 64 times this.
const WORDS: usize = 16;
/// Mutexes of which a thread remembers when it released them. A program that takes more in turn loses some times
/// outside.
const REMEMBERED: usize = 64;

/// The request, and when it began.
struct Request {
    /// Of the process `first`; others have names of their own.
    file: PathBuf,
    first: u32,
    began: u64,
    /// CPU time of the process before: that of the command, or of a program that has become this one.
    before_ns: u64,
}

static REQUEST: OnceLock<Request> = OnceLock::new();

/// A thread looks at its own CPU time for its first acquisitions, and then for every so many: that takes two system calls, and
/// a quarter of a microsecond.
const FIRST_LOOKS: u32 = 64;
const LOOK_EVERY: u32 = 32;

thread_local! {
    /// Records whose locks this thread has released, by address, and when.
    static LEFT: [Cell<(usize, u64, Option<Own>)>; REMEMBERED] =
        const { [const { Cell::new((0, 0, None)) }; REMEMBERED] };
    /// Acquisitions of this thread.
    static ACQUIRED: Cell<u32> = const { Cell::new(0) };
}

/// What a thread has used.
#[derive(Clone, Copy)]
struct Own {
    cpu_ns: u64,
    /// How often it went to sleep.
    sleeps: u64,
}

impl Own {
    fn now() -> Self {
        let mut time = MaybeUninit::<libc::timespec>::zeroed();
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the clock exists, and the calls write what they get; zeros are legal without them.
        let (time, usage) = unsafe {
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            (time.assume_init(), usage.assume_init())
        };
        let cpu_ns = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
        Self { cpu_ns, sleeps: usage.ru_nvcsw.cast_unsigned() }
    }

    /// Whether this thread looks now.
    fn is_due() -> bool {
        let n = ACQUIRED.get();
        ACQUIRED.set(n.wrapping_add(1));
        n < FIRST_LOOKS || n.is_multiple_of(LOOK_EVERY)
    }
}

/// Durations of which the thread's own account is known, by powers of two: how many, their sum, the CPU time in them; in how
/// many the thread slept, and how long those were, less the CPU time in them.
struct Looks([[AtomicU64; 5]; POWERS]);

/// The last power has all longer durations: a quarter of an hour, and more.
const POWERS: usize = 40;

impl Looks {
    const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; 5] }; POWERS])
    }

    fn record(&self, ns: u64, from: Own, to: Own) {
        let all = &self.0[(ns.checked_ilog2().unwrap_or(0) as usize).min(POWERS - 1)];
        let cpu = to.cpu_ns.saturating_sub(from.cpu_ns).min(ns);
        let slept = u64::from(to.sleeps > from.sleeps);
        for (sum, by) in all.iter().zip([1, ns, cpu, slept, slept * (ns - cpu)]) {
            add(sum, by);
        }
    }

    fn all(&self) -> impl Iterator<Item = (u64, [u64; 5])> {
        let sums = self.0.iter().map(|sums| sums.each_ref().map(|sum| sum.load(Relaxed)));
        sums.enumerate().filter(|(_, sums)| sums[0] > 0).map(|(i, sums)| (1 << i, sums))
    }

    fn clear(&self) {
        self.0.iter().flatten().for_each(|sum| sum.store(0, Relaxed));
    }

    fn join(&self, other: &Self) {
        for (mine, its) in self.0.iter().flatten().zip(other.0.iter().flatten()) {
            add(mine, its.load(Relaxed));
        }
    }
}

/// The program as it was called, and its file. Later the program may have overwritten the one, and left the other's world.
static PROGRAM: OnceLock<(String, PathBuf)> = OnceLock::new();

/// The file of this process's program.
pub(crate) fn program_file() -> &'static Path {
    PROGRAM.get().map_or(Path::new(""), |(_, file)| file)
}

/// The name by which this process's program was called.
pub(crate) fn program_name() -> &'static str {
    PROGRAM.get().map_or("", |(name, _)| name)
}

/// Reads `PROCESS:FILE` from the environment. Other processes than that one, which it has started, write
/// `FILE.PROCESS`.
pub(crate) fn start() {
    // The standard library may not know its arguments yet: another library's constructor may have locked a mutex.
    let words = fs::read("/proc/self/cmdline").unwrap_or_default();
    let name = words.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let file = fs::read_link("/proc/self/exe").unwrap_or_default();
    // It is not set yet, because this is called once.
    let _ = PROGRAM.set((name, file));
    let Some(text) = env::var_os("OVERSPIN_RECORD") else { return };
    let bytes = text.as_bytes();
    let Some(colon) = bytes.iter().position(|byte| *byte == b':') else { return };
    let first = str::from_utf8(&bytes[..colon]).ok().and_then(|number| number.parse().ok());
    let Some(first) = first else { return };
    let file = OsString::from_vec(bytes[colon + 1..].to_vec()).into();
    let request = Request { file, first, began: now(), before_ns: process_cpu() };
    if REQUEST.set(request).is_ok() && first == process::id() {
        say_begun(first);
    }
}

/// Notes in an empty file that the recording has begun. Then the file says what happened if it stays without a recording.
fn say_begun(process: u32) {
    let Some(mut file) = tally::tally().and_then(tally::Tally::recording) else { return };
    // The first line is the command's, which has another state.
    const START: &[u8] = b"{ \"schema\": \"overspin-recording-begun/1\"";
    let mut start = [0; START.len()];
    // The command has just written it. No more is read: a device may have no end.
    let is_ours = file.read_exact_at(&mut start, 0).is_ok() && start == *START;
    if is_ours {
        let program = program_file().display().to_string();
        let line = format!(
            "{{ \"schema\": \"overspin-recording-begun/1\", \"state\": \"runs\", \"process\": {process}, \
             \"program\": {} }}\n",
            Quoted(&program)
        );
        // If it fails, the file says less.
        let _ = overwrite(&mut file, &line);
    }
    keep_open(file);
}

/// Leaves the file open, for the end.
fn keep_open(file: File) {
    let _ = std::os::fd::IntoRawFd::into_raw_fd(file);
}

/// Whether there is a request.
pub(crate) fn is_on() -> bool {
    REQUEST.get().is_some()
}

/// Nanoseconds of a clock that only goes forward.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of a clock that every kernel has.
pub(crate) fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the clock exists, and the call writes `time`.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
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
    /// What the present holder had used then, if it looked: CPU time plus one, and sleeps.
    had: [AtomicU64; 2],
    threads: [AtomicU64; WORDS],
    section: Histogram,
    wait: Histogram,
    outside: Histogram,
    section_looks: Looks,
    outside_looks: Looks,
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
            had: [const { AtomicU64::new(0) }; 2],
            threads: [const { AtomicU64::new(0) }; WORDS],
            section: Histogram::new(),
            wait: Histogram::new(),
            outside: Histogram::new(),
            section_looks: Looks::new(),
            outside_looks: Looks::new(),
        }
    }

    fn histograms(&self) -> [&Histogram; 3] {
        [&self.section, &self.wait, &self.outside]
    }

    fn acquisitions(&self) -> u64 {
        self.wait.buckets().map(|(_, n, _)| n).sum()
    }

    /// For a thread that asks for the lock: what it has used, if it looked when it left.
    fn own(&self) -> Option<Own> {
        let me = ptr::from_ref(self).addr();
        let (left, _, own) = LEFT.with(|left| left[place(me)].get());
        own.filter(|_| left == me).map(|_| Own::now())
    }

    /// For the thread that has just got the lock for which it asked.
    fn acquired(&self, Asked { came, own, asked }: Asked, contended: bool) {
        let mut got = if contended { now() } else { asked };
        let me = ptr::from_ref(self).addr();
        let left = LEFT.with(|left| left[place(me)].get());
        if left.0 == me {
            let outside = came.saturating_sub(left.1);
            self.outside.record_one(outside);
            if let Some((from, to)) = left.2.zip(own) {
                self.outside_looks.record(outside, from, to);
            }
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
        let had = if Own::is_due() {
            let own = Own::now();
            // The look belongs to no section.
            got = now();
            [own.cpu_ns + 1, own.sleeps]
        } else {
            [0, 0]
        };
        self.had.iter().zip(had).for_each(|(to, value)| to.store(value, Relaxed));
        self.got.store(got, Relaxed);
    }

    /// For the holder, which is about to release the lock.
    fn released(&self) {
        let mut left = now();
        let section = left.saturating_sub(self.got.load(Relaxed));
        self.section.record_one(section);
        let [cpu, sleeps] = self.had.each_ref().map(|value| value.load(Relaxed));
        let own = cpu.checked_sub(1).map(|cpu_ns| {
            let own = Own::now();
            self.section_looks.record(section, Own { cpu_ns, sleeps }, own);
            left = now();
            own
        });
        let me = ptr::from_ref(self).addr();
        LEFT.with(|all| all[place(me)].set((me, left, own)));
    }

    /// Forgets everything: another mutex begins, or another process.
    pub(crate) fn clear(&self) {
        self.contended.store(0, Relaxed);
        self.first.store(u64::MAX, Relaxed);
        self.last.store(0, Relaxed);
        self.threads.iter().for_each(|word| word.store(0, Relaxed));
        self.histograms().into_iter().for_each(Histogram::clear);
        self.section_looks.clear();
        self.outside_looks.clear();
    }

    /// Adds what happened at another mutex, which has ended.
    fn join(&self, other: &Self) {
        for (mine, its) in self.histograms().into_iter().zip(other.histograms()) {
            its.buckets().for_each(|(bucket, n, sum)| mine.record(bucket, n, sum));
        }
        self.section_looks.join(&other.section_looks);
        self.outside_looks.join(&other.outside_looks);
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

/// A thread that asks for a lock.
struct Asked {
    came: u64,
    /// What it had used, if it looks.
    own: Option<Own>,
    /// After the look, which belongs to no time.
    asked: u64,
}

impl Asked {
    fn now(shadow: &Shadow) -> Self {
        let came = now();
        let own = record_of(shadow).and_then(Record::own);
        Self { came, own, asked: if own.is_some() { now() } else { came } }
    }
}

unsafe fn lock(shadow: &Shadow) {
    let asked = Asked::now(shadow);
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
    let asked = Asked::now(shadow);
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
pub(crate) fn write() {
    let Some(request) = REQUEST.get() else { return };
    let text = ledger::with_records(|lock, records| {
        let any = records.iter().any(|(.., record)| record.acquisitions() > 0);
        (any || request.first == process::id()).then(|| json(request, lock, records))
    });
    let Some(Some(text)) = text else { return };
    without_limit();
    let written = match request.first == process::id() {
        true => write_first(&request.file, &text),
        false => write_own(&request.file, &text),
    };
    if let Err((file, error)) = written {
        say(format_args!("cannot write the recording {}: {error}", file.display()));
    }
}

/// The file, and why it was not written.
type Failed = (PathBuf, io::Error);

/// Writes the recording of the first process. A recording of an earlier run is replaced at once, or else stays.
fn write_first(path: &Path, text: &str) -> Result<(), Failed> {
    let failed = |error| (path.to_owned(), error);
    let open = tally::tally().and_then(tally::Tally::recording);
    let about = open.as_ref().map_or_else(|| path.metadata(), File::metadata);
    // Somebody has removed the file, or another recording has taken its name.
    let is_gone = about.as_ref().is_ok_and(|about| about.nlink() == 0);
    let is_old = about.is_ok_and(|about| about.is_file() && about.len() > MOST_OF_A_NOTE);
    if is_gone || is_old {
        match replace(path, text) {
            Ok(()) => return Ok(()),
            Err(Unreplaced::NotWritten(error)) => return Err(failed(error)),
            Err(Unreplaced::NoPlace(error)) if is_gone => {
                let cause = format!("the file was removed while the program ran, and {error}");
                return Err(failed(io::Error::new(error.kind(), cause)));
            }
            Err(Unreplaced::NoPlace(_)) => {}
        }
    }
    // In another root, or as another user, only the open file is left.
    let mut file = match open {
        Some(file) => file,
        None => {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).open(path).map_err(failed)?
        }
    };
    let written = if is_old { overwrite_old(&file, text) } else { overwrite(&mut file, text) };
    written.map_err(failed)
}

/// A file that holds more has a recording.
const MOST_OF_A_NOTE: u64 = 4096;

/// Replaces what is in a file, and cuts it only after that.
fn overwrite(file: &mut File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// The same for a file with a recording, which stays if the disk is full: first the text goes behind it.
fn overwrite_old(file: &File, text: &str) -> io::Result<()> {
    let length = file.metadata()?.len();
    if let Err(error) = file.write_all_at(text.as_bytes(), length) {
        // What stays behind the recording would spoil it. The error that is told is the first one.
        let _ = file.set_len(length);
        return Err(error);
    }
    // The place is there now.
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

/// Why a file was not replaced.
enum Unreplaced {
    /// No file can be made or named beside it.
    NoPlace(io::Error),
    /// The disk is full, or the file would be too long.
    NotWritten(io::Error),
}

/// Writes beside the file, and gives the new file its name.
fn replace(path: &Path, text: &str) -> Result<(), Unreplaced> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", process::id()));
    let beside = path.with_file_name(name);
    let mut file = File::create_new(&beside).map_err(Unreplaced::NoPlace)?;
    let written = file.write_all(text.as_bytes()).map_err(Unreplaced::NotWritten);
    let done = written.and_then(|()| fs::rename(&beside, path).map_err(Unreplaced::NoPlace));
    if done.is_err() {
        // The error that is told is the first one.
        let _ = fs::remove_file(&beside);
    }
    done
}

/// Writes the recording of another process.
fn write_own(path: &Path, text: &str) -> Result<(), Failed> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", process::id()));
    let path = PathBuf::from(name);
    fs::write(&path, text).map_err(|error| (path.clone(), error))?;
    if let Some(tally) = tally::tally() {
        tally.add_recorded(path.file_name().unwrap_or(OsStr::new("")));
    }
    Ok(())
}

/// Allows this process what the program may have forbidden it: files of any length, as far as the administrator does.
fn without_limit() {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: `limit` is written if the call returns 0. The signal then only fails the write, and the process is at its end.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) == 0 {
            let mut limit = limit.assume_init();
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        }
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// CPU time of all threads of this process, in nanoseconds.
fn process_cpu() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes `usage`, and zeros are legal without it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
    };
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// The recording: `overspin-recording/1`, which docs/fit.md describes.
fn json(request: &Request, lock: &str, records: &[(usize, usize, &Record)]) -> String {
    let end = now();
    // The least of many readings, each with the reading after it.
    let clock = (0..100).map(|_| now().abs_diff(now())).min().unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let program = program_name();
    let callers =
        records.iter().filter(|(.., r)| r.acquisitions() > 0).map(|(_, caller, _)| *caller);
    let build_ids = build_ids(callers).into_iter();
    let build_ids = build_ids.map(|(file, id)| format!("{}: \"{id}\"", Quoted(&file)));
    // Writing to a String cannot fail, here and below.
    let mut out = format!(
        "{{\n  \"schema\": \"overspin-recording/1\",\n  \"version\": \"{}\",\n  \"lock\": \"{lock}\",\n  \"program\": {},\n  \
         \"process\": {},\n  \"file\": {},\n  \"build_ids\": {{ {} }},\n  \
         \"cpus\": {cpus},\n  \"elapsed_ns\": {},\n  \"cpu_ns\": {},\n  \"clock_ns\": {clock},\n  \"mutexes\": [",
        env!("CARGO_PKG_VERSION"),
        Quoted(program),
        process::id(),
        Quoted(&program_file().display().to_string()),
        build_ids.collect::<Vec<_>>().join(", "),
        end - request.began,
        process_cpu().saturating_sub(request.before_ns),
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
        for (name, looks) in
            [("section_looks", &record.section_looks), ("outside_looks", &record.outside_looks)]
        {
            let text = |(least, [n, sum, cpu, slept, asleep]): (u64, [u64; 5])| {
                format!("[{least}, {n}, {sum}, {cpu}, {slept}, {asleep}]")
            };
            let looks: Vec<String> = looks.all().map(text).collect();
            let _ = write!(out, ",\n      \"{name}\": [{}]", looks.join(", "));
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
