//! The worked examples of the specification (§11) for round robin, and its bounds.

use crate::common::{Driver, ms};
use overspin_sched::*;
use proptest::prelude::*;

fn three_hogs(pcpus: u32) -> (Driver, Vec<VcpuId>) {
    let mut d = Driver::flat("rr", pcpus);
    let v: Vec<_> = (0..3).map(|_| d.domain(256, 0, 1)[0]).collect();
    v.iter().for_each(|v| d.up(*v));
    (d, v)
}

#[test]
fn rr1_takes_turns() {
    let (mut d, _) = three_hogs(1);
    d.run_to(Nanos::ms(40));
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 20., 1), (20., 30., 2), (30., 40., 0)]);
}

#[test]
fn rr2_a_yield_ends_the_quantum() {
    let (mut d, v) = three_hogs(1);
    d.run_to(Nanos::ms(4));
    d.yield_now(v[0]);
    d.run_to(Nanos::ms(34));
    assert_eq!(d.ran(0), [(0., 4., 0), (4., 14., 1), (14., 24., 2), (24., 34., 0)]);
}

#[test]
fn rr3_three_on_two_pcpus_get_two_thirds_each() {
    let (mut d, v) = three_hogs(2);
    d.run_to(Nanos::ms(30));
    // At 10 p0 passes first: the queue is [C, A]. At 20 p0 takes B, p1 takes C, which led [C, A].
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 20., 2), (20., 30., 1)]);
    assert_eq!(d.ran(1), [(0., 10., 1), (10., 20., 0), (20., 30., 2)]);
    d.run_to(Nanos::ms(60));
    d.settle();
    v.iter().for_each(|v| assert_eq!(d.running(*v), Nanos::ms(40)));
}

#[test]
fn the_quantum_is_a_parameter() {
    let params = Params::default().with("quantum", ParamValue::Time(Nanos::ms(3)));
    let mut d = Driver::new("rr", &params, Topology::flat(1));
    d.domain(256, 0, 2).iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(7));
    assert_eq!(d.ran(0), [(0., 3., 0), (3., 6., 1), (6., 7., 0)]);
    let zero = Params::default().with("quantum", ParamValue::Time(Nanos::ZERO));
    let message = make("rr", &zero).unwrap_err().to_string();
    assert_eq!(message, "quantum = 0 is not legal; legal values: 1 us to 10 s");
}

#[test]
fn a_wake_up_takes_an_idle_pcpu_and_never_preempts() {
    let (mut d, v) = three_hogs(2);
    d.run_to(Nanos::ms(2));
    d.block(v[0]);
    d.run_to(Nanos::ms(3));
    d.unblock(v[0]);
    d.run_to(ms(10.5));
    // C took p0 when A left it. A waits for the end of B's quantum, which began before C's.
    assert_eq!(d.ran(0), [(0., 2., 0), (2., 10.5, 2)]);
    assert_eq!(d.ran(1), [(0., 10., 1), (10., 10.5, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// n hogs on m pCPUs: run times differ by at most two quanta, no pCPU idles, and no hog waits
    /// for longer than ceil(n/m) quanta.
    #[test]
    fn hogs_have_equal_shares_and_bounded_waits(
        pcpus in 1..5u32,
        more in 0..7u32,
        gaps in proptest::collection::vec(0..9_000i64, 12),
    ) {
        let n = pcpus + more;
        let mut d = Driver::flat("rr", pcpus);
        let v = d.domain(256, 0, n);
        for (v, gap) in v.iter().zip(&gaps) {
            let t = d.now + *gap * Nanos::US;
            d.run_to(t);
            d.up(*v);
        }
        d.settle();
        let all_in = d.now;
        let before: Vec<_> = v.iter().map(|v| d.running(*v)).collect();
        d.run_to(all_in + i64::from(8 * n) * Nanos::ms(10));
        let ran: Vec<_> = v.iter().zip(before).map(|(v, b)| d.running(*v) - b).collect();
        let total: Nanos = ran.iter().copied().sum();
        prop_assert_eq!(total, (d.now - all_in) * i64::from(pcpus), "work conservation");
        let (least, most) = (ran.iter().min().unwrap(), ran.iter().max().unwrap());
        prop_assert!(*most - *least <= Nanos::ms(20), "{ran:?}: not equal");
        let mut turns: Vec<_> = (0..pcpus).flat_map(|p| d.ran(p)).collect();
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        for v in v {
            let mine: Vec<_> = turns.iter().filter(|t| t.2 == v.0).collect();
            for pair in mine.windows(2) {
                let wait = pair[1].0 - pair[0].1;
                prop_assert!(wait <= f64::from(n.div_ceil(pcpus) * 10), "{v:?} waits {wait} ms");
            }
        }
    }
}
