//! The worked examples of the specification (§5.4) for rtds, and its guarantees.

use crate::common::{Driver, ms};
use overspin_sched::*;
use proptest::prelude::*;

fn server(period: Nanos, budget: Nanos, extratime: Option<bool>) -> Params {
    let params = Params::default()
        .with("period", ParamValue::Time(period))
        .with("budget", ParamValue::Time(budget));
    match extratime {
        Some(on) => params.with("extratime", ParamValue::Flag(on)),
        None => params,
    }
}

/// Creates a vCPU in a domain of its own; it is down.
fn vcpu(d: &mut Driver, server: &Params) -> VcpuId {
    let domain = d.h.create_domain(DomainParams::default()).unwrap();
    d.call(|h, now, out| h.configure(now, Whose::Domain(domain), server, out)).unwrap();
    d.call(|h, now, out| h.create_vcpu(now, domain, Affinity::any(), out)).unwrap()
}

/// Two hogs on one pCPU; periods and budgets in ms.
fn two_hogs(
    name: &str,
    params: &Params,
    servers: [(i64, i64); 2],
    extratime: Option<bool>,
) -> Driver {
    let mut d = Driver::new(name, params, Topology::flat(1));
    let v = servers.map(|(p, b)| vcpu(&mut d, &server(p * Nanos::MS, b * Nanos::MS, extratime)));
    v.iter().for_each(|v| d.up(*v));
    d
}

#[test]
fn r1_budgets_and_deadlines() {
    let mut d = two_hogs("rtds", &Params::default(), [(10, 4), (20, 10)], Some(false));
    d.run_to(Nanos::ms(40));
    // At 10 the new deadline of V1 equals V2's: no preemption. Idle from 18 to 20.
    let expected = [(0., 4., 0), (4., 14., 1), (14., 18., 0)];
    let again = expected.map(|(from, to, v)| (from + 20., to + 20., v));
    assert_eq!(d.ran(0), [expected, again].concat());
}

const R2: [(f64, f64, u32); 5] =
    [(0., 4., 0), (4., 10., 1), (10., 14., 0), (14., 20., 1), (20., 24., 0)];

#[test]
fn r2_a_replenished_vcpu_preempts_a_later_deadline() {
    let mut d = two_hogs("rtds", &Params::default(), [(10, 4), (30, 12)], Some(false));
    d.run_to(Nanos::ms(60));
    let again = R2.map(|(from, to, v)| (from + 30., to + 30., v));
    assert_eq!(d.ran(0), [R2, again].concat());
}

#[test]
fn r3_extra_time_fills_the_gaps() {
    let mut d = two_hogs("rtds", &Params::default(), [(10, 4), (20, 10)], Some(true));
    d.run_to(Nanos::ms(20));
    // At 18 both are on level 1 with deadline 20: the queued vCPU wins the tie.
    assert_eq!(d.ran(0), [(0., 4., 0), (4., 14., 1), (14., 18., 0), (18., 20., 1)]);
}

#[test]
fn r4_replenished_extra_time_preempts_as_meant_but_not_as_is() {
    let run = |as_is| {
        let params = Params::default().with("as_is", ParamValue::Flag(as_is));
        let mut d = two_hogs("rtds", &params, [(10, 4), (30, 12)], Some(true));
        d.run_to(Nanos::ms(24));
        d.ran(0)
    };
    assert_eq!(run(false), R2);
    assert_eq!(run(true), [(0., 4., 0), (4., 16., 1), (16., 24., 0)]);
}

/// Five hogs with the default server, 4 ms of each 10 ms, on one pCPU. Ties are the rule: all
/// deadlines are equal, and the guaranteed time of a period is enough for two and a half vCPUs.
///
/// In Xen the timer's handler puts each vCPU that it replenishes in front of a temporary list, and
/// moves that list, from its front, to the replenishment queue. So the handler queues the waiting
/// vCPUs in the order 0 to 4 at 10 ms, and 4 to 0 at 20 ms. The vCPU that runs over a deadline keeps
/// its slice, and then loses the tie against the queue. At 20 ms vCPU 4 is first: it gets its first
/// 4 ms, and from then on each vCPU has 4 ms in each 20 ms.
#[test]
fn vcpus_that_are_replenished_at_one_time_take_turns_in_being_first() {
    for as_is in [false, true] {
        let params = Params::default().with("as_is", ParamValue::Flag(as_is));
        let mut d = Driver::new("rtds", &params, Topology::flat(1));
        let hogs: [VcpuId; 5] = std::array::from_fn(|_| vcpu(&mut d, &Params::default()));
        hogs.iter().for_each(|v| d.up(*v));
        d.run_to(Nanos::ms(60));
        let turns = [0, 1, 2, 0, 1, 4, 3, 2, 0, 1, 4, 3, 2, 0, 1];
        let expected: Vec<_> = (0..15)
            .map(|i| (4.0 * f64::from(i), 4.0 * f64::from(i + 1), turns[i as usize]))
            .collect();
        assert_eq!(d.ran(0), expected, "as_is = {as_is}");
    }
}

