//! The worked examples of the specification for credit2 (§4.10), and consequences of its rules.

use crate::common::{Driver, ms};
use overspin_sched::*;

/// The pieces of a trace on pCPU 0, from (start, vCPU) pairs and the end of the last, in ms.
fn pieces(starts: &[(f64, u32)], end: f64) -> Vec<(f64, f64, u32)> {
    let ends = starts.iter().skip(1).map(|(from, _)| *from).chain([end]);
    starts.iter().zip(ends).map(|((from, v), to)| (*from, to, *v)).collect()
}

fn hogs(d: &mut Driver, weights: &[u32]) -> Vec<VcpuId> {
    let hogs: Vec<_> = weights.iter().map(|w| d.domain(*w, 0, 1)[0]).collect();
    hogs.iter().for_each(|v| d.up(*v));
    hogs
}

const A: u32 = 0;
const B: u32 = 1;

#[test]
fn d1_two_hogs_with_weights_one_to_two() {
    let mut d = Driver::flat("credit2", 1);
    let h = hogs(&mut d, &[256, 512]);
    d.run_to(ms(15.0) - Nanos(1));
    assert!(d.credit(h[0]) <= 0);
    d.run_to(ms(15.0));
    d.settle();
    assert_eq!((d.credit(h[0]), d.credit(h[1])), (10_000_000, 10_000_000), "reset at 15");
    d.run_to(ms(19.5));
    let starts = [
        (0., A),
        (1., B),
        (3.5, A),
        (4.5, B),
        (6.5, A),
        (7.5, B),
        (9.5, A),
        (10.5, B),
        (12.5, A),
        (13.5, B),
        (15.5, A),
        (16.5, B),
        (18.5, A),
    ];
    assert_eq!(d.ran(0), pieces(&starts, 19.5));
    d.run_to(ms(300.0));
    assert_eq!(
        (d.running(h[0]), d.running(h[1])),
        (Nanos::ms(100), Nanos::ms(200)),
        "5 : 10 in 15 ms"
    );
}

#[test]
fn d2_two_hogs_of_equal_weight() {
    let mut d = Driver::flat("credit2", 1);
    let h = hogs(&mut d, &[256, 256]);
    d.run_to(ms(20.5));
    d.settle();
    assert_eq!((d.credit(h[0]), d.credit(h[1])), (10_000_000, 9_500_000), "reset at 20.5");
    let mut starts = vec![(0., A), (1., B), (2.5, A), (3.5, B), (4.5, A)];
    starts.extend((5..20).map(|i| (f64::from(i) + 0.5, if i % 2 == 1 { B } else { A })));
    assert_eq!(d.ran(0), pieces(&starts, 20.5));
}

#[test]
fn d2_without_ratelimit_slices_are_shorter() {
    let params = Params::default().with("ratelimit", ParamValue::Time(Nanos::ZERO));
    let mut d = Driver::new("credit2", &params, Topology::flat(1));
    hogs(&mut d, &[256, 512]);
    d.run_to(ms(5.5));
    let starts = [(0., A), (0.5, B), (2., A), (2.5, B), (3.5, A), (4., B), (5., A)];
    assert_eq!(d.ran(0), pieces(&starts, 5.5));
}

/// A runs alone; B is blocked, with full credit.
fn hog_and_sleeper() -> (Driver, VcpuId, VcpuId) {
    let mut d = Driver::flat("credit2", 1);
    let (a, b) = (d.domain(256, 0, 1)[0], d.domain(256, 0, 1)[0]);
    d.up(b);
    d.block(b);
    d.settle();
    d.up(a);
    d.run_to(ms(10.0));
    d.settle();
    assert_eq!((d.credit(a), d.credit(b)), (10_000_000, 10_500_000), "B's is clipped");
    (d, a, b)
}

