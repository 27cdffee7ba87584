//! What the processes of a run of `overspin exec` tell each other, so that one of them can tell the user at the end.
//!
//! The command makes memory without a name, and hands it over as an open file (`OVERSPIN_RUN`). Every process that loads this
//! library maps it. A process that has closed the file, as many do before they become another program, finds it in the first
//! process of the run. Without it each process is on its own.
//!
//! | Who | Writes |
//! |---|---|
//! | a process, at its first mutex | that it took one |
//! | a thread that has waited for a mutex or held one, if there are statistics | how long, and whether it had a CPU; `overspin watch` reads the sums |
//! | a process without a mutex, at its end | that it ended so |
//! | a process that starts a program into which the loader will not put this library | the program's name, and the reason |
//! | a process that has written a recording of its own | the recording's name |
//! | the *first process*, which the command has become, at its end | what the others have told, on standard error |

use std::env;
use std::ffi::{CStr, OsStr, c_int};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use overspin_native::preload::{MAGIC, Obstacle, RUN, SHARED, WAITS};

use crate::record;
use crate::system::say;

/// Bytes of a name; a longer one is cut.
const NAME: usize = 100;
/// Names of a kind.
const NAMES: usize = 32;

const FREE: u32 = 0;
const IN_WORK: u32 = 1;
const READY: u32 = 2;

#[repr(C)]
struct Named {
    state: AtomicU32,
    count: AtomicU32,
    reason: AtomicU32,
    name: [AtomicU8; NAME],
}

#[repr(C)]
struct Names {
    all: [Named; NAMES],
    /// For which there was no room.
    more: AtomicU32,
}

/// All zero at first, but for the header, which `overspin_native::preload` describes.
#[repr(C)]
pub(crate) struct Tally {
    magic: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
    recording: AtomicU64,
    /// Waits for mutexes, as `overspin_native::preload::Waits` reads them while the program runs.
    waits: AtomicU64,
    waited_ns: AtomicU64,
    looks: AtomicU64,
    held_ns: AtomicU64,
    descheduled_ns: AtomicU64,
    asleep_ns: AtomicU64,
    /// Processes that have taken a mutex, and that have ended without one.
    took: AtomicU32,
    idle: AtomicU32,
    /// The first process has told all: later ones tell their own.
    is_over: AtomicU32,
    unserved: Names,
    recorded: Names,
}

const _: () = assert!(size_of::<Tally>() as u64 <= SHARED);
const _: () = assert!(std::mem::offset_of!(Tally, waits) == WAITS);
const _: () = assert!(std::mem::offset_of!(Tally, asleep_ns) == WAITS + 5 * size_of::<u64>());

static TALLY: AtomicPtr<Tally> = AtomicPtr::new(ptr::null_mut());
static FIRST: AtomicU32 = AtomicU32::new(0);
/// This process has taken a mutex.
static TOOK: AtomicBool = AtomicBool::new(false);

/// The tally of this run, if there is one.
pub(crate) fn tally() -> Option<&'static Tally> {
    // SAFETY: null, or a mapping that is never undone. Acquire: pairs with `attach`.
    unsafe { TALLY.load(Acquire).as_ref() }
}

/// Whether this process is the one that the command has become.
pub(crate) fn is_first() -> bool {
    FIRST.load(Relaxed) == process::id()
}

/// Finds the tally.
pub(crate) fn attach() {
    let Some(text) = env::var_os(RUN) else { return };
    let numbers = text.to_str().and_then(|text| text.split_once(':'));
    let Some((first, file)) = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))
    else {
        return;
    };
    let Some(tally) = map(file).or_else(|| {
        let path = format!("/proc/{first}/fd/{file}\0");
        // SAFETY: it ends with 0.
        let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDWR | libc::O_CLOEXEC) };
        let found = map(fd);
        // SAFETY: it is this function's own, if it is open; the mapping stays.
        unsafe { libc::close(fd) };
        found
    }) else {
        return;
    };
    FIRST.store(first, Relaxed);
    TALLY.store(ptr::from_ref(tally).cast_mut(), Release);
    if TOOK.load(Relaxed) {
        tally.took.fetch_add(1, Relaxed);
    }
}

