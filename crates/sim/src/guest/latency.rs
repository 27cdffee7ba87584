//! How long others waited for a task's answers.

use hdrhistogram::Histogram;
use overspin_scenario::{LatencyOutcome, NS, Picos};
use std::cell::{Cell, OnceCell, RefCell};

/// The latencies of one task. Made with the first: most tasks answer nobody.
#[derive(Debug, Default)]
pub(crate) struct Latencies(OnceCell<Box<Kept>>);

#[derive(Debug)]
struct Kept {
    total: Cell<Picos>,
    max: Cell<Picos>,
    /// In nanoseconds.
    all: RefCell<Histogram<u32>>,
}

impl Latencies {
    pub(super) fn record(&self, time: Picos) {
        let kept = self.0.get_or_init(|| {
            let all = Histogram::new(2).expect("two digits are within the range");
            Box::new(Kept { total: Cell::new(0), max: Cell::new(0), all: RefCell::new(all) })
        });
        kept.total.set(kept.total.get() + time);
        kept.max.set(kept.max.get().max(time));
        // It grows as needed, up to what 64 bits hold.
        kept.all.borrow_mut().record(time / NS).expect("the histogram resizes itself");
    }

    pub(crate) fn outcome(&self) -> Option<LatencyOutcome> {
        let kept = self.0.get()?;
        let all = kept.all.borrow();
        // The histogram gives the upper end of a bucket, which the longest need not reach.
        let quantile = |q| (all.value_at_quantile(q) * NS).min(kept.max.get());
        Some(LatencyOutcome {
            answers: all.len(),
            total: kept.total.get(),
            max: kept.max.get(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
        })
    }
}
