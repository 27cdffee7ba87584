//! The worked examples of the specification (§8.4) for sedf, and its guarantees.

use crate::common::{Driver, ms};
use overspin_sched::*;
use proptest::prelude::*;

/// The time at which all vCPUs wake.
const START: Nanos = Nanos::ms(1_000);

/// A period and a slice, in ns, without extra time.
fn guaranteed(period: Nanos, slice: Nanos) -> Params {
    Params::default()
        .with("period", ParamValue::Time(period))
        .with("slice", ParamValue::Time(slice))
        .with("extratime", ParamValue::Flag(false))
}

fn number(key: &str, value: i64) -> Params {
    Params::default().with(key, ParamValue::Number(value))
}

fn set(d: &mut Driver, v: VcpuId, params: &Params) -> Result<(), SchedError> {
    d.call(|h, now, out| h.configure(now, Whose::Vcpu(v), params, out))
}

/// A pCPU with one vCPU for each of `params`; all wake at `START`.
fn hogs(params: &[Params]) -> (Driver, Vec<VcpuId>) {
    let mut d = Driver::flat("sedf", 1);
    let v: Vec<_> = params.iter().map(|_| d.domain(256, 0, 1)[0]).collect();
    v.iter().zip(params).for_each(|(v, params)| set(&mut d, *v, params).unwrap());
    d.run_to(START);
    v.iter().for_each(|v| d.up(*v));
    (d, v)
}

/// The vCPUs that pCPU 0 ran, in ms after `START`.
fn ran(d: &mut Driver) -> Vec<(f64, f64, u32)> {
    d.ran(0).into_iter().map(|(from, to, v)| (from - 1e3, to - 1e3, v)).collect()
}

#[test]
fn s1_extra_time_fills_what_the_slices_leave() {
    let (mut d, _) = hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(15)), Params::default()]);
    d.run_to(START + Nanos::ms(75));
    let expected =
        [(0., 15., 1), (15., 30., 0), (30., 35., 1), (35., 50., 0), (50., 55., 1), (55., 70., 0)];
    assert_eq!(ran(&mut d)[..6], expected);
}

#[test]
fn s2_extra_time_by_weight() {
    let (mut d, _) = hogs(&[number("extraweight", 1), number("extraweight", 3)]);
    d.run_to(START + ms(8.5));
    // In quanta of 0.5 ms: one of V2 and four of V3, since all scores begin at 0; then one of V2
    // and three of V3, and so on.
    let expected = [
        (0., 0.5, 0),
        (0.5, 2.5, 1),
        (2.5, 3., 0),
        (3., 4.5, 1),
        (4.5, 5., 0),
        (5., 6.5, 1),
        (6.5, 7., 0),
        (7., 8.5, 1),
    ];
    assert_eq!(ran(&mut d), expected);
}

#[test]
fn s3_earliest_deadline_first() {
    let (mut d, _) =
        hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(5)), guaranteed(Nanos::ms(30), Nanos::ms(10))]);
    d.run_to(START + Nanos::ms(80));
    // From 40 R runs only until 45, where a period of P begins, whose deadline is earlier.
    let expected = [
        (5., 10., 0),
        (10., 20., 1),
        (25., 30., 0),
        (40., 45., 1),
        (45., 50., 0),
        (50., 55., 1),
        (65., 70., 0),
        (70., 80., 1),
    ];
    assert_eq!(ran(&mut d), expected);
}

#[test]
fn what_a_short_block_loses_is_given_back_from_extra_time() {
    let (mut d, v) = hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(10)), Params::default()]);
    d.run_to(START + Nanos::ms(14));
    d.block(v[0]);
    d.run_to(START + Nanos::ms(16));
    d.unblock(v[0]);
    d.settle();
    assert_eq!(d.class(v[0]), "penalty");
    d.run_to(START + Nanos::ms(50));
    // It had run 4 of 10 ms when it blocked. The period of the block is over for it, and the next
    // begins at 30. The 6 ms that it lost take precedence over the other's extra time.
    let expected = [
        (0., 10., 1),
        (10., 14., 0),
        (14., 16., 1),
        (16., 22., 0),
        (22., 30., 1),
        (30., 40., 0),
        (40., 50., 1),
    ];
    assert_eq!(ran(&mut d), expected);
}

#[test]
fn a_long_block_begins_a_new_period() {
    let (mut d, v) = hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(10)), Params::default()]);
    d.run_to(START + Nanos::ms(14));
    d.block(v[0]);
    d.run_to(START + Nanos::ms(47));
    d.unblock(v[0]);
    d.run_to(START + Nanos::ms(80));
    // A new period begins at once, at 47, and then every 20 ms.
    let expected =
        [(10., 14., 0), (14., 47., 1), (47., 57., 0), (57., 67., 1), (67., 77., 0), (77., 80., 1)];
    assert_eq!(ran(&mut d)[1..], expected);
}