/// Maps the tally in this open file, if it is one.
fn map(fd: c_int) -> Option<&'static Tally> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call writes `about` if it returns 0.
    let size =
        unsafe { (libc::fstat(fd, about.as_mut_ptr()) == 0).then(|| about.assume_init().st_size) }?;
    if size.cast_unsigned() != SHARED {
        return None;
    }
    let (access, size) = (libc::PROT_READ | libc::PROT_WRITE, SHARED as usize);
    // SAFETY: a new mapping touches nothing that exists.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, fd, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: it is large enough and aligned to a page, and a tally is atomics only. The mapping is never undone.
    let tally = unsafe { &*memory.cast::<Tally>() };
    (tally.magic.load(Relaxed) == MAGIC).then_some(tally)
}

/// Notes that this process takes a mutex.
#[inline]
pub(crate) fn takes() {
    // The load first: after the first mutex the line is only read.
    if !TOOK.load(Relaxed) {
        first_mutex();
    }
}

#[cold]
fn first_mutex() {
    if !TOOK.swap(true, Relaxed)
        && let Some(tally) = tally()
    {
        tally.took.fetch_add(1, Relaxed);
    }
}

/// Notes a wait for a mutex that began at `began`, by [`record::now`], and has ended.
#[cold]
pub(crate) fn waited(began: u64) {
    if let Some(tally) = tally() {
        tally.waits.fetch_add(1, Relaxed);
        tally.waited_ns.fetch_add(record::now().saturating_sub(began), Relaxed);
    }
}

/// In the child of a fork.
pub(crate) fn begin_anew() {
    TOOK.store(false, Relaxed);
}

/// Whether this process has taken a mutex.
pub(crate) fn took() -> bool {
    TOOK.load(Relaxed)
}

/// Why a program runs without this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Obstacle(Obstacle),
    /// It is started without the variables.
    Cleaned,
}

impl Reason {
    fn number(self) -> u32 {
        match self {
            Self::Cleaned => 0,
            Self::Obstacle(it) => {
                Obstacle::ALL.iter().position(|o| *o == it).unwrap_or(0) as u32 + 1
            }
        }
    }

    fn of(number: u32) -> Self {
        let obstacle = (number as usize).checked_sub(1).and_then(|i| Obstacle::ALL.get(i));
        obstacle.map_or(Self::Cleaned, |it| Self::Obstacle(*it))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Obstacle(it) => f.write_str(it.what()),
            Self::Cleaned => f.write_str("was started without LD_PRELOAD"),
        }
    }
}

impl Named {
    fn text(&self, bytes: &mut [u8; NAME]) -> usize {
        for (to, from) in bytes.iter_mut().zip(&self.name) {
            *to = from.load(Relaxed);
        }
        bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME)
    }

    fn is(&self, reason: u32, name: &[u8]) -> bool {
        let mut bytes = [0; NAME];
        let length = self.text(&mut bytes);
        self.reason.load(Relaxed) == reason && bytes[..length] == *name
    }
}

impl Names {
    /// Adds a name, or counts it once more. Needs no memory.
    fn add(&self, reason: u32, name: &[u8]) {
        let name = &name[..name.len().min(NAME)];
        for named in &self.all {
            match named.state.compare_exchange(FREE, IN_WORK, Acquire, Acquire) {
                Ok(_) => {
                    for (to, from) in named.name.iter().zip(name) {
                        to.store(*from, Relaxed);
                    }
                    named.reason.store(reason, Relaxed);
                    named.count.store(1, Relaxed);
                    // Release: pairs with the acquire of those who read it.
                    named.state.store(READY, Release);
                    return;
                }
                Err(READY) if named.is(reason, name) => {
                    named.count.fetch_add(1, Relaxed);
                    return;
                }
                // Another name, or one that a process writes just now.
                Err(_) => {}
            }
        }
        self.more.fetch_add(1, Relaxed);
    }