/// In Xen a replenished vCPU goes before all vCPUs that have a higher level *now* in the
/// replenishment queue, and the timer is set for the first. V0 has 8 ms of 40 ms, V1 12 ms of 30 ms.
///
/// V1 runs first, by deadline, and V0 after it; then both are at level 1, and V1 goes on from 20 ms. At
/// 30 ms V1 is replenished, to level 0, and goes before V0 (level 1, deadline 40 ms): the timer is set
/// to 60 ms. So V0 gets its budget of 40 ms at 60 ms only, and then has level 0 and the earlier
/// deadline, 80 ms. Where the queue goes by deadline, V0 gets it at 40 ms and has used it by 60 ms.
#[test]
fn as_is_a_vcpu_on_extra_time_is_replenished_late() {
    let run = |as_is| {
        let params = Params::default().with("as_is", ParamValue::Flag(as_is));
        let mut d = two_hogs("rtds", &params, [(40, 8), (30, 12)], Some(true));
        d.run_to(Nanos::ms(68));
        d.ran(0)
    };
    let begin = [(0., 12., 1), (12., 20., 0), (20., 42., 1), (42., 50., 0)];
    assert_eq!(run(true), [&begin[..], &[(50., 60., 1), (60., 68., 0)]].concat());
    assert_eq!(run(false), [&begin[..], &[(50., 68., 1)]].concat());
}

#[test]
fn the_polling_profile_finds_deadlines_up_to_1_ms_late() {
    // The pCPU idles from 3 on and then passes every ms.
    let mut d = Driver::flat("rtds-4.5", 1);
    let v = vcpu(&mut d, &server(Nanos::ms(5) + Nanos::us(500), Nanos::ms(3), None));
    d.up(v);
    d.run_to(Nanos::ms(18));
    // Deadlines at 5.5, 11, 16.5.
    assert_eq!(d.ran(0), [(0., 3., 0), (6., 9., 0), (11., 14., 0), (17., 18., 0)]);
}

/// Xen 4.5 looks for due deadlines among queued vCPUs only. V comes up at 8 ms, with 4 ms up to its deadline
/// at 10. It runs over the deadline with what is left, 2 ms. At 12 it is out of budget, so it is queued,
/// its deadline has passed, and it gets 4 ms at once; the next come at 20. (From 4.7 on the timer
/// refills it at 10, so it runs until 14.)
#[test]
fn the_polling_profile_does_not_refill_a_running_vcpu() {
    for (name, extratime, end) in [("rtds-4.5", None, 16.), ("rtds", Some(false), 14.)] {
        let mut d = Driver::flat(name, 1);
        let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), extratime));
        d.run_to(Nanos::ms(8));
        d.up(v);
        d.run_to(Nanos::ms(24));
        assert_eq!(d.ran(0), [(8., end, 0), (20., 24., 0)], "{name}");
    }
}

/// In Xen 4.5 the running vCPU wins a tie, so B, which is queued before A, keeps the pCPU for its 4 ms, though it passes
/// every ms. Depleted vCPUs are listed and refilled last in, first out: A is refilled first, and B is queued before it.
#[test]
fn the_polling_profile_keeps_the_running_vcpu_on_a_tie() {
    let mut d = Driver::flat("rtds-4.5", 1);
    let v = [0, 1].map(|_| vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), None)));
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(24));
    let expected = [(0., 4., 1), (4., 8., 0), (10., 14., 1), (14., 18., 0), (20., 24., 1)];
    assert_eq!(d.ran(0), expected);
}

#[test]
fn a_budget_is_kept_while_blocked_and_lost_at_the_deadline() {
    let mut d = Driver::flat("rtds", 1);
    let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), Some(false)));
    d.up(v);
    d.run_to(Nanos::MS);
    d.block(v);
    d.run_to(Nanos::ms(8));
    d.unblock(v);
    // 3 ms are left, and 2 of them run until the deadline; the new budget is 4 ms, not 5.
    d.run_to(Nanos::ms(20));
    assert_eq!(d.ran(0), [(0., 1., 0), (8., 14., 0)]);
}

