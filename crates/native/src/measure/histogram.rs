//! Histograms of durations. A bin is an eighth of an octave wide, so a duration is known to an eighth; sums
//! are exact.

use serde::Serialize;

/// Bins per octave, as a power of two.
const SUB_BITS: u32 = 3;

/// Durations from `from_ns` up to but excluding `to_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Lower end, nanoseconds.
    pub from_ns: u64,
    /// Upper end, not included.
    pub to_ns: u64,
    /// Number of durations.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub time_ns: u64,
}

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// Number of durations.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub time_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// Sum of the squares, square nanoseconds.
    #[serde(skip)]
    squares: f64,
    /// Bins that are not empty, in order.
    pub bins: Vec<Bin>,
}

/// Returns the ends of the bin of `ns`.
fn ends(ns: u64) -> (u64, u64) {
    // Durations below the number of bins per octave have a bin each.
    let shift = ns.checked_ilog2().unwrap_or(0).saturating_sub(SUB_BITS);
    let from = ns >> shift << shift;
    (from, from.saturating_add(1 << shift))
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, ns: u64) {
        let (from_ns, to_ns) = ends(ns);
        self.add(Bin { from_ns, to_ns, count: 1, time_ns: ns });
        self.max_ns = self.max_ns.max(ns);
        self.squares += (ns as f64).powi(2);
    }

    /// Counts all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for bin in &other.bins {
            self.add(*bin);
        }
        self.max_ns = self.max_ns.max(other.max_ns);
        self.squares += other.squares;
    }

    fn add(&mut self, bin: Bin) {
        self.count += bin.count;
        self.time_ns += bin.time_ns;
        match self.bins.binary_search_by_key(&bin.from_ns, |b| b.from_ns) {
            Ok(at) => {
                self.bins[at].count += bin.count;
                self.bins[at].time_ns += bin.time_ns;
            }
            Err(at) => self.bins.insert(at, bin),
        }
    }

    /// Mean, nanoseconds; `None` if the histogram is empty.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.time_ns as f64 / self.count as f64)
    }

    /// Standard deviation over mean: 1 for an exponential distribution, 0 if all are equal. `None` for
    /// fewer than two durations.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean_ns().filter(|m| *m > 0.0 && self.count > 1)?;
        let variance = (self.squares / self.count as f64 - mean * mean).max(0.0);
        Some(variance.sqrt() / mean)
    }

    /// The duration that a share `q` of all do not exceed: the upper end of its bin, at most an eighth too
    /// long. 0 if the histogram is empty.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let wanted = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for bin in &self.bins {
            seen += bin.count;
            if seen >= wanted {
                return (bin.to_ns - 1).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The bins merged into powers of two.
    #[must_use]
    pub fn octaves(&self) -> Vec<Bin> {
        let mut octaves: Vec<Bin> = Vec::new();
        for bin in &self.bins {
            let from_ns = bin.from_ns.checked_ilog2().map_or(0, |power| 1 << power);
            match octaves.last_mut() {
                Some(last) if last.from_ns == from_ns => {
                    last.count += bin.count;
                    last.time_ns += bin.time_ns;
                }
                _ => octaves.push(Bin { from_ns, to_ns: (from_ns * 2).max(1), ..*bin }),
            }
        }
        octaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[u64]) -> Histogram {
        let mut h = Histogram::default();
        lengths.iter().for_each(|ns| h.record(*ns));
        h
    }

    #[test]
    fn every_length_is_in_its_bin_of_an_eighth() {
        for ns in (0..5000).chain([1 << 40, (1 << 40) + 12345, u64::MAX / 2]) {
            let (from, to) = ends(ns);
            assert!(from <= ns && ns < to, "{ns}: {from} {to}");
            assert!(to - from == 1 || (to - from) * 8 <= from, "{ns}: {from} {to}");
        }
    }

    #[test]
    fn sums_means_and_spreads_by_hand() {
        // Mean 3000, variance (2000^2 + 0 + 2000^2) / 3.
        let h = of(&[1000, 3000, 5000]);
        assert_eq!((h.count, h.time_ns, h.max_ns), (3, 9000, 5000));
        assert_eq!(h.mean_ns(), Some(3000.0));
        let variation = (8e6_f64 / 3.0).sqrt() / 3000.0;
        assert!((h.variation().unwrap() - variation).abs() < 1e-9);
        assert!(of(&[700; 9]).variation().unwrap() < 1e-6);
        assert_eq!(
            (of(&[]).mean_ns(), of(&[1]).variation(), of(&[]).quantile_ns(0.5)),
            (None, None, 0)
        );
    }

    #[test]
    fn quantiles_are_at_most_an_eighth_too_long() {
        let h = of(&(1..=1000).map(|i| i * 100).collect::<Vec<_>>());
        for (q, exact) in [(0.01, 1000), (0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let shown = h.quantile_ns(q);
            assert!((exact..=exact * 9 / 8).contains(&shown), "{q}: {shown}");
        }
    }

    #[test]
    fn merging_is_counting_together_and_octaves_lose_nothing() {
        let (a, b) = ([600, 700, 90_000], [650, 1 << 20, 600]);
        let mut merged = of(&a);
        merged.merge(&of(&b));
        assert_eq!(merged, of(&[a, b].concat()));
        let octaves = merged.octaves();
        let shown: Vec<_> = octaves.iter().map(|o| (o.from_ns, o.to_ns, o.count)).collect();
        assert_eq!(shown, [(512, 1024, 4), (65_536, 131_072, 1), (1 << 20, 1 << 21, 1)]);
        assert_eq!(octaves.iter().map(|o| o.time_ns).sum::<u64>(), merged.time_ns);
    }
}
