//! Several workloads in one domain. Each has its tasks, its locks, and the vCPUs that it may use.

use crate::common::{
    domain, hog, host, kernbench, lock_loop, near, pgbench, run, scenario, tickless,
};
use overspin_scenario::{DomainOutcome, Ending, Parameters, Picos, SEC, US, Workload, Workloads};
use overspin_workload::{BurnWait, Pft, Stream};

fn on<P: Parameters>(vcpus: &[u32], parameters: P) -> Workload {
    Workload { vcpus: vcpus.to_vec(), ..parameters.into() }
}

/// CPU time of all tasks of a workload.
fn cpu(d: &DomainOutcome, of: &str) -> Picos {
    let mine = d.tasks.iter().filter(|t| t.name.starts_with(&format!("{of}/")));
    mine.map(|t| t.cpu).sum()
}

/// Three hogs stay on the one vCPU that they may use, although others idle. A lock loop has two other vCPUs,
/// and the last vCPU has no task.
#[test]
fn tasks_keep_to_the_vcpus_that_they_may_use() {
    let hogs = BurnWait { threads: 3, ..BurnWait::default() };
    let all = Workloads(vec![on(&[3], hogs), on(&[0, 2], lock_loop(US, 5 * US))]);
    let outcome = run(&scenario(host(4, "credit"), vec![domain(4, "ticket", all)], SEC), 1);
    let d = &outcome.domains[0];
    near(cpu(d, "burn-wait"), d.vcpus[3].running, SEC / 50);
    near(d.vcpus[3].running, SEC, SEC / 100);
    near(cpu(d, "lock-loop"), d.vcpus[0].running + d.vcpus[2].running, SEC / 50);
    assert!(d.vcpus[1].running < SEC / 100, "{}", d.vcpus[1].running);
    assert_eq!(d.locks[0].name, "lock-loop/section");
    assert!(d.locks[0].acquisitions > 100_000);
    let names: Vec<_> = d.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "burn-wait/burn0",
            "burn-wait/burn1",
            "burn-wait/burn2",
            "lock-loop/loop0",
            "lock-loop/loop1"
        ]
    );
}

/// Tasks that these tasks start or wake keep to the same vCPUs.
#[test]
fn so_do_the_tasks_that_they_start_and_wake() {
    let faults =
        Pft { processes: 4, pages: 2_000, touch: US, fault: US, fork: US, locks: Vec::new() };
    let all = Workloads(vec![
        on(&[2], faults),
        on(&[1], pgbench(3, 50)),
        on(&[3], Stream { count: 100, ..Stream::default() }),
    ]);
    let outcome = run(&scenario(host(4, "credit"), vec![tickless(4, "ticket", all)], 10 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    let d = &outcome.domains[0];
    for (of, vcpu) in [("pft", 2), ("pgbench", 1), ("stream", 3)] {
        assert!(cpu(d, of) > Picos::ZERO && cpu(d, of) <= d.vcpus[vcpu].running, "{of}");
    }
    assert!(d.vcpus[0].running < SEC / 100);
    assert!(d.tasks.iter().any(|t| t.name == "pft/touch3"));
    assert_eq!(d.locks[0].name, "pgbench/hot");
}

/// A domain finishes when its finite workloads have ended; endless workloads do not keep it.
#[test]
fn nobody_waits_for_what_has_no_end() {
    let mut all = kernbench(2, 4);
    all.0.extend(hog().0);
    let outcome = run(&scenario(host(2, "credit"), vec![domain(2, "ticket", all)], 60 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    let d = &outcome.domains[0];
    near(d.finished.expect("the compile has ended"), outcome.elapsed, 10 * US);
    assert!(d.tasks.iter().any(|t| t.name == "burn-wait/burn0" && t.ended.is_none()));
    assert_eq!(
        d.locks.iter().map(|l| l.name.as_str()).take(2).collect::<Vec<_>>(),
        ["kernbench/zone", "kernbench/dcache"]
    );
}

/// Two workloads of one kind in one domain have a lock each.
#[test]
fn locks_of_different_workloads_are_different_locks() {
    let two = Workloads(vec![lock_loop(US, US).into(), lock_loop(2 * US, US).into()]);
    let outcome = run(&scenario(host(4, "credit"), vec![domain(4, "ticket", two)], SEC / 10), 1);
    let d = &outcome.domains[0];
    let names: Vec<_> = d.locks.iter().map(|l| l.name.as_str()).take(2).collect();
    assert_eq!(names, ["lock-loop/section", "lock-loop-2/section"]);
    for lock in &d.locks[..2] {
        assert!(lock.acquisitions > 1000, "{}", lock.name);
    }
    let hold = |i: usize| d.locks[i].hold_total / d.locks[i].acquisitions;
    assert!(hold(1) > hold(0) + US / 2);
}
