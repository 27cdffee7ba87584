//! Bugs of the time-published MCS lock that must be found. See `mutants.rs`.

use overspin_locks::{Bug, McsTp, Tuning};

use crate::harness::{Model, Protected};
use crate::mutants::EXCLUSION;
use crate::platform::{LoomPlatform, Mutation, world};

type Lock = McsTp<LoomPlatform>;

/// A waiter that is forgotten times out again and again: nobody makes progress, but there are writes.
const LIVELOCK: &str = "exceeded maximum number of branches";

/// Waiters time out after one look, and again and again. The clock stands still, so that only who
/// has timed out is passed over.
fn time_outs(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs::<Lock>(cpus, pairs, preemptions)
}

/// Between two looks at the clock so much time goes by that every waiter is stale, and every
/// critical section overdue: all waiters are removed.
fn stale(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        world().advance_clock_by(100_000_000);
        Protected::<Lock>::tuned(cpus, Tuning { spin_budget: Some(2), ..Tuning::DEFAULT })
    })
}

#[test]
fn every_waiter_is_stale() {
    stale(2, 2, 3).passes();
    stale(3, 1, 1).passes();
}

#[test]
fn b1_mcs_tp_exchange_in_two_steps() {
    time_outs(2, 1, 2).catches(Mutation::SplitSwap, LIVELOCK);
}

#[test]
fn b2_mcs_tp_release_relaxed() {
    time_outs(2, 1, 2).catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_mcs_tp_acquire_relaxed() {
    time_outs(2, 1, 2).catches(Mutation::NoAcquire, EXCLUSION);
}

#[test]
fn y1_mcs_tp_grant_ignores_time_out() {
    time_outs(2, 1, 2).catches(Mutation::Seeded(Bug::Y1McsTpGrantIgnoresTimeOut), LIVELOCK);
}
