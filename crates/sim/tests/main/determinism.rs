//! Runs are deterministic: the same scenario and seed give the same bytes.

use crate::common::{crowd, domain, host, kernbench, lock_loop, run, scenario, tickless, traced};
use overspin_host::Moment;
use overspin_scenario::{Host, MS, Noise, Outcome, SEC, Scenario, US, Workloads};
use overspin_testing::{expect_file, root};
use overspin_workload::BurnWait;

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
    let guest = || tickless(1, "ticket", lock_loop(US, 10 * US));
    let (_, trace) = traced(&scenario(host(2, "null"), vec![guest(), guest()], 10 * MS), 1);
    // Without disturbance, the random numbers alone decide the time between a vCPU's acquisitions.
    let gaps = |of: u32| -> Vec<_> {
        let times: Vec<_> = trace
            .iter()
            .filter(|(_, e)| matches!(e, Moment::LockAcquired { vcpu, lock: 0, .. } if *vcpu == of))
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

/// The cases above, and one for every scheduler and every lock of the registries: an overcommitted guest
/// beside another one, on a host with noise and stagger.
fn guarded() -> Vec<(String, Scenario)> {
    let disturbed = |scheduler: &str| Host {
        noise: Some(Noise { every: 5 * MS, ..Noise::default() }),
        stagger: 5 * MS,
        ..host(3, scheduler)
    };
    let work = || Workloads::from(lock_loop(5 * US, 50 * US));
    let pair = |scheduler: &str, lock: &str| {
        let other = BurnWait { burn: 2 * MS, wait: 3 * MS, ..BurnWait::default() };
        let other = domain(1, "ticket", other);
        scenario(disturbed(scheduler), vec![domain(4, lock, work()), other], 100 * MS)
    };
    let schedulers = overspin_sched::schedulers().iter().map(|s| s.name);
    let schedulers = schedulers.map(|s| (format!("scheduler {s}"), pair(s, "xen-pv")));
    let locks = overspin_locks::infos().iter().map(|l| l.name);
    let locks = locks.map(|l| (format!("lock {l}"), pair("credit-2016", l)));
    let cases = cases().into_iter().map(|(name, scenario)| (name.to_owned(), scenario));
    cases.chain(schedulers).chain(locks).collect()
}

/// This test writes the hashes in `golden.txt`, which say nothing by themselves. They hold every build
/// profile, machine and refactoring to the results of the commit that wrote them. A change that alters
/// simulated results on purpose raises `MODEL_VERSION` and writes the hashes anew; if the version stays,
/// the hashes stay. A new scheduler or lock adds its line.
#[test]
fn golden_hashes_hold_in_every_build() {
    let path = "crates/sim/tests/main/golden.txt";
    let hash = |(name, scenario): (String, Scenario)| {
        format!("{name}: {:016x}\n", run(&scenario, 1).trace_hash)
    };
    let hashes: String = guarded().into_iter().map(hash).collect();
    let fresh = format!("model version {}\n{hashes}", overspin_sim::MODEL_VERSION);
    let golden = std::fs::read_to_string(root().join(path)).expect("it lies beside this file");
    let renews = std::env::var_os("UPDATE_EXPECT").is_some();
    for line in fresh.lines().filter(|_| !renews) {
        let named =
            |of: &&str| of.rsplit_once(' ').map(|n| n.0) == line.rsplit_once(' ').map(|n| n.0);
        let Some(golden) = golden.lines().find(named) else { continue };
        assert_eq!(
            golden, line,
            "results have changed: raise MODEL_VERSION, say so in the changelog, and run this test with \
             UPDATE_EXPECT=1"
        );
    }
    // It differs still if a scheduler or lock was added or removed.
    expect_file(path, &fresh);
}
