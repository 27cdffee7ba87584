//! The worked examples of the specification (§1.13 and §3.8), and consequences of its rules.

use crate::common::{Driver, ms};
use overspin_sched::*;

#[test]
fn g1_runstates_sum_to_elapsed_time() {
    let params = Params::default();
    let mut h = Hypervisor::new(Topology::flat(1), make("credit", &params).unwrap());
    let out = &mut Vec::new();
    let p = PcpuId(0);
    h.start(Nanos(0), out);
    let d = h.create_domain(DomainParams::default()).unwrap();
    let v = h.create_vcpu(Nanos(0), d, Affinity::any(), out).unwrap();
    let pass = |h: &mut Hypervisor, at: i64| {
        let at = Nanos(at);
        let switch = h.schedule(at, p, &mut Vec::new());
        h.context_saved(at, p, &mut Vec::new());
        switch.next
    };
    h.up(Nanos(2), v, out);
    assert_eq!(pass(&mut h, 5), Some(v));
    h.block(Nanos(9), v, out);
    assert_eq!(pass(&mut h, 9), None);
    assert!(h.unblock(Nanos(20), v, out));
    assert_eq!(pass(&mut h, 21), Some(v));
    h.pause(Nanos(24), v, out);
    assert_eq!(pass(&mut h, 24), None);
    let t = h.run_times(v, Nanos(30));
    assert_eq!([t.running, t.runnable, t.blocked, t.offline], [7, 4, 11, 8].map(Nanos));
    assert_eq!(t.total(), Nanos(30));
}

#[test]
fn c1_two_hogs_with_weights_one_to_two() {
    let mut d = Driver::flat("credit", 1);
    let (a, b) = (d.domain(256, 0, 1)[0], d.domain(512, 0, 1)[0]);
    d.up(a);
    d.up(b);
    d.run_to(Nanos::ms(300));
    let expected = [
        (0., 30., 0),
        (30., 60., 1),
        (60., 90., 0),
        (90., 120., 1),
        (120., 150., 0),
        (150., 210., 1),
        (210., 240., 0),
        (240., 300., 1),
    ];
    assert_eq!(d.ran(0), expected);
}

#[test]
fn c2_a_cap_of_half_a_pcpu() {
    let mut d = Driver::flat("credit", 1);
    let v = d.domain(256, 50, 1)[0];
    d.up(v);
    for (t, credit, class) in [
        (30, -150, "over"),
        (60, -300, "parked"),
        (90, -150, "parked"),
        (120, 0, "under"),
        (150, -150, "over"),
        (180, -300, "parked"),
    ] {
        d.run_to(t * Nanos::MS);
        d.settle();
        assert_eq!((d.credit(v), d.class(v)), (credit, class), "at {t} ms");
    }
    d.run_to(Nanos::ms(300));
    assert_eq!(d.ran(0), [(0., 60., 0), (120., 180., 0), (240., 300., 0)]);
}

/// A runs from 0. B has been up, and is blocked until it is woken.
fn hog_and_sleeper(profile: &str) -> (Driver, VcpuId, VcpuId) {
    let mut d = Driver::flat(profile, 1);
    let (a, b) = (d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0]);
    // B's first wake-up, which does not boost, is over before A starts.
    d.up_and_blocked(b);
    d.up(a);
    (d, a, b)
}

#[test]
fn c3a_a_boosted_vcpu_keeps_its_boost_until_a_tick_finds_it() {
    let (mut d, _, b) = hog_and_sleeper("credit");
    d.run_to(Nanos::ms(12));
    assert_eq!(d.class(b), "under");
    d.unblock(b);
    assert_eq!(d.class(b), "boost");
    d.run_to(Nanos::ms(15));
    d.block(b);
    d.settle();
    assert_eq!((d.credit(b), d.class(b)), (-30, "boost"));
    d.run_to(Nanos::ms(19));
    d.unblock(b);
    d.run_to(Nanos::ms(20));
    d.settle();
    assert_eq!(d.class(b), "under");
    d.run_to(Nanos::ms(21));
    assert_eq!(d.ran(0), [(0., 12., 0), (12., 15., 1), (15., 19., 0), (19., 21., 1)]);
}

