//! The quantities that records hold: one definition of each, which the code that measures uses and from which
//! `docs/metrics.md` is written.

pub(crate) mod real;
mod reference;
pub(crate) mod schedbench;
pub(crate) mod simulated;
pub(crate) mod threads;

pub use overspin_scenario::Metric;
pub use reference::tables;

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
