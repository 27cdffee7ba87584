use super::*;
use overspin_experiment::Role;
use overspin_experiment::{Compared, Grade, Judged, Reproduction};
use overspin_report::text;
use overspin_runs::record::{Experiment, Kind, Record, Run, Target};
use overspin_runs::scenario_file::{self, Loaded};
use overspin_runs::sweep;
use overspin_scenario::{Decision, Ending, Link, LongWait, MS, NS, SEC, US, Why};

const SCENARIO: &str = r#"
limit = "300ms"
[host]
cores = 2
scheduler = "credit-2008"
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop", section = "5us", outside = "5us" }
"#;

fn ran(text: &str) -> (Scenario, Outcome) {
    let scenario = scenario_file::parse("t", "t", text, &[]).unwrap();
    let outcome = overspin_sim::run(&scenario, 1).unwrap();
    (scenario, outcome)
}

/// Text without line ends, so that line breaks do not matter.
fn flat(blocks: &[Block]) -> String {
    text(blocks).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_exits_and_interrupts_of_the_host_took_is_told() {
    let vcpu = |exits, exiting, interrupted| VcpuOutcome {
        running: 10 * SEC,
        spin_exits: exits,
        directed_yields: exits / 2,
        exiting,
        interrupted,
        ..VcpuOutcome::default()
    };
    let of = |vcpus| exit_story(&DomainOutcome { vcpus, ..DomainOutcome::default() });
    assert_eq!(of(vec![vcpu(0, Picos::ZERO, Picos::ZERO)]), None);
    let told = of(vec![vcpu(100, SEC, Picos::ZERO), vcpu(300, 2 * SEC, 400 * MS)]).unwrap();
    assert_eq!(
        told,
        "The vCPUs exited 400 times because they spun, and the host yielded to one of them 200 times. That took 3.000 s: \
         15.0 % of their time on pCPUs. Interrupts of the host that switched nothing kept them out of their guest for \
         0.400 s: 2.0 %."
    );
}

#[test]
fn an_overcommitted_ticket_lock_waits_for_next_waiters() {
    let (scenario, outcome) = ran(SCENARIO);
    let told = flat(&run(&scenario, &outcome, Some("t.pftrace")));
    // A waiter behind a descheduled waiter waits until that is dispatched again: slices of 30 ms.
    let causes = outcome.domains[0].locks[0].wait_causes;
    assert!(causes.next_preempted > 20 * MS, "{causes:?}");
    let explained = causes.next_preempted >= causes.total() / LARGE;
    assert_eq!(told.contains("kept for a waiter that was off its CPU"), explained, "{told}");
    // A guest that does not preempt has no part of its own in any wait, and nothing is said of it.
    for (i, cause) in Cause::ALL.into_iter().enumerate() {
        assert_eq!(told.contains(cause.words()), i < Cause::OF_ANY_LOCK, "{cause:?}: {told}");
    }
    for (i, wait) in (1..).zip(&outcome.worst_waits) {
        let began = format!("{i}. guest/v{} waited {:.3} ms for section", wait.vcpu, {
            wait.time.millis()
        });
        assert!(told.contains(&began), "{began}: {told}");
        let place = format!("ts {}, dur {}", wait.since / NS, wait.time / NS);
        assert!(told.contains(&place), "{place}");
    }
    assert!(told.contains("those of t.pftrace"));
}

#[test]
fn a_chain_names_who_was_away_and_why() {
    let (scenario, mut outcome) = ran(SCENARIO);
    let by = Some(VcpuId { domain: 0, vcpu: 3 });
    let link = |since, time, cause, vcpu, why: Option<Why>, acquisitions| Link {
        since,
        time,
        cause,
        vcpu,
        decision: why.map(|why| Decision { at: since, pcpu: 1, by, why }),
        acquisitions,
        unlisted: Picos::ZERO,
    };
    let mut chain = vec![
        link(MS, 10 * US, None, None, None, 0),
        link(MS + 10 * US, 2 * MS, Some(Cause::HolderPreempted), Some(1), Some(Why::Slice), 0),
        link(3 * MS + 10 * US, 20 * US, None, None, None, 2),
        link(3 * MS + 30 * US, 3 * MS, Some(Cause::NextPreempted), Some(0), Some(Why::Wake), 0),
        link(6 * MS + 30 * US, MS, Some(Cause::OwnPreemption), Some(2), Some(Why::Parked), 1),
    ];
    chain[2].unlisted = 15 * US;
    let causes = WaitCauses {
        holder_preempted: 2 * MS,
        next_preempted: 3 * MS,
        own_preemption: MS,
        holder_running: 30 * US,
        ..WaitCauses::default()
    };
    outcome.worst_waits = vec![LongWait {
        domain: 0,
        vcpu: 2,
        lock: 0,
        since: MS,
        time: causes.total(),
        of_tasks: false,
        finished: false,
        holder: Some(1),
        acquisitions: 3,
        causes,
        chain,
    }];
    let told = flat(&run(&scenario, &outcome, None));
    for words in [
        "1. guest/v2 waited 6.030 ms for section, but had not got it when the run ended: 49.8 % next waiter preempted (LWP), 33.2 % holder preempted (LHP), 16.6 % own preemption.",
        "+ 0.000 ms 0.010 ms guest/v1 holds the lock and runs",
        "+ 0.010 ms 2.000 ms guest/v1, the holder, is off its pCPU (guest/v3 came on pCPU 1 at 1.010 ms: end of slice)",
        "+ 2.010 ms 0.020 ms shorter absences of 0.015 ms in all; otherwise, the lock goes through 2 vCPUs",
        "+ 2.030 ms 3.000 ms the lock is free and kept for guest/v0, which is off its pCPU (guest/v3 came on pCPU 1 at 3.030 ms: it had been woken)",
        "+ 5.030 ms 1.000 ms is off its own pCPU (guest/v3 came on pCPU 1 at 6.030 ms: cap or budget used up)",
        "in the trace: ts 1000000, dur 6030000, thread guest/v2",
        "`overspin run --trace FILE`",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
}

#[test]
fn a_run_without_waits_says_so() {
    let one = SCENARIO.replace("vcpus = 4", "vcpus = 1");
    let (scenario, outcome) = ran(&one);
    let told = flat(&run(&scenario, &outcome, None));
    assert!(told.contains("No vCPU waited for a lock"), "{told}");
    assert!(!told.contains("The longest waits"));
}

/// A sweep of a lock that waits and one vCPU that does not.
fn of_sweep() -> Record {
    let vary = "[[vary]]\nname = \"vCPUs\"\nset = \"domain.guest.vcpus\"\nto = [\"1\", \"4\"]\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SCENARIO}{vary}")).unwrap();
    let Loaded::Sweep(loaded) = scenario_file::load(file.path(), &[]).unwrap() else { panic!() };
    let measured = sweep::run(&loaded, sweep::Settings::default(), &|_, _| {}).unwrap();
    overspin_runs::sweep::record(&loaded, &measured, &[], None)
}

