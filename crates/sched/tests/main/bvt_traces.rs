//! The worked examples of the specification (§7.4) for bvt, and its bounds.

use crate::common::Driver;
use overspin_sched::*;
use proptest::prelude::*;

fn number(key: &str, value: i64) -> Params {
    Params::default().with(key, ParamValue::Number(value))
}

fn set(d: &mut Driver, v: VcpuId, params: &Params) {
    d.call(|h, now, out| h.configure(now, Whose::Vcpu(v), params, out)).unwrap();
}

/// A pCPU with one vCPU for each of these advances; all are down.
fn vcpus(as_is: bool, advances: &[i64]) -> (Driver, Vec<VcpuId>) {
    let params = Params::default().with("as_is", ParamValue::Flag(as_is));
    let mut d = Driver::new("bvt", &params, Topology::flat(1));
    let v: Vec<_> = advances.iter().map(|_| d.domain(256, 0, 1)[0]).collect();
    v.iter().zip(advances).for_each(|(v, a)| set(&mut d, *v, &number("mcu_advance", *a)));
    (d, v)
}

/// The vCPUs that pCPU 0 ran up to now, in ns.
fn ran(d: &mut Driver) -> Vec<(Nanos, Nanos, u32)> {
    d.ran(0);
    d.trace[0].clone()
}

#[test]
fn b1_as_is_a_lead_is_taken_for_ns() {
    let (mut d, v) = vcpus(true, &[10, 5]);
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos(35_000_156));
    let expected = [
        (0, 5_000_000, 1),
        (5_000_000, 10_000_025, 0),
        // Twice: at 15,000,077 B is at 505 and A at 510.
        (10_000_025, 20_000_078, 1),
        (20_000_078, 25_000_103, 0),
        // Twice again, with 1015 against 1020 at 30,000,155.
        (25_000_103, 35_000_156, 1),
    ];
    assert_eq!(ran(&mut d), expected.map(|(from, to, v)| (Nanos(from), Nanos(to), v)));
    d.settle();
    assert_eq!((d.credit(v[0]), d.credit(v[1])), (1020, 1270));
}

#[test]
fn b2_as_meant_a_lead_is_made_up_in_real_time() {
    let (mut d, v) = vcpus(false, &[10, 5]);
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(57) + Nanos::us(500));
    let expected = [
        (0., 5., 1),
        (5., 12.5, 0),
        (12.5, 27.5, 1),
        (27.5, 35., 0),
        (35., 50., 1),
        (50., 57.5, 0),
    ];
    assert_eq!(d.ran(0), expected);
    assert_eq!((d.credit(v[0]), d.credit(v[1])), (2250, 1750));
}

/// From the returned time on, A runs with avt 1000 = SVT, and B sleeps at 1400.
fn b3(as_is: bool) -> (Driver, VcpuId, Nanos) {
    let (mut d, v) = vcpus(as_is, &[10, 5]);
    let pause = |d: &mut Driver, v| d.call(|h, now, out| h.pause(now, v, out));
    d.up(v[1]);
    d.run_to(Nanos::ms(28));
    pause(&mut d, v[1]);
    d.up(v[0]);
    // 100 MCU later A is at 1000, and a pass records it.
    d.run_to(Nanos::ms(38));
    d.yield_now(v[0]);
    d.settle();
    assert_eq!((d.credit(v[0]), d.credit(v[1])), (1000, 1400));
    (d, v[1], Nanos::ms(38))
}

#[test]
fn b3_without_warp_a_wake_up_shortens_the_slice() {
    // 170 / 10 = 17 MCU, or 17 ns, and 5 ms.
    for (as_is, after) in [(false, Nanos(6_700_000)), (true, Nanos(5_000_017))] {
        let (mut d, b, start) = b3(as_is);
        d.run_to(start + Nanos::us(2_300));
        d.call(|h, now, out| h.unpause(now, b, out));
        d.run_to(start + Nanos::ms(7));
        assert_eq!(
            ran(&mut d)[1..],
            [(Nanos::ms(28), start + after, 0), (start + after, start + Nanos::ms(7), 1)]
        );
    }
}

#[test]
fn b3_with_warp_a_wake_up_preempts() {
    // 130 / 5 = 26 MCU, or 26 ns, and 5 ms.
    for (as_is, slice) in [(false, Nanos(7_600_000)), (true, Nanos(5_000_026))] {
        let (mut d, b, start) = b3(as_is);
        set(&mut d, b, &number("warp_value", 300).with("warpback", ParamValue::Flag(true)));
        let woken = start + Nanos::us(2_300);
        d.run_to(woken);
        d.call(|h, now, out| h.unpause(now, b, out));
        d.run_to(woken + slice + Nanos(1));
        let expected = [(Nanos::ms(28), woken, 0), (woken, woken + slice, 1)];
        assert_eq!(ran(&mut d)[1..3], expected);
    }
}

