//! The world of threads on this machine. Machines differ and are noisy, so these tests assert only what must be so on
//! every one: time is not multiplied, work is done, nothing hangs.

use crate::alone::turn;
use crate::scenarios::{contended, domain, scenario, work};
use overspin_host::{Moment, Observer, Refused, Timed, World, run};
use overspin_native::measure::allowed_cpus;
use overspin_native::world::{ThreadsWorld, own_nice};
use overspin_scenario::{
    Domain, Ending, MS, Outcome, Picos, SEC, Scenario, Stopped, US, Workloads,
};
use overspin_workload::{BurnWait, Count, Kernbench, LockLoop, Stream};
use std::thread;
use std::time::{Duration, Instant};

/// Two CPUs, or one where there is only one.
fn cores() -> u32 {
    allowed_cpus().unwrap().len().min(2) as u32
}

/// Makes longer and longer runs until one has acquisitions: on a loaded machine threads may get no CPU for a while.
fn until_acquired(first: Picos, run: impl Fn(Picos) -> Outcome) -> Outcome {
    let mut length = first;
    loop {
        let outcome = run(length);
        if outcome.domains[0].locks[0].acquisitions > 0 {
            return outcome;
        }
        assert!(length < 10 * SEC, "no acquisition in {length}");
        length = length.saturating_mul(8);
    }
}

fn measured(scenario: &Scenario, observer: &mut dyn Observer) -> Outcome {
    let _turn = turn();
    run(&ThreadsWorld::default(), scenario, 1, observer, &()).unwrap()
}

#[test]
fn threads_share_the_cpus_and_do_their_work() {
    let cores = cores();
    let guest = domain("guest", 2 * cores, "ticket", contended());
    let outcome = until_acquired(200 * MS, |length| {
        measured(&scenario(cores, length, vec![guest.clone()]), &mut ())
    });
    assert_eq!(outcome.ending, Ending::Limit);
    let (guest, elapsed) = (&outcome.domains[0], outcome.elapsed);
    assert!(elapsed >= 200 * MS, "{elapsed}");
    let lock = &guest.locks[0];
    assert!(lock.acquisitions > 0 && lock.acquisitions >= lock.contended, "{lock:?}");
    // A section burns 2 us of CPU time, less what the calibration may be wrong by.
    assert!(lock.hold_total >= lock.acquisitions * US, "{lock:?}");
    assert!(lock.wait_max <= elapsed && lock.wait_p50 <= lock.wait_p99, "{lock:?}");
    let items: u64 = guest.tasks.iter().map(|t| t.items).sum();
    assert!(items.abs_diff(lock.acquisitions) <= u64::from(2 * cores), "{items} of {lock:?}");
    let running: Picos = guest.vcpus.iter().map(|v| v.running).sum();
    let capacity = elapsed.saturating_mul(cores.into());
    // The accounts are taken one after another just before the end.
    assert!(running <= capacity + 20 * MS && running > Picos::ZERO, "{running} of {capacity}");
    for v in &guest.vcpus {
        assert_eq!(v.running + v.runnable + v.blocked, elapsed, "{v:?}");
    }
    let measurement = outcome.measurement.unwrap();
    assert_eq!(measurement.world, "threads");
    assert_eq!(measurement.cpus.len(), cores as usize);
    assert!(measurement.steps_per_us > 1.0);
}

/// A quarter of the run does not count, for any account, lock, CPU or cause.
#[test]
fn the_warm_up_does_not_count() {
    let cores = cores();
    let guest = domain("guest", 2 * cores, "mutex", contended());
    let mut moments: Vec<Timed> = Vec::new();
    let all = Scenario { warmup: None, ..scenario(cores, 400 * MS, vec![guest]) };
    let outcome = measured(&all, &mut moments);
    let (warmup, counted) = (outcome.warmup, outcome.counted());
    assert!(warmup >= 100 * MS && warmup < outcome.elapsed, "{warmup}");
    let (guest, lock) = (&outcome.domains[0], &outcome.domains[0].locks[0]);
    let items: u64 = guest.tasks.iter().map(|t| t.items).sum();
    // A thread learns of the end of the warm-up at its next acquisition, and one may have an item on its way.
    assert!(items.abs_diff(lock.acquisitions) <= 2 * u64::from(2 * cores), "{items} of {lock:?}");
    for v in &guest.vcpus {
        assert_eq!(v.running + v.runnable + v.blocked, counted, "{v:?}");
    }
    for p in &outcome.pcpus {
        assert_eq!(p.busy + p.idle, counted, "{p:?}");
    }
    let most = guest.progress.last().copied().unwrap_or(0);
    assert!(guest.progress.is_sorted() && most > items, "{items} of {:?}", guest.progress);
    if !moments.is_empty() {
        let ends: Vec<Picos> =
            moments.iter().filter(|t| t.moment == Moment::Counts).map(|t| t.at).collect();
        assert_eq!(ends, [warmup]);
        // Only waits that ended later have causes.
        let waited = lock.wait_causes.total();
        assert!(waited <= lock.wait_total + counted / 100, "{waited} of {lock:?}");
    }
}

