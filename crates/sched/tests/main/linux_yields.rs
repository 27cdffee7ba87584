//! What a directed yield costs the yielder under `eevdf` and `eevdf-6.18`: worked examples of forfeit and debooster, and random
//! calls.

use crate::common::{Driver, ms};
use overspin_sched::*;
use proptest::prelude::*;

/// With requests of 3 ms on one pCPU, a tick of 1 ms, and these options.
fn options(forfeits: bool, debooster: bool) -> Params {
    Params::default()
        .with("base_slice", ParamValue::Time(Nanos::ms(3)))
        .with("tick", ParamValue::Time(Nanos::MS))
        .with("yield_forfeits", ParamValue::Flag(forfeits))
        .with("debooster", ParamValue::Flag(debooster))
}

fn yield_to(d: &mut Driver, from: VcpuId, to: VcpuId) -> bool {
    d.call(|h, now, out| h.yield_to(now, from, to, out))
}

/// All wake at one instant with the same virtual runtime; the first is picked first.
fn even(d: &mut Driver, all: &[VcpuId]) {
    for v in all {
        d.up(*v);
        d.call(|h, now, out| h.pause(now, *v, out));
    }
    all.iter().for_each(|v| d.call(|h, now, out| h.unpause(now, *v, out)));
}

/// A and B of one domain on one pCPU. A has had its request of 3 ms, and B 0.5 ms of its own, when B yields to A.
fn b_yields_to_a(name: &str, forfeits: bool, debooster: bool) -> (Driver, VcpuId, VcpuId) {
    let mut d = Driver::new(name, &options(forfeits, debooster), Topology::flat(1));
    let v = d.domain(256, 0, 2);
    even(&mut d, &v);
    d.run_to(ms(3.5));
    assert!(yield_to(&mut d, v[1], v[0]));
    (d, v[0], v[1])
}

/// As it was: B's deadline moves to 6, its virtual runtime stays 0.5. V is 1.75, so A, at 3, is not eligible, and B goes on up
/// to 6, which it reaches at 9.
///
/// Forfeit: B is at 3 like A, whose request ends at 6; the tick at 7 finds that. Then B, at 3, has two requests.
///
/// Debooster: the gap is 2.5, the penalty 3 + 2.75, and B at 6.25; its deadline is 9.25. It is not eligible (V is 4.625), so it
/// forfeits nothing more. A runs to the tick at 7, at 6.5, and B, at 6.25, to its deadline, found at 10. Where a yield does not
/// forfeit, it moves B's deadline on to 12.25, and B runs for 6 ms.
#[test]
fn what_a_directed_yield_costs() {
    for (name, forfeits, debooster, at, expected) in [
        ("eevdf", false, false, 0.5, vec![(3., 9., 1), (9., 10., 0)]),
        ("eevdf-6.18", false, false, 0.5, vec![(3., 9., 1), (9., 10., 0)]),
        ("eevdf-6.18", true, false, 3., vec![(3., 3.5, 1), (3.5, 7., 0), (7., 13., 1)]),
        ("eevdf-6.18", true, true, 6.25, vec![(3., 3.5, 1), (3.5, 7., 0), (7., 10., 1)]),
        ("eevdf-6.18", false, true, 6.25, vec![(3., 3.5, 1), (3.5, 7., 0), (7., 13., 1)]),
    ] {
        let (mut d, _, b) = b_yields_to_a(name, forfeits, debooster);
        assert_eq!(d.credit(b), (at * 1e6) as i64, "{name}, {forfeits}, {debooster}");
        d.run_to(ms(expected.last().unwrap().1));
        let ran = d.ran(0);
        assert_eq!(ran[1..], expected, "{name}, {forfeits}, {debooster}");
    }
}

/// B yields again at 9, 5.5 ms after the first time: too soon. A yields to B at 9.6, and is set back: it is at 7.1 and B at
/// 8.25, so the penalty is 3 + 1.265.
#[test]
fn a_queue_sets_back_once_in_six_milliseconds() {
    let (mut d, a, b) = b_yields_to_a("eevdf-6.18", true, true);
    d.run_to(ms(9.));
    assert!(yield_to(&mut d, b, a));
    assert_eq!(d.credit(b), 8_250_000, "it is not eligible, so it does not forfeit either");
    d.run_to(ms(9.6));
    assert_eq!(d.h.current(PcpuId(0)), Some(a));
    assert!(yield_to(&mut d, a, b));
    assert_eq!(d.credit(a), 11_365_000);
}

