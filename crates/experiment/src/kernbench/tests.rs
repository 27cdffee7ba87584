use super::*;
use crate::claim::{self, judged};
use crate::figure::compared;
use crate::{Compared, Grade, Judged, verdict};
use overspin_scenario::{
    DomainOutcome, Ending, Outcome, PcpuOutcome, Picos, SEC, TaskOutcome, VcpuOutcome,
};

fn experiment() -> Kernbench {
    crate::kernbench_2008().unwrap()
}

/// An outcome at a twentieth of the length that scales up to the given figures.
fn outcome(
    seed: u64,
    elapsed: Option<f64>,
    user: f64,
    system: f64,
    vcpu: f64,
    spinning: f64,
) -> Outcome {
    let picos = |s: f64| Picos((s / 20.0 * SEC.0 as f64) as u64);
    let end = picos(elapsed.unwrap_or(21_600.0));
    Outcome {
        seed,
        ending: if elapsed.is_some() { Ending::Finished } else { Ending::Limit },
        elapsed: end,
        events: 1,
        run_ahead: 0,
        trace_hash: seed,
        pcpus: vec![PcpuOutcome { busy: end, ..PcpuOutcome::default() }; 2],
        domains: vec![DomainOutcome {
            name: "guest".into(),
            finished: elapsed.map(|_| end),
            vcpus: vec![
                VcpuOutcome {
                    running: picos(vcpu),
                    spinning: Picos((picos(vcpu).0 as f64 * spinning) as u64),
                    ..VcpuOutcome::default()
                };
                4
            ],
            locks: Vec::new(),
            tasks: vec![TaskOutcome {
                user_ticks: picos(user),
                system_ticks: picos(system),
                sleeps: 2450,
                preemptions: 2660,
                ..TaskOutcome::default()
            }],
            ..DomainOutcome::default()
        }],
        changes: Vec::new(),
        worst_waits: Vec::new(),
        noise: None,
        measurement: None,
    }
}

/// The published session: the runs of a perfect simulator.
fn published() -> Vec<Sample> {
    let mut runs = Vec::new();
    for seed in 1..=5 {
        let mut add =
            |lock: &str, load: &str, o: Outcome| runs.push(Sample::new(lock, load, &o, 20.0));
        add("ticket", "half", outcome(seed, Some(503.0), 563.0, 146.0, 251.0, 0.3));
        add("ticket", "optimal", outcome(seed, None, 10.0, 10.0, 10_800.0, 0.99));
        add("lock-byte", "half", outcome(seed, Some(410.7), 564.6, 130.2, 205.4, 0.1));
        add("lock-byte", "optimal", outcome(seed, Some(326.2), 540.0, 105.2, 163.1, 0.1));
        add("xen-pv", "half", outcome(seed, Some(339.0), 567.3, 132.8, 169.5, 0.0));
        add("xen-pv", "optimal", outcome(seed, Some(323.2), 543.0, 103.0, 161.6, 0.0));
    }
    runs
}

fn found(runs: &[Sample]) -> Found {
    assemble(&experiment(), 20, runs)
}

fn claims(found: &Found) -> Vec<Judged> {
    judged(&experiment().head.claims, &found.samples)
}

fn figures(found: &Found) -> Vec<Compared> {
    compared(&experiment().head.figures, &found.samples)
}

fn find(r: &Found, place: &str, metric: &str) -> Compared {
    figures(r).into_iter().find(|f| f.place == place && f.metric == metric).unwrap()
}

#[test]
fn a_perfect_simulator_is_found_perfect() {
    let r = found(&published());
    assert_eq!(verdict(&claims(&r)), Some(true), "{:#?}", claims(&r));
    let missed: Vec<_> = figures(&r)
        .into_iter()
        .filter(|f| {
            f.grade != Grade::Good && !["context_switches", "sleeps"].contains(&f.metric.as_str())
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn kernbench_averages_over_both_loads_except_the_elapsed_time() {
    let r = found(&published());
    let percent = find(&r, "lock-byte, optimal load", "percent_cpu");
    // Five of 169 and five of 197: the published 182.9 (15.1).
    assert_eq!(percent.simulated, Some(183.0));
    assert!((percent.simulated_stddev.unwrap() - 14.76).abs() < 0.01);
    let elapsed = find(&r, "lock-byte, optimal load", "elapsed_s").simulated.unwrap();
    assert!((elapsed - 326.2).abs() < 1e-6);
}

#[test]
fn vcpu_time_is_that_of_the_whole_session() {
    let r = found(&published());
    let time = find(&r, "lock-byte, vcpu 0", "vcpu_time_s");
    assert!((time.simulated.unwrap() - (6.0 * 205.4 + 5.0 * 163.1)).abs() < 1e-6);
    assert_eq!(time.grade, Grade::Good);
}

#[test]
fn claims_know_every_sample() {
    claim::assert_known(&experiment(), &found(&published()).samples);
}

#[test]
fn runs_that_did_not_finish_are_shown_and_never_averaged_away() {
    let mut runs = published();
    let slow = runs.iter_mut().find(|r| r.lock == "lock-byte" && r.load == "half").unwrap();
    (slow.elapsed_s, slow.ending) = (None, "limit");
    let r = found(&runs);
    let elapsed = find(&r, "lock-byte, half load", "elapsed_s");
    assert_eq!((elapsed.grade, elapsed.simulated), (Grade::Missed, None));
    let note = "not computed: 1 of 5 runs have no lock-byte.half.elapsed";
    assert_eq!(elapsed.note.as_deref(), Some(note));
    let ended = |r| find(r, "ticket, optimal load", "elapsed_s");
    assert_eq!(ended(&r).note.as_deref(), Some("0 of 5 runs finished"));
    assert_eq!((ended(&r).grade, ended(&r).published), (Grade::Good, None));
    assert_eq!(claims(&r)[1].holds, None, "an ordering with a missing run is undecided");
    assert_eq!(verdict(&claims(&r)), None);
}

#[test]
fn a_ticket_lock_that_survives_refutes_the_claim() {
    let mut runs = published();
    for run in runs.iter_mut().filter(|r| r.lock == "ticket" && r.load == "optimal") {
        (run.elapsed_s, run.ending) = (Some(400.0), "finished");
    }
    let r = found(&runs);
    assert_eq!(claims(&r)[0].holds, Some(false));
    assert_eq!(find(&r, "ticket, optimal load", "elapsed_s").grade, Grade::Missed);
    assert_eq!(verdict(&claims(&r)), Some(false));
}

#[test]
fn no_figure_is_dropped_when_nothing_ran() {
    let e = experiment();
    let r = assemble(&e, 20, &[]);
    assert_eq!(figures(&r).len(), e.head.figures.len());
    assert!(figures(&r).iter().all(|f| f.grade == Grade::Missed && f.note.is_some()));
    assert!(claims(&r).iter().all(|c| c.holds.is_none()));
}
