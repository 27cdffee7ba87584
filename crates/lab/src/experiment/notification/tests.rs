use super::*;

fn experiment() -> Notification {
    let text = include_str!("../../../../../experiments/2005-preemption-notification.toml");
    Notification::parse(&Document::parse("e.toml", text).unwrap(), text).unwrap()
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
    assert!(ping.is_some_and(|p| p.rate == 500 && p.resolution > 0));
    let windows = s.host.preemption_notification.expect("it is asked for");
    assert_eq!(windows.guests, NotifiedGuests::All);
    let s = e.scenario(&case(Test::Pft, Help::DirectedYield, Load::ExactPings(500)), 20);
    assert_eq!(s.domains[1].workload.get::<Ping>().map(|p| p.resolution), Some(0));
    assert!(s.host.preemption_notification.is_none() && s.host.directed_yield);
    let s = e.scenario(&case(Test::Pft, Help::Deferral, Load::Busy), 20);
    assert!(s.domains[1].workload.get::<BurnWait>().is_some());
}

/// Whoever asks for a table finds the runs for it.
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

#[test]
fn faults_have_a_place() {
    let text = include_str!("../../../../../experiments/2005-preemption-notification.toml");
    for (from, to, message) in [
        ("kind = \"count\"\nto = 4294967296\nstep = \"4600ps\"", "kind = \"lock-loop\"", "`count`"),
        ("low = 1000\n", "low = 1001\n", "must ascend"),
        ("\"credit2\"", "\"credit3\"", "no scheduler `credit3`"),
        ("\"faults_per_cpu_s\"", "\"faults\"", "no metric `faults`"),
        (
            "[scenario.host.preemption_notification]\nwindow = \"1ms\"\n",
            "",
            "no `preemption_notification`",
        ),
    ] {
        let text = text.replacen(from, to, 1);
        let document = Document::parse("e.toml", &text).unwrap();
        let e = Notification::parse(&document, &text).expect_err(to);
        assert!(e.message.contains(message), "{to}: {e}");
    }
}
