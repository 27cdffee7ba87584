//! The test for bimodal samples: two groups, or one?
//!
//! Source: L. Engelman and J. A. Hartigan, Percentage Points of a Test for Clusters, Journal of the American
//! Statistical Association 64 (1969). The samples are split in two so that the sum of squares between the
//! groups is largest relative to that within them. This ratio is the likelihood ratio of two normal
//! populations of one variance against a single one.
//!
//! Our test differs in two ways. The percentage points are those of a *uniform* population, not of a normal
//! one: of the populations with one mode, it looks most like two groups. And a group has at least two
//! samples, because one sample far from all others does not prove a second mode; [`outlier`] finds such
//! samples.
//!
//! The dip test (Hartigan and Hartigan 1985) assumes less about the populations, but has little power with
//! few samples: the dip is at most half the share of the smaller group, and its 1 % points are 0.197, 0.160
//! and 0.121 for 5, 10 and 20 samples. So two of ten samples, or four of twenty, are never found, however far
//! away.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest samples for the test.
pub const FEWEST: usize = 5;

/// 99 % points of the ratio for `FEWEST` and more uniform samples, from 400,000 sets each.
const POINTS: [f64; 36] = [
    98.68, 53.14, 34.25, 24.87, 19.82, 16.6, 14.4, 12.93, 11.79, 10.9, 10.15, 9.64, 9.16, 8.75,
    8.41, 8.06, 7.86, 7.65, 7.45, 7.28, 7.08, 6.93, 6.81, 6.65, 6.54, 6.45, 6.35, 6.27, 6.16, 6.09,
    6.0, 5.91, 5.87, 5.82, 5.75, 5.7,
];

/// Rate of false alarms of both tests if there is one population: uniform for the groups, normal for the
/// outlier.
pub const FALSE_ALARMS: f64 = 0.01;

/// The best split of `sorted` samples into a lower and an upper group of at least two: the size of the lower
/// group, and the ratio of the sums of squares between the groups and within them. `None` for fewer than four
/// samples.
fn best_split(sorted: &[f64]) -> Option<(usize, f64)> {
    let n = sorted.len();
    let mean = sorted.iter().sum::<f64>() / n as f64;
    let total: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
    let (mut sum, mut best) = (0.0, None);
    for (i, x) in sorted.iter().enumerate() {
        sum += x - mean;
        let (lower, upper) = (i + 1, n - i - 1);
        if lower >= 2 && upper >= 2 {
            // The other group's sum has the same size and the opposite sign.
            let between = sum * sum * (1.0 / lower as f64 + 1.0 / upper as f64);
            if best.is_none_or(|(_, most)| between > most) {
                best = Some((lower, between));
            }
        }
    }
    best.map(|(lower, between)| (lower, between / (total - between).max(0.0)))
}

/// The size of the lower of two groups of `sorted` samples, if the test finds two.
#[must_use]
pub fn two_groups(sorted: &[f64]) -> Option<usize> {
    let row = sorted.len().checked_sub(FEWEST)?;
    // The points fall with the number of samples, so using the last one is conservative.
    let point = POINTS[row.min(POINTS.len() - 1)];
    // Equal samples give 0 / 0.
    best_split(sorted).filter(|(_, ratio)| *ratio > point).map(|(lower, _)| lower)
}

