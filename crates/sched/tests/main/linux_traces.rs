//! The worked examples of the specification (§9.5, §11) for `cfs` and `eevdf`, the differences of `eevdf-6.18`, and
//! the bounds that all of them promise.

use crate::common::{Driver, ms};
use overspin_sched::*;
use proptest::prelude::*;

fn params(times: &[(&str, Nanos)]) -> Params {
    times.iter().fold(Params::default(), |p, (key, t)| p.with(key, ParamValue::Time(*t)))
}

/// One pCPU with a tick of 1 ms and two vCPUs of these weights, which are down.
fn pair(name: &str, more: &[(&str, Nanos)], weights: [u32; 2]) -> (Driver, VcpuId, VcpuId) {
    let params = params(&[more, &[("tick", Nanos::MS)]].concat());
    let mut d = Driver::new(name, &params, Topology::flat(1));
    let [a, b] = weights.map(|w| d.domain(w, 0, 1)[0]);
    (d, a, b)
}

fn pause(d: &mut Driver, v: VcpuId) {
    d.call(|h, now, out| h.pause(now, v, out));
}

fn unpause(d: &mut Driver, v: VcpuId) {
    d.call(|h, now, out| h.unpause(now, v, out));
}

/// The vCPUs that pCPU 0 ran from `start` on, in ms after `start`.
fn ran_since(d: &mut Driver, start: Nanos) -> Vec<(f64, f64, u32)> {
    let start = start.0 as f64 / 1e6;
    let after = |t: f64| ((t - start) * 1e3).round() / 1e3;
    let all = d.ran(0).into_iter().filter(|t| t.1 > start);
    all.map(|(from, to, v)| (after(from.max(start)), after(to), v)).collect()
}

/// Brings two vCPUs of `cfs` to the same virtual runtime and queues them, `a` first. Returns the time
/// at which both wait.
///
/// A new vCPU starts ahead, so `a` runs first until it has passed `b`; then `b` wakes half a latency (3 ms) behind
/// and runs alone until it has caught up.
fn level(d: &mut Driver, a: VcpuId, b: VcpuId, weight_of_b: i64) -> Nanos {
    d.up(b);
    pause(d, b);
    d.up(a);
    d.run_to(Nanos::ms(40));
    pause(d, a);
    unpause(d, b);
    d.run_to(Nanos::ms(40) + Nanos::ms(3) * weight_of_b / 256);
    pause(d, b);
    d.settle();
    assert_eq!(d.credit(a), d.credit(b), "level");
    unpause(d, a);
    unpause(d, b);
    d.now
}

#[test]
fn l1_cfs_gives_equals_a_slice_and_a_tick() {
    let (mut d, a, b) = pair("cfs", &[], [256, 256]);
    let start = level(&mut d, a, b, 256);
    d.run_to(start + Nanos::ms(12));
    assert_eq!(ran_since(&mut d, start), [(0., 4., 0), (4., 8., 1), (8., 12., 0)]);
}

#[test]
fn l2_cfs_gives_twice_the_weight_twice_the_time() {
    let (mut d, a, b) = pair("cfs", &[], [256, 512]);
    let start = level(&mut d, a, b, 512);
    d.run_to(start + Nanos::ms(45));
    let expected = [
        (0., 3., 0),
        (3., 13., 1),
        (13., 16., 0),
        (16., 21., 1),
        (21., 24., 0),
        (24., 29., 1),
        (29., 32., 0),
        (32., 37., 1),
        (37., 40., 0),
        (40., 45., 1),
    ];
    assert_eq!(ran_since(&mut d, start), expected);
    // 15 ms at weight 1024 and 30 ms at 2048 are the same virtual runtime.
    assert_eq!(d.credit(a), d.credit(b));
}

#[test]
fn l3_cfs_wakes_half_a_latency_behind_and_preempts() {
    let (mut d, a, b) = pair("cfs", &[], [256, 256]);
    d.up(b);
    pause(&mut d, b);
    d.up(a);
    d.run_to(ms(10.2));
    unpause(&mut d, b);
    d.settle();
    assert_eq!(d.credit(a) - d.credit(b), 3_000_000);
    d.run_to(Nanos::ms(15));
    assert_eq!(d.ran(0), [(0., 10.2, 0), (10.2, 14., 1), (14., 15., 0)]);
}

