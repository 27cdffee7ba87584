//! A histogram of durations, which gives percentiles.

use hdrhistogram::Histogram;
use overspin_scenario::{NS, Picos};
use std::cell::RefCell;

/// Durations in nanoseconds, to two digits.
#[derive(Debug)]
pub(super) struct Spread(RefCell<Histogram<u32>>);

impl Spread {
    pub(super) fn new() -> Self {
        Self(RefCell::new(Histogram::new(2).expect("two digits are within the range")))
    }

    pub(super) fn record(&self, time: Picos) {
        // The histogram grows as needed, up to the range of 64 bits.
        self.0.borrow_mut().record(time / NS).expect("the histogram resizes itself");
    }

    /// Number of recorded durations.
    pub(super) fn len(&self) -> u64 {
        self.0.borrow().len()
    }

    /// The duration of this rank, from 1 for the shortest; `max` is the longest duration.
    pub(super) fn of_rank(&self, rank: u64, max: Picos) -> Picos {
        // The histogram rounds the rank up: half a rank less keeps rounding errors from adding one.
        self.at((rank as f64 - 0.5) / self.len() as f64, max)
    }

    /// The duration that a fraction `quantile` of them did not exceed; `max` is the longest duration.
    pub(super) fn at(&self, quantile: f64, max: Picos) -> Picos {
        // The histogram gives the upper end of a bucket, which may lie above the longest duration.
        (self.0.borrow().value_at_quantile(quantile) * NS).min(max)
    }
}
