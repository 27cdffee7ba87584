//! How a figure differs from seed to seed.

use crate::Summary;
use crate::difference::{Interval, mean_interval};
use crate::groups;
use serde::{Deserialize, Serialize};

/// Confidence of the interval of the mean.
pub const CONFIDENCE: f64 = 0.95;

/// Two groups decide no question if their means differ by less than this part of the larger one.
const MATTERS: f64 = 0.1;
/// An outlier is worth a line if it differs from the mean of all others by this factor.
const FAR: f64 = 2.0;
/// With a larger coefficient of variation, a mean says little.
const WIDE: f64 = 0.5;

/// A reason to doubt a mean over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// The seeds fall into two groups.
    Bimodal {
        /// Seeds of the lower group and of the upper one.
        seeds: [Vec<u64>; 2],
        /// Their means.
        means: [f64; 2],
    },
    /// One seed is far from all others.
    Outlier {
        /// The seed.
        seed: u64,
        /// Its value.
        value: f64,
        /// Mean of the others.
        others: f64,
    },
    /// The standard deviation is more than half of the mean.
    Wide {
        /// Standard deviation over mean.
        variation: f64,
    },
}

/// A figure over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Arithmetic mean, minimum, maximum and so on.
    #[serde(flatten)]
    pub summary: Summary,
    /// Student's 95 % interval of the mean; `None` for a single sample.
    pub interval: Option<Interval>,
    /// The most serious reason to doubt the mean, if any.
    pub finding: Option<Finding>,
}

impl Spread {
    /// Statistics of `samples`, one for each of `seeds`. `None` if there are none, or if one is not a finite
    /// number.
    #[must_use]
    pub fn of(seeds: &[u64], samples: &[f64]) -> Option<Self> {
        let summary = Summary::of(samples)?;
        let mut order: Vec<(f64, u64)> =
            samples.iter().copied().zip(seeds.iter().copied()).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let interval = mean_interval(&summary, CONFIDENCE);
        Some(Self { summary, interval, finding: finding(&order, &summary) })
    }
}

fn finding(order: &[(f64, u64)], summary: &Summary) -> Option<Finding> {
    let sorted: Vec<f64> = order.iter().map(|(x, _)| *x).collect();
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    if let Some(lower) = groups::two_groups(&sorted) {
        let means = [mean(&sorted[..lower]), mean(&sorted[lower..])];
        if means[1] - means[0] >= MATTERS * means[0].abs().max(means[1].abs()) {
            let seeds = |of: &[(f64, u64)]| {
                let mut seeds: Vec<u64> = of.iter().map(|(_, seed)| *seed).collect();
                seeds.sort_unstable();
                seeds
            };
            return Some(Finding::Bimodal {
                seeds: [seeds(&order[..lower]), seeds(&order[lower..])],
                means,
            });
        }
    }
    if let Some(at) = groups::outlier(&sorted) {
        let others = if at == 0 { mean(&sorted[1..]) } else { mean(&sorted[..at]) };
        let value = sorted[at];
        let (less, more) = (value.abs().min(others.abs()), value.abs().max(others.abs()));
        if more >= FAR * less {
            return Some(Finding::Outlier { seed: order[at].1, value, others });
        }
    }
    let variation = summary.stddev / summary.mean.abs();
    (variation > WIDE).then_some(Finding::Wide { variation })
}

/// Numbers in words: `1 to 4, 7`.
#[must_use]
pub fn ranges(numbers: &[u64]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run =
            rest.iter().zip(0..).take_while(|(s, i)| first.checked_add(*i) == Some(**s)).count();
        match run {
            1 | 2 => {
                parts.push(first.to_string());
                rest = &rest[1..];
            }
            _ => {
                parts.push(format!("{first} to {}", rest[run - 1]));
                rest = &rest[run..];
            }
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(samples: &[f64]) -> Spread {
        let seeds: Vec<u64> = (1..).take(samples.len()).collect();
        Spread::of(&seeds, samples).unwrap()
    }

    #[test]
    fn an_interval_as_in_the_book() {
        // Mean 5, deviation 2.138; t with 7 degrees of freedom is 2.3646: 2.3646 x 2.138 / sqrt(8) = 1.7875.
        let s = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        let i = s.interval.unwrap();
        assert!((i.low - 3.2125).abs() < 1e-3 && (i.high - 6.7875).abs() < 1e-3, "{i:?}");
        assert_eq!((s.finding, spread(&[5.0]).interval), (None, None));
        assert_eq!(Spread::of(&[], &[]), None);
    }

    #[test]
    fn groups_are_named_by_their_seeds() {
        // Acquisitions, in thousands, of equal guests that run in step with some seeds only.
        let s = spread(&[152.0, 9.5, 151.0, 12.0, 150.5, 152.0, 8.0, 151.0]);
        let Some(Finding::Bimodal { seeds, means }) = s.finding else { panic!("{s:?}") };
        assert_eq!(seeds, [vec![2, 4, 7], vec![1, 3, 5, 6, 8]]);
        assert!((means[0] - 29.5 / 3.0).abs() < 1e-9 && (means[1] - 151.3).abs() < 1e-9);
    }

    #[test]
    fn groups_that_hardly_differ_decide_nothing() {
        assert_eq!(spread(&[100.0, 100.1, 105.0, 105.1, 100.05, 105.05]).finding, None);
    }

    #[test]
    fn one_seed_apart_and_wide_spreads() {
        let s = spread(&[150.0, 151.0, 149.0, 150.5, 10.0, 152.0, 150.2]);
        assert_eq!(s.finding, Some(Finding::Outlier { seed: 5, value: 10.0, others: 902.7 / 6.0 }));
        // As many deviations away, but too near to matter.
        assert_eq!(spread(&[150.0, 150.1, 150.2, 150.1, 151.0, 150.1, 150.2]).finding, None);
        let s = spread(&[1.0, 2.0, 3.5, 5.0, 7.0, 10.0]);
        assert!(matches!(s.finding, Some(Finding::Wide { .. })), "{s:?}");
        assert_eq!(spread(&[0.0; 6]).finding, None);
    }

    #[test]
    fn seeds_are_short() {
        assert_eq!(ranges(&[1, 2, 3, 5, 6, 9]), "1 to 3, 5, 6, 9");
        assert_eq!(ranges(&[u64::MAX]), u64::MAX.to_string());
        assert_eq!(ranges(&[]), "");
    }
}
