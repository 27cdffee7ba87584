//! Histograms of durations with sums.

use overspin_histogram::{bucket, lower_end};

/// Durations from `from_ns` up to but excluding `to_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Number of durations.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub time_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// Sum of the squares, square nanoseconds.
    squares: f64,
    counts: overspin_histogram::Histogram,
    /// Sums, by bucket.
    times: Vec<u64>,
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.time_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.squares += (ns as f64).powi(2);
        self.counts.record(ns);
        self.add_time(bucket(ns), ns);
    }

    /// Counts all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.time_ns += other.time_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.squares += other.squares;
        self.counts.add(other.counts.buckets());
        other.times.iter().enumerate().for_each(|(bucket, ns)| self.add_time(bucket, *ns));
    }

    fn add_time(&mut self, bucket: usize, ns: u64) {
        if bucket >= self.times.len() {
            self.times.resize(bucket + 1, 0);
        }
        self.times[bucket] += ns;
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

    /// The duration that all but one in `one_in` do not exceed, at most 1/128 too long. 0 if the histogram is empty.
    #[must_use]
    pub fn of_all_but(&self, one_in: u64) -> u64 {
        self.counts.of_all_but(one_in, self.count).min(self.max_ns)
    }

    /// The bins that are not empty, in order. Each power of two has `parts` of them, a power of two up to 128. The sums are
    /// exact.
    #[must_use]
    pub fn bins(&self, parts: u64) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for (bucket, count) in self.counts.buckets() {
            // Durations below the number of parts have a bin each.
            let first = lower_end(bucket);
            let shift = (first | parts).ilog2() - parts.ilog2();
            let from_ns = first >> shift << shift;
            let time_ns = self.times[bucket];
            match bins.last_mut().filter(|last| last.from_ns == from_ns) {
                Some(last) => {
                    last.count += count;
                    last.time_ns += time_ns;
                }
                None => {
                    let to_ns = from_ns.saturating_add(1 << shift);
                    bins.push(Bin { from_ns, to_ns, count, time_ns });
                }
            }
        }
        bins
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
    fn every_length_is_in_its_bin() {
        for parts in [1, 8, 128] {
            for ns in (0..5000).chain([1 << 40, (1 << 40) + 12345, u64::MAX / 2]) {
                let Bin { from_ns: from, to_ns: to, count, time_ns } = of(&[ns]).bins(parts)[0];
                assert!(from <= ns && ns < to && (count, time_ns) == (1, ns), "{ns}: {from} {to}");
                assert!(to - from == 1 || (to - from) * parts <= from, "{ns}: {from} {to}");
            }
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
            (of(&[]).mean_ns(), of(&[1]).variation(), of(&[]).of_all_but(2)),
            (None, None, 0)
        );
    }

    #[test]
    fn quantiles_are_at_most_the_longest() {
        let h = of(&(1..=1000).map(|i| i * 100).collect::<Vec<_>>());
        // 50 us are in a bucket of 256 ns, 90 and 99 us in one of 512 ns.
        assert_eq!(
            [2, 10, 100, 10_000].map(|k| h.of_all_but(k)),
            [50_175, 90_111, 99_327, 100_000]
        );
    }

    #[test]
    fn merging_is_counting_together_and_octaves_lose_nothing() {
        let (a, b) = ([600, 700, 90_000], [650, 1 << 20, 600]);
        let mut merged = of(&a);
        merged.merge(&of(&b));
        assert_eq!(merged, of(&[a, b].concat()));
        let octaves = merged.bins(1);
        let shown: Vec<_> = octaves.iter().map(|o| (o.from_ns, o.to_ns, o.count)).collect();
        assert_eq!(shown, [(512, 1024, 4), (65_536, 131_072, 1), (1 << 20, 1 << 21, 1)]);
        assert_eq!(octaves.iter().map(|o| o.time_ns).sum::<u64>(), merged.time_ns);
    }
}
