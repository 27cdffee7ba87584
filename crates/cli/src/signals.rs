//! Handling of signals: no half-written file stays behind. The first SIGINT (Ctrl-C), SIGTERM or SIGHUP ends a long run
//! and keeps the results so far; a second SIGINT or SIGTERM ends it at once.

use crate::failure::Failure;
use overspin_record::output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether a command watches [`INTERRUPTED`].
static LISTENED_TO: AtomicBool = AtomicBool::new(false);
/// Whether the first signal has come.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether it is not worth a word: nothing is under way that could be lost.
static UNSAID: AtomicBool = AtomicBool::new(false);
/// Which one it was.
static FIRST: AtomicI32 = AtomicI32::new(SIGINT);
/// What to do before a signal ends the process.
static AT_END: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Begins to handle signals on a separate thread.
pub(crate) fn watch() -> Result<(), Failure> {
    let error = |e: std::io::Error| {
        Failure::environment(format!("cannot take signals: {e}"), "try again with fewer processes")
    };
    // `nohup` starts us with SIGHUP ignored, and means it.
    let heard = if ignores_hangups() { &[SIGINT, SIGTERM][..] } else { &[SIGINT, SIGTERM, SIGHUP] };
    let mut signals = Signals::new(heard).map_err(error)?;
    let work = move || {
        for signal in signals.forever() {
            // The flags stand alone: no other memory depends on them.
            if LISTENED_TO.load(Ordering::Relaxed) {
                if !INTERRUPTED.load(Ordering::Relaxed) {
                    FIRST.store(signal, Ordering::Relaxed);
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    if !UNSAID.load(Ordering::Relaxed) {
                        say(signal);
                    }
                    continue;
                }
                // A terminal that goes away sends SIGHUP, and its shell sends another one.
                if signal == SIGHUP {
                    continue;
                }
            }
            output::discard_all();
            for work in AT_END.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                work();
            }
            // Ends the process as the signal would have. This cannot fail for these signals.
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(work).map_err(error)?;
    Ok(())
}

/// Says what the first signal does.
fn say(signal: i32) {
    let again = match signal {
        SIGINT => "press Ctrl-C again",
        _ => "send SIGTERM again",
    };
    // The terminal may be gone.
    let _ = writeln!(
        std::io::stderr(),
        "interrupted: finished results are kept; {again} to stop at once"
    );
}

/// Whether this process was started with SIGHUP ignored, as far as the system tells.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set & (1 << (SIGHUP - 1)) != 0)
}

/// From now on, the first signal does not end the process, but sets this flag.
pub(crate) fn first_interrupt() -> &'static AtomicBool {
    LISTENED_TO.store(true, Ordering::Relaxed);
    &INTERRUPTED
}

/// The same, for a command that a signal is meant to end: it says nothing.
pub(crate) fn end() -> &'static AtomicBool {
    UNSAID.store(true, Ordering::Relaxed);
    first_interrupt()
}

/// From now on, the first signal does not end the process, but makes this true.
pub(crate) fn interrupted() -> impl Fn() -> bool {
    let flag = first_interrupt();
    // The flag stands alone, as above.
    move || flag.load(Ordering::Relaxed)
}

/// The exit code that shells report for a command that the first signal ended.
pub(crate) fn exit_code() -> u8 {
    u8::try_from(128 + FIRST.load(Ordering::Relaxed)).unwrap_or(u8::MAX)
}

/// Does `work` before a signal ends the process.
pub(crate) fn on_end(work: fn()) {
    AT_END.lock().unwrap_or_else(PoisonError::into_inner).push(work);
}
