//! Events of a scenario: changes by the administrator while guests run, and events that are refused.

use crate::common::{crowd, domain, hog, host, near, run, scenario, traced};
use overspin_host::Moment;
use overspin_host::Refused;
use overspin_scenario::{
    Change, Domain, Ending, Event, Host, MS, Outcome, Picos, Pool, SEC, Scenario, Settings, US,
};

fn at(at: Picos, change: Change) -> Event {
    Event { at, change }
}

fn ran(outcome: &Outcome, domain: usize) -> Picos {
    outcome.domains[domain].vcpus.iter().map(|v| v.running).sum()
}

/// Two hogs on one pCPU.
fn two_hogs(scheduler: &str, events: Vec<Event>) -> Scenario {
    let domains = vec![domain(1, "ticket", hog()), domain(1, "ticket", hog())];
    Scenario { events, ..scenario(host(1, scheduler), domains, 20 * SEC) }
}

/// The error of a credit scheduler at any time, as in `shares.rs`, once for each of two regimes.
const SLACK: Picos = Picos::ms(2 * 90);

#[test]
fn a_new_weight_gives_new_shares() {
    let weight = Change::Weight { domain: 1, weight: 768 };
    for scheduler in ["credit", "credit2"] {
        let outcome = run(&two_hogs(scheduler, vec![at(10 * SEC, weight.clone())]), 1);
        // A half for 10 s, three quarters for 10 s.
        near(ran(&outcome, 1), 5 * SEC + 7500 * MS, SLACK);
        near(ran(&outcome, 0), 5 * SEC + 2500 * MS, SLACK);
        let change = &outcome.changes[0];
        assert_eq!((change.at, &change.refused), (10 * SEC, &None));
        assert_eq!(change.change, weight);
    }
}

#[test]
fn a_new_cap_holds_and_is_lifted_again() {
    for scheduler in ["credit", "credit2"] {
        let events = vec![
            at(5 * SEC, Change::Cap { domain: 0, cap: 20 }),
            at(15 * SEC, Change::Cap { domain: 0, cap: 0 }),
        ];
        let outcome = run(&two_hogs(scheduler, events), 1);
        // A half for 10 s, a fifth for 10 s.
        near(ran(&outcome, 0), 5 * SEC + 2 * SEC, 2 * SLACK);
        near(ran(&outcome, 1), 5 * SEC + 8 * SEC, 2 * SLACK);
    }
}

#[test]
fn a_paused_domain_does_not_run_and_loses_nothing() {
    let names = overspin_sched::schedulers().iter().map(|s| s.name);
    for scheduler in names {
        let events = vec![
            at(SEC, Change::Pause { domain: 0, vcpu: None }),
            at(3 * SEC, Change::Unpause { domain: 0, vcpu: None }),
        ];
        let alone = vec![domain(1, "ticket", hog())];
        let scenario = Scenario { events, ..scenario(host(1, scheduler), alone, 4 * SEC) };
        let (outcome, trace) = traced(&scenario, 1);
        // It leaves at once (after the operation that cannot be interrupted) and comes back at once,
        // except that `sedf` and `rtds` may let it wait for its next period, at most 100 ms.
        let vcpu = &outcome.domains[0].vcpus[0];
        near(vcpu.offline, 2 * SEC, 100 * US);
        let runs = trace.iter().filter(
            |(at, e)| matches!(e, Moment::Switch { next: Some(_), .. } if *at > SEC + MS && *at < 3 * SEC),
        );
        assert_eq!(runs.count(), 0, "{scheduler}");
        let back = trace
            .iter()
            .find(|(at, e)| matches!(e, Moment::Switch { next: Some(_), .. } if *at >= 3 * SEC));
        assert!(back.is_some_and(|(at, _)| *at <= 3100 * MS), "{scheduler}");
    }
}

#[test]
fn pauses_nest_and_one_of_a_vcpu_leaves_its_siblings_alone() {
    let pause = Change::Pause { domain: 0, vcpu: Some(1) };
    let unpause = Change::Unpause { domain: 0, vcpu: Some(1) };
    let events = vec![
        at(SEC, pause.clone()),
        at(2 * SEC, pause),
        at(3 * SEC, unpause.clone()),
        at(4 * SEC, unpause),
    ];
    let two = vec![domain(2, "ticket", hog())];
    let outcome = run(&Scenario { events, ..scenario(host(2, "credit"), two, 5 * SEC) }, 1);
    let vcpus = &outcome.domains[0].vcpus;
    near(vcpus[1].offline, 3 * SEC, MS);
    near(vcpus[0].running, 5 * SEC, MS);
}