#[test]
fn c3b_accounting_does_not_preempt() {
    let (mut d, a, b) = hog_and_sleeper("credit");
    d.run_to(Nanos::ms(12));
    d.unblock(b);
    d.run_to(Nanos::ms(20));
    d.settle();
    assert_eq!((d.credit(b), d.class(b)), (-80, "under"));
    d.run_to(Nanos::ms(30));
    d.settle();
    assert_eq!((d.credit(b), d.class(b)), (-30, "over"));
    assert_eq!((d.credit(a), d.class(a)), (30, "under"));
    d.run_to(Nanos::ms(50));
    assert_eq!(d.ran(0), [(0., 12., 0), (12., 42., 1), (42., 50., 0)]);
}

/// In `credit-2013` a first wake-up boosts, so a tick must have taken A's boost before.
#[test]
fn c3c_the_ratelimit_delays_a_preemption() {
    for (profile, at) in [("credit", 13.5), ("credit-2013", 13.9)] {
        let (mut d, _, b) = hog_and_sleeper(profile);
        d.run_to(Nanos::ms(12));
        d.unblock(b);
        d.run_to(ms(12.5));
        d.block(b);
        // A is dispatched at 12.5. A pass at 12.9 keeps it for the rest of its ratelimit, or (2013) for a
        // whole one.
        d.run_to(ms(12.9));
        d.unblock(b);
        d.run_to(Nanos::ms(15));
        let expected = [(0., 12., 0), (12., 12.5, 1), (12.5, at, 0), (at, 15., 1)];
        assert_eq!(d.ran(0), expected, "{profile}");
    }
}

#[test]
fn c4_stealing_evens_out_three_hogs_on_two_pcpus() {
    let mut d = Driver::flat("credit", 2);
    let a = d.domain(256, 0, 1)[0];
    // The first vCPU of this domain never runs; it only causes the second to be placed on pCPU 1.
    let b = d.domain(256, 0, 2)[1];
    let c = d.domain(256, 0, 1)[0];
    [a, b, c].into_iter().for_each(|v| d.up(v));
    for (t, credits) in [(60, [200, -100, -100]), (90, [100, -200, 100]), (120, [0, 0, 0])] {
        d.run_to(t * Nanos::MS);
        d.settle();
        assert_eq!([d.credit(a), d.credit(b), d.credit(c)], credits, "at {t} ms");
    }
    d.run_to(Nanos::ms(180));
    let (a, b, c) = (a.0, b.0, c.0);
    let p0 = [(0., 30., a), (30., 60., c), (60., 90., a), (90., 150., c), (150., 180., a)];
    assert_eq!(d.ran(0), p0);
    assert_eq!(d.ran(1), [(0., 90., b), (90., 120., a), (120., 180., b)]);
}

/// §3.7: no tick changes the class of vCPUs that block before every tick, so they stay boosted and starve
/// one that computes.
#[test]
fn boosted_sleepers_starve_a_hog() {
    for profile in ["credit", "credit-2013", "credit-2008"] {
        let mut d = Driver::flat(profile, 1);
        let hog = d.domain(256, 0, 1)[0];
        let thief = d.domain(256, 0, 1)[0];
        d.up_and_blocked(thief);
        d.up(hog);
        // Each tick finds the hog, because the thief runs from 0.1 ms after one tick to 0.1 ms before the
        // next.
        for tick in 0..300 {
            d.run_to(tick * Nanos::ms(10) + ms(0.1));
            d.unblock(thief);
            d.run_to(tick * Nanos::ms(10) + ms(9.9));
            d.block(thief);
        }
        d.run_to(Nanos::ms(3000));
        let share = d.running(thief).0 as f64 / d.now.0 as f64;
        assert!(share > 0.85, "{profile}: the thief got {share} of a pCPU shared with a hog");
        assert!(!d.h.scheduler().detail(thief).unwrap().active);
    }
}

