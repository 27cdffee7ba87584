//! Statistics, printed on standard error at the end of a program.

use std::fmt;
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::ledger::{self, Line};
use crate::place::Place;
use crate::system::say;
use crate::tally::{self, Tally};

/// The number of mutexes that are listed one by one.
const TOP: usize = 10;

static ON: AtomicBool = AtomicBool::new(false);

/// Starts to count acquisitions; the counts are printed when the program ends.
pub(crate) fn start() {
    ON.store(true, Relaxed);
}

/// Whether acquisitions are counted.
#[inline]
pub(crate) fn are_on() -> bool {
    ON.load(Relaxed)
}

/// Prints the sums, and the most used mutexes; nothing about a process without any of which the first one tells.
pub(crate) fn print() {
    let Some((lock, mut lines)) = ledger::lines() else { return };
    if lines.is_empty() && tally::tally().is_some_and(Tally::counts_idle) {
        return;
    }
    let sum = |of: fn(&Line) -> u64| lines.iter().map(of).sum::<u64>();
    let (mutexes, acquisitions, contended) =
        (sum(|line| line.mutexes), sum(|line| line.acquisitions), sum(|line| line.contended));
    let process = process::id();
    say(format_args!(
        "{lock} in process {process}: {mutexes} mutexes, {acquisitions} acquisitions, {contended} contended"
    ));
    if lines.is_empty() {
        return say_why_there_are_none();
    }
    lines.sort_by_key(|line| (u64::MAX - line.acquisitions, line.address, line.caller));
    say(format_args!("acquisitions  contended mutex               first locked at"));
    for line in lines.iter().take(TOP) {
        let Line { acquisitions, contended, caller, .. } = *line;
        let (mutex, caller) = (Mutexes(line), Place(caller));
        say(format_args!("{acquisitions:>12} {contended:>10} {mutex:<19} {caller}"));
    }
    if let Some(rest) = lines.len().checked_sub(TOP).filter(|&rest| rest != 0) {
        say(format_args!("and {rest} more lines"));
    }
}

/// Why this process has taken no mutex, in a few words.
pub(crate) fn why_none() -> &'static str {
    if is_single_threaded() {
        "it has one thread"
    } else {
        "its threads synchronise by something else"
    }
}

/// Explains a report of zeros, which alone would not show whether the library was at work.
fn say_why_there_are_none() {
    say(format_args!(
        "it was loaded, but no pthread mutex has been locked through it in this process, so nothing here ran on that lock"
    ));
    if is_single_threaded() {
        return say(format_args!(
            "this process has one thread; processes that it has started print lines of their own, unless they are \
             statically linked or set-user-ID, and those cannot be measured this way"
        ));
    }
    say(format_args!(
        "its threads synchronise by something else: Python by semaphores, OpenMP, Go and Rust's standard library by \
         futexes of their own, or by mutexes inside a library that calls the C library past this one \
         (RTLD_DEEPBIND); `ltrace -f -e pthread_mutex_lock PROGRAM` shows what it calls"
    ));
    say(format_args!(
        "to compare locks, run a program that locks pthread mutexes, or `overspin bench locks`"
    ));
}

/// Whether the C library knows of one thread only. False if it does not tell, as before version 2.32.
fn is_single_threaded() -> bool {
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    // SAFETY: null, or a `char` of the C library's. It changes only when threads start.
    unsafe { found.cast::<libc::c_char>().as_ref() }.is_some_and(|&single| single != 0)
}

/// The address of the mutex, or the number of ended mutexes.
struct Mutexes<'a>(&'a Line);

impl fmt::Display for Mutexes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self.0 {
            Line { address: 0, mutexes, .. } => format!("({mutexes} ended)"),
            Line { address, .. } => format!("{address:#x}"),
        };
        f.pad(&text)
    }
}
