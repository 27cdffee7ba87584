//! What signals do: no half-written file stays behind, and a run that takes long is ended with what there
//! is at the first Ctrl-C, and at once at the second.

use crate::failure::Failure;
use overspin_lab::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody looks at [`INTERRUPTED`].
static LISTENED_TO: AtomicBool = AtomicBool::new(false);
/// The first SIGINT has come.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Takes signals on a thread of its own from now on.
pub(crate) fn watch() -> Result<(), Failure> {
    let error = |e: std::io::Error| {
        Failure::environment(format!("cannot take signals: {e}"), "try again with fewer processes")
    };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(error)?;
    let work = move || {
        for signal in signals.forever() {
            // Flags by themselves: no other memory depends on them.
            let gracefully = signal == SIGINT
                && LISTENED_TO.load(Ordering::Relaxed)
                && !INTERRUPTED.swap(true, Ordering::Relaxed);
            if gracefully {
                eprintln!("interrupted: what is finished is kept; once more to stop at once");
                continue;
            }
            output::discard_all();
            // Ends the process as the signal would have. It cannot fail for these two.
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(work).map_err(error)?;
    Ok(())
}

/// The first SIGINT no longer ends the process, but sets this flag.
pub(crate) fn first_interrupt() -> &'static AtomicBool {
    LISTENED_TO.store(true, Ordering::Relaxed);
    &INTERRUPTED
}
