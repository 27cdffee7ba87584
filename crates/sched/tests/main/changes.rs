//! Run-time operations are reported with their times; refused ones are not.

use crate::common::Driver;
use overspin_sched::*;

#[test]
fn operations_are_reported_in_order() {
    let mut d = Driver::flat("credit2", 2);
    d.h.record_changes();
    let v = d.domain(256, 0, 1)[0];
    let domain = d.h.machine().domain_of(v);
    d.up(v);
    d.run_to(Nanos::MS);
    d.call(|h, now, out| h.pause(now, v, out));
    let params = DomainParams { weight: 512, cap: 0 };
    d.call(|h, now, out| h.set_domain(now, domain, params, out)).unwrap();
    let refused = DomainParams { weight: 512, cap: 101 };
    assert!(d.call(|h, now, out| h.set_domain(now, domain, refused, out)).is_err());
    d.run_to(Nanos::ms(2));
    d.call(|h, now, out| h.unpause(now, v, out));
    d.call(|h, now, out| h.unpause(now, v, out));
    d.call(|h, now, out| h.set_affinity(now, v, Affinity::hard([0]), out)).unwrap();
    assert!(d.call(|h, now, out| h.set_affinity(now, v, Affinity::hard([]), out)).is_err());
    d.run_to(Nanos::ms(3));
    // Hot-plugs a vCPU, and removes it again.
    let w = d.call(|h, now, out| h.create_vcpu(now, domain, Affinity::any(), out)).unwrap();
    d.call(|h, now, out| h.up(now, w, out));
    d.settle();
    assert_eq!(d.h.runstate(w), RunState::Running);
    d.call(|h, now, out| h.down(now, w, out));
    assert!(d.call(|h, now, out| h.remove_vcpu(now, w, out)).is_err(), "it is still on its pCPU");
    d.settle();
    d.call(|h, now, out| h.remove_vcpu(now, w, out)).unwrap();
    let expected = [
        (Nanos::ZERO, Change::DomainCreated(domain)),
        (Nanos::ZERO, Change::VcpuCreated(v)),
        (Nanos::ZERO, Change::Up(v)),
        (Nanos::MS, Change::Paused(v)),
        (Nanos::MS, Change::DomainParams(domain, params)),
        (Nanos::ms(2), Change::Unpaused(v)),
        (Nanos::ms(2), Change::Affinity(v)),
        (Nanos::ms(3), Change::VcpuCreated(w)),
        (Nanos::ms(3), Change::Up(w)),
        (Nanos::ms(3), Change::Down(w)),
        (Nanos::ms(3), Change::Down(w)),
        (Nanos::ms(3), Change::VcpuRemoved(w)),
    ];
    assert_eq!(d.h.take_changes(), expected);
    assert_eq!(d.h.take_changes(), []);
}

#[test]
fn a_pcpu_that_leaves_is_reported_twice() {
    let mut d = Driver::flat("credit2", 2);
    let v = d.domain(256, 0, 1)[0];
    d.up(v);
    d.settle();
    d.h.record_changes();
    let p = d.h.machine().home(v);
    d.call(|h, now, out| h.take_pcpu(now, p, out)).unwrap();
    assert_eq!(d.h.take_changes(), [(Nanos::ZERO, Change::PcpuLeaving(p))]);
    d.settle();
    assert_eq!(d.h.take_changes(), [(Nanos::ZERO, Change::PcpuTaken(p))]);
    assert_ne!(d.h.machine().home(v), p);
    assert_eq!(d.h.runstate(v), RunState::Running);
    d.call(|h, now, out| h.give_pcpu(now, p, out)).unwrap();
    assert_eq!(d.h.take_changes(), [(Nanos::ZERO, Change::PcpuGiven(p))]);
}
