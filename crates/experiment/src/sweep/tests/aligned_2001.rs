use super::*;
use crate::{Grade, claim, verdict};
use overspin_runs::instruments::Trace;
use overspin_scenario::{LineOutcome, LockOutcome, VcpuOutcome, VmstatLine};
use overspin_workload::{Dbench, Placement};

const TEXT: &str = include_str!("../../../../../experiments/2001-aligned-locks.toml");

/// A run whose `vmstat` prints a published trace, with holds of so many microseconds, of which so many are for data,
/// waits for so many percent, and holders that lose their line at `away` of 100 accesses.
fn run(rows: &[[f64; 6]], seed: u64, hold: f64, data: f64, waiting: f64, away: u64) -> Outcome {
    let end = picos(10.0, 1);
    let lock = LockOutcome {
        acquisitions: 1,
        hold_total: Picos((hold * 1e6) as u64),
        ..LockOutcome::default()
    };
    let waited = LockOutcome {
        wait_total: picos(10.0 * 8.0 * waiting / 100.0, 1),
        ..LockOutcome::default()
    };
    // Ten lines for each published one.
    let lines = rows.iter().flat_map(|row| (0..10).map(move |tenth| (row, tenth)));
    let line = |(&[_, _, bo, us, sy, _], tenth): (&[f64; 6], u64)| VmstatLine {
        at: Picos::ZERO,
        running: 1,
        blocked: 0,
        pages_out: if tenth == 0 { bo as u64 / 4 } else { 0 },
        user: picos(us / 100.0 * 0.8, 1),
        system: picos(sy / 100.0 * 0.8, 1),
    };
    let domain = DomainOutcome {
        finished: Some(end),
        vcpus: vec![VcpuOutcome::default(); 8],
        vmstat: lines.map(line).collect(),
        locks: [
            vec![LockOutcome::default(); 4],
            vec![lock],
            vec![waited; 1],
            vec![LockOutcome::default(); 7],
        ]
        .concat(),
        lines: vec![LineOutcome {
            accesses: 100,
            lost: away,
            stalled: Picos((data * 1e6) as u64),
            ..LineOutcome::default()
        }],
        ..DomainOutcome::default()
    };
    outcome(seed, end, vec![domain])
}

/// The lines of the first kernel, and of the second.
fn traces() -> [Vec<[f64; 6]>; 2] {
    let sweep = Made::new(TEXT, 1, 1, |_, _| None).sweep;
    [0, 1].map(|i| sweep.setup.vmstat[i].rows.clone())
}

fn before(traces: &[Vec<[f64; 6]>; 2], seed: u64) -> Outcome {
    run(&traces[0], seed, 2.0, 1.2, 40.0, 60)
}

fn made(patched: impl Fn(&[Vec<[f64; 6]>; 2], u64) -> Option<Outcome>) -> Made {
    let traces = traces();
    Made::new(TEXT, 1, 2, |at, seed| match at {
        ["2.4.10"] => Some(before(&traces, seed)),
        _ => patched(&traces, seed),
    })
}

#[test]
fn figures_of_a_kernel_follow_from_its_trace() {
    let made = made(|_, _| None);
    for f in made.head.figures.iter().filter(|f| f.place != "change") {
        let trace = made.sweep.setup.vmstat.iter().find(|t| t.at == f.place).unwrap();
        let trace = Trace { rows: trace.rows(), interval_s: 1.0, cpus: 8.0 };
        // `"2.4.10".user-share`
        let metric = f.simulated.as_ref().and_then(|s| s.rsplit_once("\".")).unwrap().1;
        let value = trace.figure(metric).unwrap();
        assert!((value - f.mean.unwrap()).abs() < 0.0051, "{} of {}: {value}", f.metric, f.place);
    }
}

#[test]
fn a_perfect_simulator_is_found_perfect() {
    let r = made(|traces, seed| Some(run(&traces[1], seed, 1.06, 0.3, 22.0, 10)));
    assert_eq!(verdict(&r.claims()), Some(true), "{:#?}", r.claims());
    // Idle time is what is left of a line, where the published columns do not add up to 100.
    let figures = r.figures().into_iter().filter(|f| f.metric != "idle_s");
    let missed: Vec<_> = figures.filter(|f| f.grade != Grade::Good).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    claim::assert_known(&r.sweep, &r.result.samples);
}

#[test]
fn a_patch_without_effect_refutes_every_claim() {
    let r = made(|traces, seed| Some(before(traces, seed)));
    assert!(r.verdicts().iter().all(|holds| *holds == Some(false)), "{:#?}", r.claims());
}

#[test]
fn a_fall_for_another_reason_refutes_the_cause() {
    // Holders reach their data as before, and yet hold for less time.
    let r = made(|traces, seed| Some(run(&traces[1], seed, 1.06, 1.1, 22.0, 10)));
    assert_eq!(r.verdicts()[3], Some(false));
}

#[test]
fn missing_and_unfinished_runs_decide_nothing() {
    let unfinished = |traces: &[Vec<[f64; 6]>; 2], seed| {
        let mut outcome = run(&traces[1], seed, 1.06, 0.3, 22.0, 10);
        outcome.domains[0].finished = None;
        Some(outcome)
    };
    for r in [made(unfinished), made(|_, _| None), Made::new(TEXT, 1, 1, |_, _| None)] {
        assert_eq!(r.figures().len(), r.head.figures.len());
        assert!(r.verdicts().iter().all(Option::is_none), "{:#?}", r.claims());
        let patched = r.figures().into_iter().filter(|f| f.place != "2.4.10");
        assert!(patched.into_iter().all(|f| f.grade == Grade::Missed && f.note.is_some()));
    }
}

#[test]
fn scaled_points_write_a_part_as_much() {
    let sweep = made(|_, _| None).sweep;
    let written = |scale| {
        let scenario = sweep.scenario(&["2.4.10 + patch"], scale).unwrap().unwrap();
        let w = scenario.domains[0].workload.get::<Dbench>().unwrap();
        assert_eq!(w.placement, Placement::Aligned);
        w.clients * w.files * w.pages - w.dirty_limit
    };
    assert_eq!(written(10), written(1) / 10);
}
