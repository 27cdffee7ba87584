//! The worked examples of the specification (§10.2) for the co-schedulers, and their bounds.

use crate::common::Driver;
use overspin_sched::*;
use proptest::prelude::*;

/// A machine with a quantum of 10 ms, and for each number in `vms` a VM with that many hogs.
fn hogs(name: &str, pcpus: u32, vms: &[u32]) -> (Driver, Vec<Vec<VcpuId>>) {
    let params = Params::default().with("quantum", ParamValue::Time(Nanos::ms(10)));
    let mut d = Driver::new(name, &params, Topology::flat(pcpus));
    let vms: Vec<_> = vms.iter().map(|n| d.domain(256, 0, *n)).collect();
    vms.iter().flatten().for_each(|v| d.up(*v));
    (d, vms)
}

fn costop(d: &Driver, v: VcpuId) -> Nanos {
    d.h.scheduler().costop(v, d.now)
}

#[test]
fn k1_strict_places_whole_vms_and_leaves_the_rest_idle() {
    let (mut d, _) = hogs("cosched-strict", 2, &[2, 1]);
    d.run_to(Nanos::ms(40));
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 20., 2), (20., 30., 0), (30., 40., 2)]);
    assert_eq!(d.ran(1), [(0., 10., 1), (20., 30., 1)]);
}

#[test]
fn k1_backfill_uses_what_is_left_idle() {
    let params = Params::default()
        .with("quantum", ParamValue::Time(Nanos::ms(10)))
        .with("backfill", ParamValue::Flag(true));
    let mut d = Driver::new("cosched-strict", &params, Topology::flat(2));
    let v = [d.domain(256, 0, 2), d.domain(256, 0, 1)].concat();
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(20));
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 20., 2)]);
    let filler = d.ran(1)[1];
    assert_eq!((filler.0, filler.1), (10., 20.), "one of the VM that does not fit runs");
    assert_ne!(filler.2, 2);
}

#[test]
fn strict_keeps_the_pcpu_of_a_vcpu_that_blocks_until_the_quantum_is_over() {
    let (mut d, vms) = hogs("cosched-strict", 2, &[2, 1]);
    d.run_to(Nanos::ms(2));
    d.block(vms[0][1]);
    d.run_to(Nanos::ms(6));
    d.unblock(vms[0][1]);
    d.run_to(Nanos::ms(10));
    assert_eq!(d.ran(1), [(0., 2., 1), (6., 10., 1)]);
    // A vCPU that is blocked at a boundary takes no pCPU there, so both VMs fit.
    d.run_to(Nanos::ms(21));
    d.block(vms[0][1]);
    d.run_to(Nanos::ms(35));
    d.settle();
    assert_eq!(d.h.runstate(vms[0][0]), RunState::Running);
    assert_eq!(d.h.runstate(vms[1][0]), RunState::Running);
}

#[test]
fn strict_places_a_vm_that_wakes_if_it_fits() {
    let (mut d, vms) = hogs("cosched-strict", 4, &[2]);
    let late = d.domain(256, 0, 2);
    d.run_to(Nanos::ms(3));
    late.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(10));
    d.settle();
    assert_eq!(d.running(vms[0][0]), Nanos::ms(10));
    assert_eq!((d.running(late[0]), d.running(late[1])), (Nanos::ms(7), Nanos::ms(7)));
}

#[test]
fn k2_leaders_stop_until_the_others_have_caught_up() {
    let (mut d, vms) = hogs("cosched", 2, &[2, 1]);
    let (a, b) = (vms[0][0], vms[0][1]);
    d.run_to(Nanos::ms(16));
    assert_eq!((d.class(a), d.class(b)), ("free", "co-stopped"));
    assert_eq!(d.h.runstate(b), RunState::Runnable, "its guest sees steal");
    d.run_to(Nanos::ms(31));
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 30., 2), (30., 31., 0)]);
    assert_eq!(d.ran(1), [(0., 14., 1), (14., 22., 0), (22., 30., 1), (30., 31., 2)]);
    // b from 14 to 17 and from 30 on, a from 22 to 25.
    assert_eq!((costop(&d, a), costop(&d, b)), (Nanos::ms(3), Nanos::ms(4)));
}

#[test]
fn a_vm_that_is_stopped_as_a_whole_starts_with_those_that_lag() {
    let (mut d, vms) = hogs("cosched-vm", 2, &[2, 1]);
    d.run_to(Nanos::ms(38));
    // From 10 on, x has p0 and one of a and b waits. After 4 samples the VM stops. It wins p1, which
    // is enough for the one that lags, and that one starts there at once. At 30 the VM also wins p0,
    // since x (20) is behind a (18). Then both run until the end of b's quantum, which began at 26.
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 30., 2), (30., 38., 0)]);
    let expected =
        [(0., 14., 1), (14., 18., 0), (18., 22., 1), (22., 26., 0), (26., 36., 1), (36., 38., 2)];
    assert_eq!(d.ran(1), expected);
    assert_eq!(vms.iter().flatten().map(|v| costop(&d, *v)).sum::<Nanos>(), Nanos::ZERO);
}

#[test]
fn start_must_be_less_than_stop() {
    let params = Params::default().with("start", ParamValue::Time(Nanos::ms(3)));
    let message = make("cosched", &params).unwrap_err().to_string();
    assert_eq!(message, "start = 3 ms is not legal; legal values: less than stop, 3 ms");
}