/// A domain with a cap of 30 % of a CPU, alone: it gets that, in each world, and no group is left behind.
#[test]
fn a_cap_is_a_quota_where_the_kernel_gives_one() {
    let hog = domain("capped", 1, "ticket", work::<BurnWait>(r#"{"burn": 1000000000, "wait": 0}"#));
    let s = scenario(1, 1500 * MS, vec![Domain { cap: 30, ..hog }]);
    let ignored = ThreadsWorld::default().supports(&s).unwrap();
    if let Some(cap) = ignored.iter().find(|ignored| ignored.key == "domain.cap") {
        overspin_testing::skip(&cap.reason);
        return;
    }
    let outcome = measured(&s, &mut ());
    let running = outcome.domains[0].vcpus[0].running.ratio(outcome.elapsed);
    // The last period may be a third of its quota ahead of its time, and a slice of 5 ms more.
    assert!((0.2..0.37).contains(&running), "{running}");
}

/// A domain of one vCPU that always works.
fn hog(name: &str, weight: u32) -> Domain {
    let work = work::<BurnWait>(r#"{"burn": 1000000000}"#);
    Domain { weight, ..domain(name, 1, "ticket", work) }
}

#[test]
fn a_heavier_domain_gets_more_of_a_cpu() {
    the_first_gets_more(&[hog("heavy", 1024), hog("light", 128)]);
}

/// Does something in a thread with at least this nice value, which everybody may raise.
fn at_nice<T: Send + 'static>(least: i32, what: impl FnOnce() -> T + Send + 'static) -> T {
    let raised = thread::spawn(move || {
        let nice = own_nice().max(least);
        // SAFETY: a call without pointers; 0 is the calling thread.
        assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }, 0);
        what()
    });
    raised.join().unwrap()
}

/// As under `nice`. The lighter domain gets the ninth nice value after that of the process.
#[test]
fn a_heavier_domain_gets_more_of_a_cpu_in_a_process_that_is_nice() {
    at_nice(10, || the_first_gets_more(&[hog("heavy", 1024), hog("light", 128)]));
}

#[test]
fn weights_beyond_the_last_nice_value_are_named() {
    let told = |weights: [u32; 2]| {
        let domains = vec![hog("heavy", weights[0]), hog("light", weights[1])];
        let ignored = ThreadsWorld::default().supports(&scenario(1, MS, domains)).unwrap();
        ignored.into_iter().find(|it| it.key == "domain.weight").map(|it| it.reason)
    };
    at_nice(19, move || {
        assert_eq!(told([256, 256]), None);
        let reason = told([1024, 128]).unwrap();
        let words = ["this process's, 19", "1024 to 128", "a nice value of 10 or less"];
        words.iter().for_each(|word| assert!(reason.contains(word), "{reason}"));
    });
    // 50 nice values, of which there are 40.
    let reason = told([65_535, 1]).unwrap();
    assert!(reason.contains("65535 to 1") && !reason.contains("start it"), "{reason}");
}

