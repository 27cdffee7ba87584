//! The terminal while a view is on it: another screen, keys without Enter, no cursor. However the command ends,
//! the terminal is as it was before.

use crate::failure::Failure;
use crate::signals;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::execute;
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Write, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal is changed at the moment.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back as it was, if a view has changed it. The thread of signals and a panic may call it at any
/// time; only the first call does something.
fn restore() {
    // The flag stands alone: no other memory depends on it.
    if CHANGED.swap(false, Ordering::Relaxed) {
        // Errors are ignored: there is nothing else to try.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// The changed terminal, until it is dropped.
pub(crate) struct Terminal(());

impl Terminal {
    pub(crate) fn take() -> Result<Self, Failure> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            signals::on_end(restore);
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        CHANGED.store(true, Ordering::Relaxed);
        let taken = Self(());
        enable_raw_mode().map_err(|e| error(&e))?;
        execute!(stdout(), EnterAlternateScreen, Hide).map_err(|e| error(&e))?;
        Ok(taken)
    }

    /// Shows these lines; what does not fit is cut.
    pub(crate) fn show(&self, text: &str, (columns, lines): (u16, u16)) -> Result<(), Failure> {
        let mut out = Vec::new();
        let draw = |out: &mut Vec<u8>| -> io::Result<()> {
            for (row, line) in (0..lines).zip(text.lines()) {
                let line: String = line.chars().take(columns.into()).collect();
                execute!(out, MoveTo(0, row), Print(line), Clear(ClearType::UntilNewLine))?;
            }
            let used = u16::try_from(text.lines().count()).unwrap_or(lines);
            if used < lines {
                execute!(out, MoveTo(0, used), Clear(ClearType::FromCursorDown))?;
            }
            Ok(())
        };
        // In one piece, so that no half-drawn frame is seen.
        draw(&mut out).and_then(|()| stdout().write_all(&out)).map_err(|e| error(&e))?;
        stdout().flush().map_err(|e| error(&e))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Columns and lines of the terminal. One that does not know its size says 0: it gets the usual size.
pub(crate) fn size() -> Result<(u16, u16), Failure> {
    match crossterm::terminal::size().map_err(|e| error(&e))? {
        (0, _) | (_, 0) => Ok((80, 24)),
        size => Ok(size),
    }
}

pub(crate) fn error(cause: &io::Error) -> Failure {
    Failure::environment(
        format!("cannot use this terminal: {cause}"),
        "use --once, which prints plain text",
    )
}
