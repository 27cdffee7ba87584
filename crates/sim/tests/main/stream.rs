//! Streams of requests, compared with closed forms: how many a guest answers, and with what latency.

use crate::common::{host, near, run, scenario, tickless};
use overspin_scenario::{
    Costs, Ending, Host, Kernel, LatencyOutcome, MS, Picos, SEC, Scenario, US,
};
use overspin_workload::{BurnWait, Stream};

/// A machine and a kernel whose own work takes almost no time. Only operations on runqueue locks remain, of
/// some nanoseconds each.
fn free(pcpus: u32) -> Host {
    let costs = Costs {
        atomic: Picos::ZERO,
        fence: Picos::ZERO,
        context_switch: Picos::ZERO.into(),
        hypercall: Picos::ZERO.into(),
        ipi: Picos::ZERO.into(),
        interrupt: Picos::ZERO,
        ..Costs::default()
    };
    Host { costs, ..host(pcpus, "credit") }
}

fn serving(work: Stream) -> Scenario {
    let mut guest = tickless(1, "ticket", work);
    guest.kernel = Kernel { task_switch: Picos::ZERO, ..guest.kernel };
    scenario(free(1), vec![guest], SEC)
}

fn stream(window: u32) -> Stream {
    Stream { window, ..Stream::default() }
}

/// The number of answers in a run, and their latencies.
fn served(scenario: &Scenario) -> (u64, LatencyOutcome) {
    let outcome = run(scenario, 1);
    let task = &outcome.domains[0].tasks[0];
    let latency = task.latency.expect("it has answered");
    assert_eq!(latency.answers, task.items);
    (task.items, latency)
}

#[test]
fn a_lone_vcpu_answers_as_fast_as_window_or_work_allow() {
    // A request takes 100 us in the network and 25 us of work.
    let by_window = |n: u32| 1_000_000 * u64::from(n) / 125;
    for (window, most, slack_permille) in [
        (1, by_window(1), 5),
        (2, by_window(2), 40),
        (4, by_window(4), 40),
        (5, 40_000, 40),
        (8, 40_000, 5),
        (500, 40_000, 5),
    ] {
        let (answers, _) = served(&serving(stream(window)));
        // An interrupt may come in the middle of another request's work. So the requests of a window below 5
        // may get out of step, and lose an interrupt's 5 us of each 125 us.
        let least = most - most * slack_permille / 1000;
        assert!((least..=most).contains(&answers), "{window}: {answers}, not {least} to {most}");
    }
}

#[test]
fn latency_is_work_and_then_queueing() {
    let (_, alone) = served(&serving(stream(1)));
    near(alone.p50, 25 * US, US);
    assert!(alone.max < 27 * US, "{alone:?}");
    near(alone.total / alone.answers, 25 * US, US);
    // In a full window each request waits for all others: Little's law, 40,000 answers a second.
    let (_, full) = served(&serving(stream(100)));
    near(full.total / full.answers, 100 * 25 * US - 100 * US, 30 * US);
    assert!(full.p50 <= full.p99 && full.p99 <= full.p999 && full.p999 <= full.max);
}

#[test]
fn a_stream_with_a_count_ends() {
    let outcome = run(&serving(Stream { count: 1000, ..stream(3) }), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    assert_eq!(outcome.domains[0].tasks[0].items, 1000);
    let few = run(&serving(Stream { count: 2, ..stream(3) }), 1);
    assert_eq!((few.ending, few.domains[0].tasks[0].items), (Ending::Finished, 2));
}

/// A hog computes on the same pCPU. Credit preempts it for a vCPU that wakes, but only after it has had the
/// pCPU for 1 ms, the rate limit. The request's time in the network takes 100 us of that.
#[test]
fn a_neighbour_shows_as_latency() {
    let mut beside = serving(stream(1));
    let mut guest = tickless(1, "ticket", BurnWait { burn: MS, ..BurnWait::default() });
    guest.name = "hog".into();
    beside.domains.push(guest);
    let (answers, latency) = served(&beside);
    near(latency.p50, MS - 100 * US + 25 * US, 10 * US);
    near(latency.p99, MS - 100 * US + 25 * US, 10 * US);
    near(SEC / answers, MS + 25 * US, 10 * US);
}

/// No task computes while the only request is on its way; that is no deadlock.
#[test]
fn waiting_for_the_network_is_no_deadlock() {
    let far: Picos = SEC;
    let outcome = run(
        &scenario(
            free(1),
            vec![tickless(1, "ticket", Stream { round_trip: far, count: 40, ..stream(1) })],
            100 * SEC,
        ),
        1,
    );
    assert_eq!(outcome.ending, Ending::Finished);
}