#[test]
fn of_many_runs_the_worst_is_named_and_can_be_run_again() {
    let mut record = of_sweep();
    let told = flat(&many(&record));
    assert!(told.contains("The worst is vCPUs 4, seed 1: "), "{told}");
    let found = worst(&record).unwrap().unwrap();
    assert_eq!((found.number, found.scenario.domains[0].vcpus), (1, 4));
    let outcome = overspin_sim::run(&found.scenario, found.seed).unwrap();
    assert_eq!(Some(outcome.trace_hash), found.trace_hash);
    // A run that deadlocks is worse than one that waits.
    record.runs[0].ending = Some(Ending::Deadlock { waits: Vec::new() });
    assert_eq!(worst(&record).unwrap().unwrap().number, 0);
    assert!(flat(&many(&record)).contains("DEADLOCK: nothing could ever happen again in vCPUs 1"));
    record.runs.remove(1);
    record.runs[0].ending = Some(Ending::Finished);
    assert!(worst(&record).unwrap().is_none());
    assert!(flat(&many(&record)).contains("No vCPU waited for a lock in any of them."));
}

/// An experiment with a claim of each verdict, a missed figure, and runs with waits.
fn reproduced() -> Record {
    let run = |place: &str, ending, next| Run {
        place: place.into(),
        seed: Some(1),
        ending: Some(ending),
        elapsed: Some(2 * SEC),
        vcpu_time: Some(4 * SEC),
        wait_causes: Some(WaitCauses { next_preempted: next, ..WaitCauses::default() }),
        ..Run::default()
    };
    let claim = |id, text: &str, holds, evidence: &str| Judged {
        id,
        text: text.into(),
        holds,
        in_words: None,
        evidence: evidence.into(),
    };
    let experiment = Experiment {
        id: "2008-x".into(),
        title: "An experiment.".into(),
        scale: 20,
        limit_s: Some(2.0),
        seeds: vec![1],
        claims: vec![
            claim(1, "At half load byte beats ticket", Some(false), "ticket: 5 s; byte: 6 s"),
            claim(2, "xen-pv finishes the optimal load", None, "no run finished"),
            claim(3, "All is well", Some(true), "it is"),
        ],
        figures: vec![Compared {
            metric: "elapsed_s".into(),
            place: "ticket, half load".into(),
            published: Some(5.0),
            published_stddev: None,
            simulated: Some(10.0),
            simulated_stddev: None,
            error: Some(1.0),
            role: Role::Predict,
            grade: Grade::Missed,
            note: None,
        }],
        ..Experiment::default()
    };
    overspin_experiment::record(&[Reproduction {
        experiment,
        runs: vec![
            run("ticket.half", Ending::Finished, SEC),
            run("ticket.half", Ending::Finished, 3 * SEC),
            run("lock-byte.half", Ending::Finished, SEC),
            run("lock-byte.optimal", Ending::Finished, SEC),
            run("xen-pv.optimal", Ending::Limit, Picos::ZERO),
        ],
        ..Reproduction::default()
    }])
}