    /// All names, with how often and why.
    fn all(&self) -> impl Iterator<Item = (String, u32, u32)> {
        let ready = self.all.iter().filter(|named| named.state.load(Acquire) == READY);
        ready.map(|named| {
            let mut bytes = [0; NAME];
            let length = named.text(&mut bytes);
            let name = String::from_utf8_lossy(&bytes[..length]).into_owned();
            (name, named.count.load(Relaxed), named.reason.load(Relaxed))
        })
    }
}

impl Tally {
    /// Notes that a thread held a mutex for `held` ns, `off` of them off its CPU.
    pub(crate) fn held(&self, held: u64, off: u64, slept: bool) {
        self.looks.fetch_add(1, Relaxed);
        self.held_ns.fetch_add(held, Relaxed);
        let part = if slept { &self.asleep_ns } else { &self.descheduled_ns };
        part.fetch_add(off, Relaxed);
    }

    /// Notes a program that runs without this library.
    pub(crate) fn add_unserved(&self, name: &CStr, reason: Reason) {
        self.unserved.add(reason.number(), name.to_bytes());
    }

    /// Notes a recording of this process.
    pub(crate) fn add_recorded(&self, name: &OsStr) {
        self.recorded.add(0, name.as_bytes());
    }

    /// The file for the recording of the first process, if it is still open in this process.
    pub(crate) fn recording(&self) -> Option<File> {
        let fd = c_int::try_from(self.recording.load(Relaxed)).ok().filter(|fd| *fd > 0)?;
        let mut about = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the call writes `about` if it returns 0.
        let about =
            unsafe { (libc::fstat(fd, about.as_mut_ptr()) == 0).then(|| about.assume_init()) }?;
        let same =
            about.st_dev == self.device.load(Relaxed) && about.st_ino == self.inode.load(Relaxed);
        // SAFETY: it is open, and the program knows nothing of it, so that it is only closed here, at the end.
        same.then(|| unsafe { File::from_raw_fd(fd) })
    }

    /// Whether another process tells the user about this one, which ends without a mutex.
    pub(crate) fn counts_idle(&self) -> bool {
        if is_first() || self.is_over.load(Relaxed) != 0 {
            return false;
        }
        self.idle.fetch_add(1, Relaxed);
        true
    }

    /// In the first process, at its end: says what the others have told. `lock` is the name of the lock; `told` whether
    /// statistics of this process have been printed.
    pub(crate) fn sum_up(&self, lock: &str, told: bool) {
        self.is_over.store(1, Relaxed);
        let idle = self.idle.load(Relaxed);
        let took = self.took.load(Relaxed);
        if took == 0 && !told {
            let others = match idle {
                0 => String::new(),
                n => format!(", nor did {n} more"),
            };
            say(format_args!(
                "{} took 0 mutexes{others}: {}, so nothing ran on `{lock}`",
                program(),
                crate::stats::why_none()
            ));
        } else if told && idle > 0 {
            say(format_args!(
                "{idle} more process{} took 0 mutexes",
                if idle == 1 { "" } else { "es" }
            ));
        }
        let looks = self.looks.load(Relaxed);
        if told && looks > 0 {
            let held = self.held_ns.load(Relaxed).max(1) as f64;
            let part = |of: &AtomicU64| 100.0 * of.load(Relaxed) as f64 / held;
            say(format_args!(
                "holders were without a CPU for {:.1} % of the time that they held mutexes, and slept for {:.1} % ({looks} \
                 acquisitions looked at)",
                part(&self.descheduled_ns),
                part(&self.asleep_ns)
            ));
        }
        for (name, count, reason) in self.unserved.all() {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            say(format_args!("{name}{times} ran without `{lock}`: it {}", Reason::of(reason)));
        }
        let mut names = String::new();
        for (name, ..) in self.recorded.all() {
            // Writing to a String cannot fail.
            let _ = write!(names, "{}{name}", if names.is_empty() { "" } else { ", " });
        }
        if !names.is_empty() {
            say(format_args!("other processes recorded, too: {names}"));
        }
        for more in [&self.unserved, &self.recorded].map(|names| names.more.load(Relaxed)) {
            if more > 0 {
                say(format_args!("and {more} more"));
            }
        }
    }
}

/// The name of this process's program, as it was called.
fn program() -> String {
    let name = Path::new(record::program_name());
    name.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