/// A pause is no deadlock, although it lasts longer than the watchdog waits for progress.
#[test]
fn a_long_pause_of_the_lock_holder_is_waited_for() {
    let mut crowd = crowd("ticket", 4, 40 * SEC);
    crowd.domains[0].vcpus = 2;
    crowd.events = vec![
        at(SEC, Change::Pause { domain: 0, vcpu: Some(0) }),
        at(35 * SEC, Change::Unpause { domain: 0, vcpu: Some(0) }),
    ];
    assert_eq!(run(&crowd, 1).ending, Ending::Limit);
}

#[test]
fn an_affinity_moves_a_vcpu_to_its_new_pcpu() {
    for info in overspin_sched::schedulers() {
        let affinity =
            |pcpu| Change::Affinity { domain: 0, vcpu: None, affinity: vec![vec![pcpu]] };
        let pinned = Domain { affinity: vec![vec![0]], ..domain(1, "ticket", hog()) };
        let events = vec![at(SEC, affinity(1))];
        let outcome =
            run(&Scenario { events, ..scenario(host(2, info.name), vec![pinned], 3 * SEC) }, 1);
        // `rtds-4.5` gives no more than the budget, 4 ms in each 10 ms.
        let share = if info.name == "rtds-4.5" { 40 } else { 100 };
        near(outcome.pcpus[0].busy, SEC / 100 * share, 60 * MS);
        near(outcome.pcpus[1].busy, 2 * SEC / 100 * share, 110 * MS);
    }
}

#[track_caller]
fn refused(scenario: &Scenario) -> (usize, String) {
    match overspin_sim::run(scenario, 1) {
        Err(Refused::Event { index, cause }) => (index, cause),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn impossible_events_are_refused_before_the_run() {
    let first = |change| refused(&two_hogs("credit", vec![at(SEC, change)])).1;
    let cap = first(Change::Cap { domain: 0, cap: 101 });
    assert!(cap.contains("cap = 101") && cap.contains("100 for each vCPU"), "{cap}");
    let weight = first(Change::Weight { domain: 0, weight: 0 });
    assert!(weight.contains("weight = 0") && weight.contains("65535"), "{weight}");
    let nowhere = Change::Affinity { domain: 0, vcpu: None, affinity: vec![vec![7]] };
    assert!(first(nowhere).contains("legal values: 0..1"));
    assert!(first(Change::Pause { domain: 2, vcpu: None }).contains("no domain 2"));
    assert!(first(Change::Pause { domain: 0, vcpu: Some(1) }).contains("no vCPU 1"));
    assert!(first(Change::Unpause { domain: 0, vcpu: None }).contains("not paused"));
    assert!(first(Change::MoveDomain { domain: 0, pool: 1 }).contains("no pool 1"));
    assert!(first(Change::MovePcpu { pcpu: 3, pool: 0 }).contains("legal values: 0..1"));
}

/// Events are checked in order of time, not in the order of the list. The error gives the index in the list.
#[test]
fn events_are_checked_in_the_order_in_which_they_come() {
    let unpause = || at(SEC, Change::Unpause { domain: 0, vcpu: None });
    let pause = |t| at(t, Change::Pause { domain: 0, vcpu: None });
    let (index, _) = refused(&two_hogs("credit", vec![pause(2 * SEC), unpause()]));
    assert_eq!(index, 1);
    let fine = run(&two_hogs("credit", vec![unpause(), pause(SEC / 2)]), 1);
    let order: Vec<Picos> = fine.changes.iter().map(|c| c.at).collect();
    assert_eq!(order, [SEC / 2, SEC]);
}

/// A vCPU that is still on its way cannot be sent elsewhere. Only the run can notice that.
#[test]
fn a_move_under_way_is_reported_as_such() {
    let pool = |name: &str, cpu| Pool {
        name: name.into(),
        cpus: vec![cpu],
        scheduler: "credit".into(),
        params: Settings::new(),
    };
    let host = Host { pools: vec![pool("a", 1), pool("b", 2)], ..host(3, "credit") };
    // Two moves at one instant: at the second, the vCPU has not left its pCPU yet.
    let to = |pool| at(SEC, Change::MoveDomain { domain: 0, pool });
    let events = vec![to(1), to(2)];
    let scenario = Scenario { events, ..scenario(host, vec![domain(1, "ticket", hog())], 2 * SEC) };
    let outcome = run(&scenario, 1);
    assert_eq!(outcome.changes[0].refused, None);
    let reason = outcome.changes[1].refused.as_deref().unwrap_or_default();
    assert!(reason.contains("on its way"), "{reason}");
    near(outcome.pcpus[1].busy, SEC, MS);
    assert_eq!(outcome.pcpus[2].busy, Picos::ZERO);
}
