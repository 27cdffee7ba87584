//! Metrics of simulated scenarios: runs, many seeds, sweeps. They are defined where they are measured.

use crate::seeds::QUANTITIES;
use crate::sweep::MEASURES;
use overspin_record::metric::{Metric, Table};
use std::sync::LazyLock;

static OF_RUNS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    QUANTITIES.iter().map(|q| Metric::new(q.metric, q.unit, q.definition)).collect()
});
static OF_POINTS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    MEASURES.iter().map(|m| Metric::new(m.metric, m.unit, m.definition)).collect()
});

/// Quantities of the host; those of domains follow, and then those of locks.
const HOST: usize = 1;
/// Quantities of a domain.
const DOMAIN: usize = 5;

/// What a run has, with one seed or with many.
pub static OF_RUN: [Table; 3] = [
    Table {
        heading: "The host",
        places: "The place is `host`.",
        metrics: || OF_RUNS[..HOST].iter().collect(),
    },
    Table {
        heading: "A domain",
        places: "The place is the domain's name, `guest`; `guest#1` if several share the name.",
        metrics: || OF_RUNS[HOST..HOST + DOMAIN].iter().collect(),
    },
    Table {
        heading: "A lock",
        places: "The place is `guest/dcache_lock`: the domain and the lock.",
        metrics: || OF_RUNS[HOST + DOMAIN..].iter().collect(),
    },
];

/// What each point of a sweep has.
pub static OF_SWEEP: [Table; 1] = [Table {
    heading: "A point of a sweep",
    places: "The place has the values on the axes, in their order: `ticket.2/1`.",
    metrics: || OF_POINTS.iter().collect(),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_begin_where_the_subject_changes() {
        let first: Vec<&str> = OF_RUN.iter().map(|table| (table.metrics)()[0].name).collect();
        assert_eq!(first, ["busy", "elapsed", "acquisitions"]);
    }
}
