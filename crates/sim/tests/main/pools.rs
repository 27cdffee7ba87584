//! Pools: parts of the machine with their own schedulers, and the moves of domains and pCPUs between them.

use crate::common::{domain, hog, host, kernbench, near, run, scenario, traced};
use crate::conservation::{check_locks, check_times};
use overspin_host::Refused;
use overspin_scenario::{
    Change, Domain, Ending, Event, Host, MS, Outcome, Picos, Pool, SEC, Scenario, Settings, US,
};
use overspin_sched::{Params, SchedulerInfo, Schedulers};
use overspin_sim::Simulator;
use overspin_workload::BurnWait;

fn pool(name: &str, cpus: &[u32], scheduler: &str) -> Pool {
    Pool {
        name: name.into(),
        cpus: cpus.to_vec(),
        scheduler: scheduler.into(),
        params: Settings::new(),
    }
}

fn split(pcpus: u32, pools: Vec<Pool>) -> Host {
    Host { pools, ..host(pcpus, "credit") }
}

fn inside(pool: u32, domain: Domain) -> Domain {
    Domain { pool, ..domain }
}

fn ran(outcome: &Outcome, domain: usize) -> Picos {
    outcome.domains[domain].vcpus.iter().map(|v| v.running).sum()
}

#[test]
fn load_in_one_pool_leaves_the_other_alone() {
    let host = || split(4, vec![pool("batch", &[2, 3], "rr")]);
    let domains = |crowd| {
        vec![domain(2, "ticket", kernbench(2, 4)), inside(1, domain(crowd, "ticket", hog()))]
    };
    let quiet = run(&scenario(host(), domains(1), 10 * SEC), 1);
    let loud = run(&scenario(host(), domains(8), 10 * SEC), 1);
    assert_eq!(quiet.ending, Ending::Finished);
    // The whole outcome is equal, to the picosecond.
    assert_eq!(quiet.domains[0], loud.domains[0]);
    assert_eq!(quiet.pcpus[..2], loud.pcpus[..2]);
    near(ran(&loud, 1), 2 * loud.elapsed, 10 * MS);
}

/// On hosts with hundreds of vCPUs the simulator prefetches the data of the vCPUs that run next. That must not
/// change results: the test runs the same pool beside a few vCPUs and beside many.
#[test]
fn a_large_host_is_simulated_as_a_small_one() {
    let crowd: Vec<u32> = (2..22).collect();
    let host = || split(22, vec![pool("crowd", &crowd, "credit")]);
    let waits = || {
        let burn_wait = BurnWait { burn: 300 * US, wait: 2 * MS, ..BurnWait::default() };
        domain(4, "ticket", burn_wait)
    };
    let domains = |others| {
        let others = (0..others).map(|_| inside(1, waits()));
        [domain(3, "xen-pv", kernbench(4, 4)), waits()].into_iter().chain(others).collect()
    };
    let of =
        |others| Scenario { to_the_limit: true, ..scenario(host(), domains(others), 100 * MS) };
    let (small, large) = (run(&of(1), 1), run(&of(150), 1));
    assert_eq!(small.domains[..2], large.domains[..2], "to the picosecond");
    assert_eq!(small.pcpus[..2], large.pcpus[..2]);
    assert!(small.domains[0].vcpus.iter().all(|v| v.running > Picos::ZERO));
    check_times(&large);
}

/// Each scheduler can run a pool beside `credit`, and its times add up.
#[test]
fn every_scheduler_runs_in_a_pool() {
    for info in overspin_sched::schedulers() {
        let host = split(4, vec![pool("other", &[2, 3], info.name)]);
        let domains = vec![
            domain(2, "ticket", kernbench(2, 2)),
            inside(1, domain(2, "ticket", kernbench(2, 2))),
        ];
        let scenario = scenario(host, domains, 20 * SEC);
        let (outcome, trace) = traced(&scenario, 1);
        assert_eq!(outcome.ending, Ending::Finished, "{}", info.name);
        check_times(&outcome);
        check_locks(&scenario, &outcome, &trace);
    }
}

#[test]
fn a_domain_moves_and_goes_on_there() {
    for info in overspin_sched::schedulers() {
        let host = split(4, vec![pool("other", &[2, 3], info.name)]);
        let change = Change::MoveDomain { domain: 0, pool: 1 };
        let events = vec![Event { at: SEC, change }];
        let domains = vec![domain(2, "ticket", hog())];
        let scenario = Scenario { events, ..scenario(host, domains, 3 * SEC) };
        let (outcome, trace) = traced(&scenario, 1);
        check_times(&outcome);
        check_locks(&scenario, &outcome, &trace);
        near(outcome.pcpus[0].busy + outcome.pcpus[1].busy, 2 * SEC, MS);
        // `cosched-strict` begins at its next quantum; `rtds-4.5` gives no more than the budget, 4 ms in
        // each 10 ms.
        let share = if info.name == "rtds-4.5" { 40 } else { 100 };
        near(outcome.pcpus[2].busy + outcome.pcpus[3].busy, 4 * SEC / 100 * share, 110 * MS);
        // The runstate times move along with the vCPUs.
        near(ran(&outcome, 0), 2 * SEC + 4 * SEC / 100 * share, 110 * MS);
    }
}

