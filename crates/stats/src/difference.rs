//! Are two sets of samples different, and by how much?
//!
//! Sources: Student 1908 and Welch 1947 for means; Mann and Whitney 1947 for ranks, with the
//! correction for ties; Efron 1979 for the bootstrap; Hedges 1981 and Cliff 1993 for effect sizes.

use crate::Summary;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

/// A difference of means, with its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Means {
    /// Second mean minus first.
    pub difference: f64,
    /// Half the width of its confidence interval.
    pub margin: f64,
    /// Statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided probability of a difference at least this large if there is none.
    pub p: f64,
}

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

fn means(a: &Summary, b: &Summary, squared_error: f64, df: f64, confidence: f64) -> Option<Means> {
    let difference = b.mean - a.mean;
    let error = squared_error.sqrt();
    let distribution = StudentsT::new(0.0, 1.0, df).ok()?;
    // Sets without any spread differ as soon as their means differ.
    let t = if error > 0.0 {
        difference / error
    } else if difference == 0.0 {
        0.0
    } else {
        f64::INFINITY.copysign(difference)
    };
    let p = if t.is_infinite() { 0.0 } else { 2.0 * distribution.sf(t.abs()) };
    let margin = error * distribution.inverse_cdf(f64::midpoint(1.0, confidence));
    Some(Means { difference, margin, t, df, p: p.min(1.0) })
}

/// Welch's test: the sets may spread differently. `None` if one set has fewer than two samples.
#[must_use]
pub fn welch(a: &Summary, b: &Summary, confidence: f64) -> Option<Means> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let part = |s: &Summary| s.stddev.powi(2) / s.n as f64;
    let (va, vb) = (part(a), part(b));
    let whole = va + vb;
    let df = if whole > 0.0 {
        whole.powi(2) / (va.powi(2) / (a.n - 1) as f64 + vb.powi(2) / (b.n - 1) as f64)
    } else {
        (a.n + b.n - 2) as f64
    };
    means(a, b, whole, df, confidence)
}

/// Student's test, which ministat uses: it assumes equal spreads. `None` if one set has fewer than two
/// samples.
#[must_use]
pub fn student(a: &Summary, b: &Summary, confidence: f64) -> Option<Means> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let df = (a.n + b.n - 2) as f64;
    let pooled = pooled_variance(a, b);
    means(a, b, pooled * (1.0 / a.n as f64 + 1.0 / b.n as f64), df, confidence)
}

fn pooled_variance(a: &Summary, b: &Summary) -> f64 {
    let squares = |s: &Summary| s.stddev.powi(2) * (s.n - 1) as f64;
    (squares(a) + squares(b)) / (a.n + b.n - 2) as f64
}

/// Hedges' g: the difference of means in standard deviations, corrected for small sets.
#[must_use]
pub fn hedges_g(a: &Summary, b: &Summary) -> Option<f64> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let spread = pooled_variance(a, b).sqrt();
    let correction = 1.0 - 3.0 / (4.0 * (a.n + b.n) as f64 - 9.0);
    (spread > 0.0).then(|| correction * (b.mean - a.mean) / spread)
}

/// Mann and Whitney's U of the first set, and its two-sided probability by the normal
/// approximation, corrected for ties and continuity. `None` for an empty set, or if all samples
/// are equal.
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let (na, nb) = (a.len() as f64, b.len() as f64);
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|x| (*x, true)).chain(b.iter().map(|x| (*x, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut rank_sum, mut ties) = (0.0, 0.0);
    let mut first = 0;
    while first < all.len() {
        let equal = all[first..].iter().take_while(|x| x.0 == all[first].0).count();
        // Equal samples share the mean of their ranks, which count from 1.
        let rank = first as f64 + f64::midpoint(1.0, equal as f64);
        let of_a = all[first..first + equal].iter().filter(|x| x.1).count();
        rank_sum += rank * of_a as f64;
        ties += (equal as f64).powi(3) - equal as f64;
        first += equal;
    }
    let u = rank_sum - na * (na + 1.0) / 2.0;
    let n = na + nb;
    let variance = na * nb / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return None;
    }
    let distance = ((u - na * nb / 2.0).abs() - 0.5).max(0.0);
    let normal = Normal::standard();
    Some((u, (2.0 * normal.sf(distance / variance.sqrt())).min(1.0)))
}