#[test]
fn sampled_accounting_charges_whoever_a_tick_finds() {
    let mut d = Driver::flat("credit-2008", 1);
    let v = d.domain(256, 0, 1)[0];
    d.run_to(Nanos::ms(9));
    d.up(v);
    d.run_to(Nanos::ms(11));
    assert_eq!(d.credit(v), -100, "1 ms before the tick cost 100 credits");
    d.block(v);
    d.run_to(Nanos::ms(19));
    d.unblock(v);
    d.run_to(Nanos::ms(21));
    assert_eq!(d.credit(v), -200);
    d.block(v);
    d.run_to(Nanos::ms(29));
    assert_eq!(d.credit(v), -200, "and nothing between ticks");
}

#[test]
fn a_domain_weighs_by_its_vcpus_today_and_as_a_whole_in_2008() {
    for (profile, ratio) in [("credit", 3.0), ("credit-2008", 1.0)] {
        let mut d = Driver::flat(profile, 1);
        let one = d.domain(256, 0, 1);
        let three = d.domain(256, 0, 3);
        one.iter().chain(&three).for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(30_000));
        let sum = |vs: &[VcpuId]| vs.iter().map(|v| d.running(*v)).sum::<Nanos>().0 as f64;
        let got = sum(&three) / sum(&one);
        assert!((got / ratio - 1.0).abs() < 0.05, "{profile}: {got}");
    }
}

/// The first vCPU of each domain stays at its home, pCPU 0: a home with an empty queue counts as idle,
/// whatever it runs. The second vCPU starts from pCPU 1.
#[test]
fn placement_prefers_idle_cores_and_another_socket_only_if_twice_as_idle() {
    let topology = Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 2 };
    let mut d = Driver::new("credit", &Params::default(), topology);
    let mut second = |busy: &[u32]| {
        let pins: Vec<_> = busy.iter().map(|p| Affinity::hard([*p])).collect();
        for v in d.domain_on(256, 0, pins) {
            d.up(v);
        }
        d.settle();
        let v = d.domain(256, 0, 2)[1];
        d.h.machine().home(v).0
    };
    assert_eq!(second(&[0]), 2, "its sibling is busy: an idle core of the same socket");
    // Two idle threads here (its home and pCPU 3) against four there: not more than twice as many.
    assert_eq!(second(&[2]), 1);
    // One against four: already the first vCPU goes to pCPU 4, and the second starts after it.
    assert_eq!(second(&[1, 3]), 5);
}

#[test]
fn soft_affinity_is_tried_first_by_a_wake_up() {
    let mut d = Driver::flat("credit", 4);
    let hog = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    let v = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    d.up_and_blocked(v);
    d.up(hog);
    d.run_to(Nanos::ms(5));
    d.call(|h, now, out| h.set_affinity(now, v, Affinity::soft([3]), out)).unwrap();
    d.unblock(v);
    d.run_to(Nanos::ms(6));
    d.settle();
    assert_eq!(d.h.current(PcpuId(3)), Some(v));
}

#[test]
fn a_preempted_vcpu_that_could_run_elsewhere_is_sent_there_unless_as_is() {
    for as_is in [false, true] {
        let params = Params::default().with("as_is", ParamValue::Flag(as_is));
        let mut d = Driver::new("credit", &params, Topology::flat(2));
        // B may run on pCPU 0 only, and sleeps. A runs there, and pCPU 1 is idle.
        let a = d.domain(256, 0, 1)[0];
        let b = d.domain_on(256, 0, [Affinity::hard([0])])[0];
        d.up_and_blocked(b);
        d.up(a);
        d.run_to(Nanos::ms(5));
        assert_eq!(d.h.current(PcpuId(0)), Some(a));
        d.unblock(b);
        d.settle();
        assert_eq!(d.h.current(PcpuId(0)), Some(b));
        let elsewhere = d.h.current(PcpuId(1)) == Some(a);
        assert_eq!(elsewhere, !as_is, "as_is = {as_is}");
    }
}

