use super::*;
use crate::report::text;
use crate::scenario_file;
use overspin_scenario::{Decision, Link, LongWait, MS, US, Why};
use std::borrow::Cow;

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

/// Words without line ends, so that it does not matter where a line was broken.
fn flat(blocks: &[Block]) -> String {
    text(blocks).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_overcommitted_ticket_lock_waits_for_next_waiters() {
    let (scenario, outcome) = ran(SCENARIO);
    let told = flat(&run(&scenario, &outcome, Some("t.pftrace")));
    // Who waits behind a descheduled waiter waits until that is dispatched again: slices of 30 ms.
    let causes = outcome.domains[0].locks[0].wait_causes;
    assert!(causes.next_preempted > 20 * MS, "{causes:?}");
    let explained = causes.next_preempted >= causes.total() / LARGE;
    assert_eq!(told.contains("kept for a waiter that was off its CPU"), explained, "{told}");
    for cause in Cause::ALL {
        assert!(told.contains(cause.words()), "{cause:?}: {told}");
    }
    for (i, wait) in (1..).zip(&outcome.worst_waits) {
        let began = format!("{i}. guest/v{} waited {:.3} ms for section", wait.vcpu, {
            wait.time as f64 / MS as f64
        });
        assert!(told.contains(&began), "{began}: {told}");
        let place = format!("ts {}, dur {}", wait.since / 1000, wait.time / 1000);
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
        unlisted: 0,
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
        finished: false,
        holder: Some(1),
        acquisitions: 3,
        causes,
        chain,
    }];
    let told = flat(&run(&scenario, &outcome, None));
    for words in [
        "1. guest/v2 waited 6.030 ms for section, and had not got it when the run ended: 49.8 % next waiter preempted (LWP), 33.2 % holder preempted (LHP), 16.6 % own preemption.",
        "+ 0.000 ms 0.010 ms guest/v1 holds the lock and runs",
        "+ 0.010 ms 2.000 ms guest/v1, which has the lock, is off its pCPU (guest/v3 came on pCPU 1 at 1.010 ms: end of slice)",
        "+ 2.010 ms 0.020 ms shorter absences of 0.015 ms in all; but for them, the lock goes through 2 hands",
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
    assert!(told.contains("Nobody waited for a lock"), "{told}");
    assert!(!told.contains("The longest waits"));
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let (scenario, outcome) = ran(SCENARIO);
    let record = RunRecord {
        schema: RUN_SCHEMA.into(),
        version: "1".into(),
        seed: 1,
        set: Cow::Borrowed(&[]),
        trace: Some("t.pftrace".into()),
        scenario: Cow::Borrowed(&scenario),
        outcome: Cow::Borrowed(&outcome),
    };
    let text = serde_json::to_string_pretty(&record).unwrap();
    let Record::Run(back) = read("r.json", &text).unwrap() else { panic!("a run") };
    assert_eq!((&*back.scenario, &*back.outcome), (&scenario, &outcome));
    assert_eq!(back.trace.as_deref(), Some("t.pftrace"));
}

#[test]
fn what_cannot_be_explained_is_refused_with_its_place() {
    let e = read("r.json", "{\n  \"schema\": 5\n}").unwrap_err();
    assert_eq!((e.line, &*e.path), (2, "r.json"), "{e}");
    let e = read("r.json", "{\"schema\": \"overspin-bench/1\"}").unwrap_err();
    assert!(e.message.contains("overspin-bench/1"), "{e}");
    let old = "{\"schema\": \"overspin-run/1\", \"version\": \"0\", \"seed\": 1, \"set\": []}";
    let e = read("r.json", old).unwrap_err();
    assert!(e.help.contains("write it again"), "{e}");
    assert!(read("r.json", "{").is_err());
}

#[test]
fn runs_of_an_experiment_are_summed_up_by_lock_and_load() {
    let run = |lock: &str, next| {
        let causes = WaitCauses { next_preempted: next, ..WaitCauses::default() };
        let causes = serde_json::to_value(causes).unwrap();
        serde_json::json!({
            "lock": lock, "load": "half", "ending": "finished", "vcpu_time_s": [20.0, 20.0],
            "wait_causes": causes,
        })
    };
    let record = serde_json::json!({
        "schema": "overspin-reproduction/1", "experiment": "e", "title": "An experiment.",
        "scale": 20, "runs": [run("ticket", SEC), run("ticket", 2 * SEC), run("byte", 0)],
    });
    let Record::Reproduction(record) = read("r", &record.to_string()).unwrap() else {
        panic!("a reproduction")
    };
    let told = flat(&reproduction(&record));
    // Two runs with 40 s / 20 of vCPU time each.
    assert!(told.contains("ticket, half 2 4.000 3.000 0.0 0.0 100.0 0.0 0.0 0.0"), "{told}");
    assert!(told.contains("ticket, half: 100.0 % next waiter preempted (LWP)."), "{told}");
    assert!(told.contains("byte, half 1 2.000 0.000 - - - - - -"), "{told}");
}

#[test]
fn the_example_of_the_documentation_waits_for_waiters_that_are_away() {
    let (_, outcome) = ran(include_str!("../../../../examples/ticket-compile.toml"));
    let domain = &outcome.domains[0];
    let all = WaitCauses::sum(domain.locks.iter().map(|l| &l.wait_causes));
    // All four vCPUs want one lock nearly all the time, and two of them have a pCPU at any time: half
    // of the waiting is own preemption. What is left is for a lock that is free and kept.
    let of = |time: Picos| time as f64 / all.total() as f64;
    assert!((0.45..0.60).contains(&of(all.own_preemption)), "{all:?}");
    assert!(of(all.next_preempted) > 0.40, "{all:?}");
    assert!(domain.finished.is_none());
}
