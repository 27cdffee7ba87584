//! The parts of the report page of which a live page consists: its panels, its style and its script.

use super::{CHARTS, COLOURS, Entry, SCRIPT, STYLE, answer_of, section};
use crate::html::blocks;
use maud::Markup;
use overspin_report::Block;
use overspin_runs::run::Beside;

/// The panels of a result, the answer first, and `below` it what a live page has besides. `number` makes the ids of one result
/// differ from those of another on the same page.
#[must_use]
pub fn live_result(number: usize, entry: &Entry, below: &Markup) -> Markup {
    section(number, entry, Some(below))
}

/// The panel of the answer again, with what the runs `beside` a single run tell.
#[must_use]
pub fn live_answer(number: usize, entry: &Entry, beside: &Beside) -> Markup {
    answer_of(number, entry, Some(beside))
}

/// Blocks of a report, such as a comparison, as the panels have them.
#[must_use]
pub fn live_words(words: &[Block]) -> Markup {
    blocks(words)
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