#[test]
fn d3_a_waker_with_more_credit_preempts() {
    let (mut d, a, b) = hog_and_sleeper();
    d.run_to(ms(12.3));
    d.unblock(b);
    assert_eq!(d.credit(a), 7_700_000, "charged by the wake-up");
    d.run_to(ms(20.0));
    // B's slice ends at 15.1, where both have 7.7. A does not have more, so B goes on for the least
    // slice.
    assert_eq!(d.ran(0)[..2], [(0., 12.3, A), (12.3, 15.6, B)]);
}

#[test]
fn d3_a_waker_waits_for_a_fresh_vcpu() {
    let (mut d, a, b) = hog_and_sleeper();
    // A leaves and comes back, so it is fresh.
    d.run_to(ms(11.0));
    d.block(a);
    d.settle();
    d.unblock(a);
    d.run_to(ms(11.4));
    d.unblock(b);
    d.run_to(ms(12.1));
    d.settle();
    assert_eq!(d.h.current(PcpuId(0)), Some(a), "nobody was told, though the ratelimit is over");
    d.run_to(ms(21.0));
    // A had 9 ms of credit at 11: its timer is at 20.
    assert_eq!(d.ran(0)[..2], [(0., 20., A), (20., 21., B)]);
}

#[test]
fn d4_a_cap_of_half_a_pcpu() {
    let mut d = Driver::flat("credit2", 1);
    let v = d.domain(256, 50, 1)[0];
    d.up(v);
    d.run_to(ms(7.0));
    d.settle();
    assert_eq!((d.class(v), d.h.runstate(v)), ("parked", RunState::Offline));
    d.run_to(ms(30.0));
    assert_eq!(d.ran(0), [(0., 5., 0), (10., 15., 0), (20., 25., 0)]);
}

/// In Xen a pass that finds its vCPU without budget parks it, even if it has just blocked. At 5 ms V has used
/// up the budget of the period, and blocks at the same instant. It wakes at 6, still parked, and runs from
/// 10, when the budget is filled. A vCPU that is not parked would be runnable at 6, in its guest's steal time.
#[test]
fn a_blocked_vcpu_without_budget_is_parked() {
    let mut d = Driver::flat("credit2", 1);
    let v = d.domain(256, 50, 1)[0];
    d.up(v);
    d.run_to(ms(5.0));
    d.block(v);
    d.settle();
    assert_eq!((d.class(v), d.h.runstate(v)), ("parked", RunState::Blocked));
    d.run_to(ms(6.0));
    d.unblock(v);
    assert_eq!(d.h.runstate(v), RunState::Offline);
    d.run_to(ms(12.0));
    assert_eq!(d.ran(0), [(0., 5., 0), (10., 12., 0)]);
}

#[test]
fn d4_two_vcpus_share_a_cap() {
    let mut d = Driver::flat("credit2", 2);
    for v in d.domain(256, 50, 2) {
        d.up(v);
        d.settle();
    }
    d.run_to(ms(20.0));
    for p in 0..2 {
        let ran: Vec<_> = d.ran(p).iter().map(|(from, to, _)| (*from, *to)).collect();
        assert_eq!(ran, [(0., 2.5), (10., 12.5)], "pCPU {p}");
    }
}

#[test]
fn d7_as_of_2013() {
    let mut d = Driver::flat("credit2-2013", 1);
    hogs(&mut d, &[256, 512]);
    d.run_to(ms(32.5));
    let starts = [
        (0., A),
        (0.5, B),
        (2.5, A),
        (4.5, B),
        (8., A),
        (10., B),
        (14., A),
        (14.5, B),
        (15.5, A),
        (17.5, B),
        (21.5, A),
        (23.5, B),
        (27.5, A),
        (28.5, B),
        (30.5, A),
    ];
    assert_eq!(d.ran(0), pieces(&starts, 32.5));
}