#[test]
fn parameters_count_from_the_next_period_and_extra_time_at_once() {
    let mut d = Driver::flat("rtds", 1);
    let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), Some(false)));
    d.up(v);
    let set = |d: &mut Driver, params: &Params| {
        d.call(|h, now, out| h.configure(now, Whose::Vcpu(v), params, out))
    };
    d.run_to(Nanos::MS);
    set(&mut d, &server(Nanos::ms(20), Nanos::ms(6), Some(false))).unwrap();
    d.run_to(Nanos::ms(35));
    assert_eq!(d.ran(0), [(0., 4., 0), (10., 16., 0), (30., 35., 0)]);
    d.run_to(Nanos::ms(40));
    set(&mut d, &Params::default().with("extratime", ParamValue::Flag(true))).unwrap();
    d.run_to(Nanos::ms(45));
    assert_eq!(d.ran(0)[2..], [(30., 36., 0), (40., 45., 0)]);
    let error = set(&mut d, &Params::default().with("budget", ParamValue::Time(Nanos::ms(21))));
    let message = error.unwrap_err().to_string();
    assert_eq!(message, "budget = 21 ms is not legal; legal values: 10 us to the period, 20 ms");
}

/// A budget equal to the period, beside 4 ms of 10. All deadlines are equal, and in a tie a queued vCPU wins when the
/// running one's slice ends. A's slices end with its budget: at 10, with deadlines at 20; B runs its 4 ms. A runs on from
/// 14 over the deadline at 20, where it has 10 ms anew, until its slice of 10 ms ends at 24: 6 ms are left. B 4 ms; A
/// 6 ms, until 34, over the deadline at 30, which leaves 6 again.
#[test]
fn a_budget_of_the_whole_period_yields_at_the_end_of_its_slices() {
    let mut d = two_hogs("rtds", &Params::default(), [(10, 10), (10, 4)], Some(false));
    d.run_to(Nanos::ms(48));
    let ends = [10., 14., 24., 28., 34., 38., 44., 48.];
    let begins = [0.].iter().chain(&ends);
    let expected = begins.zip(&ends).enumerate().map(|(i, (a, b))| (*a, *b, i as u32 % 2));
    assert_eq!(d.ran(0), expected.collect::<Vec<_>>());
}

/// The least budget, 10 us of each ms, beside 9.9 ms of 10 ms: together they fill the pCPU exactly. The tiny one has the
/// earlier deadline, so it runs at the beginning of its periods, except of each tenth: there deadlines are equal, and it
/// waits for the end of the other one's budget, 10 us before the deadline. At that deadline its budget is used up and
/// replenished at one moment: it goes on.
#[test]
fn the_least_budget_is_exact() {
    let mut d = Driver::flat("rtds", 1);
    let tiny = vcpu(&mut d, &server(Nanos::MS, Nanos::us(10), Some(false)));
    let other = vcpu(&mut d, &server(Nanos::ms(10), Nanos::us(9_900), Some(false)));
    d.up(tiny);
    d.up(other);
    d.run_to(Nanos::ms(20));
    // In units of 10 us.
    let ends = (0..20).flat_map(|t| match t % 10 {
        9 => vec![100 * t + 99],
        8 => vec![100 * t + 1],
        _ => vec![100 * t + 1, 100 * t + 100],
    });
    let times: Vec<_> = [0].into_iter().chain(ends).chain([2000]).collect();
    let pieces = times.windows(2).enumerate();
    let expected =
        pieces.map(|(i, x)| (f64::from(x[0]) / 100., f64::from(x[1]) / 100., i as u32 % 2));
    assert_eq!(d.ran(0), expected.collect::<Vec<_>>());
}

/// A vCPU that wakes after its deadline gets a whole budget, up to the next deadline on the old grid: periods begin at
/// multiples of 10 ms from its creation on. It wakes at 23, runs 4 ms, and gets 4 ms again at 30.
#[test]
fn a_sleeper_wakes_on_the_grid_of_its_periods() {
    let mut d = Driver::flat("rtds", 1);
    let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), Some(false)));
    d.up(v);
    d.run_to(Nanos::MS);
    d.block(v);
    d.run_to(Nanos::ms(23));
    d.unblock(v);
    d.run_to(Nanos::ms(40));
    assert_eq!(d.ran(0), [(0., 1., 0), (23., 27., 0), (30., 34., 0)]);
}

