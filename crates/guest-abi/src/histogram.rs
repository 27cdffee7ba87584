//! A histogram of durations that host and guest share.
//!
//! Durations are in nanoseconds. Each power of two has 32 buckets, so a duration is known to 3 %.

use core::sync::atomic::{AtomicU32, Ordering};

/// Buckets of one power of two.
const STEPS: u64 = 32;

/// Number of buckets: durations up to 2^41 ns, which is half an hour, and all longer ones in the last.
pub const BUCKETS: usize = 37 * STEPS as usize;

/// Durations, counted.
#[derive(Debug)]
#[repr(C)]
pub struct Histogram {
    /// Counts, by bucket.
    pub counts: [AtomicU32; BUCKETS],
}

/// The bucket of a duration.
#[must_use]
pub const fn bucket(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let power = ns.ilog2() as u64 - STEPS.ilog2() as u64;
    let bucket = (power + 1) * STEPS + ((ns >> power) - STEPS);
    if bucket < BUCKETS as u64 { bucket as usize } else { BUCKETS - 1 }
}

/// The longest duration of a bucket, in nanoseconds.
#[must_use]
pub const fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let power = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS + 1) << power) - 1
}

impl Histogram {
    /// Counts a duration. Only one vCPU may call this.
    pub fn record(&self, ns: u64) {
        let count = &self.counts[bucket(ns)];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_durations_that_differ_by_three_percent() {
        let mut last = 0;
        for ns in (0..100_000).chain((17..41).flat_map(|k| [1 << k, (1 << k) + 1, (3 << k) / 2])) {
            let b = bucket(ns);
            assert!(b >= last, "{ns}");
            last = b;
            let end = upper_end(b);
            assert!(end >= ns && end <= ns + ns / 32, "{ns} is in a bucket up to {end}");
            assert_eq!(bucket(end), b);
            assert_eq!(bucket(end + 1), b + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
