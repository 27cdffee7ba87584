//! What the old profiles of credit do as the Xen of their release did, and today's does not.

use crate::common::{Driver, ms};
use overspin_sched::*;

/// Xen 4.7.0 and earlier do not choose a pCPU when a vCPU is inserted, so the first wake-up does not follow
/// a choice, and boosts. Since 4.8 insertion chooses, and the first wake-up counts as one after a
/// migration.
#[test]
fn a_first_wake_up_boosts_until_2016() {
    for (name, class) in [("credit", "under"), ("credit-2016", "boost"), ("credit-2013", "boost")] {
        let mut d = Driver::flat(name, 1);
        let v = d.domain(256, 0, 1)[0];
        d.up(v);
        assert_eq!(d.class(v), class, "{name}");
    }
}

/// In Xen up to 4.7 the pass that takes a vCPU off its pCPU forgets its yield, whether it is still
/// runnable or not. Two hogs share a pCPU. A wakes for the first time at 100 ms, boosted, and preempts.
/// Its yield at 100.5 has no effect, as the ratelimit protects it: that pass grants it 1 ms more. It
/// blocks at 101.3, and that pass forgets the yield. When it wakes at 105, it goes before the waiting hog. If it still
/// yielded, it would queue behind that hog, which would then run.
#[test]
fn a_yield_is_forgotten_by_a_vcpu_that_blocks_until_2016() {
    for name in ["credit-2013", "credit-2016"] {
        let mut d = Driver::flat(name, 1);
        for _ in 0..2 {
            let hog = d.domain(256, 0, 1)[0];
            d.up(hog);
        }
        let a = d.domain(256, 0, 1)[0];
        d.run_to(Nanos::ms(100));
        d.up(a);
        d.run_to(ms(100.5));
        d.yield_now(a);
        d.run_to(ms(101.3));
        assert_eq!(d.h.current(PcpuId(0)), Some(a), "{name}: the ratelimit protects it");
        d.block(a);
        d.run_to(Nanos::ms(105));
        d.unblock(a);
        d.settle();
        assert_eq!(d.h.current(PcpuId(0)), Some(a), "{name}");
    }
}

/// One socket, three cores of two threads. V runs on pCPU 0, a hog on its sibling; two cores idle. A change
/// of V's affinity places it anew: on core 1, the first with two idle threads, on the one
/// whose turn it is. Turns begin with thread 2. Xen up to 4.7 chooses at once, and again when V has
/// left its pCPU (only then it looks whether V still runs), so thread 3 has its turn.
#[test]
fn a_running_vcpu_is_placed_twice_until_2016() {
    let topology = Topology { sockets: 1, cores_per_socket: 3, threads_per_core: 2 };
    for (name, home) in [("credit", 2), ("credit-2016", 3), ("credit-2013", 3)] {
        let mut d = Driver::new(name, &Params::default(), topology);
        let v = d.domain_on(256, 0, [Affinity::hard([0])])[0];
        let hog = d.domain_on(256, 0, [Affinity::hard([1])])[0];
        for v in [v, hog] {
            d.up(v);
            d.settle();
        }
        d.call(|h, now, out| h.set_affinity(now, v, Affinity::any(), out)).unwrap();
        d.settle();
        assert_eq!(d.h.machine().home(v), PcpuId(home), "{name}");
    }
}

/// A hog and a sleeper that may run on pCPU 0 only, beside an idle pCPU 1. The tick at 10 ms takes the
/// hog's first boost.
fn pinned_hog_and_sleeper(profile: &str, kick_always: bool) -> (Driver, VcpuId, VcpuId) {
    let params = Params::default().with("kick_always", ParamValue::Flag(kick_always));
    let mut d = Driver::new(profile, &params, Topology::flat(2));
    let a = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    let b = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    d.up_and_blocked(b);
    d.up(a);
    (d, a, b)
}

/// B wakes at 12 and 14 ms, for 1 ms each. Before f02a5760c7 the wake-up at 12 takes A off its pCPU to
/// place it anew. A returns to the same pCPU, and since that counts as a wake-up, it returns boosted. So
/// B, boosted too, does not preempt at 14. The tick at 20 ends A's boost but preempts nothing; B runs when
/// A's slice of 30 ms, which began at 13, ends. Either fix, f02a5760c7 or 66c7449a4d, is enough to let B
/// preempt at 14, where A has just had its ratelimit of 1 ms.
#[test]
fn a_futile_kick_boosts_a_hog_until_2015() {
    for (profile, kick_always, class, at) in [
        ("credit-2013", true, "boost", 43.),
        ("credit-2013", false, "under", 14.),
        ("credit-2016", true, "under", 14.),
        ("credit-2016", false, "under", 14.),
    ] {
        let (mut d, a, b) = pinned_hog_and_sleeper(profile, kick_always);
        d.run_to(Nanos::ms(12));
        d.unblock(b);
        d.run_to(Nanos::ms(13));
        d.block(b);
        d.settle();
        assert_eq!(d.class(a), class, "{profile}, kick_always = {kick_always}");
        d.run_to(Nanos::ms(14));
        d.unblock(b);
        d.run_to(ms(at) + Nanos::MS);
        d.block(b);
        d.run_to(ms(at) + Nanos::ms(2));
        d.settle();
        let expected =
            [(0., 12., 0), (12., 13., 1), (13., at, 0), (at, at + 1., 1), (at + 1., at + 2., 0)];
        assert_eq!(d.ran(0), expected, "{profile}, kick_always = {kick_always}");
        assert!(d.ran(1).is_empty());
    }
}