#[test]
fn cfs_does_not_preempt_for_less_than_the_wakeup_granularity() {
    let (mut d, a, b) = pair("cfs", &[], [256, 256]);
    let start = level(&mut d, a, b, 256);
    d.run_to(start + Nanos::MS / 2);
    // A is 0.5 ms ahead of B, which sleeps for an instant; that is less than the granularity of 1 ms.
    pause(&mut d, b);
    unpause(&mut d, b);
    d.run_to(start + Nanos::ms(5));
    assert_eq!(ran_since(&mut d, start), [(0., 4., 0), (4., 5., 1)]);
}

#[test]
fn cfs_yields_to_the_next_only_if_that_is_fair() {
    let (mut d, a, b) = pair("cfs", &[], [256, 256]);
    let start = level(&mut d, a, b, 256);
    d.run_to(start + ms(0.5));
    d.yield_now(a);
    // B has run 1.5 ms and A 0.5 ms: A is first anyway.
    d.run_to(start + Nanos::ms(2));
    d.yield_now(b);
    // A has run 0.75 ms: it is first, but B is only 0.75 ms ahead and gets its turn.
    d.run_to(start + ms(2.25));
    d.yield_now(a);
    d.run_to(start + ms(2.5));
    d.yield_now(b);
    d.run_to(start + Nanos::ms(3));
    let expected = [(0., 0.5, 0), (0.5, 2., 1), (2., 2.25, 0), (2.25, 2.5, 1), (2.5, 3., 0)];
    assert_eq!(ran_since(&mut d, start), expected);
    // A has run 1.25 ms and B runs up to 3.25 ms. A preempts B when it wakes. Since B is more than the wakeup
    // granularity (1 ms) ahead, a yield of A has no effect.
    pause(&mut d, a);
    d.run_to(start + ms(4.5));
    unpause(&mut d, a);
    d.run_to(start + ms(4.6));
    d.yield_now(a);
    d.run_to(start + ms(4.7));
    assert_eq!(ran_since(&mut d, start)[5..], [(3., 4.5, 1), (4.5, 4.7, 0)]);
}

/// Wakes both with the same virtual time and no lag, `a` first, so that both wait.
fn even(d: &mut Driver, a: VcpuId, b: VcpuId) {
    for v in [a, b] {
        d.up(v);
        pause(d, v);
    }
    unpause(d, a);
    unpause(d, b);
}

const R3: &[(&str, Nanos)] = &[("base_slice", Nanos::ms(3))];

#[test]
fn l4_eevdf_runs_the_earliest_eligible_deadline() {
    let (mut d, a, b) = pair("eevdf", R3, [256, 512]);
    even(&mut d, a, b);
    d.run_to(Nanos::ms(24));
    let expected =
        [(0., 3., 1), (3., 6., 0), (6., 12., 1), (12., 15., 0), (15., 21., 1), (21., 24., 0)];
    assert_eq!(d.ran(0), expected);
}

#[test]
fn l5_eevdf_wakes_without_lag_and_waits_for_the_end_of_the_request() {
    let (mut d, a, b) = pair("eevdf", R3, [256, 256]);
    d.up(b);
    pause(&mut d, b);
    d.up(a);
    // A new vCPU first asks for half a request, which ends between ticks. The tick at 2 finds that, and the next
    // requests end at 5, 8, 11, 14.
    d.run_to(ms(11.5));
    unpause(&mut d, b);
    d.run_to(Nanos::ms(15));
    assert_eq!(d.ran(0), [(0., 14., 0), (14., 15., 1)]);
}

#[test]
fn l5_eevdf_with_lag_preempts_what_is_not_eligible() {
    let (mut d, a, b) = pair("eevdf", R3, [256, 256]);
    even(&mut d, a, b);
    // While A runs for 2 ms, V rises to 1, and B, at 0, is owed 1.
    d.run_to(Nanos::ms(2));
    pause(&mut d, b);
    d.run_to(Nanos::ms(10));
    unpause(&mut d, b);
    d.settle();
    assert_eq!((d.credit(a), d.credit(b)), (10_000_000, 8_000_000), "V is 9: A is not eligible");
    // B's request ends at 13 (v 11, V 10.5); A, at 10, is eligible then.
    d.run_to(Nanos::ms(14));
    assert_eq!(d.ran(0), [(0., 10., 0), (10., 13., 1), (13., 14., 0)]);
}

