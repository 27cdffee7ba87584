//! Summary of a few samples.

use serde::{Deserialize, Serialize};

/// Statistics of a set of samples. The samples themselves are kept beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); 0 for a single sample.
    pub stddev: f64,
    /// Smallest.
    pub min: f64,
    /// Median, or the mean of the two middle samples.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summary of `samples`; `None` if there are none, or if one is not a finite number.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|s| !s.is_finite()) {
            return None;
        }
        let n = samples.len();
        let mean = samples.iter().sum::<f64>() / n as f64;
        // Two passes: the textbook one-pass formula loses all digits when the spread is small relative to the
        // mean, which is the usual case here.
        let squares: f64 = samples.iter().map(|s| (s - mean).powi(2)).sum();
        let stddev = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median =
            if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 };
        Some(Self { n, mean, stddev, min: sorted[0], median, max: sorted[n - 1] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.median, s.min, s.max), (8, 5.0, 4.5, 2.0, 9.0));
        assert!((s.stddev - 2.138_089_935).abs() < 1e-9);
    }

    #[test]
    fn one_sample_has_no_spread_and_none_has_no_summary() {
        assert_eq!(Summary::of(&[3.0]).unwrap().stddev, 0.0);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn small_spread_beside_a_large_mean_survives() {
        let s = Summary::of(&[1e9, 1e9 + 1.0, 1e9 + 2.0]).unwrap();
        assert!((s.stddev - 1.0).abs() < 1e-9);
    }
}