/// A cap can be set and lifted while a vCPU runs.
#[test]
fn a_cap_can_be_set_and_lifted() {
    let mut d = Driver::flat("credit2", 1);
    let v = d.domain(256, 0, 1)[0];
    let domain = d.h.machine().domain_of(v);
    let set = |d: &mut Driver, cap| {
        let params = DomainParams { weight: 256, cap };
        d.call(|h, now, out| h.set_domain(now, domain, params, out)).unwrap();
    };
    d.up(v);
    d.run_to(ms(3.0));
    set(&mut d, 20);
    // Run time before the cap is not charged: 2 ms from 3 on, then again from 13.
    d.run_to(ms(16.0));
    set(&mut d, 0);
    d.run_to(ms(20.0));
    assert_eq!(d.ran(0), [(0., 5., 0), (13., 15., 0), (16., 20., 0)]);
}

/// A yielding vCPU gives way even to one with less credit.
#[test]
fn a_yield_bypasses_credit_and_ratelimit() {
    let mut d = Driver::flat("credit2", 1);
    let h = hogs(&mut d, &[256, 256]);
    d.run_to(ms(1.0));
    d.settle();
    d.run_to(ms(1.2));
    assert_eq!(d.h.current(PcpuId(0)), Some(h[1]));
    assert!(d.credit(h[0]) < d.credit(h[1]));
    d.yield_now(h[1]);
    d.settle();
    assert_eq!(d.h.current(PcpuId(0)), Some(h[0]));
}

/// Before Xen 4.8 yields had no effect.
#[test]
fn a_yield_had_no_effect_in_2013() {
    let mut d = Driver::flat("credit2-2013", 1);
    let h = hogs(&mut d, &[256, 256]);
    d.run_to(ms(0.7));
    assert_eq!((d.credit(h[0]), d.h.current(PcpuId(0))), (9_500_000, Some(h[1])));
    d.yield_now(h[1]);
    d.settle();
    assert_eq!((d.credit(h[1]), d.h.current(PcpuId(0))), (9_800_000, Some(h[1])));
}

/// If a pCPU of one core is busy and another core idles, a waking vCPU goes to the idle core.
#[test]
fn a_waker_prefers_an_idle_core() {
    let topology = Topology { sockets: 1, cores_per_socket: 2, threads_per_core: 2 };
    let place = |params: &Params| {
        let mut d = Driver::new("credit2", params, topology);
        let a = d.domain_on(256, 0, [Affinity::hard([0])])[0];
        d.up(a);
        d.settle();
        // Its first choice is the free thread of the busy core.
        let b = d.domain_on(256, 0, [Affinity::hard([1])])[0];
        let any = Affinity::any();
        d.call(|h, now, out| h.set_affinity(now, b, any, out)).unwrap();
        d.up(b);
        d.settle();
        d.h.machine().home(b)
    };
    assert_eq!(place(&Params::default()), PcpuId(2));
    let savings = Params::default().with("smt_power_savings", ParamValue::Flag(true));
    assert_eq!(place(&savings), PcpuId(1));
}

/// With power savings Xen looks for idle threads of cores that are not idle as a whole, and takes those for idle that it
/// has told already. A and B come up at one instant, both at home on pCPU 1 of two cores of two threads. A finds only
/// whole cores, and tells pCPU 1. As meant, B then tells pCPU 0, the other thread of that core. As is, it tells pCPU 1
/// again, and waits there until A, which has run for the ratelimit, 1 ms, has less credit. Then A finds pCPU 0.
#[test]
fn as_is_power_savings_tell_a_pcpu_twice() {
    let topology = Topology { sockets: 1, cores_per_socket: 2, threads_per_core: 2 };
    let run = |as_is: bool| {
        let params = Params::default()
            .with("smt_power_savings", ParamValue::Flag(true))
            .with("as_is", ParamValue::Flag(as_is));
        let mut d = Driver::new("credit2", &params, topology);
        let v = d.domain(256, 0, 5);
        assert_eq!([0, 4].map(|i| d.h.machine().home(v[i]).0), [1, 1], "pCPUs take turns");
        d.up(v[0]);
        d.up(v[4]);
        d.run_to(ms(1.5));
        (d.ran(0), d.ran(1))
    };
    assert_eq!(run(false), (vec![(0., 1.5, 4)], vec![(0., 1.5, 0)]));
    assert_eq!(run(true), (vec![(1., 1.5, 0)], vec![(0., 1., 0), (1., 1.5, 4)]));
}