/// Cliff's delta: the probability that a sample of the second set is larger than one of the first, less the
/// probability that it is smaller; from -1 to 1. `u` is Mann and Whitney's of the first set.
#[must_use]
pub fn cliffs_delta(u: f64, a: usize, b: usize) -> f64 {
    1.0 - 2.0 * u / (a as f64 * b as f64)
}

/// Confidence interval of the ratio of means, second to first, by the percentile bootstrap. `None`
/// if the first set has a mean of zero in some resample, or there are too few samples.
#[must_use]
pub fn ratio_interval(a: &[f64], b: &[f64], confidence: f64, seed: u64) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut mean = |of: &[f64]| {
        let sum: f64 = (0..of.len())
            .map(|_| {
                // Multiply and shift: the bias is below 2^-32 x the number of samples.
                let at = (u64::from(random.next_u32()) * of.len() as u64) >> 32;
                of[at as usize]
            })
            .sum();
        sum / of.len() as f64
    };
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (of_a, of_b) = (mean(a), mean(b));
        if of_a == 0.0 {
            return None;
        }
        ratios.push(of_b / of_a);
    }
    ratios.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let at = |part: f64| ratios[((RESAMPLES - 1) as f64 * part).round() as usize];
    Some(Interval { low: at(tail), high: at(1.0 - tail) })
}

/// A mean of differences within pairs, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Mean difference.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided probability of a difference at least this large if there is none.
    pub p: f64,
}

impl Paired {
    /// This difference on another scale, for example ratios for the differences of logarithms.
    #[must_use]
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Self { middle: scale(self.middle), low: scale(self.low), high: scale(self.high), ..self }
    }
}

/// Student's test of differences within pairs: a disturbance common to both of a pair drops out. `None` if
/// there are fewer than two pairs, or if a difference is not finite.
#[must_use]
pub fn paired(differences: &[f64], confidence: f64) -> Option<Paired> {
    let s = Summary::of(differences).filter(|s| s.n > 1)?;
    let of_nothing = Summary { mean: 0.0, ..s };
    let df = (s.n - 1) as f64;
    let m = means(&of_nothing, &s, s.stddev.powi(2) / s.n as f64, df, confidence)?;
    Some(Paired { middle: s.mean, low: s.mean - m.margin, high: s.mean + m.margin, p: m.p })
}

/// Student's confidence interval of the mean of samples. `None` for fewer than two samples.
#[must_use]
pub fn mean_interval(samples: &Summary, confidence: f64) -> Option<Interval> {
    if samples.n < 2 {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, (samples.n - 1) as f64).ok()?;
    let error = samples.stddev / (samples.n as f64).sqrt();
    let margin = error * t.inverse_cdf(f64::midpoint(1.0, confidence));
    Some(Interval { low: samples.mean - margin, high: samples.mean + margin })
}