/// As above, and B's weight doubles while it sleeps. It is owed the same 1 ms of run time, now 0.5 ms of virtual time. Its
/// arrival would lower that to a third, so it is placed 1.5 ms before A, which makes V 9.
#[test]
fn what_sleeps_is_owed_the_same_run_time_at_another_weight() {
    for name in ["eevdf", "eevdf-6.18"] {
        let (mut d, a, b) = pair(name, R3, [256, 256]);
        even(&mut d, a, b);
        d.run_to(Nanos::ms(2));
        pause(&mut d, b);
        let domain = d.h.machine().domain_of(b);
        let params = DomainParams { weight: 512, cap: 0 };
        d.call(|h, now, out| h.set_domain(now, domain, params, out)).unwrap();
        d.run_to(Nanos::ms(10));
        unpause(&mut d, b);
        d.settle();
        assert_eq!((d.credit(a), d.credit(b)), (10_000_000, 8_500_000), "{name}");
    }
}

/// A yield of a vCPU that has had more than its share (A at 1, V at 0.5) only lets the others run. In 6.6 the
/// deadline moves on, which lengthens A's next turn: its request, begun at 0, now ends at 6. In 6.18 nothing
/// changes for A: 2 of its 3 ms are left.
#[test]
fn a_yield_of_one_ahead_of_its_share() {
    for (name, second) in [("eevdf", 9.), ("eevdf-6.18", 6.)] {
        let (mut d, a, b) = pair(name, R3, [256, 256]);
        even(&mut d, a, b);
        d.run_to(Nanos::MS);
        d.yield_now(a);
        d.run_to(ms(second) + Nanos::MS);
        let expected = [(0., 1., 0), (1., 4., 1), (4., second, 0), (second, second + 1., 1)];
        assert_eq!(d.ran(0), expected, "{name}");
    }
}

/// Yields of the only eligible vCPU (B at 0.5, A at 3, V at 1.75). In 6.6 it is picked again each time, and each
/// yield adds a request of 3 to its deadline; five make it 18. B runs until it gets there, and then A runs until it
/// has caught up. Commit 79104becf42b fixes that: the first yield forfeits the remaining 2.5 ms, B is level with A
/// at 3, and A, which came first, has its turn. A's request ends at 6.5, which the tick at 7 finds; B, then half a
/// ms behind, has two requests.
#[test]
fn a_yield_of_the_only_eligible_one_forfeits_its_request_in_6_18() {
    let run = |name: &str| {
        let (mut d, a, b) = pair(name, R3, [256, 256]);
        even(&mut d, a, b);
        for at in [3.5, 3.6, 3.7, 3.8, 3.9] {
            d.run_to(ms(at));
            if d.h.current(PcpuId(0)) == Some(b) {
                d.yield_now(b);
                d.settle();
            }
        }
        d.run_to(Nanos::ms(37));
        d.ran(0)
    };
    assert_eq!(run("eevdf"), [(0., 3., 0), (3., 21., 1), (21., 36., 0), (36., 37., 1)]);
    let with = run("eevdf-6.18");
    assert_eq!(with[..4], [(0., 3., 0), (3., 3.5, 1), (3.5, 7., 0), (7., 13., 1)]);
}

/// Three vCPUs of a domain that all wait with the same virtual time; the first is picked first.
fn three_even(name: &str, params: &Params) -> (Driver, Vec<VcpuId>) {
    let mut d = Driver::new(name, params, Topology::flat(1));
    let v = d.domain(256, 0, 3);
    for v in &v {
        d.up(*v);
        pause(&mut d, *v);
    }
    v.iter().for_each(|v| unpause(&mut d, *v));
    (d, v)
}

