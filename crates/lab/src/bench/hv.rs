//! The micro-hypervisor, beside what the machine itself takes.

use super::{BenchResult, Limit};
use overspin_host::Refused;

/// Rounds. Each measures everything once, so that a slow moment affects a figure and its floor alike.
const ROUNDS: usize = 15;

/// Measures the costs of virtualisation here, and the ratios of the hypervisor's to them. Calls `tell` after each
/// round with the number of rounds done and to do.
///
/// # Errors
/// If this machine has no usable KVM, or this build no hypervisor.
pub fn hv(tell: &mut dyn FnMut(usize, usize)) -> Result<Vec<BenchResult>, Refused> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for i in 0..ROUNDS {
        rounds.push(overspin_hv::round(i as u64)?);
        tell(i + 1, ROUNDS);
    }
    let all = |of: fn(&overspin_hv::Round) -> Option<f64>| -> Vec<f64> {
        rounds.iter().filter_map(of).collect()
    };
    let ns = |name: &str, samples, limit| BenchResult::of(name.into(), samples, "ns", limit);
    let ratio = |name: &str, samples, most| {
        BenchResult::of(name.into(), samples, "ratio", Limit::AtMost(most))
    };
    let mut results = vec![
        ns("bare exit and entry of a vCPU", all(|r| Some(r.round_trip)), Limit::None),
        ns("bare switch between two vCPUs", all(|r| Some(r.alternating)), Limit::None),
        ns("switch between two vCPUs", all(|r| Some(r.switch)), Limit::None),
        BenchResult::of(
            "switch / bare switch".into(),
            all(|r| Some(r.switch / r.alternating)),
            "ratio",
            Limit::None,
        ),
        ratio("switch / bare exit and entry", all(|r| Some(r.switch / r.round_trip)), 1.15),
        ns("its part outside KVM_RUN", all(|r| Some(r.outside)), Limit::None),
        ns("its scheduling pass", all(|r| Some(r.decision)), Limit::AtMost(1_000.0)),
    ];
    let wakes = all(|r| r.wake);
    if !wakes.is_empty() {
        // The entry itself is half of a round trip, on both sides.
        let whole = |wake: f64, trip: f64| wake + trip / 2.0;
        let of = move |r: &overspin_hv::Round| {
            Some(whole(r.wake?, r.round_trip) / whole(r.thread_wake?, r.round_trip))
        };
        results.extend([
            ns("bare wake-up of a thread", all(|r| r.thread_wake), Limit::None),
            ns("wake-up of a vCPU", wakes, Limit::None),
            ratio(
                "wake-up and entry of a vCPU / of a thread",
                rounds.iter().filter_map(of).collect(),
                1.5,
            ),
        ]);
    }
    Ok(results)
}
