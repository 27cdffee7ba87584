//! How evenly something is shared.
//!
//! Source: R. Jain, D. Chiu and W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation
//! in Shared Computer Systems (1984).

/// Jain's fairness index, from 1/n (one has all) to 1 (all have the same); 1 if there is nothing to share.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert!((jain(&[1.0, 1.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[4.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 3)^2 / (2 * (1 + 9))
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-12);
    }
}