/// Two vCPUs wait, and the running one yields to the second of them. `eevdf` treats that as a plain yield, as
/// kernels 6.6 to 6.13 do with their default features, but still reports success.
#[test]
fn a_directed_yield_is_honoured_by_cfs_and_by_eevdf_with_buddies() {
    for (name, feature, honoured) in [
        ("cfs", None, true),
        ("eevdf", None, false),
        ("eevdf", Some(("next_buddy", true)), true),
        ("eevdf-6.18", None, true),
        ("eevdf-6.18", Some(("pick_buddy", false)), false),
    ] {
        let mut params = params(&[("tick", Nanos::MS)]);
        if let Some((key, on)) = feature {
            params = params.with(key, ParamValue::Flag(on));
        }
        let (mut d, v) = three_even(name, &params);
        d.run_to(ms(0.1));
        let running = d.h.current(PcpuId(0)).unwrap();
        let others: Vec<_> = v.iter().copied().filter(|v| *v != running).collect();
        assert!(d.call(|h, now, out| h.yield_to(now, running, others[1], out)));
        d.settle();
        let next = d.h.current(PcpuId(0)).unwrap();
        assert_eq!(next, others[usize::from(honoured)], "{name}, {feature:?}");
    }
}

/// A (at 3) has had more than its share when B (at 0.5) yields to it. B forfeits its request and is then also at 3,
/// V is 2, and C (at 0) runs.
#[test]
fn a_directed_yield_does_not_make_its_target_eligible() {
    let (mut d, v) = three_even("eevdf-6.18", &params(&[R3, &[("tick", Nanos::MS)]].concat()));
    d.run_to(ms(3.5));
    assert!(d.call(|h, now, out| h.yield_to(now, v[1], v[0], out)));
    d.run_to(Nanos::ms(4));
    assert_eq!(d.ran(0), [(0., 3., 0), (3., 3.5, 1), (3.5, 4., 2)]);
}

#[test]
fn a_directed_yield_fails_where_nobody_waits() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        let mut d = Driver::flat(name, 2);
        let v = d.domain(256, 0, 2);
        for v in &v {
            d.up(*v);
            d.settle();
        }
        d.run_to(Nanos::MS);
        assert!(!d.call(|h, now, out| h.yield_to(now, v[0], v[1], out)), "it runs");
        d.block(v[1]);
        d.settle();
        assert!(!d.call(|h, now, out| h.yield_to(now, v[0], v[1], out)), "it sleeps");
    }
}

#[test]
fn bs1_balance_scheduling_separates_siblings() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        let params = Params::default().with("balance", ParamValue::Flag(true));
        let mut d = Driver::new(name, &params, Topology::flat(2));
        let mine = d.domain(256, 0, 2);
        let yours = d.domain(256, 0, 2);
        // All wake at one instant, the two of a VM one after the other.
        mine.iter().chain(&yours).for_each(|v| d.up(*v));
        for t in 1..100 {
            d.run_to(t * Nanos::ms(7));
            d.settle();
            for [a, b] in [[mine[0], mine[1]], [yours[0], yours[1]]] {
                let machine = d.h.machine();
                let apart = machine.home(a) != machine.home(b);
                let both = [a, b].iter().all(|v| machine.is_runnable(*v));
                assert!(apart || !both, "{name} at {t}: {machine:?}");
            }
            // Lets vCPUs sleep, so that wake-ups choose a pCPU too.
            let v = if t % 2 == 0 { mine[t as usize / 2 % 2] } else { yours[t as usize / 2 % 2] };
            if !d.unblock(v) && d.h.runstate(v) == RunState::Running {
                d.block(v);
            }
        }
    }
}

#[test]
fn bs2_a_sibling_too_many_goes_where_it_would_without_balance_scheduling() {
    let params = Params::default().with("balance", ParamValue::Flag(true));
    let mut d = Driver::new("cfs", &params, Topology::flat(2));
    let v = d.domain(256, 0, 3);
    v.iter().for_each(|v| d.up(*v));
    d.settle();
    let homes = v.iter().map(|v| d.h.machine().home(*v).0).collect::<Vec<_>>();
    assert_eq!(homes[..2], [0, 1]);
    d.run_to(Nanos::ms(300));
    let total: Nanos = v.iter().map(|v| d.running(*v)).sum();
    assert_eq!(total, Nanos::ms(600), "nobody is kept from running");
}

