//! The quantities that records hold: one definition of each, which the code that measures uses and from which
//! `docs/metrics.md` is written.

pub mod simulated;

pub use overspin_scenario::Metric;

/// The metrics that one sort of place has in a record.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// What is measured there; the heading in the documentation.
    pub heading: &'static str,
    /// What the places look like, in Markdown.
    pub places: &'static str,
    /// The metrics, in the order of the record.
    pub metrics: fn() -> Vec<&'static Metric>,
}