/// A vCPU with extra time has its second budget since 4 ms. Without extra time from 5 ms on it uses up the 3 ms that are
/// left, and then waits for its deadline.
#[test]
fn extra_time_in_hand_stays_when_it_is_turned_off() {
    let mut d = Driver::flat("rtds", 1);
    let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), Some(true)));
    d.up(v);
    d.run_to(Nanos::ms(5));
    let off = Params::default().with("extratime", ParamValue::Flag(false));
    d.call(|h, now, out| h.configure(now, Whose::Vcpu(v), &off, out)).unwrap();
    d.run_to(Nanos::ms(20));
    assert_eq!(d.ran(0), [(0., 8., 0), (10., 14., 0)]);
}

/// A new budget counts at the next refill, and extra time is one: both have 4 ms of 10 ms and extra time. A's budget
/// becomes 1 ms at 1 ms. A has used its old one at 4 ms, and gets 1 ms of extra time, which it runs from 8 ms on, when B is
/// at level 1 too (a queued one wins a tie); B follows.
#[test]
fn a_new_budget_counts_for_extra_time_at_once() {
    let mut d = two_hogs("rtds", &Params::default(), [(10, 4), (10, 4)], Some(true));
    d.run_to(Nanos::MS);
    let less = Params::default().with("budget", ParamValue::Time(Nanos::MS));
    d.call(|h, now, out| h.configure(now, Whose::Vcpu(VcpuId(0)), &less, out)).unwrap();
    d.run_to(Nanos::ms(10));
    assert_eq!(d.ran(0), [(0., 4., 0), (4., 8., 1), (8., 9., 0), (9., 10., 1)]);
}

/// Extra time for a vCPU that is depleted since 4 ms: as meant it runs at once, on the idle pCPU. As is, Xen queues it and
/// tells no pCPU. Nor does its deadline at 10 tell one, as it is not depleted then. It waits until another vCPU wakes, at 11,
/// and goes before that one, with the earlier deadline.
#[test]
fn as_is_extra_time_for_a_depleted_vcpu_tells_no_pcpu() {
    for (as_is, from) in [(false, 5.), (true, 11.)] {
        let params = Params::default().with("as_is", ParamValue::Flag(as_is));
        let mut d = Driver::new("rtds", &params, Topology::flat(1));
        let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), Some(false)));
        d.up(v);
        d.run_to(Nanos::ms(5));
        let on = Params::default().with("extratime", ParamValue::Flag(true));
        d.call(|h, now, out| h.configure(now, Whose::Vcpu(v), &on, out)).unwrap();
        d.run_to(Nanos::ms(11));
        let other = vcpu(&mut d, &server(Nanos::ms(30), Nanos::ms(4), Some(false)));
        d.up(other);
        d.run_to(Nanos::ms(12));
        assert_eq!(d.ran(0), [(0., 4., 0), (from, 12., 0)], "as_is = {as_is}");
    }
}

/// A slice of Xen 4.5 is 1 ms, or the whole budget if that is less, whatever is left of it. The rest of a slice that is
/// too long is not paid back: of 2.5 ms in 10 ms a hog gets 3, and of 0.3 ms in 10 ms 0.3.
#[test]
fn the_polling_profile_rounds_budgets_up_to_slices() {
    for (budget, first, again) in [(2_500, (0., 3.), (10., 13.)), (300, (0., 0.3), (10.3, 10.6))] {
        let mut d = Driver::flat("rtds-4.5", 1);
        let v = vcpu(&mut d, &server(Nanos::ms(10), Nanos::us(budget), None));
        d.up(v);
        // An idle pCPU looks each ms from when it went idle.
        d.run_to(ms(again.1));
        assert_eq!(d.ran(0), [first, again].map(|(from, to)| (from, to, 0)));
    }
}

