//! Real vCPUs. Without KVM each test says that it is skipped, and passes.
//!
//! What is asserted is what no noise of the machine changes: order, shares with wide bounds, that everything ends.

use crate::common::{domain, run, scenario, with};
use overspin_host::{Refused, World};
use overspin_hv::Hv;
use overspin_scenario::{
    Ending, NotificationProtocol, Outcome, Picos, PreemptionNotification, Scenario, Setting,
    Stopped,
};
use overspin_workload::{BurnWait, Kernbench, LockLoop, Pft};

fn items(outcome: &Outcome, domain: usize) -> u64 {
    outcome.domains[domain].tasks.iter().map(|t| t.items).sum()
}

fn running(outcome: &Outcome, domain: usize) -> f64 {
    let ps: Picos = outcome.domains[domain].vcpus.iter().map(|v| v.running).sum();
    ps.0 as f64 / outcome.elapsed.0 as f64
}

/// The number of CPUs here, at most two: the scenarios are for two.
fn pcpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(2) as u32)
}

#[test]
fn every_lock_works_in_twice_as_many_vcpus() {
    for info in overspin_locks::infos() {
        let p = pcpus();
        let locks = domain("locks", 2 * p, info.name, with::<LockLoop>(r#"{"outside": 1000000}"#));
        let all = scenario(p, "credit", Picos::ms(60), vec![locks]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert_eq!(outcome.ending, Ending::Limit, "{}", info.name);
        let lock = &outcome.domains[0].locks[0];
        assert!(lock.acquisitions > 0, "{}: nobody had it", info.name);
        // Each acquisition but those under way at the end is an item.
        let done = items(&outcome, 0);
        assert!(lock.acquisitions - done <= u64::from(2 * p), "{}: {done}", info.name);
        assert!(lock.wait_p99 <= lock.wait_max && lock.hold_max <= outcome.elapsed);
    }
}

#[test]
fn work_that_ends_ends_the_run() {
    let job = domain("job", 1, "ticket", with::<BurnWait>(r#"{"burn": 1000000000, "count": 5}"#));
    let Some(outcome) = run(&Hv::default(), &scenario(1, "credit", Picos::ms(5_000), vec![job]))
    else {
        return;
    };
    assert_eq!(outcome.ending, Ending::Finished);
    assert_eq!(items(&outcome, 0), 5);
    assert!(outcome.elapsed < Picos::ms(4_000));
    let task = &outcome.domains[0].tasks[0];
    assert!(task.ended.is_some_and(|at| at >= Picos::ms(4)), "five times 1 ms of work: {task:?}");
}

/// A quarter of the run does not count, for anybody.
#[test]
fn the_warm_up_does_not_count() {
    let p = pcpus();
    let locks = domain("locks", 2 * p, "mutex", with::<LockLoop>(r#"{"outside": 1000000}"#));
    let all = scenario(p, "credit", Picos::ms(400), vec![locks]);
    let all = Scenario { warmup: None, ..all };
    let Some(outcome) = run(&Hv::default(), &all) else { return };
    let (warmup, counted) = (outcome.warmup, outcome.counted());
    assert!(warmup >= Picos::ms(100) && warmup < outcome.elapsed, "{warmup}");
    let (guest, lock) = (&outcome.domains[0], &outcome.domains[0].locks[0]);
    // Each of both ends of the time that counts may lie between an acquisition and its item.
    let done = items(&outcome, 0);
    assert!(lock.acquisitions.abs_diff(done) <= u64::from(2 * p), "{done} of {lock:?}");
    for v in &guest.vcpus {
        assert_eq!(v.running + v.runnable + v.blocked + v.offline, counted, "{v:?}");
    }
    for p in &outcome.pcpus {
        assert_eq!(p.busy + p.switching + p.idle, counted, "{p:?}");
    }
    assert!(lock.wait_max <= outcome.elapsed && lock.wait_p999 <= lock.wait_max, "{lock:?}");
    // The curve begins at the start.
    let most = guest.progress.last().copied().unwrap_or(0);
    assert!(guest.progress.is_sorted() && most > done, "{done} of {:?}", guest.progress);
    let steps = outcome.elapsed.0 / outcome.progress_step.0;
    assert_eq!(guest.progress.len() as u64, steps);
}

/// Three processes touch 1,000 pages each, more than a vCPU's part of fresh pages has.
#[test]
fn processes_touch_fresh_pages() {
    let p = pcpus();
    for vcpus in [1, 2 * p] {
        let pages = r#"{"processes": 3, "pages": 1000, "touch": 0, "fault": 1000000}"#;
        let job = domain("faults", vcpus, "ticket", with::<Pft>(pages));
        let all = scenario(p, "credit", Picos::ms(20_000), vec![job]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert_eq!(outcome.ending, Ending::Finished);
        let tasks = &outcome.domains[0].tasks;
        let told: Vec<(&str, u64)> = tasks.iter().map(|t| (&*t.name, t.items)).collect();
        assert_eq!(told, [("pft", 0), ("touch0", 1000), ("touch1", 1000), ("touch2", 1000)]);
        for task in &tasks[1..] {
            assert!(task.cpu >= Picos::ms(1), "1,000 faults of 1 us: {task:?}");
            assert!(task.ended.is_some());
        }
    }
}

/// Compilers and assemblers that wait for each other, more of them than vCPUs.
#[test]
fn tasks_start_others_and_wait_for_them() {
    let (p, units) = (pcpus(), 12);
    let make = format!(
        r#"{{"jobs": 4, "units": {units}, "user": 4000000000, "system": 1000000000, "pipe_sleeps": 20}}"#
    );
    for lock in ["ticket", "mcs", "pv-qspinlock"] {
        let job = domain("make", 2 * p, lock, with::<Kernbench>(&make));
        let all = scenario(p, "credit", Picos::ms(30_000), vec![job]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert_eq!(outcome.ending, Ending::Finished, "{lock}");
        // `make`, and a driver, a compiler and an assembler for each unit, which count one item each.
        assert_eq!(outcome.domains[0].tasks.len(), 1 + 3 * units);
        assert_eq!(items(&outcome, 0), 3 * units as u64);
        let cpu: Picos = outcome.domains[0].tasks.iter().map(|t| t.cpu).sum();
        // 12 units of 5 ms, at full speed.
        assert!(cpu >= Picos::ms(40), "{cpu}");
    }
}

#[test]
fn a_guest_has_room_for_4000_tasks() {
    let many = domain("many", 2, "ticket", with::<Pft>(r#"{"processes": 5000}"#));
    let refused = Hv::default().supports(&scenario(2, "credit", Picos::ms(1), vec![many]));
    assert!(refused.unwrap_err().to_string().contains("room for 4000"));
}

#[test]
fn weights_and_caps_hold() {
    let hog = |name: &str, weight, cap| {
        let d = domain(name, 1, "ticket", with::<BurnWait>(r#"{"burn": 100000000}"#));
        overspin_scenario::Domain { weight, cap, ..d }
    };
    for scheduler in ["credit", "credit2", "eevdf"] {
        let domains = vec![hog("one", 256, 0), hog("three", 768, 0)];
        let all = scenario(1, scheduler, Picos::ms(1_500), domains);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        let ratio = running(&outcome, 1) / running(&outcome, 0);
        assert!((2.0..4.5).contains(&ratio), "{scheduler}: 3:1 came out as {ratio}:1");
    }
    let all = scenario(1, "credit", Picos::ms(1_500), vec![hog("capped", 256, 25)]);
    let Some(outcome) = run(&Hv::default(), &all) else { return };
    let share = running(&outcome, 0);
    assert!((0.15..0.40).contains(&share), "a cap of 25 % came out as {share}");
}

#[test]
fn a_guest_gives_up_when_it_is_given_notice() {
    for protocol in [NotificationProtocol::Upcall, NotificationProtocol::Deferral] {
        let keys = r#"{"section": 100000000, "outside": 20000000}"#;
        let locks = |name| domain(name, 2, "ticket", with::<LockLoop>(keys));
        let mut all = scenario(1, "credit", Picos::ms(1_000), vec![locks("a"), locks("b")]);
        all.host.preemption_notification =
            Some(PreemptionNotification { protocol, ..Default::default() });
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        let windows = outcome.domains.iter().flat_map(|d| &d.vcpus).filter_map(|v| v.windows);
        let (offered, used) = windows.fold((0, 0), |(o, u), w| (o + w.offered, u + w.used));
        assert!(offered > 0 && used * 2 > offered, "{protocol:?}: {used} of {offered} were used");
    }
}

#[test]
fn sleepers_wake_and_the_idle_cpu_is_idle() {
    let keys = r#"{"burn": 1000000000, "wait": 9000000000}"#;
    let all = scenario(
        1,
        "credit",
        Picos::ms(1_000),
        vec![domain("light", 1, "ticket", with::<BurnWait>(keys))],
    );
    let Some(outcome) = run(&Hv::default(), &all) else { return };
    let share = running(&outcome, 0);
    assert!((0.05..0.3).contains(&share), "1 ms of work in 10 ms came out as {share}");
    assert!(items(&outcome, 0) > 40, "{} items", items(&outcome, 0));
    assert!(outcome.pcpus[0].idle > Picos::ms(600));
    let v = &outcome.domains[0].vcpus[0];
    let all: Picos = [v.running, v.runnable, v.blocked, v.offline].into_iter().sum();
    assert!(all <= outcome.elapsed && all > outcome.elapsed - Picos::ms(20), "{v:?}");
}

#[test]
fn an_interrupted_run_has_an_outcome() {
    let hogs = domain("hogs", 2, "ticket", with::<BurnWait>("{}"));
    let all = scenario(1, "credit", Picos::ms(60_000), vec![hogs]);
    let stop = |now| (now > Picos::ms(100)).then_some(Stopped::Interrupted);
    match overspin_host::run(&Hv::default(), &all, 1, &mut (), &stop) {
        Ok(outcome) => {
            assert_eq!(outcome.ending, Ending::Stopped { by: Stopped::Interrupted });
            assert!(outcome.elapsed < Picos::ms(2_000), "{}", outcome.elapsed);
            assert!(running(&outcome, 0) > 0.1);
        }
        Err(Refused::Machine { cause, .. }) => overspin_testing::skip(&cause.to_string()),
        Err(refused) => panic!("{refused}"),
    }
}

/// Threads, files and memory of this process.
fn resources() -> (usize, usize, u64) {
    let count = |dir| std::fs::read_dir(dir).map_or(0, Iterator::count);
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text.split(' ').nth(1).unwrap().parse().unwrap();
    (count("/proc/self/task"), count("/proc/self/fd"), pages)
}

#[test]
#[ignore = "a thousand machines take a minute; it looks at the whole process, so it runs alone"]
fn a_thousand_machines_leave_nothing_behind() {
    let all =
        scenario(1, "credit", Picos::ms(1), vec![domain("d", 2, "mcs", with::<LockLoop>("{}"))]);
    let one = || run(&Hv::default(), &all).is_some();
    for _ in 0..20 {
        if !one() {
            return;
        }
    }
    let before = resources();
    for _ in 0..1_000 {
        assert!(one());
    }
    let after = resources();
    println!("before {before:?}, after {after:?} (threads, files, pages)");
    assert_eq!((before.0, before.1), (after.0, after.1), "threads and files");
    assert!(after.2 < before.2 + 2_000, "{} pages more", after.2 - before.2);
}

/// Two vCPUs on one pCPU take turns of 5 ms. One that is asked while it has no pCPU answers in its next turn, unless the host tells
/// it to flush then.
#[test]
fn a_vcpu_without_a_pcpu_keeps_those_waiting_that_unmap_memory() {
    let shootdowns = |pv_tlb_flush: bool| {
        let work = with::<LockLoop>(r#"{"outside": 100000000, "unmap_every": 1}"#);
        let mut guest = domain("guest", 2, "ticket", work);
        guest.kernel.pv_tlb_flush = pv_tlb_flush;
        let mut all = scenario(1, "rr", Picos::ms(400), vec![guest]);
        all.host.params.insert("quantum".into(), Setting::Time(Picos::ms(5)));
        let outcome = run(&Hv::default(), &all)?;
        assert_eq!(outcome.ending, Ending::Limit);
        Some(outcome.domains[0].shootdowns.clone().expect("its threads unmap"))
    };
    let Some(asked) = shootdowns(false) else { return };
    assert!(asked.interrupts > 0 && asked.skipped == 0, "{asked:?}");
    // The sender spins for the rest of its turn; its own next turn begins after the answer.
    assert!(asked.waited >= asked.interrupts * Picos::ms(1), "{asked:?}");
    assert!(asked.preempted > asked.waited / 5 && asked.preempted <= asked.waited, "{asked:?}");
    let told = shootdowns(true).expect("it ran before");
    assert!(
        told.skipped > 0 && told.shootdowns > asked.shootdowns,
        "{told:?}, not told: {asked:?}"
    );
}
