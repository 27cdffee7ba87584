//! How lengths of time are spread: counts by length, from which quantiles are read.

use hdrhistogram::Histogram;
use overspin_scenario::Picos;

use crate::bench::histogram;

/// Waits or latencies; those of zero are counted, but need no place in the histogram.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// All of them.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub total_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    longer: Option<Box<Histogram<u64>>>,
}

impl Spread {
    pub(super) fn record(&mut self, ns: u64) {
        self.count += 1;
        if ns > 0 {
            self.total_ns += ns;
            self.max_ns = self.max_ns.max(ns);
            self.longer.get_or_insert_with(|| Box::new(histogram())).saturating_record(ns);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        if let Some(more) = &other.longer {
            let own = self.longer.get_or_insert_with(|| Box::new(histogram()));
            // Both have the same bounds, so this cannot fail.
            let _ = own.add(&**more);
        }
    }

    /// The length that all but one in `one_in` do not exceed.
    pub(super) fn of_all_but(&self, one_in: u64) -> Picos {
        let beyond = self.count / one_in;
        let Some(longer) = self.longer.as_ref().filter(|h| h.len() > beyond) else {
            return Picos::ZERO;
        };
        let rank = (longer.len() - beyond) as f64 / longer.len() as f64;
        picos(longer.value_at_quantile(rank).min(self.max_ns))
    }
}

pub(super) fn picos(ns: u64) -> Picos {
    Picos(ns.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_zero_count_for_the_quantiles() {
        let mut all = Spread::default();
        (0..90).for_each(|_| all.record(0));
        (1..=10).for_each(|i| all.record(i * 1_000));
        assert_eq!((all.count, all.max_ns, all.total_ns), (100, 10_000, 55_000));
        assert_eq!(all.of_all_but(2), Picos::ZERO);
        // The longest but one: 9 us, to two digits.
        let ns = all.of_all_but(100).nanos();
        assert!((8_900.0..9_100.0).contains(&ns), "{ns}");
        let mut twice = all.clone();
        twice.add(&all);
        assert_eq!((twice.count, twice.of_all_but(100)), (200, all.of_all_but(100)));
    }
}
