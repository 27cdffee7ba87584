//! The functions that claims may call, one line each.

use overspin_stats::Summary;
use overspin_stats::difference::{mann_whitney, paired, welch};

/// Confidence at which the tests compute intervals; their probabilities do not depend on it.
const CONFIDENCE: f64 = 0.95;

/// What a function computes from its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// One number from all samples together; it has their unit.
    Same(fn(&[f64]) -> Option<f64>),
    /// A plain number of the samples.
    Plain(fn(&[f64]) -> Option<f64>),
    /// The number of samples; runs may have none.
    Count,
    /// The sample below which this part of them lies: `percentile(samples, 95 %)`.
    Percentile,
    /// The probability that two sets differ this much by chance: `welch(a, b)`.
    Probability(fn(&[f64], &[f64]) -> Option<f64>),
    /// A number from a curve over the one `$x` of `for`, which stands for numbers.
    Curve(fn(&[(f64, f64)]) -> Option<f64>),
    /// Whether conditions hold: all of them, or any of them.
    Truth {
        /// All.
        all: bool,
    },
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub make: Make,
}

/// Every function.
pub static FUNCTIONS: [Function; 17] = [
    Function::new("mean", Make::Same(|x| Some(Summary::of(x)?.mean))),
    Function::new("median", Make::Same(|x| Some(Summary::of(x)?.median))),
    Function::new("min", Make::Same(|x| Some(Summary::of(x)?.min))),
    Function::new("max", Make::Same(|x| Some(Summary::of(x)?.max))),
    Function::new("sum", Make::Same(|x| (!x.is_empty()).then(|| x.iter().sum()))),
    Function::new("stddev", Make::Same(|x| Some(Summary::of(x)?.stddev))),
    Function::new("abs", Make::Same(|x| if let [x] = x { Some(x.abs()) } else { None })),
    Function::new("percentile", Make::Percentile),
    Function::new("spread", Make::Plain(spread)),
    Function::new("paired", Make::Plain(|x| Some(paired(x, CONFIDENCE)?.p))),
    Function::new("count", Make::Count),
    Function::new(
        "welch",
        Make::Probability(|a, b| Some(welch(&Summary::of(a)?, &Summary::of(b)?, CONFIDENCE)?.p)),
    ),
    Function::new("mann-whitney", Make::Probability(|a, b| Some(mann_whitney(a, b)?.1))),
    Function::new("largest-step", Make::Curve(|curve| Some(steps(curve)?.0))),
    Function::new("steepest-step", Make::Curve(|curve| Some(steps(curve)?.1))),
    Function::new("all", Make::Truth { all: true }),
    Function::new("any", Make::Truth { all: false }),
];

impl Function {
    const fn new(name: &'static str, make: Make) -> Self {
        Self { name, make }
    }

    pub fn find(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|f| f.name == name).copied()
    }

    /// The number of arguments that it takes; `None` means one or more.
    pub fn arity(self) -> Option<usize> {
        match self.make {
            Make::Percentile | Make::Probability(_) => Some(2),
            Make::Curve(_) | Make::Truth { .. } => Some(1),
            Make::Same(_) if self.name == "abs" => Some(1),
            Make::Same(_) | Make::Plain(_) | Make::Count => None,
        }
    }
}

/// The sample at this part of the sorted samples: the nearest one, without interpolation.
pub fn percentile(samples: &[f64], part: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((part * last as f64).round() as usize).copied()
}

/// Half the distance from the fifth to the ninety-fifth percentile, relative to the median.
fn spread(samples: &[f64]) -> Option<f64> {
    let at = |part| percentile(samples, part);
    Some((at(0.95)? - at(0.05)?) / 2.0 / at(0.5)?)
}

/// About the steps between neighbours of a curve: the largest part that one step has of the whole change,
/// from the first value to the last, and the largest ratio of that part to the step's part of the range. A
/// curve without a change has no steps.
fn steps(curve: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (first, last) = (curve.first()?, curve.last()?);
    let (range, change) = (last.0 - first.0, last.1 - first.1);
    if range <= 0.0 {
        return None;
    }
    let mut largest = (0.0_f64, 0.0_f64);
    for pair in curve.windows(2) {
        let part = (pair[1].1 - pair[0].1) / change;
        let steepness = part * range / (pair[1].0 - pair[0].0);
        largest = (largest.0.max(part), largest.1.max(steepness));
    }
    Some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stair_and_a_ramp_differ() {
        let stair = [(1000.0, 1.0), (1500.0, 0.8), (5000.0, 0.8), (10_000.0, 0.8)];
        let (part, steepness) = steps(&stair).unwrap();
        assert!((part - 1.0).abs() < 1e-9 && (steepness - 18.0).abs() < 1e-9);
        let ramp = [(1000.0, 1.0), (2000.0, 0.9), (10_000.0, 0.1)];
        let (part, steepness) = steps(&ramp).unwrap();
        assert!((part - 8.0 / 9.0).abs() < 1e-9 && (steepness - 1.0).abs() < 1e-9);
        assert_eq!(steps(&[(1.0, 5.0), (2.0, 5.0)]), Some((0.0, 0.0)));
        assert_eq!(steps(&[(1.0, 5.0)]), None);
    }

    #[test]
    fn a_percentile_is_a_sample() {
        let ten: Vec<f64> = (1..=11).map(f64::from).collect();
        assert_eq!(percentile(&ten, 0.95), Some(11.0));
        assert_eq!(percentile(&ten, 0.5), Some(6.0));
        assert_eq!(spread(&[10.0, 11.0, 9.0]), Some(0.1));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
