use super::*;
use crate::claim;
use overspin_scenario::{NotificationProtocol, NotifiedGuests, TaskOutcome};
use overspin_workload::{BurnWait, Count, Ping};

const TEXT: &str = include_str!("../../../../../experiments/2005-preemption-notification.toml");

fn scenario(at: &[&str]) -> Scenario {
    let sweep = Made::new(TEXT, 20, 1, |_, _| None).sweep;
    sweep.scenario(at, 20).unwrap_or_else(|| panic!("no runs at {at:?}")).unwrap()
}

#[test]
fn a_point_has_one_guest_and_what_preempts_it() {
    let s = scenario(&["count", "bvt", "all", "pings", "500"]);
    let [guest, dom0] = s.domains.as_slice() else { panic!("{:?}", s.domains) };
    assert_eq!(guest.workload.get::<Count>().map(|c| c.to), Some((1 << 32) / 20));
    assert_eq!((guest.name.as_str(), guest.vcpus), ("count", 1));
    let ping = dom0.workload.get::<Ping>();
    assert!(ping.is_some_and(|p| p.rate == 500 && p.resolution > Picos::ZERO));
    let windows = s.host.preemption_notification.expect("it is asked for");
    assert_eq!(windows.guests, NotifiedGuests::All);
    let s = scenario(&["pft", "cfs", "directed-yield", "exact-pings", "1000"]);
    assert_eq!(s.domains[1].workload.get::<Ping>().map(|p| p.resolution), Some(Picos::ZERO));
    assert!(s.host.preemption_notification.is_none() && s.host.directed_yield);
    assert!(s.host.pause_loop_exiting.is_some() && s.host.scheduler == "cfs");
    let s = scenario(&["pft", "bvt", "deferral", "busy"]);
    assert!(s.domains[1].workload.get::<BurnWait>().is_some() && !s.host.directed_yield);
    let protocol = s.host.preemption_notification.map(|w| w.protocol);
    assert_eq!(protocol, Some(NotificationProtocol::Deferral));
    assert!(scenario(&["pft", "bvt", "none", "busy"]).host.preemption_notification.is_none());
}

/// Runs whose time is 20 s times `change`; `pft` always has its full length.
fn made(change: impl Fn(&[&str], u64) -> Option<f64>, hash: impl Fn(&[&str], u64) -> u64) -> Made {
    Made::new(TEXT, 20, 3, |at, seed| {
        let scale = if at[0] == "count" { 20 } else { 1 };
        let end = picos(20.0 * change(at, seed).unwrap_or(2.0), scale);
        let finished = change(at, seed).map(|_| end);
        let task = TaskOutcome { items: 1_000_000, cpu: Picos(1), ..TaskOutcome::default() };
        let guest = DomainOutcome { finished, tasks: vec![task], ..DomainOutcome::default() };
        let other = DomainOutcome { finished: Some(end), ..DomainOutcome::default() };
        let outcome = outcome(seed, end, vec![guest, other]);
        Some(Outcome { trace_hash: hash(at, seed), ..outcome })
    })
}

fn same(_: &[&str], seed: u64) -> u64 {
    seed << 60
}

/// Times relative to that without notification: the claims as the document has them.
fn published(at: &[&str]) -> f64 {
    let rate: f64 = at.get(4).map_or(0.0, |rate| rate.parse().unwrap());
    let stair = |low: f64, high: f64| match at[3] {
        "pings" if rate <= 1000.0 => low,
        "pings" => high,
        _ => low + (high - low) * rate / 10_000.0,
    };
    match (at[0], at[2]) {
        ("count", "all") => stair(1.005, 1.05),
        ("pft", "smp") => 1.0 / stair(0.9, 1.1),
        _ => 1.0,
    }
}

#[test]
fn claims_are_judged_at_every_rate() {
    // Faults follow the stair upwards: pft gains at high rates and not at low ones.
    let as_published = made(|at, _| Some(published(at)), same);
    assert_eq!(as_published.verdicts(), [Some(true), Some(true), Some(false), Some(true)]);
    claim::assert_known(&as_published.sweep, &as_published.result.samples);
    let mirrored = |at: &[&str], _| match (at[0], at[2]) {
        ("pft", "smp") => Some(2.0 - published(at)),
        _ => Some(published(at)),
    };
    assert_eq!(made(mirrored, same).verdicts()[2], Some(true));
    // One wrong rate of one curve makes the claim false.
    let dear = |at: &[&str], _| {
        let more = if at[2] == "all" && at.get(4) == Some(&"500") { 0.02 } else { 0.0 };
        Some(published(at) + more)
    };
    assert_eq!(made(dear, same).verdicts()[0], Some(false));
}

#[test]
fn one_event_more_or_a_missing_run_is_noticed() {
    let last = |at: &[&str], seed| at == ["count", "bvt", "smp", "pings", "20000"] && seed == 3;
    let other = |at: &[&str], seed: u64| same(at, seed) ^ (u64::from(last(at, seed)) << 63);
    assert_eq!(made(|at, _| Some(published(at)), other).verdicts()[1], Some(false));
    let unfinished = |at: &[&str], seed| (!last(at, seed)).then(|| published(at));
    assert_eq!(made(unfinished, same).verdicts()[1], Some(true), "events are of all runs");
    let first = |at: &[&str], seed| at == ["count", "bvt", "all", "pings", "0"] && seed == 1;
    assert_eq!(
        made(|at, seed| (!first(at, seed)).then(|| published(at)), same).verdicts()[0],
        None
    );
    assert_eq!(Made::new(TEXT, 20, 1, |_, _| None).verdicts(), [None; 4]);
}
