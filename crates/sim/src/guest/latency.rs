//! Latencies of a task's answers.

use overspin_histogram::Histogram;
use overspin_scenario::{LatencyOutcome, NS, Picos};
use std::cell::{Cell, OnceCell, RefCell};

/// The latencies of one task. The first answer allocates them: most tasks give none.
#[derive(Debug, Default)]
pub(crate) struct Latencies(OnceCell<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    total: Cell<Picos>,
    max: Cell<Picos>,
    all: RefCell<Histogram>,
}

impl Latencies {
    pub(super) fn record(&self, time: Picos) {
        let kept = self.0.get_or_init(Box::default);
        kept.total.set(kept.total.get() + time);
        kept.max.set(kept.max.get().max(time));
        kept.all.borrow_mut().record(time / NS);
    }

    /// Begins anew.
    pub(super) fn clear(&self) {
        if let Some(kept) = self.0.get() {
            kept.total.set(Picos::ZERO);
            kept.max.set(Picos::ZERO);
            kept.all.take();
        }
    }

    pub(crate) fn outcome(&self) -> Option<LatencyOutcome> {
        let kept = self.0.get()?;
        let (all, max) = (kept.all.borrow(), kept.max.get());
        let quantile = |one_in| (all.of_all_but(one_in, all.count()) * NS).min(max);
        Some(LatencyOutcome {
            answers: all.count(),
            total: kept.total.get(),
            max,
            p50: quantile(2),
            p99: quantile(100),
            p999: quantile(1000),
        })
    }
}
