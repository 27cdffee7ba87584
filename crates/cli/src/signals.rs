//! Handling of signals: no half-written file stays behind. The first Ctrl-C ends a long run and keeps the
//! results so far; the second ends it at once.

use crate::failure::Failure;
use overspin_record::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether a command watches [`INTERRUPTED`].
static LISTENED_TO: AtomicBool = AtomicBool::new(false);
/// Whether the first SIGINT has come.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// What to do before a signal ends the process.
static AT_END: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Begins to handle signals on a separate thread.
pub(crate) fn watch() -> Result<(), Failure> {
    let error = |e: std::io::Error| {
        Failure::environment(format!("cannot take signals: {e}"), "try again with fewer processes")
    };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(error)?;
    let work = move || {
        for signal in signals.forever() {
            // The flags stand alone: no other memory depends on them.
            let gracefully = signal == SIGINT
                && LISTENED_TO.load(Ordering::Relaxed)
                && !INTERRUPTED.swap(true, Ordering::Relaxed);
            if gracefully {
                eprintln!(
                    "interrupted: finished results are kept; press Ctrl-C again to stop at once"
                );
                continue;
            }
            output::discard_all();
            for work in AT_END.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                work();
            }
            // Ends the process as the signal would have. This cannot fail for these two signals.
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(work).map_err(error)?;
    Ok(())
}

/// From now on, the first SIGINT does not end the process, but sets this flag.
pub(crate) fn first_interrupt() -> &'static AtomicBool {
    LISTENED_TO.store(true, Ordering::Relaxed);
    &INTERRUPTED
}

/// From now on, the first SIGINT does not end the process, but makes this true.
pub(crate) fn interrupted() -> impl Fn() -> bool {
    let flag = first_interrupt();
    // The flag stands alone, as above.
    move || flag.load(Ordering::Relaxed)
}

/// Does `work` before a signal ends the process.
pub(crate) fn on_end(work: fn()) {
    AT_END.lock().unwrap_or_else(PoisonError::into_inner).push(work);
}
