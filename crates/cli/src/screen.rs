//! What the terminal of this process can show.

use overspin_report::{Screen, WIDTH};
use std::env;
use std::io::IsTerminal;

/// The screen on which standard output appears. A file has any width, unless COLUMNS says otherwise.
pub(crate) fn of_stdout() -> Screen {
    Screen { width: width(std::io::stdout().is_terminal()), ascii: is_ascii() }
}

/// The same for reports that are read like a page: no wider than one, in a file and on a wide terminal too, unless COLUMNS
/// says otherwise.
pub(crate) fn page_on_stdout() -> Screen {
    let screen = of_stdout();
    let width = columns().or(Some(screen.width.unwrap_or(WIDTH).min(WIDTH)));
    Screen { width, ..screen }
}

/// The screen on which standard error appears.
pub(crate) fn of_stderr() -> Screen {
    Screen { width: width(std::io::stderr().is_terminal()), ascii: is_ascii() }
}

/// COLUMNS, if it is a width.
fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.trim().parse().ok().filter(|width| *width > 0)
}

/// COLUMNS, or else the width of the terminal.
fn width(is_terminal: bool) -> Option<usize> {
    let of_terminal =
        || is_terminal.then(crossterm::terminal::size)?.ok().map(|(columns, _)| columns.into());
    columns().or_else(of_terminal).filter(|width| *width > 0)
}

/// Whether the locale has only ASCII: the first of LC_ALL, LC_CTYPE and LANG that is set is `C` or `POSIX`.
/// Containers often have none of them, on terminals that show everything.
pub(crate) fn is_ascii() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| locale == "C" || locale == "POSIX")
}