#[test]
fn a_quota_is_spent_early_and_refilled_each_period() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        quota_is_spent_early(name);
    }
}

fn quota_is_spent_early(name: &str) {
    let (mut d, a, b) = pair(name, &[], [256, 256]);
    d.call(|h, now, out| {
        h.set_domain(now, DomainId(1), DomainParams { weight: 256, cap: 30 }, out)
    })
    .unwrap();
    d.up(b);
    d.run_to(Nanos::ms(150));
    // 30 ms of each 100 ms, counted from the start of the refill timer.
    assert_eq!(d.ran(0), [(0., 30., 1), (100., 130., 1)]);
    assert_eq!((d.class(b), d.h.runstate(b)), ("throttled", RunState::Runnable));
    d.up(a);
    d.run_to(Nanos::ms(200));
    assert_eq!(d.running(a), Nanos::ms(50), "others have what it may not use");
}

/// B1, A and B2 wait with the same virtual time; the domain of the Bs has 2 ms in 100. The tick at 2 finds this
/// quota used up. Until 6.17 both Bs leave the queue at once. In 6.18 B1, at 2 and ahead of V, is preempted as
/// usual, and both stay queued until they are picked: at 5, when A's request ends; they do not run then. In 6.18 a
/// vCPU that wakes without quota is queued and preempts A, which is not eligible beside a vCPU with positive lag;
/// the pass that picks it stops it.
#[test]
fn a_vcpu_without_quota_is_stopped_when_it_is_picked_in_6_18() {
    for (name, between) in [("eevdf", "throttled"), ("eevdf-6.18", "fair")] {
        let mut d =
            Driver::new(name, &params(&[R3, &[("tick", Nanos::MS)]].concat()), Topology::flat(1));
        let b = d.domain(256, 2, 2);
        let a = d.domain(256, 0, 1)[0];
        let order = [b[0], a, b[1]];
        for v in order {
            d.up(v);
            pause(&mut d, v);
        }
        order.into_iter().for_each(|v| unpause(&mut d, v));
        d.run_to(Nanos::ms(2));
        d.settle();
        assert_eq!([d.class(b[0]), d.class(b[1])], [between; 2], "{name} at 2");
        d.run_to(Nanos::ms(5));
        d.settle();
        assert_eq!([d.class(b[0]), d.class(b[1])], ["throttled"; 2], "{name} at 5");
        d.run_to(Nanos::ms(50));
        pause(&mut d, b[0]);
        d.run_to(Nanos::ms(60));
        unpause(&mut d, b[0]);
        assert_eq!(d.class(b[0]), between, "{name}: it wakes");
        d.settle();
        assert_eq!(d.class(b[0]), "throttled", "{name}: a pass has picked it");
        d.run_to(Nanos::ms(99));
        assert_eq!(d.ran(0), [(0., 2., b[0].0), (2., 99., a.0)], "{name}");
        d.run_to(Nanos::ms(150));
        assert_eq!(d.running(a), Nanos::ms(146), "{name}: the Bs had 2 ms of each period");
    }
}

#[test]
fn group_shares_divide_a_weight_among_the_runnable_vcpus() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        for (group_shares, share) in [(false, 0.75), (true, 0.5)] {
            let params = Params::default().with("group_shares", ParamValue::Flag(group_shares));
            let mut d = Driver::new(name, &params, Topology::flat(1));
            let three = d.domain(256, 0, 3);
            let one = d.domain(256, 0, 1);
            three.iter().chain(&one).for_each(|v| d.up(*v));
            d.run_to(Nanos::ms(2_000));
            d.settle();
            let ran: Nanos = three.iter().map(|v| d.running(*v)).sum();
            let got = ran.0 as f64 / d.now.0 as f64;
            assert!((got - share).abs() < 0.02, "{name}, {group_shares}: {got}");
        }
    }
}

