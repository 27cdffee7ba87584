//! How single occurrences of an operation differ from their median.
//!
//! What is timed is often a sum of operations. Their tails are rare, so a sum is nearly always long because of one of them.

use super::kernel::median;

/// By how much each of these times is longer than the median.
#[must_use]
pub fn deviations(times: &[f64]) -> Vec<f64> {
    let middle = median(times);
    times.iter().map(|time| time - middle).collect()
}

/// The deviations of single operations, two of which make up each of these times. If both together are long, one is; if
/// they are short, both are, by half of it each.
#[must_use]
pub fn halves(times: &[f64]) -> Vec<f64> {
    let halves = |whole: f64| if whole > 0.0 { [whole, 0.0] } else { [whole / 2.0; 2] };
    deviations(times).into_iter().flat_map(halves).collect()
}

/// What is left of the deviations of a sum without those of one of its parts: quantile by quantile, so that no tail
/// counts twice.
#[must_use]
pub fn without(mut sum: Vec<f64>, mut part: Vec<f64>) -> Vec<f64> {
    part.sort_by(f64::total_cmp);
    sum.sort_by(f64::total_cmp);
    let (all, mut least) = (sum.len(), f64::NEG_INFINITY);
    for (i, left) in sum.iter_mut().enumerate() {
        *left -= part.get(i * part.len() / all).copied().unwrap_or_default();
        // A quantile is at least the one before.
        least = left.max(least);
        *left = least;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_by_hand() {
        assert_eq!(deviations(&[7.0, 5.0, 9.0]), [0.0, -2.0, 2.0]);
        assert_eq!(halves(&[7.0, 5.0, 9.0]), [0.0, 0.0, -1.0, -1.0, 2.0, 0.0]);
        assert_eq!(without(vec![0.0, 10.0, -4.0, 2.0], vec![-1.0, 6.0]), [-3.0, 1.0, 1.0, 4.0]);
        assert_eq!(without(vec![1.0], Vec::new()), [1.0]);
    }
}
