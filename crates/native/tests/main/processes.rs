//! The world of processes on this machine. It shares its code with the world of threads (`world.rs`); these tests are of
//! what is different: several processes make one run, and none of them is left behind.

use crate::alone::turn;
use crate::scenarios::{self, contended, work};
use overspin_host::{Cancel, Refused, World, run};
use overspin_native::world::ProcessesWorld;
use overspin_scenario::{Domain, Ending, MS, Outcome, Picos, SEC, Scenario, Stopped, US, Workload};
use overspin_workload::{BurnWait, Count};
use std::fs;
use std::process;
use std::sync::Mutex;
use std::time::Duration;

fn domain(name: &str, vcpus: u32, workload: Workload) -> Domain {
    scenarios::domain(name, vcpus, "mutex", workload)
}

fn scenario(limit: Picos, domains: Vec<Domain>) -> Scenario {
    scenarios::scenario(1, limit, domains)
}

fn counts() -> Workload {
    work::<Count>(r#"{"to": 1000, "step": 1000000}"#)
}

fn run_it(scenario: &Scenario, cancel: &dyn Cancel) -> Result<Outcome, Refused> {
    let outcome = run(&ProcessesWorld::default(), scenario, 1, &mut (), cancel);
    assert_eq!(children(), Vec::<String>::new(), "they ended with their run");
    outcome
}

/// Numbers of the processes that threads of this one have started and not waited for.
fn children() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let of = |path: std::path::PathBuf| fs::read_to_string(path.join("children"));
    let all = threads.filter_map(|t| of(t.ok()?.path()).ok());
    all.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn each_domain_is_a_process_and_all_share_the_cpu() {
    let _turn = turn();
    let s = scenario(400 * MS, vec![domain("a", 2, contended()), domain("b", 1, contended())]);
    let seen = Mutex::new(0);
    let look = |_: Picos| {
        let mut most = seen.lock().unwrap();
        *most = children().len().max(*most);
        None
    };
    // On a loaded machine processes may get no CPU for a while.
    let outcome = loop {
        let outcome = run_it(&s, &look).unwrap();
        if outcome.domains.iter().all(|d| d.locks[0].acquisitions > 0) {
            break outcome;
        }
    };
    assert_eq!(*seen.lock().unwrap(), 2, "processes, besides this one");
    assert_eq!(outcome.ending, Ending::Limit);
    let names: Vec<&str> = outcome.domains.iter().map(|d| &*d.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!([outcome.domains[0].tasks.len(), outcome.domains[1].tasks.len()], [2, 1]);
    let running = |d: usize| -> Picos { outcome.domains[d].vcpus.iter().map(|v| v.running).sum() };
    // The accounts are taken just before the end, by each process for itself.
    assert!(running(0) + running(1) <= outcome.elapsed + 20 * MS, "{}", running(0) + running(1));
    let measurement = outcome.measurement.unwrap();
    assert_eq!(measurement.world, "processes");
    assert_eq!(measurement.cpus.len(), 1);
    assert!(measurement.missing.iter().any(|m| m.contains("causes")), "{measurement:?}");
}

#[test]
fn the_run_ends_when_the_last_process_has_finished() {
    let _turn = turn();
    let endless = domain("endless", 1, work::<BurnWait>(r#"{"burn": 1000000000}"#));
    let s = scenario(3600 * SEC, vec![endless, domain("a", 1, counts()), domain("b", 1, counts())]);
    let outcome = run_it(&s, &()).unwrap();
    assert_eq!(outcome.ending, Ending::Finished);
    assert!(outcome.domains[0].finished.is_none());
    for d in &outcome.domains[1..] {
        assert_eq!(d.tasks[0].items, 1, "{d:?}");
        assert!(d.finished.unwrap() <= outcome.elapsed);
        assert!(d.tasks[0].cpu >= 500 * US, "a thousand steps of a microsecond: {d:?}");
    }
    assert_eq!(
        run_it(&scenario(Picos::ZERO, vec![domain("a", 1, contended())]), &()).unwrap().ending,
        Ending::Limit
    );
}

#[test]
fn a_cancelled_run_has_the_figures_up_to_then() {
    let _turn = turn();
    let s = scenario(3600 * SEC, vec![domain("a", 1, contended()), domain("b", 1, contended())]);
    let cancel = |now: Picos| (now >= 100 * MS).then_some(Stopped::Interrupted);
    let outcome = run_it(&s, &cancel).unwrap();
    assert_eq!(outcome.ending, Ending::Stopped { by: Stopped::Interrupted });
    assert!(outcome.elapsed >= 90 * MS && outcome.elapsed < 3600 * SEC, "{}", outcome.elapsed);
    assert_eq!(outcome.domains.len(), 2);
}

#[test]
fn a_process_that_is_killed_ends_the_run_with_a_reason() {
    let _turn = turn();
    let s = scenario(3600 * SEC, vec![domain("a", 1, contended()), domain("b", 1, contended())]);
    let kill = |now: Picos| {
        if now >= 50 * MS
            && let Some(one) = children().first()
        {
            let done = process::Command::new("kill").args(["-KILL", one]).status();
            assert!(done.unwrap().success());
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    };
    let Err(Refused::Machine { cause, remedy }) = run_it(&s, &kill) else { panic!("it went on") };
    assert!(cause.contains("ended before its run"), "{cause}");
    assert!(remedy.contains("memory"), "{remedy}");
}

#[test]
fn what_threads_cannot_do_processes_cannot_either() {
    let mut s = scenario(MS, vec![domain("a", 1, contended())]);
    s.domains[0].lock = "no-lock".into();
    let world = ProcessesWorld::default();
    assert!(matches!(world.supports(&s), Err(Refused::UnknownLock { .. })));
    s.domains.clear();
    assert!(matches!(run(&world, &s, 1, &mut (), &()), Err(Refused::Invalid(_))));
    s = scenario(MS, vec![domain("a", 1, contended())]);
    s.host.cores = 4096;
    assert!(matches!(run(&world, &s, 1, &mut (), &()), Err(Refused::Machine { .. })));
}
