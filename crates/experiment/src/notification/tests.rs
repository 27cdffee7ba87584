use super::*;
use crate::claim;
use overspin_scenario::{DomainOutcome, Ending, Outcome};

fn experiment() -> Notification {
    let text = include_str!("../../../../experiments/2005-preemption-notification.toml");
    let document = Document::parse("e.toml", text).unwrap();
    claim::read(&document, Notification::parse(&document, text).unwrap()).unwrap()
}

fn case(test: Test, help: Help, load: Load) -> Case {
    Case { test, host: "bvt".into(), help, load }
}

#[test]
fn a_case_has_one_guest_and_what_preempts_it() {
    let e = experiment();
    let s = e.scenario(&case(Test::Count, Help::All, Load::Pings(500)), 20);
    let [guest, dom0] = s.domains.as_slice() else { panic!("{:?}", s.domains) };
    assert_eq!(guest.workload.get::<Count>().map(|c| c.to), Some((1 << 32) / 20));
    let ping = dom0.workload.get::<Ping>();
    assert!(ping.is_some_and(|p| p.rate == 500 && p.resolution > Picos::ZERO));
    let windows = s.host.preemption_notification.expect("it is asked for");
    assert_eq!(windows.guests, NotifiedGuests::All);
    let s = e.scenario(&case(Test::Pft, Help::DirectedYield, Load::ExactPings(500)), 20);
    assert_eq!(s.domains[1].workload.get::<Ping>().map(|p| p.resolution), Some(Picos::ZERO));
    assert!(s.host.preemption_notification.is_none() && s.host.directed_yield);
    let s = e.scenario(&case(Test::Pft, Help::Deferral, Load::Busy), 20);
    assert!(s.domains[1].workload.get::<BurnWait>().is_some());
}

/// Every table of the report finds its runs.
#[test]
fn no_configuration_is_run_twice_and_none_is_missing() {
    let e = experiment();
    let cases = e.cases();
    for (i, c) in cases.iter().enumerate() {
        let same =
            |o: &&Case| (o.test, &o.host, o.help, o.load) == (c.test, &c.host, c.help, c.load);
        assert_eq!(cases[i + 1..].iter().filter(same).count(), 0, "{c:?}");
    }
    for host in &e.sweep.hosts {
        for help in report::HELPS {
            for load in e.host_loads() {
                let is = |c: &Case| c.host == *host && c.help == help && c.load == load;
                assert!(cases.iter().any(is), "{host} {help:?} {load:?}");
            }
        }
    }
}

/// Runs that match the published results, with the cost and savings of notification at each rate.
fn runs(change: impl Fn(&Case, u32) -> f64) -> Vec<NotificationSample> {
    let e = experiment();
    let mut runs = Vec::new();
    for case in e.cases() {
        for seed in 1..=3 {
            let rate = case.load.rate().unwrap_or(0);
            let (outcome, time) = (outcome(seed), 20.0 * change(&case, rate));
            let mut run = NotificationSample::of(&case, seed, 1, &outcome);
            (run.elapsed_s, run.items, run.cpu_s) = (Some(time), 1_000_000, 1.0);
            runs.push(run);
        }
    }
    runs
}

fn outcome(seed: u64) -> Outcome {
    let domain = DomainOutcome { finished: Some(Picos(1)), ..DomainOutcome::default() };
    Outcome {
        seed,
        ending: Ending::Finished,
        elapsed: Picos(1),
        events: 1,
        run_ahead: 0,
        trace_hash: seed << 60,
        pcpus: Vec::new(),
        domains: vec![domain.clone(), domain],
        changes: Vec::new(),
        worst_waits: Vec::new(),
        noise: None,
        measurement: None,
    }
}

fn verdicts(runs: &[NotificationSample]) -> Vec<Option<bool>> {
    let found = assemble(&experiment(), runs);
    let e = experiment();
    claim::assert_known(&e, &found.samples);
    claim::judged(&e.head.claims, &found.samples).iter().map(|c| c.holds).collect()
}

/// Times relative to that without notification: the claims as the document has them.
fn published(case: &Case, rate: u32) -> f64 {
    let stair = |low: f64, high: f64| match case.load {
        Load::Pings(_) if rate <= 1000 => low,
        Load::Pings(_) => high,
        _ => low + (high - low) * f64::from(rate) / 10_000.0,
    };
    match (case.test, case.help) {
        (Test::Count, Help::All) => stair(1.005, 1.05),
        (Test::Pft, Help::Smp) => 1.0 / stair(0.9, 1.1),
        (Test::Pft, _) => 1.0,
        (Test::Count, _) => 1.0,
    }
}

#[test]
fn claims_are_judged_at_every_rate() {
    // Faults follow the stair upwards: pft gains at high rates and not at low ones.
    let as_published = verdicts(&runs(published));
    assert_eq!(as_published, [Some(true), Some(true), Some(false), Some(true)]);
    let mirrored = |case: &Case, rate| match (case.test, case.help) {
        (Test::Pft, Help::Smp) => 2.0 - published(case, rate),
        _ => published(case, rate),
    };
    assert_eq!(verdicts(&runs(mirrored))[2], Some(true));
    // One wrong rate of one curve makes the claim false.
    let dear = |case: &Case, rate| published(case, rate) + if rate == 500 { 0.02 } else { 0.0 };
    assert_eq!(
        verdicts(&runs(|case, rate| match case.help {
            Help::All => dear(case, rate),
            _ => published(case, rate),
        }))[0],
        Some(false)
    );
}

#[test]
fn one_event_more_or_a_missing_run_is_noticed() {
    let mut runs = runs(published);
    let smp = |r: &&mut NotificationSample| r.test == Test::Count && r.help == Help::Smp;
    let run = runs.iter_mut().rfind(smp).unwrap();
    run.trace_hash ^= 1 << 63;
    assert_eq!(verdicts(&runs)[1], Some(false));
    let run = runs.iter_mut().rfind(smp).unwrap();
    (run.elapsed_s, run.trace_hash) = (None, run.trace_hash ^ (1 << 63));
    assert_eq!(verdicts(&runs)[1], Some(true), "events are of all runs");
    let all = |r: &&mut NotificationSample| r.test == Test::Count && r.help == Help::All;
    runs.iter_mut().find(all).unwrap().elapsed_s = None;
    assert_eq!(verdicts(&runs)[0], None);
    assert_eq!(verdicts(&runs[..1])[1..], [None; 3]);
}

#[test]
fn faults_have_a_place() {
    let text = include_str!("../../../../experiments/2005-preemption-notification.toml");
    for (from, to, message) in [
        ("kind = \"count\"\nto = 4294967296\nstep = \"4600ps\"", "kind = \"lock-loop\"", "`count`"),
        ("rates = [0, 100,", "rates = [100,", "must ascend"),
        ("\"credit2\"", "\"credit3\"", "no scheduler `credit3`"),
        ("pings.0.faults-cpu", "pings.0.folts", "no `folts` at `pft.bvt.none.pings.0`"),
        (
            "[scenario.host.preemption_notification]\nwindow = \"1ms\"\n",
            "",
            "no `preemption_notification`",
        ),
    ] {
        let text = text.replacen(from, to, 1);
        let document = Document::parse("e.toml", &text).unwrap();
        let read = Notification::parse(&document, &text).and_then(|e| claim::read(&document, e));
        let e = read.expect_err(to);
        assert!(e.message.contains(message), "{to}: {e}");
    }
}
