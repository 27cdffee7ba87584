//! An illegal scenario is an error that names the place and the legal values.

use crate::common::{
    crowd, domain, hog, host, kernbench, lock_loop, pgbench, run, scenario, tickless,
};
use overspin_host::Refused;
use overspin_scenario::{
    Ending, HaltPolling, MS, NS, Noise, PauseLoopExiting, Picos, PreemptionNotification, SEC,
    Scenario, Setting, Stopped, US, Workload, Workloads,
};
use overspin_sim::Simulator;
use overspin_workload::{BurnWait, Distribution, Kernbench, KernelLock, LockLoop, Pgbench};
use std::cell::{Cell, RefCell};

fn legal() -> Scenario {
    crowd("ticket", 2, MS)
}

/// The error message of a legal scenario after `change`.
#[track_caller]
fn message(change: impl FnOnce(&mut Scenario)) -> String {
    let mut scenario = legal();
    change(&mut scenario);
    match overspin_sim::run(&scenario, 1) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the scenario should have been refused"),
    }
}

#[test]
fn impossible_hosts() {
    let range = |key, value, most| {
        format!("host: `{key}`: {value} is out of range; a whole number from 1 to {most}")
    };
    for none in [0, u32::MAX] {
        assert_eq!(message(|s| s.host.sockets = none), range("sockets", none, 256));
        assert_eq!(message(|s| s.host.cores = none), range("cores", none, 4096));
        assert_eq!(message(|s| s.host.threads = none), range("threads", none, 8));
    }
    assert_eq!(
        message(|s| (s.host.sockets, s.host.cores) = (256, 4096)),
        "host: `cores`: 256 sockets x 4096 cores x 1 threads are 1048576 pCPUs, too many; \
         a host has at most 65536 pCPUs"
    );
    for permille in [0, 1001, u32::MAX] {
        let refused = message(|s| s.host.smt_permille = permille);
        assert_eq!(refused, range("smt_permille", permille, 1000));
    }
    let refused = message(|s| s.host.scheduler = "fcfs".into());
    assert!(
        refused.starts_with(
            "there is no scheduler `fcfs`; did you mean `cfs`? Known schedulers: credit, "
        ),
        "{refused}"
    );
    let refused = message(|s| {
        s.host.params.insert("ratelimit".into(), Setting::Time(MS));
    });
    assert!(refused.starts_with("`credit-2008` has no parameter `ratelimit`"), "{refused}");
}

#[test]
fn impossible_windows_before_preemptions() {
    let with = |change: fn(&mut PreemptionNotification)| {
        message(|s| {
            let mut options = PreemptionNotification::default();
            change(&mut options);
            s.host.preemption_notification = Some(options);
        })
    };
    let range =
        |key, value| format!("host: `preemption_notification.{key}`: {value} is out of range; ");
    let window = "a time from 1us to 10ms";
    assert!(with(|n| n.window = Picos::ZERO).starts_with(&(range("window", "0") + window)));
    assert!(with(|n| n.window = 11 * MS).starts_with(&(range("window", "11ms") + window)));
    assert_eq!(with(|n| n.strikes = 0), range("strikes", "0") + "a whole number from 1 to 1000");
    assert!(with(|n| n.back_off = Picos::MAX).contains("back_off"));
}

#[test]
fn impossible_windows_of_spinners_and_halts() {
    let refused = message(|s| {
        let window = PauseLoopExiting { max: US, ..PauseLoopExiting::default() };
        s.host.pause_loop_exiting = Some(window);
    });
    assert_eq!(
        refused,
        "host: `pause_loop_exiting.max`: 1us is shorter than the least window, 2048ns; \
         make `window` shorter or `max` longer"
    );
    let refused = message(|s| {
        s.host.halt_polling = Some(HaltPolling { start: MS, ..HaltPolling::default() });
    });
    assert_eq!(
        refused,
        "host: `halt_polling.start`: 1ms is longer than the longest window, 200us; \
         make `start` shorter or `max` longer"
    );
    let refused = message(|s| s.host.noise = Some(Noise { cpus: vec![2], ..Noise::default() }));
    assert_eq!(refused, "host: `noise.cpus`: there is no pCPU 2; the host has pCPUs 0 to 1");
}

