//! A quantity that comes out of a run or a measurement.

/// A quantity that is measured. There is one definition of each, from which the reference is written.
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
    #[must_use]
    pub const fn new(name: &'static str, unit: &'static str, meaning: &'static str) -> Self {
        Self { name, unit, meaning }
    }
}