#[test]
fn a_heavier_vcpu_gets_more_of_a_cpu() {
    let hogs = domain("hogs", 2, "ticket", work::<BurnWait>(r#"{"burn": 1000000000}"#));
    the_first_gets_more(&[Domain { weights: vec![1024, 128], ..hogs }]);
}

/// Of two vCPUs on one CPU.
fn the_first_gets_more(hogs: &[Domain]) {
    let ignored = ThreadsWorld::default().supports(&scenario(1, MS, hogs.to_vec())).unwrap();
    if let Some(weight) = ignored.iter().find(|ignored| ignored.key == "domain.weight") {
        overspin_testing::skip(&weight.reason);
        return;
    }
    // Where other programs have the CPU, both get a few slices in a run, and their order decides. So the test goes on
    // until both together have had it for a while.
    let mut ran = [Picos::ZERO; 2];
    for _ in 0..20 {
        let outcome = measured(&scenario(1, 600 * MS, hogs.to_vec()), &mut ());
        let vcpus = outcome.domains.iter().flat_map(|domain| &domain.vcpus);
        for (sum, vcpu) in ran.iter_mut().zip(vcpus) {
            *sum += vcpu.running;
        }
        if ran[0] + ran[1] > 500 * MS {
            break;
        }
    }
    assert!(ran[0] > ran[1], "{} and {}", ran[0], ran[1]);
}

#[test]
fn every_lock_serves_twice_as_many_threads_as_cpus_and_lets_them_end() {
    let cores = cores();
    for info in overspin_locks::infos() {
        let guest = domain("guest", 2 * cores, info.name, contended());
        let began = Instant::now();
        until_acquired(20 * MS, |length| {
            measured(&scenario(cores, length, vec![guest.clone()]), &mut ())
        });
        assert!(began.elapsed() < Duration::from_secs(60), "{} hung", info.name);
    }
}

#[test]
fn a_long_queue_of_descheduled_waiters_dissolves_at_the_end() {
    let cores = cores();
    let s = scenario(cores, 50 * MS, vec![domain("guest", 30 * cores, "ticket", contended())]);
    let began = Instant::now();
    measured(&s, &mut ());
    // A time slice for each waiter, again and again, would take a minute.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn work_of_a_fixed_amount_ends_when_it_is_done() {
    let count = work::<Count>(r#"{"to": 1000, "step": 1000000}"#);
    let outcome = measured(&scenario(1, 20 * SEC, vec![domain("a", 1, "ticket", count)]), &mut ());
    assert_eq!(outcome.ending, Ending::Finished);
    let a = &outcome.domains[0];
    assert_eq!(a.tasks[0].items, 1);
    let finished = a.finished.unwrap();
    assert!(finished <= outcome.elapsed && a.tasks[0].ended.unwrap() <= finished);
    // A thousand steps of a microsecond, less what the calibration may be wrong by.
    assert!(a.tasks[0].cpu >= 500 * US, "{}", a.tasks[0].cpu);
}

#[test]
fn an_endless_domain_does_not_prolong_a_run() {
    let count = work::<Count>(r#"{"to": 1000, "step": 1000000}"#);
    let endless = domain("endless", 1, "ticket", work::<BurnWait>(r#"{"burn": 1000000000}"#));
    let s = scenario(1, 3600 * SEC, vec![endless, domain("a", 1, "ticket", count)]);
    let outcome = measured(&s, &mut ());
    assert_eq!(outcome.ending, Ending::Finished);
    assert!(outcome.domains[0].finished.is_none() && outcome.domains[1].finished.is_some());
}

#[test]
fn tasks_start_tasks_and_wait_for_them() {
    let locks = r#"[{"name": "a", "hold": 1000000, "every": 50000000, "irqs_off": false}]"#;
    let keys = format!(r#"{{"jobs": 3, "units": 4, "user": 2000000000, "locks": {locks}}}"#);
    let build = work::<Kernbench>(&keys);
    let outcome = measured(&scenario(1, 20 * SEC, vec![domain("a", 2, "mutex", build)]), &mut ());
    assert_eq!(outcome.ending, Ending::Finished);
    // A unit, and its compiler and its assembler.
    assert_eq!(outcome.domains[0].tasks.iter().map(|t| t.items).sum::<u64>(), 3 * 4);
}

#[test]
fn a_cancelled_run_has_the_figures_up_to_then() {
    let s = scenario(1, 3600 * SEC, vec![domain("guest", 2, "ticket", contended())]);
    let outcome = until_acquired(30 * MS, |length| {
        let cancel = |now: Picos| (now >= length).then_some(Stopped::Interrupted);
        let _turn = turn();
        run(&ThreadsWorld::default(), &s, 1, &mut (), &cancel).unwrap()
    });
    assert_eq!(outcome.ending, Ending::Stopped { by: Stopped::Interrupted });
    assert!(outcome.elapsed < 3600 * SEC, "{}", outcome.elapsed);
}

#[test]
fn what_threads_cannot_do_is_named() {
    let mut s = scenario(1, MS, vec![domain("guest", 1, "ticket", work::<LockLoop>("{}"))]);
    let keys = |s: &Scenario| -> Vec<String> {
        let all = ThreadsWorld::default().supports(s).unwrap();
        assert!(all.iter().all(|u| !u.reason.is_empty()));
        all.into_iter().map(|u| u.key).collect()
    };
    let all = keys(&s);
    for key in ["host.scheduler", "domain.kernel", "domain.workload.irqs_off"] {
        assert!(all.iter().any(|k| k == key), "{key}: {all:?}");
    }
    for key in ["host.noise", "domain.cap"] {
        assert!(!all.iter().any(|k| k == key), "it has no {key}: {all:?}");
    }
    s.domains[0].workload = Workloads(vec![work::<Stream>("{}")]);
    let Err(Refused::Invalid(why)) = ThreadsWorld::default().supports(&s) else { panic!() };
    assert!(why.contains("stream") && why.contains("device"), "{why}");
    s.domains[0].workload = Workloads(vec![contended()]);
    s.domains[0].kernel.steal_governor = Some(overspin_scenario::StealGovernor::default());
    let Err(Refused::Invalid(why)) = ThreadsWorld::default().supports(&s) else { panic!() };
    assert!(why.contains("kernel.steal_governor") && why.contains("world `sim`"), "{why}");
    s.domains[0].lock = "no-lock".into();
    assert!(matches!(ThreadsWorld::default().supports(&s), Err(Refused::UnknownLock { .. })));
    let many = scenario(1, MS, vec![domain("guest", 5000, "ticket", contended())]);
    let Err(Refused::Invalid(why)) = ThreadsWorld::default().supports(&many) else { panic!() };
    assert!(why.contains("5000 tasks are too many"), "{why}");
}

#[test]
fn too_few_cpus_are_the_machines_fault() {
    let s = scenario(4096, MS, vec![domain("guest", 1, "ticket", contended())]);
    let refused = run(&ThreadsWorld::default(), &s, 1, &mut (), &()).unwrap_err();
    let Refused::Machine { cause, remedy } = refused else { panic!("{refused}") };
    assert!(
        cause.contains("4096 pCPUs") && remedy.contains("--set host.cores="),
        "{cause} {remedy}"
    );
}

#[test]
fn moments_are_in_order_and_a_lock_has_one_holder() {
    let mut all: Vec<Timed> = Vec::new();
    let cores = cores();
    let s = scenario(cores, 500 * MS, vec![domain("guest", 2 * cores, "ticket", contended())]);
    let outcome = measured(&s, &mut all);
    if all.is_empty() {
        let missing = &outcome.measurement.unwrap().missing;
        assert!(missing.iter().any(|m| m.contains("perf_event_open")), "{missing:?}");
        overspin_testing::skip("this kernel does not let a thread record its switches");
        return;
    }
    assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
    let mut holder: Option<u32> = None;
    let (mut acquired, mut overlaps) = (0_u64, 0_u64);
    for Timed { moment, .. } in &all {
        match *moment {
            Moment::LockAcquired { vcpu, .. } => {
                acquired += 1;
                overlaps += u64::from(holder.is_some());
                holder = Some(vcpu);
            }
            Moment::LockReleased { vcpu, .. } if holder == Some(vcpu) => holder = None,
            _ => {}
        }
    }
    let lock = &outcome.domains[0].locks[0];
    assert!(acquired > 0 && acquired <= lock.acquisitions, "{acquired} of {lock:?}");
    // Counters of two CPUs may differ by some ticks.
    assert!(overlaps * 100 <= acquired, "{overlaps} of {acquired} overlap");
    // The causes are of the same waits as the total, apart from those at the end.
    let (causes, total) = (lock.wait_causes.total(), lock.wait_total);
    assert!(causes.0.abs_diff(total.0) <= total.0 / 10 + MS.0, "{causes} and {total}: {lock:?}");
    let busy: Picos = outcome.pcpus.iter().map(|p| p.busy).sum();
    assert!(busy <= outcome.elapsed.saturating_mul(cores.into()), "{busy}");
}
