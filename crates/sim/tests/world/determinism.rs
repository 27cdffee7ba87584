//! Same scenario and seed, same bytes.

use crate::common::{crowd, domain, host, kernbench, lock_loop, run, scenario, tickless, traced};
use overspin_scenario::{MS, Outcome, SEC, Scenario, TraceEvent, US, Workload};

fn small_kernbench() -> Scenario {
    scenario(host(2, "credit-2008"), vec![domain(4, "lock-byte", kernbench(4, 8))], 10 * SEC)
}

fn cases() -> [(&'static str, Scenario); 3] {
    [
        ("ticket, a pCPU for each vCPU", crowd("ticket", 4, 20 * MS)),
        ("xen-pv, overcommitted", crowd("xen-pv", 2, 200 * MS)),
        ("kernbench, overcommitted", small_kernbench()),
    ]
}

#[test]
fn a_run_is_the_same_twice() {
    for (name, scenario) in cases() {
        let (first, first_trace) = traced(&scenario, 7);
        let (second, second_trace) = traced(&scenario, 7);
        assert_eq!(first, second, "{name}");
        assert_eq!(first_trace, second_trace, "{name}");
        assert!(!first_trace.is_empty(), "{name}");
    }
}

#[test]
fn another_seed_is_another_run() {
    for (name, scenario) in cases() {
        let (a, b) = (run(&scenario, 1), run(&scenario, 2));
        assert_ne!(a.trace_hash, b.trace_hash, "{name}");
        // The hash starts from the seed; the runs themselves must differ too.
        assert_ne!(
            Outcome { trace_hash: 0, seed: 0, ..a },
            Outcome { trace_hash: 0, seed: 0, ..b }
        );
    }
}

#[test]
fn equal_domains_draw_different_numbers() {
    let guest = || tickless(1, "ticket", Workload::LockLoop(lock_loop(US, 10 * US)));
    let (_, trace) = traced(&scenario(host(2, "null"), vec![guest(), guest()], 10 * MS), 1);
    // Undisturbed, a vCPU's acquisitions are as far from each other as the numbers say.
    let gaps = |of: u32| -> Vec<_> {
        let times: Vec<_> = trace
            .iter()
            .filter(
                |(_, e)| matches!(e, TraceEvent::LockAcquired { vcpu, lock: 0, .. } if *vcpu == of),
            )
            .map(|(at, _)| *at)
            .collect();
        times.windows(2).map(|w| w[1] - w[0]).skip(1).take(100).collect()
    };
    let (first, second) = (gaps(0), gaps(1));
    assert_eq!((first.len(), second.len()), (100, 100));
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0, "10 us on average, in picoseconds: equal by chance once in 10^5 runs");
}

#[test]
fn runs_on_several_threads_do_not_disturb_each_other() {
    let alone: Vec<Outcome> = cases().iter().map(|(_, s)| run(s, 3)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..2).map(|_| scope.spawn(|| cases().map(|(_, s)| run(&s, 3)))).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no panic").as_slice(), alone);
        }
    });
}

#[test]
fn a_trace_does_not_change_what_it_traces() {
    for (name, scenario) in cases() {
        assert_eq!(run(&scenario, 5), traced(&scenario, 5).0, "{name}");
    }
}

/// The values come from running this test, and say nothing by themselves. They hold every build
/// profile, machine and refactoring to the results of the commit that wrote them. A change that is
/// meant to alter simulated results raises `MODEL_VERSION` and writes them anew; if the version
/// stays, the values stay.
#[test]
fn golden_hashes_hold_in_every_build() {
    assert_eq!(overspin_sim::MODEL_VERSION, GOLDEN_VERSION, "write new golden hashes");
    let hashes = cases().map(|(_, scenario)| run(&scenario, 1).trace_hash);
    assert_eq!(hashes, GOLDEN);
}

const GOLDEN_VERSION: u32 = 1;
const GOLDEN: [u64; 3] =
    [16_667_525_508_273_188_843, 10_439_428_688_566_862_341, 18_126_734_756_190_054_574];
