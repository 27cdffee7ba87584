//! Times of lock operations, derived by hand from the cost model (`src/memory.rs`) and compared to the
//! picosecond. A hit takes 0.5 ns, an atomic 8 ns extra, a transfer between cores 60 ns, a fence 8 ns.

use crate::common::{host, lock_loop, scenario, tickless, traced};
use overspin_host::Moment;
use overspin_scenario::{MS, NS, Picos, US};
use overspin_workload::LockLoop;

/// Times between consecutive acquisitions of the lock, on a host with a pCPU for each vCPU and no ticks.
/// The first ones are left out: lines come into caches and vCPUs boot.
fn distances(lock: &str, vcpus: u32, section: Picos, outside: Picos) -> Vec<Picos> {
    let work = LockLoop { fixed: true, ..lock_loop(section, outside) };
    let guest = tickless(vcpus, lock, work);
    let (_, trace) = traced(&scenario(host(vcpus, "null"), vec![guest], 10 * MS), 1);
    let times: Vec<Picos> = trace
        .iter()
        .filter(|(_, e)| matches!(e, Moment::LockAcquired { lock: 0, .. }))
        .map(|(at, _)| *at)
        .collect();
    assert!(times.len() > 100, "{} acquisitions", times.len());
    times.windows(2).skip(20).map(|w| w[1] - w[0]).collect()
}

#[track_caller]
fn all_are(distances: &[Picos], expected: Picos) {
    let off: Vec<_> = distances.iter().filter(|d| **d != expected).take(5).collect();
    assert!(off.is_empty(), "expected {expected} always, also found {off:?}");
}

#[test]
fn uncontended_cycle_of_each_old_lock() {
    let work = 3 * US + 7 * US;
    // Draw a ticket and serve the next: two atomic operations on a line that the vCPU owns.
    all_are(&distances("ticket", 1, 3 * US, 7 * US), work + Picos(2 * 8_500));
    // An exchange, and a store that hits.
    all_are(&distances("lock-byte", 1, 3 * US, 7 * US), work + Picos(8_500) + Picos(500));
    // An exchange; a store, a fence, and a load that hits.
    all_are(
        &distances("xen-pv", 1, 3 * US, 7 * US),
        work + Picos(8_500) + Picos(500) + Picos(8_000) + Picos(500),
    );
}

#[test]
fn a_ticket_lock_hands_over_in_two_transfers_and_an_atomic() {
    // Two vCPUs on two cores want nothing but the lock. To serve the next, the holder needs the line on
    // which the waiter drew its ticket: one transfer and the atomic's 8 ns. The waiter spins on the line
    // and reads it again: one transfer. The old holder draws its next ticket during the section.
    all_are(&distances("ticket", 2, 5 * US, Picos::ZERO), 5 * US + (60 + 8 + 60) * NS);
}

#[test]
fn a_ticket_lock_serves_spinners_as_the_line_reaches_them() {
    // With three vCPUs one more spins on the line and reads it again too. Requests are served every
    // quarter of a transfer, in the order in which the vCPUs began to spin. The next holder began first,
    // so the hand-over is the same as with two.
    all_are(&distances("ticket", 3, 5 * US, Picos::ZERO), 5 * US + (60 + 8 + 60) * NS);
}

#[test]
fn a_line_that_spinners_have_read_again_is_dear_to_its_owner() {
    // This is the time from a release to the same vCPU's next failed attempt, with nothing in between. The
    // release takes 68 ns, as above. The spinners then read the line again: one transfer, and a quarter
    // for each. The next ticket is drawn after that and takes the line back: one transfer and 8 ns.
    for (vcpus, spinners) in [(2, 1), (3, 2)] {
        let work = LockLoop { fixed: true, ..lock_loop(5 * US, Picos::ZERO) };
        let guest = tickless(vcpus, "ticket", work);
        let (_, trace) = traced(&scenario(host(vcpus, "null"), vec![guest], 10 * MS), 1);
        let mut released = vec![None; vcpus as usize];
        let mut gaps = Vec::new();
        for (at, event) in trace {
            match event {
                Moment::LockReleased { vcpu, lock: 0, .. } => released[vcpu as usize] = Some(at),
                Moment::LockWait { vcpu, lock: 0, .. } => {
                    gaps.extend(released[vcpu as usize].take().map(|since| at - since));
                }
                _ => {}
            }
        }
        assert!(gaps.len() > 100);
        all_are(&gaps[20..], (68 + 60 + 15 * spinners + 68) * NS);
    }
}

#[test]
fn an_uncontended_lock_costs_the_same_at_any_rate() {
    for outside in [Picos::ZERO, US, 50 * US] {
        all_are(&distances("ticket", 1, US, outside), US + outside + Picos(2 * 8_500));
    }
}
