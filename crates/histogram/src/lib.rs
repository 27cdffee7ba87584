#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

/// Buckets of one power of two. A duration is known to this part of itself.
pub const PER_OCTAVE: usize = 128;

/// Number of buckets where it is fixed: for durations up to 2^41 ns (37 minutes). Longer ones go to the last bucket.
pub const BUCKETS: usize = bucket((1 << 41) - 1) + 1;

const SUB_BITS: u32 = PER_OCTAVE.ilog2();

/// Returns the bucket of a duration. Without a bound on durations, it is below 7424.
#[must_use]
#[inline]
pub const fn bucket(ns: u64) -> usize {
    // The bits that are lost: none in the first two octaves.
    let shift = (ns | PER_OCTAVE as u64).ilog2() - SUB_BITS;
    shift as usize * PER_OCTAVE + (ns >> shift) as usize
}

/// The bits that are lost in a bucket.
const fn lost(bucket: usize) -> usize {
    (bucket / PER_OCTAVE).saturating_sub(1)
}

/// Returns the shortest duration of a bucket, in nanoseconds.
#[must_use]
pub const fn lower_end(bucket: usize) -> u64 {
    ((bucket - lost(bucket) * PER_OCTAVE) as u64) << lost(bucket)
}

/// Returns the longest duration of a bucket, in nanoseconds.
#[must_use]
pub const fn upper_end(bucket: usize) -> u64 {
    lower_end(bucket) + ((1 << lost(bucket)) - 1)
}

/// Durations, counted. It grows with the longest one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
}

