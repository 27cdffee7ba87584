//! How many times of which length: a histogram that tells percentiles.

use hdrhistogram::Histogram;
use overspin_scenario::{NS, Picos};
use std::cell::RefCell;

/// Times in nanoseconds, to two digits.
#[derive(Debug)]
pub(super) struct Spread(RefCell<Histogram<u32>>);

impl Spread {
    pub(super) fn new() -> Self {
        Self(RefCell::new(Histogram::new(2).expect("two digits are within the range")))
    }

    pub(super) fn record(&self, time: Picos) {
        // It grows as needed, up to what 64 bits hold.
        self.0.borrow_mut().record(time / NS).expect("the histogram resizes itself");
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.0.borrow().len()
    }

    /// The time that the part `quantile` of them did not exceed, of which the longest is `max`.
    pub(super) fn at(&self, quantile: f64, max: Picos) -> Picos {
        // The histogram gives the upper end of a bucket, which the longest need not reach.
        (self.0.borrow().value_at_quantile(quantile) * NS).min(max)
    }
}
