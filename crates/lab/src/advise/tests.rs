use super::*;
use overspin_runs::record;
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file;
use std::path::Path;

fn question(work: Work) -> Question {
    Question {
        machine: "skylake-sp".into(),
        pcpus: 2,
        guests: Guest::alike(2, 2),
        work,
        schedulers: vec!["credit".into(), "credit2".into()],
        lock: "pv-qspinlock".into(),
        seeds: 2,
        least_work_percent: 80,
        longest_wait_times: 10,
        length_ms: Some(100),
    }
}

fn answer(question: &Question) -> Advice {
    ask(question, 0, Runner::default(), &|_, _| {}).unwrap()
}

#[test]
fn every_kind_of_work_is_a_scenario_that_does_some() {
    for work in Work::ALL {
        let question = Question { schedulers: vec!["credit".into()], seeds: 1, ..question(work) };
        let advice = answer(&question);
        let first = advice.points.first().unwrap();
        assert!(first.runs[0].work_per_s > 0.0, "{work:?}: {first:?}");
        assert!(first.runs[0].ending.is_sound(), "{work:?}");
        // At 1:1 no vCPU waits for a pCPU, but for the host's noise.
        assert!(first.runs[0].steal < 0.1, "{work:?}: {first:?}");
    }
}

#[test]
fn a_number_is_what_the_command_beside_it_computes() {
    let advice = answer(&question(Work::Locks));
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), &advice.scenario).unwrap();
    for measured in &advice.points {
        let again = record::load(file.path(), &measured.point.sets, &[]).unwrap();
        let scenario_file::Loaded::One(scenario) = again.loaded else { panic!("one run") };
        let run = measured.runs.last().unwrap();
        let outcome = Runner::default().run(&scenario, run.seed, &mut (), &|_| {}).unwrap();
        assert_eq!(outcome.trace_hash, run.trace_hash, "{:?}", measured.point);
        let acquired: u64 = outcome.domains.iter().map(|d| d.locks[0].acquisitions).sum();
        let rate = acquired as f64 / outcome.counted().seconds();
        assert!((rate - run.work_per_s).abs() < 1e-6 * rate, "{:?}", measured.point);
    }
    // The page names each of these commands, with the settings.
    let text = overspin_report::text(&report(&advice, "advise.toml", &[]));
    for measured in &advice.points {
        assert!(measured.point.sets.iter().all(|set| text.contains(set)), "{text}");
    }
}

#[test]
fn a_fair_spinlock_breaks_where_vcpus_outnumber_pcpus() {
    // Eight vCPUs want the lock, and five seeds have an interval that can prove something.
    let question = Question {
        lock: "ticket".into(),
        pcpus: 4,
        guests: Guest::alike(1, 8),
        seeds: 5,
        length_ms: Some(400),
        ..question(Work::Locks)
    };
    let advice = answer(&question);
    let found = advice.breaks("credit").expect("it breaks");
    assert!((found.fine - 1.0).abs() < 0.6 && found.ratio > 1.0, "{found:?}");
    // A lock whose waiters sleep does better at 2:1.
    let effects = advice.effects();
    let pv = effects.iter().find(|e| e.name == "lock pv-qspinlock").unwrap();
    assert!(pv.certain && pv.work_percent[0] > 50.0, "{effects:?}");
    let text = overspin_report::text(&report(&advice, "advise.toml", &[]));
    assert!(text.contains("credit: fine up to") && text.contains("breaks at"), "{text}");
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let question = Question { schedulers: vec!["credit2".into()], ..question(Work::Web) };
    let hashes = |threads| -> Vec<u64> {
        let advice = ask(&question, threads, Runner::default(), &|_, _| {}).unwrap();
        advice.points.iter().flat_map(|m| &m.runs).map(|run| run.trace_hash).collect()
    };
    assert_eq!(hashes(1), hashes(2));
}

/// In this run, another vCPU's absence reaches into an absence of the waiter, and the lock is acquired meanwhile.
#[test]
fn no_part_of_a_wait_counts_more_acquisitions_than_the_wait() {
    let own = Question {
        pcpus: 8,
        guests: Guest::alike(4, 4),
        length_ms: Some(1500),
        ..question(Work::Build)
    };
    let sets = ["host.pause_loop_exiting.window=2048ns".to_owned()];
    let loaded =
        scenario_file::load_text(Path::new("advise.toml"), &template(&own), &sets, &[]).unwrap();
    let scenario_file::Loaded::One(scenario) = loaded else { panic!("one run") };
    let outcome = Runner::default().run(&scenario, 4, &mut (), &|_| {}).unwrap();
    assert!(!outcome.worst_waits.is_empty());
    for wait in &outcome.worst_waits {
        assert!(wait.chain.iter().all(|link| link.acquisitions <= wait.acquisitions), "{wait:?}");
    }
}

#[test]
fn the_template_is_a_scenario_of_its_own() {
    let text = template(&question(Work::Build));
    let loaded = scenario_file::load_text(Path::new("advise.toml"), &text, &[], &[]).unwrap();
    let scenario_file::Loaded::One(scenario) = loaded else { panic!("one run") };
    assert_eq!((scenario.domains.len(), scenario.host.pcpus()), (2, 2));
    assert_eq!(scenario.domains[1].name, "guest1");
}

#[test]
fn the_picture_has_a_row_for_each_ratio() {
    let advice = answer(&Question { schedulers: vec!["credit".into()], ..question(Work::Locks) });
    let svg = picture(&advice).0;
    assert!(svg.starts_with("<svg") && svg.contains("2.0:1, 2 pCPUs (yours)"), "{svg}");
    assert_eq!(svg.matches("pCPUs").count(), 2 * advice.of(Group::Curve).count());
}

#[test]
fn a_name_that_does_not_exist_has_its_place() {
    let wrong = Question { machine: "vax".into(), ..question(Work::Locks) };
    let error = ask(&wrong, 1, Runner::default(), &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("there is no machine `vax`"), "{error}");
}

#[test]
fn guests_that_leave_pcpus_idle_break_when_they_answer_less() {
    // Eight servers that are busy for 40 % of the time on one pCPU: it can serve two and a half of them.
    let question = Question {
        pcpus: 1,
        guests: Guest::alike(4, 2),
        schedulers: vec!["credit2".into()],
        seeds: 3,
        length_ms: Some(400),
        longest_wait_times: 1_000_000,
        ..question(Work::Web)
    };
    let advice = answer(&question);
    let found = advice.breaks("credit2").expect("it breaks");
    assert!(found.ratio > 2.0 && found.why.contains("the work of all guests"), "{found:?}");
    let first = advice.of(Group::Curve).next().unwrap();
    assert!((advice.percent(first).unwrap()[1] - 100.0).abs() < 1e-6);
}
