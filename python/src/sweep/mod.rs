//! Sweeps: the runs of a batch. `overspin/sweeps.py` decides which runs a batch has and where it is made.

mod batch;
mod template;

pub(crate) use template::Template;

use crate::interrupt::Flag;
use overspin_stats::Spread;
use pyo3::prelude::*;

/// Tells the runs of batches in other threads to stop.
#[pyclass(frozen, module = "overspin._overspin")]
#[derive(Debug)]
pub(crate) struct Stop {
    flag: Flag,
}

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self { flag: Flag::take() }
    }

    /// Stops them, within some milliseconds.
    fn set(&self) {
        self.flag.raise();
    }
}

/// The mean of samples and Student's 95 % interval of it, as `overspin sweep` shows them: mean, lower and upper end. A
/// single sample has no interval.
#[pyfunction]
pub(crate) fn interval(samples: Vec<f64>) -> Option<(f64, Option<f64>, Option<f64>)> {
    let spread = Spread::of(&vec![0; samples.len()], &samples)?;
    let ends = spread.interval.as_ref();
    Some((spread.summary.mean, ends.map(|i| i.low), ends.map(|i| i.high)))
}
