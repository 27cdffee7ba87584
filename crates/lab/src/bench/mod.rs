//! The speed of the program itself, on the machine where it runs: wall time of one thread, never part of a
//! test. The targets are for a server core of about 2.6 GHz.

mod hv;
mod record;
mod sched;
mod sim;

pub use hv::hv;
pub use record::{locks as record_of_locks, speed as record};
pub use sched::sched;
pub use sim::sim;

use overspin_report::{Grid, short};

/// One measured speed.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchResult {
    /// What was measured.
    pub name: String,
    /// Median of the repetitions.
    pub value: f64,
    /// Every repetition, in order.
    pub samples: Vec<f64>,
    /// Unit of `value`.
    pub unit: String,
    /// The target on a machine of the stated class, if there is one.
    pub target: Option<f64>,
    /// The target is an upper bound, not a lower one.
    pub at_most: bool,
}

/// A bound that a measured value should keep.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    AtLeast(f64),
    AtMost(f64),
}

impl BenchResult {
    /// The median of `samples`, which must not be empty.
    fn of(name: String, samples: Vec<f64>, unit: &str, limit: Limit) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let (target, at_most) = match limit {
            Limit::None => (None, false),
            Limit::AtLeast(target) => (Some(target), false),
            Limit::AtMost(target) => (Some(target), true),
        };
        let value = sorted[sorted.len() / 2];
        Self { name, value, samples, unit: unit.into(), target, at_most }
    }

    /// Whether the target is reached; `None` without one.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        self.target.map(|t| if self.at_most { self.value <= t } else { self.value >= t })
    }
}

/// Repetitions of each benchmark; they are interleaved, so that a slow minute affects all alike.
const REPETITIONS: usize = 5;

/// The results as a table.
#[must_use]
pub fn table(results: &[BenchResult]) -> Grid {
    let mut grid =
        Grid::new(1, &["benchmark", "median", "least", "most", "unit", "target", "reached"]);
    for r in results {
        let least = r.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = r.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sign = if r.at_most { "<= " } else { ">= " };
        grid.row([
            r.name.clone(),
            short(r.value),
            short(least),
            short(most),
            r.unit.clone(),
            r.target.map_or_else(|| "-".into(), |t| format!("{sign}{}", short(t))),
            match r.reached() {
                Some(true) => "yes".into(),
                Some(false) => "NO".into(),
                None => "-".into(),
            },
        ]);
    }
    grid
}
