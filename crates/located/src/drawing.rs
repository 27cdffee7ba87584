//! Draws the place of an error in its text, as a compiler does: the line, a mark under the fault, the remedy.

use crate::LocatedError;
use crate::window::Window;
use miette::{
    Diagnostic, LabeledSpan, MietteHandler, MietteHandlerOpts, ReportHandler, SourceCode,
};
use overspin_report::Screen;
use std::fmt;

/// Widest drawing of a place.
const WIDTH: usize = 110;

/// The place of `error` in its file, and the remedy; the message itself is not repeated. It has colours if standard
/// error is a terminal that shows them.
#[must_use]
pub fn drawing(error: &LocatedError, screen: &Screen) -> String {
    drawn(error, screen, MietteHandlerOpts::new())
}

/// The place of `error` and the remedy without colours, for any reader.
#[must_use]
pub fn plain(error: &LocatedError) -> String {
    drawn(error, &Screen::default(), MietteHandlerOpts::new().color(false).unicode(true))
}

fn drawn(error: &LocatedError, screen: &Screen, options: MietteHandlerOpts) -> String {
    // Words are never broken, so that names can be searched for and copied.
    let options = options.break_words(false);
    let options = options.width(screen.width.map_or(WIDTH, |width| width.min(WIDTH)));
    let options = if screen.ascii { options.unicode(false) } else { options };
    let located = Located { window: Window::of(error), error };
    let drawn = format!("{:?}", Drawn { handler: options.build(), error: &located });
    // Above the place stands the mark of an error without text.
    let place = drawn.lines().position(|line| line.contains(&*error.path));
    let lines: Vec<&str> = drawn.lines().skip(place.unwrap_or(0)).collect();
    screen.spell(&lines.join("\n"))
}

/// A scenario error, for display by miette. Its text is empty: the line above the drawing has the message,
/// unbroken, so that it can be searched for.
struct Located<'a> {
    error: &'a LocatedError,
    window: Window,
}

/// An error as a handler draws it.
struct Drawn<'a> {
    handler: MietteHandler,
    error: &'a Located<'a>,
}

impl fmt::Debug for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handler.debug(self.error, f)
    }
}

impl fmt::Debug for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for Located<'_> {}

impl Diagnostic for Located<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&*self.error.help))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.window.span();
        let label = LabeledSpan::new(Some("here".into()), span.start, span.len());
        Some(Box::new(std::iter::once(label)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.window)
    }
}