#[test]
fn impossible_costs() {
    let range = |key, value, least| {
        format!("host: `costs.{key}`: {value} is out of range; a time from {least} to 1s with")
    };
    let refused = message(|s| s.host.costs.cache_hit = Picos::ZERO);
    assert!(refused.starts_with(&range("cache_hit", "0", "1ps")), "{refused}");
    let refused = message(|s| s.host.costs.spin_iteration = Picos::ZERO);
    assert!(refused.starts_with(&range("spin_iteration", "0", "1ps")), "{refused}");
    let refused = message(|s| s.host.costs.migration = 2 * SEC);
    assert!(refused.starts_with(&range("migration", "2s", "0")), "{refused}");
    let refused = message(|s| s.host.costs.context_switch = Picos::MAX.into());
    assert!(
        refused.starts_with(&range("context_switch", "18446744073709551615ps", "0")),
        "{refused}"
    );
}

#[test]
fn impossible_domains() {
    assert_eq!(message(|s| s.domains.clear()), "there is no domain");
    for vcpus in [0, u32::MAX] {
        assert_eq!(
            message(|s| s.domains[0].vcpus = vcpus),
            format!(
                "domain `guest`: `vcpus`: {vcpus} is out of range; a whole number from 1 to 65536"
            )
        );
    }
    let refused = message(|s| s.domains[0].lock = "tiket".into());
    assert!(
        refused.starts_with("domain `guest`: no lock is called `tiket`; locks are: lock-byte, "),
        "{refused}"
    );
    assert_eq!(
        message(|s| {
            s.domains[0].vcpus = 300;
            s.domains[0].lock = "ticket-small".into();
        }),
        "domain `guest`: lock `ticket-small`: 300 CPUs are too many: this lock serves at most 255"
    );
    let refused = message(|s| s.domains[0].vcpus = 60_000);
    assert!(refused.ends_with("vCPUs and tasks; the maximum is 30000"), "{refused}");
    let refused = message(|s| s.domains[0].weight = 0);
    assert!(refused.contains("weight") && refused.contains('0'), "{refused}");
    let refused = message(|s| s.domains[0].affinity = vec![vec![2]]);
    assert!(refused.contains("pCPU"), "{refused}");
    assert_eq!(
        message(|s| s.domains[0].kernel.hz = 10_001),
        "domain `guest`: `kernel.hz`: 10001 is out of range; a whole number from 0 to 10000"
    );
    let refused = message(|s| s.domains[0].kernel.slice = 10_500 * MS);
    let expected = "domain `guest`: `kernel.slice`: 10500ms is out of range; a time from 0 to 10s";
    assert!(refused.starts_with(expected), "{refused}");
}

#[test]
fn impossible_workloads() {
    let refused = |workload: Workloads| message(|s| s.domains[0].workload = workload);
    let range = |workload: Workloads, wrong: &str| {
        let refused = refused(workload);
        let expected = format!("domain `guest`: `workload.{wrong} is out of range; a ");
        assert!(refused.starts_with(&expected), "{refused}");
    };
    range(BurnWait { burn: Picos::ZERO, ..BurnWait::default() }.into(), "burn`: 0");
    range(lock_loop(Picos::MAX, Picos::ZERO).into(), "section`: 18446744073709551615ps");
    range(LockLoop { threads: u32::MAX, ..lock_loop(US, US) }.into(), "threads`: 4294967295");
    let mut always = kernbench(1, 1);
    always.edit(|k: &mut Kernbench| {
        k.locks.push(KernelLock {
            name: "hot".into(),
            hold: Picos::ZERO,
            every: Picos::ZERO,
            irqs_off: false,
        });
    });
    range(always, "locks.2.every`: 0");
    range(Pgbench { clients: 0, ..pgbench(1, 1) }.into(), "clients`: 0");
    let long = BurnWait {
        wait: 100 * 3_600 * SEC,
        wait_distribution: Distribution::Exponential,
        ..BurnWait::default()
    };
    let text = refused(long.into());
    assert!(text.starts_with("domain `guest`: `workload.wait`: an exponential time"), "{text}");
    for crowd in
        [kernbench(10_000, 1_000_000), LockLoop { threads: 100_000, ..lock_loop(US, US) }.into()]
    {
        let text = refused(crowd);
        assert!(text.ends_with("vCPUs and tasks; the maximum is 30000"), "{text}");
    }
    let mut other = Workload::from(lock_loop(US, US));
    other.parameters.insert("colour".into(), "red".into());
    let text = refused(other.into());
    assert!(text.contains("`workload`: invalid parameters for `lock-loop`"), "{text}");
    assert_eq!(
        message(|s| s.limit = 1001 * 3600 * SEC),
        "scenario: limit is 1001h; the maximum is 1000h"
    );
}