#[test]
fn a_claim_that_fails_is_told_with_the_waits_of_the_runs_that_it_speaks_of() {
    let told = flat(&reproduction(&reproduced()));
    for words in [
        "Claim 1 does not hold: At half load byte beats ticket. The deciding figures: ticket: 5 s; byte: 6 s.",
        // Four of the eight seconds of two vCPUs in two runs.
        "ticket.half: 50.0 % of the vCPUs' time in waits: 100.0 % next waiter preempted (LWP)",
        "lock-byte.half: 25.0 %",
        "Claim 2 is undecided: xen-pv finishes the optimal load.",
        "It needs runs that finish, and 1 of 1 did not.",
        "Missed figures",
        "ticket, half load, elapsed_s: 5.00 published, 10.00 simulated (+100.0 %).",
        "kept for a waiter that was off its CPU",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    let of_first = told.split("Claim 2").next().unwrap();
    assert!(!of_first.contains("optimal:") && !told.contains("Claim 3"), "{told}");
}

#[test]
fn benchmarks_are_told_by_what_they_measured() {
    let mut record = Record::new(Kind::Bench, "sched");
    for (place, value) in [("sched.slow", 20.0), ("sched.fast", 5.0)] {
        record.push_as(0, place, "time", "ns", value);
        record.push_as(1, place, "time", "ns", value);
        let (place, metric) = (place.into(), "time".into());
        record.targets.push(Target { place, metric, value: 10.0, at_most: true });
    }
    let told = flat(&samples(&record));
    assert!(told.contains("1 of 2 targets are not reached: sched.slow: 20.00 ns"), "{told}");
    assert!(told.contains("sched.fast time ns 2 5.00 5.00 5.00"), "{told}");
}

#[test]
fn the_example_of_the_documentation_waits_for_waiters_that_are_away() {
    let (_, outcome) = ran(include_str!("../../../../examples/ticket-compile.toml"));
    let domain = &outcome.domains[0];
    let all = WaitCauses::sum(domain.locks.iter().map(|l| &l.wait_causes));
    // All four vCPUs want one lock nearly all the time, and two of them have a pCPU at any time: half of the
    // waiting is own preemption. The rest is for a lock that is free and kept.
    let of = |time: Picos| time.ratio(all.total());
    assert!((0.45..0.60).contains(&of(all.own_preemption)), "{all:?}");
    assert!(of(all.next_preempted) > 0.40, "{all:?}");
    assert!(domain.finished.is_none());
}

#[test]
fn the_longest_wait_is_drawn_as_it_is_told() {
    let text = r#"
limit = "200ms"
[host]
cores = 2
scheduler = "credit-2008"
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
[domain.workload]
kind = "lock-loop"
section = "5us"
outside = "50us"
"#;
    let scenario = overspin_runs::scenario_file::parse("t", "t", text, &[]).unwrap();
    let outcome = overspin_sim::run(&scenario, 1).unwrap();
    let wait = &outcome.worst_waits[0];
    let runner = overspin_runs::runner::Runner::default();
    let drawn = overspin_report::text(&drawing(&scenario, &outcome, runner, &|_| {}).unwrap());
    let lane = |name: &str| {
        // The sentence above the lanes begins with a name too.
        let mut lanes = drawn.lines().filter(|l| !l.contains(" waits for "));
        let line = lanes.find(|l| l.trim_start().starts_with(&format!("{name} "))).unwrap();
        line.trim_start()[name.len() + 1..].to_owned()
    };
    // The waiter's lane shows its causes: the part of its time off its pCPU.
    let waiter = lane(&format!("guest/v{}", wait.vcpu));
    let off = waiter.chars().filter(|c| *c == '·').count() as f64 / 64.0;
    let told = wait.causes.own_preemption.ratio(wait.time);
    assert!((off - told).abs() < 0.2, "{off} {told}\n{drawn}");
    for word in ["waits on a pCPU", "wants a pCPU and has none", "asleep", " ms"] {
        assert!(drawn.contains(word), "{word}\n{drawn}");
    }
    let screen = overspin_report::Screen { width: None, ascii: true };
    assert!(screen.spell(&drawn).is_ascii() && !screen.spell(&drawn).contains('?'), "{drawn}");
    // Another run does not have this wait.
    let other = overspin_sim::run(&scenario, 2).unwrap();
    let swapped = Outcome { seed: 1, ..other };
    let drawn = overspin_report::text(&drawing(&scenario, &swapped, runner, &|_| {}).unwrap());
    assert!(drawn.contains("does not have this wait"), "{drawn}");
}
