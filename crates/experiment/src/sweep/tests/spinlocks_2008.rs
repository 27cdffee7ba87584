use super::*;
use crate::{Grade, claim, verdict};
use overspin_scenario::{PcpuOutcome, TaskOutcome, VcpuOutcome};

const TEXT: &str = include_str!("../../../../../experiments/2008-spinlocks.toml");
const SCALE: u32 = 20;

/// An outcome that scales up to the given figures.
fn run(
    seed: u64,
    elapsed: Option<f64>,
    user: f64,
    system: f64,
    vcpu: f64,
    spinning: f64,
) -> Outcome {
    let of = |s| picos(s, SCALE);
    let end = of(elapsed.unwrap_or(21_600.0));
    let vcpu = VcpuOutcome {
        running: of(vcpu),
        spinning: Picos((of(vcpu).0 as f64 * spinning) as u64),
        ..VcpuOutcome::default()
    };
    let domain = DomainOutcome {
        finished: elapsed.map(|_| end),
        vcpus: vec![vcpu; 4],
        tasks: vec![TaskOutcome {
            user_ticks: of(user),
            system_ticks: of(system),
            sleeps: 2450,
            preemptions: 2660,
            ..TaskOutcome::default()
        }],
        ..DomainOutcome::default()
    };
    let pcpus = vec![PcpuOutcome { busy: end, ..PcpuOutcome::default() }; 2];
    Outcome { pcpus, ..outcome(seed, end, vec![domain]) }
}

/// The published session: the runs of a perfect simulator.
fn published(at: &[&str], seed: u64) -> Outcome {
    match at {
        ["ticket", "half"] => run(seed, Some(503.0), 563.0, 146.0, 251.0, 0.3),
        ["ticket", "optimal"] => run(seed, None, 10.0, 10.0, 10_800.0, 0.99),
        ["lock-byte", "half"] => run(seed, Some(410.7), 564.6, 130.2, 205.4, 0.1),
        ["lock-byte", "optimal"] => run(seed, Some(326.2), 540.0, 105.2, 163.1, 0.1),
        ["xen-pv", "half"] => run(seed, Some(339.0), 567.3, 132.8, 169.5, 0.0),
        ["xen-pv", "optimal"] => run(seed, Some(323.2), 543.0, 103.0, 161.6, 0.0),
        other => panic!("{other:?}"),
    }
}

fn made(change: impl Fn(&[&str], u64) -> Option<Outcome>) -> Made {
    Made::new(TEXT, SCALE, 5, |at, seed| change(at, seed).or_else(|| Some(published(at, seed))))
}

#[test]
fn a_perfect_simulator_is_found_perfect() {
    let r = made(|_, _| None);
    assert_eq!(verdict(&r.claims()), Some(true), "{:#?}", r.claims());
    let counts = ["context_switches", "sleeps"];
    let figures = r.figures().into_iter().filter(|f| !counts.contains(&f.metric.as_str()));
    let missed: Vec<_> = figures.filter(|f| f.grade != Grade::Good).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(r.result.limit_s, Some(1080.0));
}

#[test]
fn kernbench_averages_over_both_loads_except_the_elapsed_time() {
    let r = made(|_, _| None);
    let percent = r.figure("lock-byte, optimal load", "percent_cpu");
    // Five of 169 and five of 197: the published 182.9 (15.1).
    assert_eq!(percent.simulated, Some(183.0));
    assert!((percent.simulated_stddev.unwrap() - 14.76).abs() < 0.01);
    let elapsed = r.figure("lock-byte, optimal load", "elapsed_s").simulated.unwrap();
    assert!((elapsed - 326.2).abs() < 1e-6);
}

#[test]
fn vcpu_time_is_that_of_the_whole_session() {
    let time = made(|_, _| None).figure("lock-byte, vcpu 0", "vcpu_time_s");
    assert!((time.simulated.unwrap() - (6.0 * 205.4 + 5.0 * 163.1)).abs() < 1e-6);
    assert_eq!(time.grade, Grade::Good);
}

#[test]
fn claims_know_every_sample() {
    let r = made(|_, _| None);
    claim::assert_known(&r.sweep, &r.result.samples);
}

#[test]
fn runs_that_did_not_finish_are_shown_and_never_averaged_away() {
    let slow = |at: &[&str], seed| {
        (at == ["lock-byte", "half"] && seed == 1).then(|| run(1, None, 564.6, 130.2, 205.4, 0.1))
    };
    let r = made(slow);
    let elapsed = r.figure("lock-byte, half load", "elapsed_s");
    assert_eq!((elapsed.grade, elapsed.simulated), (Grade::Missed, None));
    let note = "not computed: 1 of 5 runs have no lock-byte.half.elapsed";
    assert_eq!(elapsed.note.as_deref(), Some(note));
    let ended = r.figure("ticket, optimal load", "elapsed_s");
    assert_eq!(ended.note.as_deref(), Some("0 of 5 runs finished"));
    assert_eq!((ended.grade, ended.published), (Grade::Good, None));
    assert_eq!(r.verdicts()[1], None, "an ordering with a missing run is undecided");
    assert_eq!(verdict(&r.claims()), None);
}

#[test]
fn a_ticket_lock_that_survives_refutes_the_claim() {
    let survives = |at: &[&str], seed| {
        (at == ["ticket", "optimal"]).then(|| run(seed, Some(400.0), 10.0, 10.0, 10_800.0, 0.99))
    };
    let r = made(survives);
    assert_eq!(r.verdicts()[0], Some(false));
    assert_eq!(r.figure("ticket, optimal load", "elapsed_s").grade, Grade::Missed);
    assert_eq!(verdict(&r.claims()), Some(false));
}

#[test]
fn no_figure_is_dropped_when_nothing_ran() {
    let r = Made::new(TEXT, SCALE, 5, |_, _| None);
    assert_eq!(r.figures().len(), r.head.figures.len());
    assert!(r.figures().iter().all(|f| f.grade == Grade::Missed && f.note.is_some()));
    assert!(r.verdicts().iter().all(Option::is_none));
}
