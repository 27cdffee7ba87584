//! The quantities that records hold: one definition of each, which the code that measures uses and from which
//! `docs/metrics.md` is written.

mod reference;
pub(crate) mod schedbench;
pub(crate) mod simulated;
pub(crate) mod threads;

pub use reference::tables;

/// A quantity that is measured.
#[derive(Debug)]
pub struct Metric {
    /// Its name, without the unit.
    pub name: &'static str,
    /// Its unit: `s`, `%`, `1/s`; empty for a plain number.
    pub unit: &'static str,
    /// Its definition, for people.
    pub meaning: &'static str,
}

impl Metric {
    /// A metric with this name, unit and meaning.
    pub const fn new(name: &'static str, unit: &'static str, meaning: &'static str) -> Self {
        Self { name, unit, meaning }
    }
}

/// The metrics that one sort of place has in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// What is measured there; the heading in the documentation.
    pub(crate) heading: &'static str,
    /// What the places look like, in Markdown.
    pub(crate) places: &'static str,
    /// The metrics, in the order of the record.
    pub(crate) metrics: fn() -> Vec<&'static Metric>,
}