/// In Xen 4.5 a vCPU is queued before those of equal deadlines, not behind them as since 4.10. Three hogs come up at one
/// instant: the last, C, is first, then B. A runs from 8 ms on over its deadline at 10, until 12. C and B are refilled at 10,
/// B first (depleted last), so C is before B, and A comes before B when it is queued at 12. So C gets its 4 ms in each
/// period, and A and B share the rest.
#[test]
fn the_polling_profile_queues_before_equals() {
    let mut d = Driver::flat("rtds-4.5", 1);
    let v = [0; 3].map(|_| vcpu(&mut d, &server(Nanos::ms(10), Nanos::ms(4), None)));
    v.iter().for_each(|v| d.up(*v));
    d.run_to(Nanos::ms(52));
    let turns = [2, 1, 0, 2, 0, 2, 0, 1, 2, 1, 2, 1, 0];
    let expected = turns.iter().enumerate().map(|(i, v)| (4. * i as f64, 4. * (i as f64 + 1.), *v));
    assert_eq!(d.ran(0), expected.collect::<Vec<_>>());
}

/// Periods of 5 to 30 ms and budgets of up to half a period, in steps of 100 us.
fn servers(most: usize) -> impl Strategy<Value = Vec<(Nanos, Nanos)>> {
    let one = (50..300i64, 1..=50i64).prop_map(|(period, percent)| {
        (period * Nanos::us(100), (period * percent / 100).max(1) * Nanos::us(100))
    });
    proptest::collection::vec(one, 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without extra time no vCPU runs longer than its budget in any of its periods, whether it
    /// sleeps or not. On one pCPU that is not overbooked, a hog gets its full budget in each
    /// period.
    #[test]
    fn budgets_are_limits_and_guarantees(
        pcpus in 1..=3u32,
        servers in servers(6),
        sleeps in any::<bool>(),
    ) {
        let mut d = Driver::flat("rtds", pcpus);
        let v: Vec<_> =
            servers.iter().map(|(p, b)| vcpu(&mut d, &server(*p, *b, Some(false)))).collect();
        v.iter().for_each(|v| d.up(*v));
        let load: f64 = servers.iter().map(|(p, b)| b.0 as f64 / p.0 as f64).sum();
        let guaranteed = pcpus == 1 && load <= 1.0 && !sleeps;
        let mut at_begin = vec![Nanos::ZERO; v.len()];
        for t in 1..3_000i64 {
            d.run_to(t * Nanos::us(100));
            for (i, (period, budget)) in servers.iter().enumerate() {
                if (t * Nanos::us(100)) % *period == Nanos::ZERO {
                    let ran = d.running(v[i]) - at_begin[i];
                    prop_assert!(ran <= *budget, "{ran} > {budget} in the period up to {t}");
                    prop_assert!(!guaranteed || ran == *budget, "{ran} < {budget} up to {t}");
                    at_begin[i] += ran;
                }
                let asleep = sleeps && (t + 7 * i as i64) % 13 < 4;
                if asleep && d.h.runstate(v[i]) == RunState::Running {
                    d.block(v[i]);
                } else if !asleep {
                    d.unblock(v[i]);
                }
            }
        }
    }

    /// Global EDF: at any instant, no running vCPU has a later deadline than a waiting one with
    /// budget. Extra time is given only while no vCPU asks for guaranteed time.
    #[test]
    fn the_highest_priorities_run(
        pcpus in 1..=3u32,
        servers in servers(8),
        extratime in any::<bool>(),
    ) {
        let mut d = Driver::flat("rtds", pcpus);
        let v: Vec<_> =
            servers.iter().map(|(p, b)| vcpu(&mut d, &server(*p, *b, Some(extratime)))).collect();
        v.iter().for_each(|v| d.up(*v));
        for t in 1..2_000i64 {
            d.run_to(t * Nanos::us(100));
            d.settle();
            // Deadlines are at the multiples of the period.
            let priority = |i: usize| {
                let deadline = (d.now / servers[i].0 + 1) * servers[i].0;
                (d.class(v[i]) == "extratime", deadline)
            };
            let runs = |i: &usize| d.h.runstate(v[*i]) == RunState::Running;
            let waits = |i: &usize| {
                d.h.runstate(v[*i]) == RunState::Runnable && d.class(v[*i]) != "depleted"
            };
            let lowest = (0..v.len()).filter(runs).map(priority).max();
            let highest = (0..v.len()).filter(waits).map(priority).min();
            let busy = (0..v.len()).filter(runs).count();
            prop_assert!(highest.is_none() || busy == pcpus as usize, "idle at {t}");
            // Levels above 1 all count as extra time here, so only guaranteed time is compared.
            if let (Some(lowest), Some(highest)) = (lowest, highest)
                && !highest.0
            {
                prop_assert!(lowest <= highest, "{lowest:?} runs, {highest:?} waits at {t}");
            }
        }
    }
}