#[test]
fn an_unknown_lock_is_an_error_of_its_own_kind() {
    let mut scenario = legal();
    scenario.domains[0].lock = "spin".into();
    let error = overspin_sim::run(&scenario, 1).unwrap_err();
    let Refused::UnknownLock { domain, lock, known } = error else { panic!("{error}") };
    assert_eq!((domain.as_str(), lock.as_str()), ("guest", "spin"));
    let names: Vec<_> = overspin_locks::infos().iter().map(|i| i.name).collect();
    assert_eq!(known, names.join(", "));
}

#[test]
fn a_refused_scenario_leaves_nothing_behind() {
    message(|s| s.domains[0].affinity = vec![vec![99]]);
    assert_eq!(run(&legal(), 1).ending, Ending::Limit);
}

/// All the longest legal times at once, on threads that siblings slow down to a thousandth of their speed.
/// An operation then takes minutes, so the limit ends the run before ten seconds without progress.
#[test]
fn the_largest_legal_values_do_not_overflow() {
    let longest = 1_000 * 3_600 * SEC;
    let loops = Workloads::from(lock_loop(longest, longest));
    let burns = Workloads::from(BurnWait {
        threads: 3,
        burn: longest,
        wait: longest,
        count: 0,
        ..BurnWait::default()
    });
    for lock in overspin_locks::infos() {
        let mut host = host(1, "credit");
        (host.threads, host.smt_permille) = (2, 1);
        let c = &mut host.costs;
        for cost in [&mut c.cache_hit, &mut c.atomic, &mut c.cross_core, &mut c.spin_iteration] {
            *cost = SEC;
        }
        (c.migration, c.interrupt) = (SEC, SEC);
        (c.ipi, c.hypercall, c.host_timer) = (SEC.into(), SEC.into(), SEC.into());
        let mut guests =
            vec![domain(2, lock.name, loops.clone()), domain(2, lock.name, burns.clone())];
        guests[0].spin_budget = Some(u32::MAX);
        guests[1].kernel.hz = 10_000;
        guests[1].kernel.slice = 10 * SEC;
        let outcome = run(&scenario(host, guests, 9 * SEC), 1);
        assert_eq!((outcome.ending, outcome.elapsed), (Ending::Limit, 9 * SEC), "{}", lock.name);
    }
}

#[test]
fn a_limit_of_nothing_is_a_run_of_nothing() {
    let outcome =
        run(&scenario(host(1, "credit"), vec![domain(1, "ticket", hog())], Picos::ZERO), 1);
    assert_eq!((outcome.ending, outcome.elapsed), (Ending::Limit, Picos::ZERO));
}

/// Guest code may run ahead without any event, in steps of some nanoseconds. The simulator still asks its
/// caller regularly, and stops as soon as the caller says so.
#[test]
fn a_run_without_events_can_be_stopped_too() {
    let work = LockLoop { fixed: true, ..lock_loop(NS, NS) };
    let endless = scenario(host(1, "null"), vec![tickless(1, "ticket", work)], 1000 * SEC);
    let asked = Cell::new(0);
    let stop = |_| {
        asked.set(asked.get() + 1);
        (asked.get() == 3).then_some(Stopped::Interrupted)
    };
    let outcome = overspin_host::run(&Simulator::new(), &endless, 1, &mut (), &stop).unwrap();
    assert_eq!(outcome.ending, Ending::Stopped { by: Stopped::Interrupted });
    // At most three times 65,536 steps of some nanoseconds, and three leashes of 1 ms.
    assert!(outcome.elapsed < 10 * MS, "{}", outcome.elapsed);
}

/// A caller may stop a run. Its times then add up to the moment of the stop. Steps of 1 ns do not keep the
/// simulator from asking its caller.
#[test]
fn a_run_can_be_stopped_from_outside() {
    let work = LockLoop { fixed: true, ..lock_loop(NS, NS) };
    let endless = scenario(host(1, "credit"), vec![domain(1, "ticket", work)], 1000 * SEC);
    let asked = RefCell::new(Vec::new());
    let stop = |at: Picos| {
        asked.borrow_mut().push(at);
        (asked.borrow().len() == 3).then_some(Stopped::MaxWall)
    };
    let outcome = overspin_host::run(&Simulator::new(), &endless, 1, &mut (), &stop).unwrap();
    assert_eq!(outcome.ending, Ending::Stopped { by: Stopped::MaxWall });
    assert_eq!(asked.borrow().last(), Some(&outcome.elapsed));
    assert!(outcome.elapsed < SEC, "65,536 steps of some 20 ns are soon done");
    super::conservation::check_times(&outcome);
}
