//! How fast the program itself is.

use crate::report::Grid;
use serde::Serialize;

/// One measured speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchResult {
    /// What was measured.
    pub name: String,
    /// Median of the repetitions.
    pub value: f64,
    /// Unit of `value`.
    pub unit: String,
    /// What it should reach, if there is such a number.
    pub target: Option<f64>,
}

/// Benchmarks of the simulator.
#[must_use]
pub fn sim() -> Vec<BenchResult> {
    Vec::new()
}

/// The results as a table.
#[must_use]
pub fn table(results: &[BenchResult]) -> Grid {
    let mut grid = Grid::new(1, &["benchmark", "value", "unit", "target", "reached"]);
    for r in results {
        grid.row([
            r.name.clone(),
            crate::report::short(r.value),
            r.unit.clone(),
            r.target.map_or_else(|| "-".into(), crate::report::short),
            match r.target {
                Some(target) if r.value >= target => "yes".into(),
                Some(_) => "NO".into(),
                None => "-".into(),
            },
        ]);
    }
    grid
}