#[test]
fn being_idle_in_the_guest_is_progress() {
    let (mut d, vms) = hogs("cosched", 2, &[2]);
    d.run_to(Nanos::ms(5));
    d.block(vms[0][1]);
    d.run_to(Nanos::ms(500));
    d.unblock(vms[0][1]);
    d.run_to(Nanos::ms(600));
    d.settle();
    assert_eq!(vms[0].iter().map(|v| costop(&d, *v)).sum::<Nanos>(), Nanos::ZERO, "nobody waited");
}

/// The greatest difference between the times that siblings have waited, at each half of a millisecond. All VMs are hogs.
fn greatest_skew(pcpus: u32, vms: &[u32], stop: Nanos, sample: Nanos) -> Nanos {
    let params = Params::default()
        .with("stop", ParamValue::Time(stop))
        .with("sample", ParamValue::Time(sample));
    let mut d = Driver::new("cosched", &params, Topology::flat(pcpus));
    let vms: Vec<_> = vms.iter().map(|n| d.domain(256, 0, *n)).collect();
    vms.iter().flatten().for_each(|v| d.up(*v));
    let mut greatest = Nanos::ZERO;
    for t in 1..2_000 {
        d.run_to(t * Nanos::us(500));
        d.settle();
        for vm in &vms {
            // All time is progress except time spent waiting for a pCPU.
            let waited = |v: &VcpuId| d.h.run_times(*v, d.now).runnable;
            let (least, most) = (vm.iter().map(waited).min(), vm.iter().map(waited).max());
            greatest = greatest.max(most.unwrap() - least.unwrap());
        }
    }
    greatest
}

/// A skew arises, the laggard runs again before the next sample, and waits again at that sample.
#[test]
fn a_sample_sees_the_skew_of_a_wait_that_is_over() {
    for (pcpus, vms, stop, sample) in [(3, &[2, 2], 2, 3), (4, &[1, 4], 9, 3)] {
        let (stop, sample) = (stop * Nanos::MS, sample * Nanos::us(500));
        let skew = greatest_skew(pcpus, vms, stop, sample);
        assert!(skew <= stop + sample, "{skew}");
    }
}

/// A VM with more vCPUs than there are pCPUs is placed with those that ran least, so they take turns: in 4 s each is off by
/// two quanta of 50 ms at most.
#[test]
fn a_vm_that_is_too_large_for_strict_coscheduling_runs_in_turns() {
    for (pcpus, n) in [(1, 3), (2, 3), (2, 5), (4, 6)] {
        let mut d = Driver::flat("cosched-strict", pcpus);
        let v = d.domain(256, 0, n);
        v.iter().for_each(|v| d.up(*v));
        let mut before = vec![Nanos::ZERO; v.len()];
        for t in 1..=3 {
            d.run_to(t * Nanos::ms(4_000));
            d.settle();
            for (v, before) in v.iter().zip(&mut before) {
                let ran = d.running(*v) - *before;
                let off = ran - Nanos::ms(4_000) * i64::from(pcpus) / i64::from(n);
                assert!(off.0.abs() <= Nanos::ms(100).0, "{n} on {pcpus}: {ran}");
                *before += ran;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Siblings that always want to run are never apart by more than stop and a sample.
    #[test]
    fn skews_stay_bounded(
        pcpus in 1..=4u32,
        vms in proptest::collection::vec(1..=4u32, 1..=4),
        stop in 2..=10i64,
        sample in 1..=4i64,
    ) {
        let (stop, sample) = (stop * Nanos::MS, sample * Nanos::us(500));
        let skew = greatest_skew(pcpus, &vms, stop, sample);
        prop_assert!(skew <= stop + sample, "{skew}");
    }

    /// Strict: all vCPUs of a VM of hogs run, or none does.
    #[test]
    fn strict_runs_all_or_none(
        pcpus in 1..=4u32,
        vms in proptest::collection::vec((1..=4u32, 1..=4u32), 1..=5),
    ) {
        let params = Params::default().with("quantum", ParamValue::Time(Nanos::ms(5)));
        let mut d = Driver::new("cosched-strict", &params, Topology::flat(pcpus));
        let vms: Vec<_> =
            vms.iter().map(|(n, w)| d.domain(256 * w, 0, (*n).min(pcpus))).collect();
        vms.iter().flatten().for_each(|v| d.up(*v));
        // VMs may have started in part until the first boundary, which sees all vCPUs that woke.
        d.run_to(Nanos::ms(5));
        for t in 1..1_000 {
            d.run_to((5 + t) * Nanos::MS);
            d.settle();
            for vm in &vms {
                let on = vm.iter().filter(|v| d.h.runstate(**v) == RunState::Running).count();
                prop_assert!(on == 0 || on == vm.len(), "{on} of {} run at {t}", vm.len());
            }
        }
    }

    /// T6: every hog runs within a bound, whichever vCPUs are stopped.
    #[test]
    fn nobody_starves(
        name in proptest::sample::select(vec!["cosched", "cosched-vm", "cosched-strict"]),
        pcpus in 1..=4u32,
        vms in proptest::collection::vec(1..=4u32, 1..=5),
    ) {
        let sizes: Vec<_> = vms.iter().map(|n| (*n).min(pcpus)).collect();
        let (mut d, vms) = hogs(name, pcpus, &sizes);
        let all: Vec<_> = vms.concat();
        let window = 3 * all.len() as i64 * Nanos::ms(10);
        let mut before = vec![Nanos::ZERO; all.len()];
        for t in 1..=20 {
            d.run_to(t * window);
            d.settle();
            for (v, before) in all.iter().zip(&mut before) {
                let ran = d.running(*v);
                prop_assert!(ran > *before, "{v:?} did not run for {window} up to {t}");
                *before = ran;
            }
        }
    }
}
