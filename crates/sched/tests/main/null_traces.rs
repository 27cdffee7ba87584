//! The worked examples of the specification (§6) for null.

use crate::common::Driver;
use overspin_sched::*;

fn classes(d: &Driver, vcpus: &[VcpuId]) -> Vec<&'static str> {
    vcpus.iter().map(|v| d.class(*v)).collect()
}

/// Three vCPUs on two pCPUs.
fn three_on_two() -> (Driver, Vec<VcpuId>) {
    let mut d = Driver::flat("null", 2);
    let v = d.domain(256, 0, 3);
    v.iter().for_each(|v| d.up(*v));
    d.settle();
    (d, v)
}

#[test]
fn n1_a_blocked_vcpu_keeps_its_pcpu_and_a_removed_one_frees_it() {
    let (mut d, v) = three_on_two();
    assert_eq!(classes(&d, &v), ["assigned", "assigned", "waiting"]);
    d.run_to(Nanos::ms(5));
    d.block(v[1]);
    d.run_to(Nanos::ms(9));
    assert_eq!(d.h.runstate(v[2]), RunState::Runnable, "c waits while p1 idles");
    d.unblock(v[1]);
    d.run_to(Nanos::ms(12));
    d.call(|h, now, out| h.down(now, v[1], out));
    d.settle();
    d.call(|h, now, out| h.remove_vcpu(now, v[1], out)).unwrap();
    d.run_to(Nanos::ms(15));
    assert_eq!(d.ran(0), [(0., 15., 0)]);
    assert_eq!(d.ran(1), [(0., 5., 1), (9., 12., 1), (12., 15., 2)]);
}

#[test]
fn n2_a_yield_changes_nothing() {
    let (mut d, v) = three_on_two();
    d.run_to(Nanos::ms(3));
    d.yield_now(v[1]);
    d.run_to(Nanos::ms(6));
    assert_eq!(d.ran(1), [(0., 6., 1)]);
}

#[test]
fn an_assigned_vcpu_never_waits() {
    let (mut d, v) = three_on_two();
    for t in 1..20 {
        d.run_to(t * Nanos::MS);
        let v = v[t as usize % 2];
        if !d.unblock(v) {
            d.block(v);
        }
    }
    d.settle();
    for v in &v[..2] {
        assert_eq!(d.h.run_times(*v, d.now).runnable, Nanos::ZERO, "no steal");
    }
}

#[test]
fn a_freed_pcpu_goes_to_the_first_that_prefers_it_then_to_the_first_that_may() {
    let mut d = Driver::flat("null", 2);
    let held = d.domain(256, 0, 2);
    // The last two may run on p1; only the last prefers it.
    let wanting = d.domain_on(
        256,
        0,
        [Affinity::hard([0]), Affinity::hard([1]), Affinity::any().with_soft([1])],
    );
    held.iter().chain(&wanting).for_each(|v| d.up(*v));
    d.settle();
    let down = |d: &mut Driver, v| {
        d.call(|h, now, out| h.down(now, v, out));
        d.settle();
    };
    down(&mut d, held[1]);
    assert_eq!(classes(&d, &wanting), ["waiting", "waiting", "assigned"]);
    down(&mut d, wanting[2]);
    assert_eq!(classes(&d, &wanting), ["waiting", "assigned", "offline"]);
    // p0 goes to the first waiting vCPU that may use it; the last one queued behind that.
    d.up(wanting[2]);
    down(&mut d, held[0]);
    assert_eq!(classes(&d, &wanting), ["assigned", "assigned", "waiting"]);
}
