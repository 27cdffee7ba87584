//! The warm-up does not count, and changes nothing else.

use crate::common::{crowd, domain, host, kernbench, lock_loop, run, scenario, traced};
use crate::random_scenarios::any_changing_scenario;
use overspin_host::Moment;
use overspin_scenario::{Ending, MS, Outcome, Picos, SEC, Scenario, Workloads};
use proptest::prelude::*;

/// The run with this warm-up, and with this limit.
fn with(scenario: &Scenario, warmup: Picos, limit: Picos) -> Scenario {
    Scenario { warmup: Some(warmup), limit, ..scenario.clone() }
}

/// All counts and sums of times of an outcome, in a fixed order, with their names.
fn sums(outcome: &Outcome) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let mut add = |name: String, value: u64| all.push((name, value));
    for (i, p) in outcome.pcpus.iter().enumerate() {
        let times = [p.busy, p.switching, p.idle].map(|t| t.0);
        times.into_iter().chain([p.switches]).for_each(|n| add(format!("pCPU {i}"), n));
    }
    if let Some(n) = outcome.noise {
        [n.running.0, n.runnable.0, n.wakes].into_iter().for_each(|n| add("noise".into(), n));
    }
    for (n, d) in outcome.domains.iter().enumerate() {
        for (i, v) in d.vcpus.iter().enumerate() {
            let of = |what: &str| format!("{n}/v{i} {what}");
            let times =
                [v.running, v.runnable, v.blocked, v.offline, v.spinning, v.polling, v.exiting];
            times.into_iter().for_each(|t| add(of("times"), t.0));
            add(of("waiting"), v.waiting.0);
            add(of("causes"), v.wait_causes.total().0);
            let counts = [v.dispatches, v.migrations, v.ticks, v.spin_exits, v.directed_yields];
            counts.into_iter().for_each(|n| add(of("counts"), n));
            if let Some(w) = v.windows {
                let counts = [w.offered, w.used, w.expired, w.left, w.refused, w.time.0];
                counts.into_iter().for_each(|n| add(of("windows"), n));
            }
        }
        for l in &d.locks {
            let of = |what: &str| format!("{n}/{} {what}", l.name);
            let counts = [l.acquisitions, l.contended, l.slow_paths, l.kicks, l.holder_preempted];
            counts.into_iter().for_each(|n| add(of("counts"), n));
            add(of("waits"), l.wait_total.0);
            add(of("holds"), l.hold_total.0);
            for cause in overspin_scenario::Cause::ALL {
                add(of(cause.words()), l.wait_causes.of(cause).0);
            }
        }
        for (i, t) in d.tasks.iter().enumerate() {
            let of = |what: &str| format!("{n} task {i} {what}");
            let times = [t.cpu, t.user_ticks, t.system_ticks];
            times.into_iter().for_each(|time| add(of("times"), time.0));
            [t.sleeps, t.preemptions, t.items].into_iter().for_each(|n| add(of("counts"), n));
            let answers = t.latency.unwrap_or_default();
            [answers.answers, answers.total.0].into_iter().for_each(|n| add(of("answers"), n));
        }
        if let Some(disk) = &d.disk {
            let counts = [disk.pages, disk.requests, disk.seeks, disk.busy.0];
            counts.into_iter().for_each(|n| add(format!("{n} disk"), n));
        }
    }
    all
}

