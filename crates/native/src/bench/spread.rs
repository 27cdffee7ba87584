//! How lengths of time are spread: counts by length, from which quantiles are read.

use overspin_histogram::Histogram;

/// Waits or latencies, in nanoseconds or another unit: a bucket's width is a part of its lengths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    all: Histogram,
    /// Their sum.
    pub total: u64,
    /// The longest.
    pub max: u64,
}

impl Spread {
    #[inline]
    pub(crate) fn record(&mut self, length: u64) {
        self.all.record(length);
        self.total = self.total.saturating_add(length);
        self.max = self.max.max(length);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(other.all.buckets());
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }

    /// Number of all of them.
    pub(crate) fn count(&self) -> u64 {
        self.all.count()
    }

    /// The length that all but one in `one_in` do not exceed.
    pub(crate) fn of_all_but(&self, one_in: u64) -> u64 {
        self.all.of_all_but(one_in, self.count()).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_zero_count_for_the_quantiles() {
        let mut all = Spread::default();
        (0..90).for_each(|_| all.record(0));
        (1..=10).for_each(|i| all.record(i * 1_000));
        assert_eq!((all.count(), all.max, all.total), (100, 10_000, 55_000));
        // The longest but one is 9 us, in a bucket of 64 ns.
        assert_eq!([2, 100, 1000].map(|k| all.of_all_but(k)), [0, 9_023, 10_000]);
        let mut twice = all.clone();
        twice.add(&all);
        assert_eq!((twice.count(), twice.of_all_but(100)), (200, all.of_all_but(100)));
    }
}