/// A vCPU on a pCPU that it does not prefer moves to an idle one that it prefers.
#[test]
fn soft_affinity_is_followed_when_there_is_room() {
    let mut d = Driver::flat("credit2", 2);
    let a = d.domain_on(256, 0, [Affinity::soft([1])])[0];
    let b = d.domain_on(256, 0, [Affinity::hard([1])])[0];
    for v in [b, a] {
        d.up(v);
        d.settle();
    }
    assert_eq!(d.h.current(PcpuId(0)), Some(a), "pCPU 1 is taken");
    d.run_to(ms(0.5));
    d.block(b);
    d.run_to(ms(30.0));
    assert_eq!(d.h.current(PcpuId(1)), Some(a));
}

/// A vCPU needs half a millisecond more credit to change its pCPU within a runqueue, and is paid 50
/// us.
#[test]
fn migration_is_resisted_and_compensated() {
    let mut d = Driver::flat("credit2", 2);
    let a = d.domain_on(256, 0, [Affinity::hard([0])])[0];
    let b = d.domain(256, 0, 1)[0];
    d.up(a);
    d.settle();
    d.up(b);
    d.settle();
    assert_eq!(d.h.current(PcpuId(1)), Some(b));
    let c = d.domain_on(256, 0, [Affinity::hard([1])])[0];
    d.up(c);
    d.run_to(ms(2.0));
    d.settle();
    // C had its full credit when B had 1 ms less.
    let homes: Vec<_> = [a, b, c].iter().map(|v| d.h.machine().home(*v).0).collect();
    assert_eq!(homes, [0, 1, 1]);
    d.run_to(ms(4000.0));
    let ran: Vec<_> = [a, b, c].iter().map(|v| d.running(*v)).collect();
    assert_eq!(ran.iter().copied().sum::<Nanos>(), Nanos::ms(8000));
    // Shares are equal except for the gifts: each piece of B may begin with one of 50 us. Allow one
    // epoch of credit more or less, which depends on where the count stops.
    let pieces =
        (0..2).map(|p| d.ran(p).iter().filter(|(_, _, v)| *v == b.0).count()).sum::<usize>();
    let (third, gifts) = (Nanos::ms(8000) / 3, pieces as i64 * Nanos::us(50));
    assert!(ran[1] > ran[0] && ran[1] > ran[2], "{ran:?}: B moves and is paid for it");
    ran.iter()
        .for_each(|r| assert!((*r - third).abs() < gifts + Nanos::ms(10), "{ran:?}, {gifts}"));
}

/// At the end of an epoch, load moves between runqueues until they differ by less than one vCPU.
#[test]
fn runqueues_are_balanced() {
    let topology = Topology { sockets: 2, cores_per_socket: 1, threads_per_core: 1 };
    let mut d = Driver::new("credit2", &Params::default(), topology);
    let all: Vec<_> = (0..4).map(|_| d.domain_on(256, 0, [Affinity::hard([0])])[0]).collect();
    all.iter().for_each(|v| d.up(*v));
    d.run_to(ms(50.0));
    for v in &all {
        let any = Affinity::any();
        // Changes the mask of waiting vCPUs only: a vCPU that is placed anew goes to the emptier
        // runqueue.
        if d.h.runstate(*v) != RunState::Running {
            d.call(|h, now, out| h.set_affinity(now, *v, any, out)).unwrap();
        }
        d.settle();
    }
    d.run_to(ms(3000.0));
    let before: Vec<_> = all.iter().map(|v| d.running(*v)).collect();
    d.run_to(ms(5000.0));
    for (v, before) in all.iter().zip(before) {
        let share = (d.running(*v) - before).0 as f64 / Nanos::ms(2000).0 as f64;
        assert!((share - 0.5).abs() < 0.05, "{v:?}: {share}");
    }
}