/// A and B are pinned to pCPU 0, C and D to pCPU 1; all are of one domain. A yields to D, which waits on the other queue: it
/// is not set back. It forfeits its request of 6 ms (3 times 2 on two pCPUs). The try counts, so B, which yields to A 2 ms
/// later, forfeits its own request and no more.
#[test]
fn a_target_on_another_queue_sets_nobody_back() {
    let mut d = Driver::new("eevdf-6.18", &options(true, true), Topology::flat(2));
    let pins = [0, 0, 1, 1].map(|p| Affinity::hard([p]));
    let v = d.domain_on(256, 0, pins);
    even(&mut d, &v);
    d.run_to(ms(2.));
    d.settle();
    // A, at 2, is not eligible beside B, at 0: a yield of it changes nothing.
    assert!(yield_to(&mut d, v[0], v[3]));
    assert_eq!(d.credit(v[0]), 2_000_000);
    d.run_to(ms(3.));
    assert_eq!([PcpuId(0), PcpuId(1)].map(|p| d.h.current(p)), [Some(v[1]), Some(v[3])]);
    assert!(yield_to(&mut d, v[1], v[0]));
    assert_eq!(d.credit(v[1]), 6_000_000);
}

/// A yields at the start of its request, to D on the other pCPU; all are eligible. In 6.6 another deadline ends A's protection,
/// so B, whose deadline is earlier now, runs. In 6.17, the same without forfeit, A is protected up to the deadline with which it was
/// picked, and goes on: the yield is in vain. A forfeit ends the protection.
#[test]
fn since_6_17_a_yield_alone_does_not_end_the_turn() {
    for (name, forfeits, goes_on) in
        [("eevdf", false, false), ("eevdf-6.18", false, true), ("eevdf-6.18", true, false)]
    {
        let mut d = Driver::new(name, &options(forfeits, false), Topology::flat(2));
        let v = d.domain_on(256, 0, [0, 0, 1, 1].map(|p| Affinity::hard([p])));
        even(&mut d, &v);
        d.settle();
        assert!(yield_to(&mut d, v[0], v[3]));
        d.settle();
        let now = if goes_on { v[0] } else { v[1] };
        assert_eq!(d.h.current(PcpuId(0)), Some(now), "{name}, {forfeits}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is yielded to whom, the state stays valid, and each vCPU that computes runs within a time that follows from
    /// the largest penalty: six requests of 12 ms for each of the others, and as much again for requests.
    #[test]
    fn yields_keep_the_state_valid_and_nobody_starves(
        name in prop::sample::select(vec!["eevdf", "eevdf-6.18"]),
        (forfeits, debooster, balance) in (any::<bool>(), any::<bool>(), any::<bool>()),
        pcpus in 1..4_u32,
        steps in prop::collection::vec((0..6_usize, 0..6_usize, 0..4_000_u32, 0..8_u32), 1..120),
    ) {
        let params = options(forfeits, debooster).with("balance", ParamValue::Flag(balance));
        let mut d = Driver::new(name, &params, Topology::flat(pcpus));
        let v = [d.domain(256, 0, 3), d.domain(512, 0, 3)].concat();
        even(&mut d, &v);
        for (from, to, us, what) in steps {
            let now = d.now;
            d.run_to(now + Nanos::us(us.into()));
            d.settle();
            match what {
                0 if d.h.runstate(v[from]) == RunState::Running => d.block(v[from]),
                1 => _ = d.unblock(v[from]),
                _ => _ = yield_to(&mut d, v[from], v[to]),
            }
            d.h.is_valid().map_err(TestCaseError::fail)?;
            d.settle();
        }
        v.iter().for_each(|v| _ = d.unblock(*v));
        d.settle();
        let before: Vec<Nanos> = v.iter().map(|v| d.running(*v)).collect();
        let end = d.now + Nanos::ms(6 * 2 * 6 * 12);
        d.run_to(end);
        d.settle();
        for (v, before) in v.iter().zip(before) {
            prop_assert!(d.running(*v) > before, "{v:?} of {name} does not run");
        }
    }
}
