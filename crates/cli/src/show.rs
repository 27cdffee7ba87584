//! Writing to standard output and to files.

use crate::args::Global;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use overspin_lab::output::Output;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Writes to standard output. A reader that went away is not an error worth a message.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::environment(
            format!("cannot write to standard output: {e}"),
            "free some space, or send the output elsewhere",
        ),
    })
}

/// Files that a command writes, opened before its work so that a bad name costs nothing.
pub(crate) struct Outputs {
    quiet: bool,
    to_stdout: bool,
}

impl Outputs {
    /// Checks that at most one of the files is standard output.
    pub(crate) fn new(global: &Global, files: &[Option<&PathBuf>]) -> Result<Self, Failure> {
        let stdout = files.iter().flatten().filter(|p| p.as_path() == Path::new("-")).count();
        if stdout > 1 {
            return Err(Failure::usage(
                "two outputs are both to go to standard output",
                "name a file for one of them instead of `-`",
            ));
        }
        Ok(Self { quiet: global.quiet, to_stdout: stdout == 1 })
    }

    /// Opens a file that was asked for.
    pub(crate) fn open(&self, path: Option<&PathBuf>) -> Result<Option<Output>, Failure> {
        Ok(path.map(|p| Output::create(p)).transpose()?)
    }

    /// Prints what is meant for people, unless standard output carries data or nobody wants it.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        if self.quiet || self.to_stdout { Ok(()) } else { bytes(text.as_bytes()) }
    }
}

/// Writes `value` as indented JSON, with a newline at the end.
pub(crate) fn json<T: Serialize>(output: Output, value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| {
        Failure::environment(format!("cannot write JSON: {e}"), "this is a fault in overspin")
    })?;
    Ok(output.finish_with(&(text + "\n"))?)
}

/// A progress bar on terminals, hidden elsewhere.
pub(crate) fn progress(global: &Global, length: u64, template: &str) -> ProgressBar {
    if global.quiet || global.no_progress || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
