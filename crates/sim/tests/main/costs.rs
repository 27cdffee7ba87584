//! Costs that vary: their quantiles, and what does not change because of them.

use crate::common::{crowd, domain, hog, host, kernbench, run, scenario, tickless, traced};
use overspin_host::{Moment, Refused, World};
use overspin_scenario::{
    Costs, Host, MS, NS, Picos, Quantiles, SEC, Scenario, Setting, Settings, US, Varying,
};
use overspin_sim::Simulator;

fn with(costs: Costs, of: Scenario) -> Scenario {
    Scenario { host: Host { costs, ..of.host }, ..of }
}

/// Each cost draws from a stream of its own, so draws that happen to be equal change nothing.
#[test]
fn quantiles_that_are_all_equal_are_a_cost_that_does_not_vary() {
    let cases = [
        crowd("xen-pv", 2, 200 * MS),
        scenario(host(2, "credit-2008"), vec![domain(4, "lock-byte", kernbench(4, 8))], 10 * SEC),
    ];
    let plain = Costs {
        timer: US.into(),
        preemption: US.into(),
        host_timer: NS.into(),
        ..Costs::default()
    };
    let drawn = |cost: Varying| Varying::from(Quantiles::new(cost.median(), cost.median()));
    let equal = Costs {
        context_switch: drawn(plain.context_switch),
        preemption: drawn(plain.preemption),
        hypercall: drawn(plain.hypercall),
        ipi: drawn(plain.ipi),
        timer: drawn(plain.timer),
        host_timer: drawn(plain.host_timer),
        ..plain.clone()
    };
    for case in cases {
        let (plain, equal) = (with(plain.clone(), case.clone()), with(equal.clone(), case));
        assert_eq!(traced(&plain, 7), traced(&equal, 7));
    }
}

/// Two hogs on one pCPU that take turns of 1 ms: how long each switch and each turn takes.
fn turns(costs: Costs) -> (Vec<Picos>, Vec<Picos>) {
    let params = Settings::from([("quantum".to_owned(), Setting::Time(MS))]);
    let host = Host { params, costs, ..host(1, "rr") };
    let (_, trace) = traced(&scenario(host, vec![tickless(2, "ticket", hog())], 10 * SEC), 1);
    let (mut switches, mut turns) = (Vec::new(), Vec::new());
    let (mut left, mut began) = (Picos::ZERO, Picos::ZERO);
    for (at, moment) in trace {
        match moment {
            Moment::Switch { .. } => {
                turns.push(at - began);
                left = at;
            }
            Moment::Runs { .. } => {
                switches.push(at - left);
                began = at;
            }
            _ => {}
        }
    }
    // Booting is no turn.
    (switches.split_off(4), turns.split_off(4))
}

/// The part of `times` that are longer than `than`.
fn longer(times: &[Picos], than: Picos) -> f64 {
    times.iter().filter(|time| **time > than).count() as f64 / times.len() as f64
}

/// Nearly 10,000 turns: the parts beyond p50 and p99 have standard errors of 0.5 and 0.1 percentage points.
#[test]
fn draws_have_the_quantiles_of_the_key() {
    let switch = Quantiles::new(2 * US, 40 * US);
    let costs = Costs { context_switch: switch.into(), ..Costs::default() };
    let (switches, _) = turns(costs);
    assert!((9_800..10_000).contains(&switches.len()), "{}", switches.len());
    assert!((longer(&switches, 2 * US) - 0.5).abs() < 0.02);
    assert!((longer(&switches, 40 * US) - 0.01).abs() < 0.004);

    let late = Costs { host_timer: Quantiles::new(5 * US, 300 * US).into(), ..Costs::default() };
    let (switches, turns) = turns(late);
    assert!(switches.iter().all(|time| *time == 2 * US), "other costs do not vary");
    // The quantum counts from the switch on, which takes 2 us.
    let quantum = self::turns(Costs::default()).1[0];
    assert!((longer(&turns, quantum + 5 * US) - 0.5).abs() < 0.02);
    assert!((longer(&turns, quantum + 300 * US) - 0.01).abs() < 0.004);
}

#[test]
fn another_seed_draws_other_costs() {
    let costs = Costs { ipi: Quantiles::new(US, 50 * US).into(), ..Costs::default() };
    let case = with(costs, crowd("xen-pv", 2, 50 * MS));
    assert_eq!(traced(&case, 3), traced(&case, 3));
    assert_ne!(run(&case, 3).trace_hash, run(&case, 4).trace_hash);
}

#[test]
fn quantiles_out_of_order_are_refused_wherever_they_come_from() {
    let costs = Costs { ipi: Quantiles::new(9 * US, US).into(), ..Costs::default() };
    let case = with(costs, crowd("ticket", 2, MS));
    match Simulator::default().run(&case, 1, &mut (), &()) {
        Err(Refused::Invalid(fault)) => {
            assert!(fault.contains("`costs.ipi.p50`: 9us is longer"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
}