#[test]
fn pcpus_move_to_where_they_are_needed() {
    let host = split(4, vec![pool("small", &[3], "credit2")]);
    let move_pcpu = |at, pcpu, pool| Event { at, change: Change::MovePcpu { pcpu, pool } };
    let events = vec![move_pcpu(SEC, 2, 1), move_pcpu(SEC, 1, 1), move_pcpu(2 * SEC, 1, 0)];
    let domains = vec![domain(4, "ticket", hog()), inside(1, domain(4, "ticket", hog()))];
    let outcome = run(&Scenario { events, ..scenario(host, domains, 3 * SEC) }, 1);
    assert!(outcome.changes.iter().all(|c| c.refused.is_none()));
    // The first pool has 3, 1 and 2 pCPUs for one second each, the second 1, 3 and 2.
    near(ran(&outcome, 0), 6 * SEC, 10 * MS);
    near(ran(&outcome, 1), 6 * SEC, 10 * MS);
    assert!(outcome.pcpus.iter().all(|p| p.idle < MS), "all pCPUs are busy all the time");
}

#[track_caller]
fn refused(scenario: &Scenario) -> String {
    match overspin_sim::run(scenario, 1) {
        Err(Refused::Event { cause, .. } | Refused::Invalid(cause)) => cause,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn what_would_leave_a_domain_without_a_pcpu_is_refused() {
    let other = |cpus: &[u32]| split(3, vec![pool("other", cpus, "credit")]);
    let domains = || vec![domain(1, "ticket", hog()), inside(1, domain(1, "ticket", hog()))];
    let with = |host: Host, change| {
        let events = vec![Event { at: SEC, change }];
        refused(&Scenario { events, ..scenario(host, domains(), 2 * SEC) })
    };
    let last = with(other(&[2]), Change::MovePcpu { pcpu: 2, pool: 0 });
    assert_eq!(last, "pCPU 2 is the last pCPU of a pool with domains; move the domains first");
    let boot = with(other(&[2]), Change::MovePcpu { pcpu: 0, pool: 1 });
    assert_eq!(boot, "pCPU 0, the boot pCPU, stays in pool 0");
    let affinity = Change::Affinity { domain: 1, vcpu: None, affinity: vec![vec![1]] };
    assert!(with(other(&[2]), affinity).contains("at least one pCPU of the pool"));

    let start = |host: Host| refused(&scenario(host, domains(), SEC));
    assert!(start(other(&[])).contains("pool 1 has no pCPU"));
    assert!(start(other(&[0])).contains("pCPU 0, the boot pCPU, stays in pool 0"));
    assert!(start(other(&[9])).contains("pCPU 9 is not free: pool 0 does not own it"));
    let twice = split(3, vec![pool("a", &[1], "credit"), pool("b", &[1], "credit")]);
    assert!(start(twice).contains("pool `b`: pCPU 1 is not free: pool 0 does not own it"));
    assert!(start(split(3, vec![])).contains("there is no pool 1"));
}

/// A user's scheduler runs in the host and in a pool, by its name and by its alias.
#[test]
fn a_scheduler_from_outside_is_simulated_as_any_other() {
    const MINE: SchedulerInfo =
        SchedulerInfo::new("mine", &|_| overspin_sched::make("rr", &Params::default()))
            .aliases(&["my-own"]);
    let of = |host: &str, other: &str| {
        let host = Host { scheduler: host.into(), ..split(4, vec![pool("other", &[2, 3], other)]) };
        let domains = vec![
            domain(3, "ticket", kernbench(4, 4)),
            inside(1, domain(3, "ticket", kernbench(4, 4))),
        ];
        scenario(host, domains, 20 * SEC)
    };
    let mine = Schedulers::builtin().with(MINE).unwrap();
    let simulator = Simulator::new().with_schedulers(mine);
    let outcome = overspin_host::run(&simulator, &of("mine", "my-own"), 1, &mut (), &()).unwrap();
    assert_eq!(outcome, run(&of("rr", "rr"), 1));
    let refused = overspin_sim::run(&of("mine", "rr"), 1).unwrap_err().to_string();
    assert!(refused.contains("mine") && refused.contains("credit"), "{refused}");
}