#[test]
fn an_idle_pcpu_pulls_what_waits_elsewhere() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        let mut d = Driver::new(
            name,
            &Params::default(),
            Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 1 },
        );
        let v = d.domain(256, 0, 8);
        v.iter().for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(20));
        // Two vCPUs per pCPU; those of p0 leave.
        let leave: Vec<_> = v.iter().filter(|v| d.h.machine().home(**v).0 == 0).copied().collect();
        leave.iter().for_each(|v| pause(&mut d, *v));
        let from = d.now;
        d.run_to(from + Nanos::ms(10));
        d.settle();
        let busy = (0..4).filter(|p| d.h.current(PcpuId(*p)).is_some()).count();
        assert_eq!(busy, 4, "{name}: {:?}", d.h.machine());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Virtual runtimes of always-runnable vCPUs of one pCPU stay together. With cfs they stay within a slice and a
    /// tick. With eevdf lags stay within a request and a tick, so virtual runtimes stay within twice that.
    #[test]
    fn virtual_runtimes_stay_together(
        name in proptest::sample::select(vec!["cfs", "eevdf", "eevdf-6.18"]),
        weights in proptest::collection::vec(64..=2048u32, 2..10),
    ) {
        let mut d = Driver::flat(name, 1);
        let v: Vec<_> = weights.iter().map(|w| d.domain(*w, 0, 1)[0]).collect();
        v.iter().for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(1_000));
        // Charged up to the last pass or tick.
        let tick = Nanos::ms(4);
        for t in 0..200 {
            d.run_to(Nanos::ms(1_000) + t * Nanos::us(3_700));
            let at_nice_0 = |v: &VcpuId| d.credit(*v);
            let (min, max) = (v.iter().map(at_nice_0).min(), v.iter().map(at_nice_0).max());
            let spread = max.unwrap() - min.unwrap();
            let lightest = i64::from(*weights.iter().min().unwrap());
            // Virtual time that a vCPU of the least weight covers in a tick.
            let tick = tick * 256 / lightest;
            let bound = if name == "cfs" {
                // A slice is the same virtual time for all: the period by the sum of weights.
                let n = weights.len() as i64;
                let period = if n <= 8 { Nanos::ms(6) } else { n * Nanos::us(750) };
                period * 256 / i64::from(weights.iter().sum::<u32>()) + tick
            } else {
                2 * (Nanos::us(750) * 256 / lightest + tick)
            };
            prop_assert!(spread <= bound.0, "{spread} > {bound} at {t}: {weights:?}");
        }
    }

    /// T2: an idle pCPU gets a waiting vCPU within a tick of another pCPU. T6: no vCPU starves.
    #[test]
    fn no_pcpu_idles_for_long_while_a_vcpu_waits(
        name in proptest::sample::select(vec!["cfs", "eevdf", "eevdf-6.18"]),
        sockets in 1..=2u32,
        cores_per_socket in 1..=3u32,
        naps in proptest::collection::vec((1..20u32, 0..20u32), 2..12),
    ) {
        let topology = Topology { sockets, cores_per_socket, threads_per_core: 1 };
        let mut d = Driver::new(name, &Params::default(), topology);
        let v = d.domain(256, 0, naps.len() as u32);
        v.iter().for_each(|v| d.up(*v));
        let mut waits_for = vec![0; v.len()];
        for t in 1..2_000u32 {
            d.run_to(i64::from(t) * Nanos::us(500));
            for (v, (run, nap)) in v.iter().zip(&naps) {
                let asleep = t % (run + nap) >= *run;
                if asleep && d.h.runstate(*v) == RunState::Running {
                    d.block(*v);
                } else if !asleep {
                    d.unblock(*v);
                }
            }
            d.settle();
            let idle = (0..topology.pcpus()).any(|p| d.h.current(PcpuId(p)).is_none());
            for (v, waits_for) in v.iter().zip(&mut waits_for) {
                let waits = idle && d.h.runstate(*v) == RunState::Runnable;
                *waits_for = if waits { *waits_for + 1 } else { 0 };
                // A tick finds it within 4 ms; or the next tick, if it had just run at the first and was cache-hot.
                prop_assert!(*waits_for <= 17, "{v:?} at {t}: {:?}", d.h.machine());
            }
        }
        for v in &v {
            prop_assert!(d.running(*v) > Nanos::ZERO, "{v:?} starves");
        }
    }
}