/// Checks a run with a warm-up against the same run without one, and against one that ends where the warm-up does.
fn check_parts(scenario: &Scenario, seed: u64, warmup: Picos) {
    let whole = run(&with(scenario, Picos::ZERO, scenario.limit), seed);
    let later = run(&with(scenario, warmup, scenario.limit), seed);
    assert_eq!((whole.elapsed, whole.trace_hash), (later.elapsed, later.trace_hash));
    assert_eq!(whole.domains.len(), later.domains.len());
    if whole.elapsed <= warmup {
        assert_eq!(whole.domains, later.domains, "it ended before: all of it counts");
        assert_eq!(later.warmup, Picos::ZERO);
        return;
    }
    assert_eq!(later.warmup, warmup);
    let first = run(&with(scenario, Picos::ZERO, warmup), seed);
    // A task that starts after the warm-up is missing in its outcome.
    let before: std::collections::HashMap<_, Vec<u64>> =
        sums(&first).into_iter().fold(std::collections::HashMap::new(), |mut map, (name, n)| {
            map.entry(name).or_insert_with(Vec::new).push(n);
            map
        });
    let mut seen = std::collections::HashMap::new();
    for ((name, all), (_, after)) in sums(&whole).into_iter().zip(sums(&later)) {
        let nth = seen.entry(name.clone()).or_insert(0_usize);
        let then = before.get(&name).and_then(|values| values.get(*nth)).copied().unwrap_or(0);
        *nth += 1;
        assert_eq!(then + after, all, "{name}: before and after the warm-up are the whole");
    }
    for (all, after) in whole.domains.iter().zip(&later.domains) {
        assert_eq!(all.progress, after.progress, "the curve begins at the start");
        for (all, after) in all.locks.iter().zip(&after.locks) {
            assert!(after.wait_max <= all.wait_max && after.hold_max <= all.hold_max);
            assert!(after.wait_p50 <= after.wait_p99 && after.wait_p99 <= after.wait_p999);
            assert!(after.wait_p999 <= after.wait_max);
        }
    }
    // The longest waits are those of the whole run that ended later.
    let ended = |w: &overspin_scenario::LongWait| w.since + w.time > warmup;
    for wait in whole.worst_waits.iter().filter(|w| ended(w)) {
        let same = |w: &&overspin_scenario::LongWait| {
            (w.domain, w.vcpu, w.lock, w.since, w.time)
                == (wait.domain, wait.vcpu, wait.lock, wait.since, wait.time)
        };
        assert!(later.worst_waits.iter().any(|w| same(&w)), "{wait:?}");
    }
    assert!(later.worst_waits.iter().all(ended));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn before_and_after_the_warm_up_are_the_whole(
        scenario in any_changing_scenario(),
        seed: u64,
        part in 1_u64..99,
    ) {
        let warmup = Picos((scenario.limit.0 / 100 * part).max(1));
        // Events that come after the end of the first part would be refused there.
        let at = scenario.events.iter().all(|event| event.at != warmup);
        prop_assume!(at);
        check_parts(&scenario, seed, warmup);
    }
}

#[test]
fn a_lock_that_collapses_is_measured_after_it() {
    let two = |warmup| Scenario { warmup, ..crowd("ticket", 2, 2 * SEC) };
    let rate = |outcome: &Outcome| {
        outcome.domains[0].locks[0].acquisitions as f64 / outcome.counted().seconds()
    };
    let (all, default) = (run(&two(Some(Picos::ZERO)), 1), run(&two(None), 1));
    // A quarter of the limit, since a second is more.
    assert_eq!((all.warmup, default.warmup), (Picos::ZERO, 500 * MS));
    assert!(rate(&default) * 2.0 < rate(&all), "{} and {}", rate(&default), rate(&all));
    assert_eq!((all.unsteady().len(), default.unsteady()), (1, vec![]));
    let curve = &default.domains[0].progress;
    assert!(curve.len() > 20 && curve.is_sorted(), "{curve:?}");
    // The curve tells all items, and the tasks those that count.
    let items: u64 = all.domains[0].tasks.iter().map(|t| t.items).sum();
    let in_the_last_step = items - curve.last().unwrap();
    assert!(in_the_last_step <= items / 10, "{items} {curve:?}");
}

#[test]
fn work_that_ends_counts_from_its_start() {
    let compile =
        scenario(host(2, "credit"), vec![domain(4, "lock-byte", kernbench(4, 6))], 60 * SEC);
    let finished = run(&Scenario { warmup: None, ..compile.clone() }, 1);
    assert_eq!((&finished.ending, finished.warmup), (&Ending::Finished, Picos::ZERO));
    assert_eq!(finished.halves(&finished.domains[0]), None);
    // One that was asked for is honoured, unless the work ends first.
    let half = finished.elapsed / 2;
    assert_eq!(run(&Scenario { warmup: Some(half), ..compile.clone() }, 1).warmup, half);
    let late = run(&Scenario { warmup: Some(50 * SEC), ..compile }, 1);
    assert_eq!((late.warmup, late.domains), (Picos::ZERO, finished.domains));
}

#[test]
fn observers_are_told_when_it_is_over() {
    let guest = domain(2, "ticket", Workloads::from(lock_loop(5 * MS, MS)));
    let s =
        Scenario { warmup: Some(30 * MS), ..scenario(host(1, "credit"), vec![guest], 100 * MS) };
    let (_, trace) = traced(&s, 1);
    let at: Vec<Picos> =
        trace.iter().filter(|(_, m)| *m == Moment::Counts).map(|(at, _)| *at).collect();
    assert_eq!(at, [30 * MS]);
}

#[test]
fn a_warm_up_as_long_as_the_run_is_refused() {
    let s = with(&crowd("ticket", 2, 20 * MS), 20 * MS, 20 * MS);
    let refused = overspin_sim::run(&s, 1).unwrap_err().to_string();
    for part in ["warmup", "20ms", "make `warmup` shorter or `limit` longer"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}
