//! Latencies of a task's answers.

use super::spread::Spread;
use overspin_scenario::{LatencyOutcome, Picos};
use std::cell::{Cell, OnceCell};

/// The latencies of one task. The first answer allocates them: most tasks give none.
#[derive(Debug, Default)]
pub(crate) struct Latencies(OnceCell<Box<Kept>>);

#[derive(Debug)]
struct Kept {
    total: Cell<Picos>,
    max: Cell<Picos>,
    all: Spread,
}

impl Latencies {
    pub(super) fn record(&self, time: Picos) {
        let kept = self.0.get_or_init(|| {
            Box::new(Kept {
                total: Cell::new(Picos::ZERO),
                max: Cell::new(Picos::ZERO),
                all: Spread::new(),
            })
        });
        kept.total.set(kept.total.get() + time);
        kept.max.set(kept.max.get().max(time));
        kept.all.record(time);
    }

    pub(crate) fn outcome(&self) -> Option<LatencyOutcome> {
        let kept = self.0.get()?;
        let quantile = |q| kept.all.at(q, kept.max.get());
        Some(LatencyOutcome {
            answers: kept.all.len(),
            total: kept.total.get(),
            max: kept.max.get(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
        })
    }
}