/// The index of the first or the last of `sorted` samples, if it is an outlier by Grubbs' test (1950) for
/// normal samples.
#[must_use]
pub fn outlier(sorted: &[f64]) -> Option<usize> {
    let n = sorted.len();
    if n < FEWEST {
        return None;
    }
    let count = n as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let variance = sorted.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let at = if mean - sorted[0] > sorted[n - 1] - mean { 0 } else { n - 1 };
    let distance = (sorted[at] - mean).abs() / variance.sqrt();
    let t = StudentsT::new(0.0, 1.0, count - 2.0).ok()?;
    let t = t.inverse_cdf(1.0 - FALSE_ALARMS / (2.0 * count)).powi(2);
    let point = (count - 1.0) / count.sqrt() * (t / (count - 2.0 + t)).sqrt();
    (distance > point).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};
    use statrs::distribution::Normal;

    /// Uniform from 0 to 1, without the ends.
    fn uniform(random: &mut ChaCha8Rng) -> f64 {
        (f64::from(random.next_u32()) + 0.5) / 2f64.powi(32)
    }

    /// Percentage of `sets` sets of `n` draws that pass `test`.
    fn rate(
        n: usize,
        sets: usize,
        draw: impl Fn(&mut ChaCha8Rng, usize) -> f64,
        test: impl Fn(&[f64]) -> bool,
    ) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(n as u64);
        let yes = (0..sets)
            .filter(|_| {
                let mut samples: Vec<f64> = (0..n).map(|i| draw(&mut random, i)).collect();
                samples.sort_by(f64::total_cmp);
                test(&samples)
            })
            .count();
        100.0 * yes as f64 / sets as f64
    }

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        Normal::standard().inverse_cdf(uniform(random))
    }

    fn grouped(sorted: &[f64]) -> bool {
        two_groups(sorted).is_some()
    }

    #[test]
    fn one_population_is_seldom_taken_for_two() {
        // With 20,000 sets, a rate of 1 % has a standard error of 0.07.
        for n in [5, 6, 8, 10, 14, 20, 30, 40, 60] {
            let even = rate(n, 20_000, |r, _| uniform(r), grouped);
            let expected = if n <= 40 { 0.7..1.3 } else { 0.0..0.5 };
            assert!(expected.contains(&even), "{n}: uniform {even}");
            let bell = rate(n, 4_000, |r, _| normal(r), grouped);
            assert!(bell < 0.7, "{n}: normal {bell}");
            // Skewed: the exponential distribution, which most waits resemble.
            let skewed = rate(n, 4_000, |r, _| -uniform(r).ln(), grouped);
            assert!(skewed < 2.5, "{n}: exponential {skewed}");
        }
    }

    #[test]
    fn two_populations_are_found() {
        // A third or a fifth of the samples, 20 standard deviations away: 5 of 2 and 3, 10 of 2 and 8, ...
        for (n, few, least) in
            [(5, 2, 70.0), (6, 3, 90.0), (8, 2, 97.0), (10, 2, 99.0), (40, 4, 99.0)]
        {
            let draw = |r: &mut ChaCha8Rng, i: usize| normal(r) + if i < few { 20.0 } else { 0.0 };
            let found = rate(n, 1_000, draw, |sorted| two_groups(sorted) == Some(n - few));
            assert!(found > least, "{few} of {n}: {found}");
        }
    }

    #[test]
    fn samples_by_hand() {
        assert_eq!(two_groups(&[1.0, 1.0, 1.0, 9.0, 9.0]), Some(3));
        assert_eq!(two_groups(&[10.0, 10.1, 10.2, 150.0, 150.2, 151.0]), Some(3));
        assert_eq!(two_groups(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), None);
        assert_eq!(two_groups(&[7.0; 10]), None);
        assert_eq!(two_groups(&[1.0, 1.0, 9.0, 9.0]), None, "too few to tell");
        assert_eq!(two_groups(&[]), None);
        // (1 - 5)^2 + (2 - 5)^2, twice, are 50 in all; between the groups it is 2 x 2 x 3.5^2 = 49.
        let (lower, ratio) = best_split(&[1.0, 2.0, 8.0, 9.0]).unwrap();
        assert_eq!(lower, 2);
        assert!((ratio - 49.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn outliers_by_grubbs() {
        // NIST's example (Tietjen and Moore 1972): G = 2.469 is beyond the 5 % point 2.032 of eight samples;
        // the two-sided 1 % point is 2.274.
        let uranium = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57];
        assert_eq!(outlier(&uranium), Some(7));
        let mirrored: Vec<f64> = uranium.iter().rev().map(|x| -x).collect();
        assert_eq!(outlier(&mirrored), Some(0));
        assert_eq!(outlier(&uranium[..7]), None);
        assert_eq!(outlier(&[3.0; 8]), None);
        for n in [5, 10, 40] {
            let alarms = rate(n, 10_000, |r, _| normal(r), |sorted| outlier(sorted).is_some());
            assert!((0.6..1.4).contains(&alarms), "{n}: {alarms}");
        }
    }
}