#[test]
fn parameters_are_checked() {
    let error = |key: &str, value| {
        make("credit2", &Params::default().with(key, value)).unwrap_err().to_string()
    };
    assert_eq!(
        error("ratelimit", ParamValue::Time(Nanos::us(99))),
        "ratelimit = 99 us is not legal; legal values: 0 (off), or 100 us to 500 ms"
    );
    assert_eq!(
        error("runqueue", ParamValue::Word("host".into())),
        "runqueue = host is not legal; legal values: cpu, core, socket, node, all"
    );
    let cap = Params::default().with("cap_period", ParamValue::Time(Nanos::ms(5)));
    assert!(make("credit2", &cap).is_ok());
    assert!(make("credit2-2013", &cap).is_err(), "there were no caps");
}

/// A core of two threads, weights A 256 and B 512, so A burns 2 credits a ns and B 1; beside each other, with
/// `smt_charge` 500, half of that. A runs from 0 on, B from 2 to 6, A until 6.5.
/// A: 2 ms alone, 4 ms beside B, 0.5 ms alone: 4 + 4 + 1 ms of credit of 10. B: 2 ms of 10.
/// By occupancy A would owe 13 ms, so its epoch would have ended at 5 ms.
#[test]
fn credit_pays_for_progress() {
    let credits = |charge| {
        let params = Params::default().with("smt_charge", ParamValue::Number(charge));
        let core = Topology { sockets: 1, cores_per_socket: 1, threads_per_core: 2 };
        let mut d = Driver::new("credit2", &params, core);
        let (a, b) = (d.domain(256, 0, 1)[0], d.domain(512, 0, 1)[0]);
        d.up(a);
        d.run_to(ms(2.0));
        d.up(b);
        d.run_to(ms(6.0));
        d.block(b);
        d.run_to(ms(6.5));
        d.block(a);
        d.settle();
        (d.credit(a), d.credit(b))
    };
    assert_eq!(credits(500), (1_000_000, 8_000_000));
    // By occupancy: A has 10 again at 5 ms, and B, which has burned 3, the most there is, 10.5. Then A burns 3
    // and B 1.
    assert_eq!(credits(1000), (7_000_000, 9_500_000));
}

/// Two cores, a runqueue each, with one vCPU that sleeps every other ms and one that never does. With `smt_space` each sleeper is owed half a ms for each ms, 10 ms
/// soon, and the sleepers get a core of their own. There each has the time alone that it leaves the other.
#[test]
fn like_sits_beside_like_if_space_is_given_back() {
    let cores = |space| {
        let params = Params::default()
            .with("runqueue", ParamValue::Word("core".into()))
            .with("smt_space", ParamValue::Flag(space));
        let topology = Topology { sockets: 1, cores_per_socket: 2, threads_per_core: 2 };
        let mut d = Driver::new("credit2", &params, topology);
        let all: Vec<_> = (0..4).map(|_| d.domain(256, 0, 1)[0]).collect();
        // New vCPUs go to the two cores in turn.
        let (sleepers, hogs) = ([all[0], all[1]], [all[2], all[3]]);
        let core = |d: &Driver, v: VcpuId| d.h.machine().home(v).0 / 2;
        all.iter().for_each(|v| d.up(*v));
        for t in 1..500 {
            d.run_to(Nanos::ms(t));
            for v in sleepers {
                if t % 2 == 1 {
                    d.block(v);
                } else {
                    d.unblock(v);
                }
            }
            d.settle();
        }
        [sleepers, hogs].map(|pair| pair.map(|v| core(&d, v)))
    };
    let [apart, beside] = [cores(false), cores(true)];
    assert!(apart.iter().all(|pair| pair[0] != pair[1]), "one of each on each core: {apart:?}");
    assert!(beside.iter().all(|pair| pair[0] == pair[1]), "like beside like: {beside:?}");
}