/// Two sockets of four cores of two threads; pCPUs 1 and 4 to 7 are busy.
///
/// V, at home on 0, is placed in two rounds: core 1 has two idle threads (2 and 3), where core 0 has one;
/// then the other socket has eight, more than twice the three of this one. So V goes to 8. Xen notes the
/// choice once, at the end, at pCPU 8, which began the last round. Then W, which may use only the first
/// socket, goes to 2, whose turn is first. If the first round were noted too, the turn would be that of 3.
#[test]
fn a_placement_takes_one_turn() {
    let topology = Topology { sockets: 2, cores_per_socket: 4, threads_per_core: 2 };
    let mut d = Driver::new("credit", &Params::default(), topology);
    for p in [1, 4, 5, 6, 7] {
        let hog = d.domain_on(256, 0, [Affinity::hard([p])])[0];
        d.up(hog);
        d.settle();
    }
    let mut place = |affinity: Affinity| {
        let v = d.domain_on(256, 0, [Affinity::hard([0])])[0];
        d.call(|h, now, out| h.set_affinity(now, v, affinity, out)).unwrap();
        d.h.machine().home(v)
    };
    assert_eq!(place(Affinity::any()), PcpuId(8));
    assert_eq!(place(Affinity::hard(0..8)), PcpuId(2));
}

/// Two sockets of three pCPUs, each with a hog; on pCPUs 3 and 4 a vCPU waits that may run on 0 too. When
/// pCPU 0 goes idle, it looks at the other socket from the pCPU after the one last stolen from. In Xen
/// that is the first of the socket to begin with, so the vCPU of 4 comes first, then that of 3.
#[test]
fn stealing_begins_after_the_first_pcpu_of_a_node() {
    let topology = Topology { sockets: 2, cores_per_socket: 3, threads_per_core: 1 };
    let mut d = Driver::new("credit", &Params::default(), topology);
    let hogs: Vec<_> = (0..6).map(|p| d.domain_on(256, 0, [Affinity::hard([p])])[0]).collect();
    for v in &hogs {
        d.up(*v);
        d.settle();
    }
    let waiting = [3, 4].map(|p| {
        let v = d.domain_on(256, 0, [Affinity::hard([p])])[0];
        d.up(v);
        d.call(|h, now, out| h.set_affinity(now, v, Affinity::hard([0, p]), out)).unwrap();
        d.settle();
        assert_eq!(d.h.machine().home(v), PcpuId(p));
        v
    });
    d.run_to(Nanos::ms(5));
    d.block(hogs[0]);
    d.settle();
    assert_eq!(d.h.current(PcpuId(0)), Some(waiting[1]));
    d.run_to(Nanos::ms(7));
    d.block(waiting[1]);
    d.settle();
    assert_eq!(d.h.current(PcpuId(0)), Some(waiting[0]));
}

/// A vCPU on pCPU 0 and one on pCPU 2, of another core or another socket, are alone on the machine. A change of affinity
/// places the first one anew; its pCPU counts as idle. From pCPU 0 on: pCPU 1 is as idle as 0, and stays out. pCPU 3 has
/// one idle thread in its core, or one idle pCPU in its socket, where pCPU 0 has two: no reason to move there, but with
/// `smt_power_savings`, which moves to where *less* idles, and has no factor of two between sockets, one.
#[test]
fn power_savings_pack_cores_and_sockets() {
    let cores = Topology { sockets: 1, cores_per_socket: 2, threads_per_core: 2 };
    let sockets = Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 1 };
    for topology in [cores, sockets] {
        for (savings, home) in [(false, 0), (true, 3)] {
            let params = Params::default().with("smt_power_savings", ParamValue::Flag(savings));
            let mut d = Driver::new("credit", &params, topology);
            let on = |d: &mut Driver, p| d.domain_on(256, 0, [Affinity::hard([p])])[0];
            let v = [0, 2].map(|p| on(&mut d, p));
            for v in v {
                d.up(v);
                d.settle();
            }
            d.call(|h, now, out| h.set_affinity(now, v[0], Affinity::any(), out)).unwrap();
            d.settle();
            assert_eq!(d.h.machine().home(v[0]), PcpuId(home), "{topology:?}, savings {savings}");
        }
    }
}
