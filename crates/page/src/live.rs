//! The parts of the report page of which a live page consists: its panels, its style and its script.

use super::{CHARTS, COLOURS, Entry, SCRIPT, STYLE, section};
use maud::Markup;
use overspin_runs::run::Beside;

/// What a live page shows of a result besides what a saved one does.
#[derive(Debug)]
pub struct Live<'a> {
    /// Runs that were made for the answer of a single run.
    pub beside: &'a Beside,
    /// What stands below the answer.
    pub below: Markup,
}

/// The panels of a result, the answer first. `number` makes the ids of one result differ from those of another on the same page.
#[must_use]
pub fn live_result(number: usize, entry: &Entry, live: &Live<'_>) -> Markup {
    section(number, entry, Some(live))
}

/// The style of the page.
#[must_use]
pub fn style() -> String {
    [COLOURS, CHARTS, STYLE].concat()
}

/// The script of the page, a module. Its function `enliven` starts what is inside of an element.
#[must_use]
pub fn script() -> String {
    SCRIPT.join("\n")
}