/// Holm's correction of several probabilities: each can then be judged as that of a single test.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, i) in order.into_iter().enumerate() {
        least = least.max(p[i] * (p.len() - rank) as f64).min(1.0);
        corrected[i] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data (1908); the results are those that R prints.
    const DRUG_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const DRUG_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    fn near(value: f64, expected: f64, digits: i32) {
        assert!((value - expected).abs() <= 0.5 * 10f64.powi(-digits), "{value} for {expected}");
    }

    fn drugs() -> (Summary, Summary) {
        (Summary::of(&DRUG_1).unwrap(), Summary::of(&DRUG_2).unwrap())
    }

    #[test]
    fn students_sleep_by_welch() {
        // t = -1.8608, df = 17.776, p-value = 0.07939, 95 percent: -3.3654832 0.2054832.
        let (a, b) = drugs();
        let w = welch(&a, &b, 0.95).unwrap();
        near(w.t, 1.8608, 4);
        near(w.df, 17.776, 3);
        near(w.p, 0.07939, 5);
        near(w.difference - w.margin, -0.205_483_2, 6);
        near(w.difference + w.margin, 3.365_483_2, 6);
    }

    #[test]
    fn students_sleep_by_student_and_ranks() {
        // With equal variances: t = -1.8608, df = 18, p-value = 0.07919.
        let (a, b) = drugs();
        let s = student(&a, &b, 0.95).unwrap();
        near(s.t, 1.8608, 4);
        near(s.p, 0.07919, 5);
        // Wilcoxon rank sum with continuity correction: W = 25.5, p-value = 0.06933.
        let (u, p) = mann_whitney(&DRUG_1, &DRUG_2).unwrap();
        assert_eq!(u, 25.5);
        near(p, 0.06933, 5);
        // (74.5 - 25.5) / 100.
        near(cliffs_delta(u, 10, 10), 0.49, 12);
    }

    #[test]
    fn students_sleep_in_pairs() {
        // The two drugs were given to the same ten patients. t = -4.0621, df = 9, p-value = 0.002833,
        // 95 percent: -2.4598858 -0.7001142, mean of the differences -1.58.
        let differences: Vec<f64> = DRUG_1.iter().zip(DRUG_2).map(|(a, b)| a - b).collect();
        let p = paired(&differences, 0.95).unwrap();
        near(p.middle, -1.58, 12);
        near(p.low, -2.459_885_8, 6);
        near(p.high, -0.700_114_2, 6);
        near(p.p, 0.002_833, 6);
        assert_eq!(paired(&[0.5], 0.95), None);
        assert_eq!(paired(&[0.5, f64::INFINITY], 0.95), None);
        near(p.map(|x| 2.0 * x).low, 2.0 * p.low, 12);
    }

    #[test]
    fn ministats_own_example() {
        // iguana and chameleon of its manual page: no difference proven at 95 %.
        let iguana = Summary::of(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]).unwrap();
        let chameleon = Summary::of(&[150.0, 400.0, 720.0, 500.0, 930.0]).unwrap();
        near(iguana.stddev, 238.04761, 5);
        near(chameleon.stddev, 299.08193, 5);
        assert_eq!((iguana.median, chameleon.median), (200.0, 500.0));
        let s = student(&iguana, &chameleon, 0.95).unwrap();
        assert!(s.difference.abs() < s.margin);
        assert!(student(&iguana, &chameleon, 0.80).unwrap().margin < s.difference);
    }

    #[test]
    fn holm_by_hand() {
        // 0.01 x 3; then the larger of 0.03 and 0.02 x 2; then the larger of that and 0.05.
        let corrected = holm(&[0.05, 0.01, 0.02]);
        [0.05, 0.03, 0.04].iter().zip(&corrected).for_each(|(e, c)| near(*c, *e, 12));
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn equal_and_constant_samples() {
        let (one, two) = (Summary::of(&[2.0; 5]).unwrap(), Summary::of(&[3.0; 5]).unwrap());
        assert_eq!(welch(&one, &one, 0.95).unwrap().p, 1.0);
        assert_eq!(welch(&one, &two, 0.95).unwrap().p, 0.0);
        assert_eq!(mann_whitney(&[2.0; 5], &[2.0; 5]), None);
        let i = ratio_interval(&[2.0; 5], &[3.0; 5], 0.95, 1).unwrap();
        assert_eq!((i.low, i.high), (1.5, 1.5));
        assert_eq!(ratio_interval(&[0.0; 5], &[3.0; 5], 0.95, 1), None);
        assert!(welch(&Summary::of(&[1.0]).unwrap(), &two, 0.95).is_none());
    }

    #[test]
    fn the_bootstrap_agrees_with_the_exact_interval_of_many_samples() {
        // Means 100 and 110, standard deviations 28.9: the ratio's standard error is about
        // 1.1 x sqrt((0.289^2 + 0.262^2) / 200).
        let a: Vec<f64> = (0..200).map(|i| 50.0 + f64::from(i) / 2.0).collect();
        let b: Vec<f64> = a.iter().map(|x| x + 10.0).collect();
        let i = ratio_interval(&a, &b, 0.95, 7).unwrap();
        let error = 1.1 * ((0.289f64.powi(2) + 0.262f64.powi(2)) / 200.0).sqrt();
        near(i.low, 1.1 - 1.96 * error, 1);
        assert!((i.high - i.low - 2.0 * 1.96 * error).abs() < 0.15 * 2.0 * 1.96 * error, "{i:?}");
    }
}
