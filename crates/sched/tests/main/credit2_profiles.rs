//! What the old profiles of credit2 do as the Xen of their release did.

use crate::common::{Driver, ms};
use overspin_sched::*;

/// Xen 4.5 and 4.6 give an idle pCPU a slice of 2 ms; 4.7 gives it none, as later versions do.
#[test]
fn an_idle_pcpu_looks_for_work_every_2_ms_until_2015() {
    let at = |name| {
        let mut h = Hypervisor::new(Topology::flat(1), make(name, &Params::default()).unwrap());
        let mut out = Vec::new();
        h.start(Nanos::ZERO, &mut out);
        assert_eq!(h.schedule(Nanos::ZERO, PcpuId(0), &mut out).next, None);
        out.iter().find_map(|action| match action {
            Action::SetTimer { timer: TimerId::Slice(_), at } => Some(*at),
            _ => None,
        })
    };
    assert_eq!(at("credit2-2013"), Some(Nanos::ms(2)));
    assert_eq!((at("credit2-2016"), at("credit2")), (None, None));
}

/// Xen 4.7 places a vCPU on any pCPU of a runqueue, by chance; here it is the first. Runqueues, one a
/// core, take turns by load.
#[test]
fn placement_takes_the_first_pcpu_of_a_runqueue_in_2016() {
    let topology = Topology { sockets: 1, cores_per_socket: 2, threads_per_core: 2 };
    let mut d = Driver::new("credit2-2016", &Params::default(), topology);
    let homes = [(); 3].map(|()| {
        let v = d.domain(256, 0, 1)[0];
        d.h.machine().home(v).0
    });
    assert_eq!(homes, [0, 2, 0]);
}

/// Two runqueues of one pCPU. A and C share runqueue 0; nothing is on runqueue 1. Their credit in ms, in
/// turns of at most 2 ms: A 9.5 at 0.5, C 8 at 2.5, A 7.5, C 6, A 5.5, C 4, A 3.5, C 2, A 1.5 at 16.5, C
/// 0 at 18.5, A 0 at 20, where the epoch ends. Load is 1 + t/W there (each has counted a half and
/// computed since) and 0 on the other side, so moving one of equal vCPUs evens it out: the first in
/// order, A, which that very pass has chosen. Xen 4.7 only marks A. A goes on for its slice, 0.5 ms, as C
/// has as much credit; the pass at 20.5 finds that A is to leave.
#[test]
fn the_balancer_only_marks_a_running_vcpu_in_2016() {
    let mut d = Driver::flat("credit2-2016", 2);
    let (a, b, c) = (d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0]);
    let homes = [a, b, c].map(|v| d.h.machine().home(v).0);
    assert_eq!(homes, [0, 1, 0]);
    d.call(|h, now, out| h.remove_vcpu(now, b, out)).unwrap();
    d.up(a);
    d.up(c);
    d.run_to(Nanos::ms(22));
    let turns = [0.5, 2., 2., 2., 2., 2., 2., 2., 2., 2., 1.5, 0.5];
    let mut expected = Vec::new();
    let mut from = 0.;
    for (i, turn) in turns.iter().enumerate() {
        // A goes on at 20.
        let v = if i == 11 || i % 2 == 0 { a.0 } else { c.0 };
        match expected.last_mut() {
            Some((_, to, last)) if *last == v => *to = from + turn,
            _ => expected.push((from, from + turn, v)),
        }
        from += turn;
    }
    expected.push((20.5, 22., c.0));
    assert_eq!(d.ran(0), expected);
    assert_eq!(d.ran(1), [(20.5, 22., a.0)]);
}

/// Before 4.8 a vCPU that is put to sleep does not mark its pCPU as told, so a wake-up before the pass may
/// still choose that pCPU. H (10 ms of credit less 0.05) runs on pCPU 0, X (7.45) on 1, S (6.95) on 2. W
/// lives on pCPU 0 and has 9.9. S is paused and W wakes: H has more than W, nothing idles, and S has least, so
/// pCPU 2 is told. If it counted as told already, pCPU 1 would be, and X would lose it.
#[test]
fn a_sleeper_does_not_mark_its_pcpu_until_2016() {
    let mut d = Driver::flat("credit2-2013", 3);
    let on = |d: &mut Driver, p| d.domain_on(256, 0, [Affinity::hard([p])])[0];
    let (h, x, s, w) = (on(&mut d, 0), on(&mut d, 1), on(&mut d, 2), on(&mut d, 2));
    d.up(w);
    d.run_to(ms(0.1));
    d.block(w);
    d.settle();
    d.call(|h, now, out| h.set_affinity(now, w, Affinity::any(), out)).unwrap();
    assert_eq!((d.credit(w), d.h.machine().home(w)), (9_900_000, PcpuId(0)));
    for (v, at) in [(s, 1.), (x, 1.5), (h, 4.)] {
        d.run_to(ms(at));
        d.up(v);
        d.settle();
    }
    d.run_to(ms(4.05));
    d.call(|h, now, out| h.pause(now, s, out));
    d.unblock(w);
    d.settle();
    assert_eq!([0, 1, 2].map(|p| d.h.current(PcpuId(p))), [Some(h), Some(x), Some(w)]);
}
