use super::measure::{of_trace, seconds};
use super::*;
use crate::aligned_2001;
use crate::claim::{self, judged};
use crate::figure::compared;
use crate::{Compared, Grade, Judged, verdict};
use overspin_scenario::{DomainOutcome, LineOutcome, Picos};

/// A run that prints the published trace, with holders that lose their line at `away` of 100 accesses.
fn sample(kernel: &Kernel, hold_us: f64, hold_data_us: f64, spinning: f64, away: u64) -> Sample {
    Sample {
        kernel: kernel.name.clone(),
        seed: 1,
        finished: true,
        interval_s: 1.0,
        rows: kernel.rows(),
        hold_us,
        hold_data_us,
        spinning_percent: spinning,
        elapsed: Picos(1),
        domain: DomainOutcome {
            name: "server".into(),
            finished: Some(Picos(1)),
            lines: vec![LineOutcome { accesses: 100, lost: away, ..LineOutcome::default() }],
            ..DomainOutcome::default()
        },
        trace_hash: 0,
    }
}

fn published(e: &Dbench) -> Vec<Sample> {
    let [before, after] = &e.kernels;
    vec![sample(before, 2.0, 1.2, 40.0, 60), sample(after, 1.06, 0.3, 22.0, 10)]
}

fn figures(e: &Dbench, found: &Found) -> Vec<Compared> {
    compared(&e.head.figures, &found.samples)
}

fn claims(e: &Dbench, found: &Found) -> Vec<Judged> {
    judged(&e.head.claims, &found.samples)
}

#[test]
fn figures_of_a_kernel_follow_from_its_trace() {
    let e = aligned_2001().unwrap();
    for f in e.head.figures.iter().filter(|f| f.place != "change") {
        let kernel = e.kernels.iter().find(|k| k.name == f.place).unwrap();
        let value = of_trace(&kernel.rows(), 1.0, &f.metric).unwrap();
        assert!((value - f.mean.unwrap()).abs() < 0.0051, "{} of {}: {value}", f.metric, f.place);
    }
}

#[test]
fn a_perfect_simulator_is_found_perfect() {
    let e = aligned_2001().unwrap();
    let found = assemble(&e, &published(&e));
    let claims = claims(&e, &found);
    assert_eq!(verdict(&claims), Some(true), "{claims:#?}");
    let figures = figures(&e, &found);
    assert!(figures.iter().all(|f| f.grade == Grade::Good), "{figures:#?}");
}

#[test]
fn a_patch_without_effect_refutes_every_claim() {
    let e = aligned_2001().unwrap();
    let mut runs = published(&e);
    runs[1] = Sample { kernel: runs[1].kernel.clone(), ..runs[0].clone() };
    let claims = claims(&e, &assemble(&e, &runs));
    assert!(claims.iter().all(|c| c.holds == Some(false)), "{claims:#?}");
}

#[test]
fn a_fall_for_another_reason_refutes_the_cause() {
    let e = aligned_2001().unwrap();
    let [before, after] = &e.kernels;
    // Holders reach their data as before, and yet hold for less time.
    let runs = [sample(before, 2.0, 1.2, 40.0, 60), sample(after, 1.06, 1.1, 22.0, 10)];
    assert_eq!(claims(&e, &assemble(&e, &runs))[3].holds, Some(false));
}

#[test]
fn missing_and_unfinished_runs_decide_nothing() {
    let e = aligned_2001().unwrap();
    let mut runs = published(&e);
    runs[1].finished = false;
    for runs in [&runs[..], &runs[..1], &[]] {
        let found = assemble(&e, runs);
        let figures = figures(&e, &found);
        assert_eq!(figures.len(), e.head.figures.len());
        let claims = claims(&e, &found);
        assert!(claims.iter().all(|c| c.holds.is_none()), "{claims:#?}");
        let patched = figures.iter().filter(|f| f.place != "2.4.10");
        assert!(patched.into_iter().all(|f| f.grade == Grade::Missed && f.note.is_some()));
    }
}

#[test]
fn claims_know_every_sample() {
    let e = aligned_2001().unwrap();
    claim::assert_known(&e, &assemble(&e, &published(&e)).samples);
}

#[test]
fn finer_rows_say_the_same() {
    let e = aligned_2001().unwrap();
    let rows = e.kernels[0].rows();
    // Four rows for each, with a quarter of the blocks.
    let fine: Vec<_> = rows
        .iter()
        .flat_map(|r| std::iter::repeat_n(VmstatRow { bo: r.bo / 4.0, ..*r }, 4))
        .collect();
    assert_eq!(seconds(&fine, 0.25), rows);
    for metric in ["make_s", "remove_s", "user_cpu_s", "written_kib", "writing_s"] {
        let (a, b) = (of_trace(&rows, 1.0, metric), of_trace(&fine, 0.25, metric));
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-9, "{metric}: {a:?} {b:?}");
    }
    // The rest of an incomplete last second is idle.
    let short = seconds(&fine[..6], 0.25);
    assert_eq!((short.len(), short[1].id, short[1].sy), (2, 50.0, 49.0));
    assert_eq!(of_trace(&[], 1.0, "elapsed_s"), None);
}

#[test]
fn scaled_variants_write_a_part_as_much() {
    let e = aligned_2001().unwrap();
    let written = |scale| {
        let v = e.variant(&e.kernels[1], scale);
        let w = v.domains[0].workload.get::<FileServer>().unwrap();
        assert_eq!(w.placement, Placement::Aligned);
        w.clients * w.files * w.pages - w.dirty_limit
    };
    assert_eq!(written(10), written(1) / 10);
}
