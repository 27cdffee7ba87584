//! The results of the pairs of runs on threads.

use overspin_native::bench::{PairedPoint, PairedReport};
use overspin_stats::difference::{Paired, holm, paired};

/// Confidence of the intervals, and of the claim.
pub(super) const CONFIDENCE: f64 = 0.95;
/// At most this part of the pairs may have a run without an acquisition.
const FEW: f64 = 0.1;

/// The cost in one situation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Threads.
    pub(super) threads: usize,
    /// Length of the section and mean length of the work between sections, in nanoseconds.
    pub(super) section_ns: u64,
    pub(super) outside_ns: u64,
    /// Pairs, and the number of them without a ratio: a thread with the lock, or next in line, was kept from
    /// its CPU for a whole run.
    pub(super) pairs: usize,
    pub(super) void: usize,
    /// Mean acquisitions per second of the ticket lock.
    pub(super) rate: f64,
    /// Throughput of the PV ticket lock over that of the ticket lock; `None` if there are too few pairs.
    pub(super) ratio: Option<Paired>,
    /// Probability of a difference at least this large if there is none, with all situations counted (Holm).
    pub(super) p: Option<f64>,
}

/// The cost in every situation.
pub(super) fn cost(report: &PairedReport) -> Vec<Cost> {
    let mut costs: Vec<Cost> = report.points.iter().map(one).collect();
    let p: Vec<f64> = costs.iter().filter_map(|c| c.ratio.map(|r| r.p)).collect();
    let mut corrected = holm(&p).into_iter();
    for cost in &mut costs {
        cost.p = cost.ratio.and_then(|_| corrected.next());
    }
    costs
}

fn one(point: &PairedPoint) -> Cost {
    let logs: Vec<f64> = point
        .pairs
        .iter()
        .filter(|pair| pair.iter().all(|rate| *rate > 0.0))
        .map(|[ticket, paravirtual]| (paravirtual / ticket).ln())
        .collect();
    let (pairs, void) = (point.pairs.len(), point.pairs.len() - logs.len());
    let enough = void as f64 <= FEW * pairs as f64;
    Cost {
        threads: point.threads,
        section_ns: point.section_ns,
        outside_ns: point.outside_ns,
        pairs,
        void,
        rate: point.pairs.iter().map(|[ticket, _]| ticket).sum::<f64>() / pairs.max(1) as f64,
        // Logarithms make a ratio and its inverse equal differences, up or down.
        ratio: if enough { paired(&logs, CONFIDENCE).map(|p| p.map(f64::exp)) } else { None },
        p: None,
    }
}