/// B warps by 10 s of run time; A does not.
fn warped(limit: Nanos, unwarp: Nanos) -> (Driver, Vec<VcpuId>) {
    let (mut d, v) = vcpus(false, &[10, 10]);
    let params = number("warp_value", 1_000_000)
        .with("warpback", ParamValue::Flag(true))
        .with("warp_limit", ParamValue::Time(limit))
        .with("unwarp_time", ParamValue::Time(unwarp));
    set(&mut d, v[1], &params);
    v.iter().for_each(|v| d.up(*v));
    (d, v)
}

#[test]
fn a_warp_without_limit_starves_others_for_all_of_its_value() {
    let (mut d, v) = warped(Nanos::ZERO, Nanos::ZERO);
    d.run_to(Nanos::ms(10_000));
    d.settle();
    assert_eq!(d.running(v[0]), Nanos::ZERO);
    d.run_to(Nanos::ms(20_000));
    d.settle();
    // From then on each gets half, and B stays ahead.
    assert!((d.running(v[0]) - Nanos::ms(5_000)).abs() <= Nanos::ms(10), "{}", d.running(v[0]));
}

#[test]
fn a_limit_ends_a_warp_for_a_while_or_for_ever() {
    // The limit counts from each pass that chooses the vCPU, as in the original. The slice of a
    // lone vCPU is 50 ms, which is longer than the limit.
    for (unwarp, class) in [(Nanos::ms(1_000), "warped"), (Nanos::ZERO, "unwarped")] {
        let (mut d, v) = warped(Nanos::ms(20), unwarp);
        d.call(|h, now, out| h.pause(now, v[0], out));
        d.run_to(Nanos::ms(19));
        assert_eq!(d.class(v[1]), "warped");
        d.run_to(Nanos::ms(21));
        assert_eq!(d.class(v[1]), "unwarped");
        d.run_to(Nanos::ms(1_021));
        d.settle();
        assert_eq!(d.class(v[1]), class);
    }
}

#[test]
fn as_is_virtual_times_survive_their_reset() {
    let (mut d, v) = vcpus(true, &[65_535, 65_535]);
    v.iter().for_each(|v| d.up(*v));
    // SVT reaches 0xf0000000 after 61,441 MCU of each, which takes 12.3 s.
    d.run_to(Nanos::ms(12_000));
    assert!(d.credit(v[0]) > 0xe000_0000);
    d.run_to(Nanos::ms(13_000));
    assert!(d.credit(v[0]) < 0x4000_0000);
    d.run_to(Nanos::ms(60_000));
    d.settle();
    assert!((d.running(v[0]) - Nanos::ms(30_000)).abs() <= Nanos::ms(10), "{}", d.running(v[0]));
}

#[test]
fn a_sleeper_saves_nothing_up() {
    let (mut d, v) = vcpus(false, &[10, 10]);
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(100));
    let sleeper = d.h.current(PcpuId(0)).unwrap();
    d.block(sleeper);
    d.run_to(Nanos::ms(10_000));
    let other = v.iter().copied().find(|v| *v != sleeper).unwrap();
    let before = (d.running(sleeper), d.running(other));
    d.unblock(sleeper);
    d.run_to(Nanos::ms(11_000));
    d.settle();
    let ran = (d.running(sleeper) - before.0, d.running(other) - before.1);
    // SVT lags by at most 50 ms, the slice of a lone vCPU.
    assert!((ran.0 - ran.1).abs() <= Nanos::ms(70), "{ran:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// T3 and the bound on virtual times: shares are proportional to the inverse of the advance,
    /// and no vCPU is ahead of another by more than the allowance at the greatest advance, and a
    /// lead.
    #[test]
    fn shares_go_by_the_inverse_of_the_advance(
        advances in proptest::collection::vec(1..=40i64, 2..=6),
        as_is in any::<bool>(),
    ) {
        let (mut d, v) = vcpus(as_is, &advances);
        v.iter().for_each(|v| d.up(*v));
        let most = advances.iter().max().unwrap();
        for t in 1..=400 {
            d.run_to(t * Nanos::ms(50));
            d.settle();
            let avt: Vec<_> = v.iter().map(|v| d.credit(*v)).collect();
            let spread = avt.iter().max().unwrap() - avt.iter().min().unwrap();
            // A slice is C (50 MCU) plus the lead of the second; each vCPU may be that far from the
            // next.
            let n = advances.len() as i64;
            prop_assert!(spread <= (50 + 1) * most * n, "{avt:?}: {advances:?}");
        }
        let sum: f64 = advances.iter().map(|a| 1.0 / *a as f64).sum();
        for (v, advance) in v.iter().zip(&advances) {
            let got = d.running(*v).0 as f64 / d.now.0 as f64;
            let fair = 1.0 / *advance as f64 / sum;
            prop_assert!((got - fair).abs() < 0.02, "{got} of {fair}: {advances:?}");
        }
    }
}
