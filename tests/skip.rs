//! What a test says that cannot run here. Tests of several crates include this file by its path.

use std::io::Write;

/// Says why a test does nothing, in the line that `.ci/run` repeats at its end.
///
/// It writes to standard error itself, because the test harness hides what `eprintln!` prints in a test that passes.
pub fn skip(reason: &str) {
    // Ignored: there is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