impl Histogram {
    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket(ns);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.grow(bucket),
        }
        self.count += 1;
    }

    /// Makes room for a bucket, and counts its first duration.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize(bucket, 0);
        self.counts.push(1);
    }

    /// Adds the durations of another histogram: buckets, and how many durations each has.
    pub fn add(&mut self, buckets: impl IntoIterator<Item = (usize, u64)>) {
        for (bucket, count) in buckets.into_iter().filter(|(_, count)| *count > 0) {
            if bucket >= self.counts.len() {
                self.counts.resize(bucket + 1, 0);
            }
            self.counts[bucket] += count;
            self.count += count;
        }
    }

    /// The durations that an earlier copy of it did not have.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (now, then) in self.counts.iter_mut().zip(&before.counts) {
            *now = now.saturating_sub(*then);
        }
        self.count = self.counts.iter().sum();
        self
    }

    /// Number of durations.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that are not empty in ascending order, and how many durations each has.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// The duration of this rank, from 1 for the shortest: the upper end of its bucket. 0 if there is no such rank.
    #[must_use]
    pub fn of_rank(&self, rank: u64) -> u64 {
        let mut before = 0;
        let holds = |(_, count): &(usize, u64)| {
            before += count;
            before >= rank
        };
        let found = if rank == 0 { None } else { self.buckets().find(holds) };
        found.map_or(0, |(bucket, _)| upper_end(bucket))
    }

    /// The duration that all but one in `one_in` of `of` do not exceed: the upper end of its bucket. `of` is at least
    /// [`count`](Self::count); those that are not in the histogram count as 0.
    #[must_use]
    pub fn of_all_but(&self, one_in: u64, of: u64) -> u64 {
        self.of_rank(self.count.saturating_sub(of / one_in))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Durations of all lengths: a random one has a random number of bits.
    fn durations() -> impl Strategy<Value = u64> {
        (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
    }

    fn of(durations: &[u64]) -> Histogram {
        let mut h = Histogram::default();
        durations.iter().for_each(|ns| h.record(*ns));
        h
    }

    #[test]
    fn buckets_follow_one_another_without_gaps() {
        let mut from = 0;
        for b in 0..=bucket(u64::MAX) {
            assert_eq!((lower_end(b), bucket(from), bucket(upper_end(b))), (from, b, b));
            // Exact below 256 ns, and then to 1/128.
            let width = upper_end(b) - from;
            assert!(if from < 256 { width == 0 } else { width < from / 128 }, "{b}");
            from = upper_end(b).wrapping_add(1);
        }
        assert_eq!((from, bucket(u64::MAX)), (0, 7423));
        assert_eq!((BUCKETS, upper_end(BUCKETS - 1)), (35 * PER_OCTAVE, (1 << 41) - 1));
    }

    #[test]
    fn what_came_later_is_the_rest() {
        let (first, later) = ([3, 700, 3], [5, 3, 1_000_000]);
        let all: Vec<u64> = first.into_iter().chain(later).collect();
        assert_eq!(of(&all).since(&of(&first)), of(&later));
        assert_eq!(of(&first).since(&of(&first)).count(), 0);
    }

    #[test]
    fn quantiles_by_hand() {
        let hundred = of(&(1..=100).collect::<Vec<_>>());
        assert_eq!([2, 10, 100, 1000].map(|k| hundred.of_all_but(k, 100)), [50, 90, 99, 100]);
        // Half of 99 is less than 50: the 50th has 49 above it.
        assert_eq!(of(&(1..=99).collect::<Vec<_>>()).of_all_but(2, 99), 50);
        // 900 more took no time. Ten may be longer than the 99th percentile, so it is the 90th of the hundred.
        assert_eq!([2, 10, 100, 1000].map(|k| hundred.of_all_but(k, 1000)), [0, 0, 90, 99]);
        let none = Histogram::default();
        assert_eq!((none.of_all_but(2, 0), none.of_all_but(2, 7), none.of_rank(1)), (0, 0, 0));
        assert_eq!([0, 1, 100, 101].map(|rank| hundred.of_rank(rank)), [0, 1, 100, 0]);
    }

    proptest! {
        #[test]
        fn the_quantile_is_that_of_the_sorted_durations_to_one_in_128(
            mut all in prop::collection::vec(durations(), 1..400),
            zeros in 0_u64..400,
            one_in in 1_u64..2000,
        ) {
            let (h, n) = (of(&all), all.len() as u64 + zeros);
            all.extend((0..zeros).map(|_| 0));
            all.sort_unstable();
            let rank = n - n / one_in;
            let exact = rank.checked_sub(1).map_or(0, |at| all[at as usize]);
            let shown = h.of_all_but(one_in, n);
            prop_assert!(shown >= exact && shown - exact <= exact / 128, "{shown} for {exact}");
            prop_assert_eq!(bucket(shown), bucket(exact));
            // A rarer excess has a longer quantile.
            prop_assert!(h.of_all_but(one_in + 1, n) >= shown);
        }

        #[test]
        fn adding_is_counting_together(a in prop::collection::vec(durations(), 0..50), b in prop::collection::vec(durations(), 0..50)) {
            let mut sum = of(&a);
            sum.add(of(&b).buckets());
            prop_assert_eq!(sum, of(&[a, b].concat()));
        }

        #[test]
        fn it_is_an_hdr_histogram_of_two_digits(
            // The other one is off by one in the last of all buckets.
            all in prop::collection::vec(durations().prop_map(|ns| ns >> 1), 1..400),
        ) {
            let mut hdr = hdrhistogram::Histogram::<u32>::new(2).unwrap();
            all.iter().for_each(|ns| hdr.record(*ns).unwrap());
            let h = of(&all);
            for (quantile, one_in) in [(0.5, 2), (0.9, 10), (0.99, 100), (0.999, 1000)] {
                prop_assert_eq!(h.of_all_but(one_in, h.count()), hdr.value_at_quantile(quantile));
            }
            for ns in all {
                let ends = (lower_end(bucket(ns)), upper_end(bucket(ns)));
                prop_assert_eq!(ends, (hdr.lowest_equivalent(ns), hdr.highest_equivalent(ns)));
            }
        }
    }
}