/// After a long block a vCPU does not queue for the compensation of an earlier short block (in sched_sedf.c the branch
/// for long blocks adds it to the utilisation queue alone).
#[test]
fn a_long_block_ends_the_compensation_of_a_short_one() {
    let (mut d, v) = hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(10)), Params::default()]);
    for (blocks, wakes) in [(14, 16), (18, 60)] {
        d.run_to(START + Nanos::ms(blocks));
        d.block(v[0]);
        d.run_to(START + Nanos::ms(wakes));
        d.unblock(v[0]);
    }
    d.run_to(START + Nanos::ms(90));
    // It lost 6 ms at 14 and got 2 back from 16 on, when it blocks again. The new period at 60 gives it its slice, and
    // the 4 ms that are left go to the other.
    let expected =
        [(14., 16., 1), (16., 18., 0), (18., 60., 1), (60., 70., 0), (70., 80., 1), (80., 90., 0)];
    assert_eq!(ran(&mut d)[2..], expected);
}

#[test]
fn weights_share_what_the_others_leave() {
    let (mut d, v) =
        hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(5)), number("weight", 1), number("weight", 2)]);
    for v in &v[1..] {
        set(&mut d, *v, &Params::default().with("extratime", ParamValue::Flag(false))).unwrap();
    }
    d.run_to(START + Nanos::ms(1_000));
    let before: Vec<_> = v.iter().map(|v| d.running(*v)).collect();
    d.run_to(START + Nanos::ms(11_000));
    d.settle();
    let ran: Vec<_> = v.iter().zip(before).map(|(v, b)| (d.running(*v) - b) / Nanos::MS).collect();
    // 95 % minus 25 % is divided one to two. The sum over 100 periods may be off by one slice.
    assert_eq!(ran[0], 2_500);
    assert!((ran[1] - 2_333).abs() <= 24 && (ran[2] - 4_666).abs() <= 47, "{ran:?}");
}

#[test]
fn illegal_shares_are_refused_and_change_nothing() {
    let (mut d, v) = hogs(&[guaranteed(Nanos::ms(20), Nanos::ms(10))]);
    let message = |d: &mut Driver, params: &Params| set(d, v[0], params).unwrap_err().to_string();
    let legal = "legal values: 5 us to the period, 20 ms; with extratime also 0";
    let time = |t| Params::default().with("slice", ParamValue::Time(t));
    assert_eq!(
        message(&mut d, &time(Nanos::ms(21))),
        format!("slice = 21 ms is not legal; {legal}")
    );
    assert_eq!(message(&mut d, &time(Nanos::ZERO)), format!("slice = 0 is not legal; {legal}"));
    let both = time(Nanos::ms(5)).with("weight", ParamValue::Number(3));
    assert_eq!(
        message(&mut d, &both),
        "weight = 3 is not legal; legal values: none together with period or slice, which it \
         computes"
    );
    d.run_to(START + Nanos::ms(100));
    d.settle();
    assert_eq!(d.running(v[0]), Nanos::ms(50), "begins at 10, 30, 50, 70, 90");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without extra time, on a pCPU that is not overbooked, hogs run for exactly a slice in each
    /// period. On an overbooked pCPU, a turn that began late belongs to the period before, so two
    /// slices may fall into one period.
    #[test]
    fn slices_are_limits_and_guarantees(
        servers in proptest::collection::vec((50..300i64, 1..=50i64), 1..6),
    ) {
        let servers: Vec<_> = servers
            .iter()
            .map(|(p, percent)| (*p * Nanos::us(100), (p * percent / 100).max(1) * Nanos::us(100)))
            .collect();
        let load: f64 = servers.iter().map(|(p, s)| s.0 as f64 / p.0 as f64).sum();
        let params: Vec<_> = servers.iter().map(|(p, s)| guaranteed(*p, *s)).collect();
        let (mut d, v) = hogs(&params);
        let mut at_begin = vec![Nanos::ZERO; v.len()];
        for t in 1..3_000i64 {
            d.run_to(START + t * Nanos::us(100));
            for (i, (period, slice)) in servers.iter().enumerate() {
                // The first period begins one slice after the first wake-up.
                let since = t * Nanos::us(100) - *slice;
                if since > Nanos::ZERO && since % *period == Nanos::ZERO {
                    let ran = d.running(v[i]) - at_begin[i];
                    prop_assert!(load > 1.0 || ran == *slice, "{ran} of {slice} up to {t}");
                    prop_assert!(ran <= 2 * *slice, "{ran} > 2 × {slice} up to {t}");
                    at_begin[i] += ran;
                }
            }
        }
    }

    /// T3: vCPUs share extra time by extra weight.
    #[test]
    fn extra_time_goes_by_extra_weight(weights in proptest::collection::vec(1..=16i64, 2..8)) {
        let params: Vec<_> = weights.iter().map(|w| number("extraweight", *w)).collect();
        let (mut d, v) = hogs(&params);
        d.run_to(START + Nanos::ms(10_000));
        d.settle();
        let sum: i64 = weights.iter().sum();
        for (v, weight) in v.iter().zip(&weights) {
            let got = d.running(*v).0 as f64 / Nanos::ms(10_000).0 as f64;
            let fair = *weight as f64 / sum as f64;
            prop_assert!((got - fair).abs() < 0.01, "{got} of {fair}: {weights:?}");
        }
    }
}