/// The second harm that f02a5760c7 names: the ratelimit does not protect a vCPU that is not runnable. A is
/// back at 19.6 and loses its boost at the tick at 20. It has run for 0.5 ms when B wakes at 20.1. Its
/// ratelimit of 1 ms should keep it (in this version the pass at 20.1 grants it a whole one again).
#[test]
fn a_futile_kick_goes_round_the_ratelimit_until_2015() {
    for (kick_always, at) in [(true, 20.1), (false, 21.1)] {
        let (mut d, _, b) = pinned_hog_and_sleeper("credit-2013", kick_always);
        d.run_to(ms(19.2));
        d.unblock(b);
        d.run_to(ms(19.6));
        d.block(b);
        d.run_to(ms(20.1));
        d.unblock(b);
        d.run_to(Nanos::ms(22));
        let expected = [(0., 19.2, 0), (19.2, 19.6, 1), (19.6, at, 0), (at, 22., 1)];
        assert_eq!(d.ran(0), expected, "kick_always = {kick_always}");
    }
}

/// The version of 2008 tells the home of the waking vCPU, and does not send the running one away.
#[test]
fn nobody_is_kicked_away_in_2008() {
    let mut d = Driver::flat("credit-2008", 2);
    let a = d.domain(256, 0, 1)[0];
    let b = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    d.up_and_blocked(b);
    d.up(a);
    d.run_to(Nanos::ms(12));
    assert_eq!(d.h.current(PcpuId(0)), Some(a));
    d.unblock(b);
    d.settle();
    assert_eq!((d.h.current(PcpuId(0)), d.h.current(PcpuId(1))), (Some(b), None));
}

/// In 2008 a yield is only a scheduling pass, so a vCPU cannot use it to be off its pCPU when a tick
/// comes. A yielding vCPU goes behind its equals, and those get a slice of 30 ms; a boosted one has no
/// equals and goes on. (A vCPU that sleeps instead is boosted when it wakes: see
/// `boosted_sleepers_starve_a_hog`.) A and B wake at 0, both boosted, A first. At 9.5 A yields; the tick
/// at 10 finds B, which has its slice. A, still boosted, runs from 39.5 and yields at 39.6 without effect;
/// the tick at 40 finds it, and it yields to its equal at 49.5.
#[test]
fn a_yield_does_not_dodge_the_tick_in_2008() {
    let mut d = Driver::flat("credit-2008", 1);
    let (a, b) = (d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0]);
    d.up(a);
    d.up(b);
    for at in [9.5, 39.6, 49.5] {
        d.run_to(ms(at));
        d.yield_now(a);
    }
    d.run_to(ms(79.5));
    d.settle();
    assert_eq!(d.ran(0), [(0., 9.5, 0), (9.5, 39.5, 1), (39.5, 49.5, 0), (49.5, 79.5, 1)]);
}

/// Xen 3.3 gives the idle vCPU a slice of 30 ms too, and its end is a pass, which looks for work. Three hogs start
/// at one instant with one home, pCPU 0, so the second and the third find it idle still and tell no other pCPU. pCPU 1
/// takes one at 30 ms. In later versions nobody tells it before a tick of pCPU 0 finds a better place for the running
/// hog, at 20 ms: it is active since the tick at 10.
#[test]
fn an_idle_pcpu_looks_for_work_every_30_ms_in_2008() {
    for (name, first) in [("credit-2008", 30.), ("credit-2013", 20.)] {
        let mut d = Driver::flat(name, 2);
        let hogs = [(); 3].map(|()| d.domain(256, 0, 1)[0]);
        hogs.iter().for_each(|v| assert_eq!(d.h.machine().home(*v), PcpuId(0)));
        hogs.iter().for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(31));
        assert_eq!(d.ran(1).first().map(|(from, ..)| *from), Some(first), "{name}");
    }
}

/// A pCPU that goes idle later, too: A runs on pCPU 1 until 12 ms. B and C wake at 20 ms on pCPU 0, at one instant.
/// pCPU 1 looks 30 ms after it went idle, at 42 ms, and takes C.
#[test]
fn the_slice_of_an_idle_pcpu_begins_when_it_goes_idle_in_2008() {
    let mut d = Driver::flat("credit-2008", 2);
    let a = d.domain_on(256, 0, [Affinity::hard([1])])[0];
    let (b, c) = (d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0]);
    d.up(a);
    d.run_to(Nanos::ms(12));
    d.block(a);
    d.run_to(Nanos::ms(20));
    d.up(b);
    d.up(c);
    d.run_to(Nanos::ms(43));
    assert_eq!(d.ran(1), [(0., 12., 0), (42., 43., c.0)]);
}
