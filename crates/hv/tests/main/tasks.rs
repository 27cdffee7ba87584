//! Guests with more tasks than vCPUs: their kernel shares the vCPUs. Without KVM each test says that it is skipped.
//!
//! What is asserted is what no noise of the machine changes.

use crate::common::{domain, run, scenario, with};
use overspin_host::World;
use overspin_hv::Hv;
use overspin_scenario::{
    Domain, DomainOutcome, Ending, GuestScheduler, Kernel, Parameters, Picos, Preemption, Scenario,
    TaskOutcome,
};
use overspin_workload::{BurnWait, Kernbench, LockLoop, Replay};

const SCHEDULERS: [GuestScheduler; 3] =
    [GuestScheduler::Cfs2008, GuestScheduler::Eevdf, GuestScheduler::Eevdf618];
const PREEMPTIONS: [Preemption; 4] =
    [Preemption::None, Preemption::Voluntary, Preemption::Lazy, Preemption::Full];

/// A guest with this workload and a kernel that ticks 250 times a second.
fn guest<P: Parameters>(vcpus: u32, lock: &str, scheduler: GuestScheduler, workload: P) -> Domain {
    let slice = Picos::ms(4);
    let kernel = Kernel { hz: 250, scheduler, slice, ..Kernel::default() };
    Domain { kernel, ..domain("guest", vcpus, lock, workload) }
}

/// Eight threads of a program on two vCPUs.
fn program(lock: &str, scheduler: GuestScheduler) -> Domain {
    let keys = r#"{"threads": 8, "section": 5000000, "outside": 20000000, "mode": "user",
        "irqs_off": false}"#;
    guest(2, lock, scheduler, with::<LockLoop>(keys))
}

/// The outcome of a domain that is alone on `pcpus` pCPUs.
fn alone(domain: Domain, pcpus: u32, limit: Picos) -> Option<(DomainOutcome, Picos)> {
    let all = Scenario { to_the_limit: true, ..scenario(pcpus, "credit", limit, vec![domain]) };
    let mut outcome = run(&Hv::default(), &all)?;
    assert_eq!(outcome.ending, Ending::Limit);
    Some((outcome.domains.remove(0), outcome.elapsed))
}

/// Whether this machine has two CPUs for two pCPUs; says if not.
fn has_two_cpus() -> bool {
    let has = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    if !has {
        overspin_testing::skip("this machine has one CPU");
    }
    has
}

/// The guest itself stops if two of its tasks have one lock.
#[test]
fn every_lock_works_in_a_program_with_more_threads_than_vcpus() {
    for (i, info) in overspin_locks::infos().iter().enumerate() {
        let program = program(info.name, SCHEDULERS[i % 3]);
        let Some((of, elapsed)) = alone(program, 1, Picos::ms(120)) else { return };
        let (name, lock) = (info.name, &of.locks[0]);
        assert!(lock.acquisitions > 0, "{name}: nobody had it");
        // Each acquisition but those under way at the end is an item.
        let items: u64 = of.tasks.iter().map(|t| t.items).sum();
        assert!(lock.acquisitions - items <= 8, "{name}: {items} of {lock:?}");
        assert!(lock.wait_p99 <= lock.wait_max && lock.hold_max <= elapsed, "{name}");
        let cpu: Picos = of.tasks.iter().map(|t| t.cpu).sum();
        let running: Picos = of.vcpus.iter().map(|v| v.running).sum();
        assert!(cpu <= running + Picos::us(10), "{name}: tasks had {cpu} of {running}");
    }
}

/// Tasks that never sleep share a vCPU, under each scheduler and kind of preemption.
#[test]
fn the_kernel_shares_a_vcpu_among_its_tasks() {
    for scheduler in SCHEDULERS {
        for preemption in PREEMPTIONS {
            let mut hogs = guest(1, "ticket", scheduler, with::<BurnWait>(r#"{"threads": 3}"#));
            hogs.kernel.preemption = preemption;
            let Some((of, _)) = alone(hogs, 1, Picos::ms(400)) else { return };
            let running = of.vcpus[0].running;
            let cpu: Picos = of.tasks.iter().map(|t| t.cpu).sum();
            assert!(cpu > running / 4 * 3 && cpu <= running, "{cpu} of {running}");
            // A tick charges 4 ms to the task that it finds, nearly always in user mode. Late ones are one.
            let sum = |of: &DomainOutcome, time: fn(&TaskOutcome) -> Picos| {
                of.tasks.iter().map(time).sum::<Picos>()
            };
            let (user, system) = (sum(&of, |t| t.user_ticks), sum(&of, |t| t.system_ticks));
            assert!(user > running / 4 && system < user / 4, "{user} and {system} of {running}");
            // The last one may have come as the run ended.
            let charged = (user + system) / Picos::ms(4);
            assert!((0..=1).contains(&(of.vcpus[0].ticks - charged)), "{charged} of {of:?}");
            for task in &of.tasks {
                // A third, but for a slice of each at the end.
                let share = task.cpu.0 as f64 / cpu.0 as f64;
                assert!((0.2..0.45).contains(&share), "{scheduler:?} {preemption:?}: {share}");
                assert!(task.preemptions > 2, "{task:?}");
                assert_eq!(task.sleeps, 0);
            }
        }
    }
}

/// On one vCPU nobody finds a lock taken, unless its holder was preempted: the kernel preempts no holder of its own locks,
/// whatever its kind of preemption, and it preempts a program's.
#[test]
fn the_kernel_preempts_sections_of_programs_and_not_its_own() {
    // Half of the time in a section.
    let keys = |mode, irqs_off| {
        format!(
            r#"{{"threads": 4, "section": 300000000, "outside": 300000000, "mode": "{mode}",
                "irqs_off": {irqs_off}}}"#
        )
    };
    for lock in ["ticket", "mutex", "pv-qspinlock"] {
        for preemption in PREEMPTIONS {
            for irqs_off in [false, true] {
                let kernels = with::<LockLoop>(&keys("kernel", irqs_off));
                let mut kernels = guest(1, lock, GuestScheduler::Eevdf618, kernels);
                kernels.kernel.preemption = preemption;
                let Some((of, _)) = alone(kernels, 1, Picos::ms(150)) else { return };
                let preemptions: u64 = of.tasks.iter().map(|t| t.preemptions).sum();
                assert_eq!(of.locks[0].contended, 0, "{lock} {preemption:?}");
                assert!(preemptions > 2, "{preemptions}");
            }
        }
        let programs = with::<LockLoop>(&keys("user", false));
        let programs = guest(1, lock, GuestScheduler::Eevdf618, programs);
        let Some((of, _)) = alone(programs, 1, Picos::ms(400)) else { return };
        assert!(of.locks[0].contended > 0 && of.locks[0].holder_preempted > 0, "{lock}");
    }
}

/// A lock that keeps the order of arrival serves each of the seven others once at most while a task waits. When a waiter has
/// a vCPU, it waits most of the time for a task that the guest has preempted; the host has a pCPU for each vCPU.
#[test]
fn an_ordered_lock_keeps_its_order_and_waits_for_preempted_tasks() {
    if !has_two_cpus() {
        return;
    }
    for lock in ["ticket", "mcs"] {
        let guest = program(lock, GuestScheduler::Eevdf618);
        let all = scenario(2, "credit", Picos::ms(1_000), vec![guest]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert!(!outcome.worst_waits.is_empty());
        for wait in &outcome.worst_waits {
            assert!(wait.of_tasks && wait.acquisitions <= 7, "{lock}: {wait:?}");
        }
        let causes = outcome.domains[0].locks[0].wait_causes;
        let by_guest = causes.holder_preempted_by_guest + causes.next_preempted_by_guest;
        let others = causes.total() - causes.own_preemption - by_guest;
        assert!(by_guest > others, "{lock}: {causes:?}");
    }
}

/// The next in the order of a ticket lock has often lost its vCPU. A lock that anybody may take does not wait for it.
#[test]
fn an_ordered_lock_collapses_where_one_without_order_does_not() {
    if !has_two_cpus() {
        return;
    }
    let run = |lock| {
        let of = alone(program(lock, GuestScheduler::Eevdf618), 2, Picos::ms(1_000));
        of.map(|(of, _)| of.locks[0].acquisitions)
    };
    let (Some(ticket), Some(byte)) = (run("ticket"), run("lock-byte")) else { return };
    assert!(byte > 3 * ticket, "lock-byte {byte}, ticket {ticket}");
}

/// A vCPU sleeps only when all of its tasks do.
#[test]
fn tasks_sleep_and_not_their_vcpu() {
    let keys = r#"{"threads": 4, "burn": 1000000000, "wait": 9000000000}"#;
    for scheduler in SCHEDULERS {
        let light = guest(1, "ticket", scheduler, with::<BurnWait>(keys));
        let Some((of, elapsed)) = alone(light, 1, Picos::ms(1_000)) else { return };
        let share = of.vcpus[0].running.0 as f64 / elapsed.0 as f64;
        // Four times 1 ms in 10 ms and a little, on a machine that may be slow.
        assert!((0.2..0.75).contains(&share), "{share}");
        assert!(of.vcpus[0].blocked > Picos::ms(150), "{:?}", of.vcpus[0]);
        for task in &of.tasks {
            assert!(task.items > 20 && task.sleeps >= task.items - 1, "{task:?}");
        }
    }
}

/// Tasks on different vCPUs wait for each other and wake each other, more of them than vCPUs.
#[test]
fn tasks_that_share_vcpus_wake_each_other() {
    // A ring of five: each waits, works, and wakes the next. The first one begins, and nobody waits for its last wake-up.
    let of = |task: usize| {
        let works = format!("run 100us, hold l 20us, wake {}", (task + 1) % 5);
        let round = if task == 0 { format!("{works}, wait") } else { format!("wait, {works}") };
        vec![round; 20].join(", ")
    };
    for mode in ["user", "kernel"] {
        let tasks: Vec<String> = (0..5).map(of).collect();
        let tasks = serde_json::to_string(&tasks).unwrap();
        let ring = with::<Replay>(&format!(r#"{{"tasks": {tasks}, "mode": "{mode}"}}"#));
        let ring = guest(2, "futex", GuestScheduler::Eevdf, ring);
        let all = scenario(1, "credit", Picos::ms(20_000), vec![ring]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert_eq!(outcome.ending, Ending::Finished, "{mode}");
        assert_eq!(outcome.domains[0].locks[0].acquisitions, 100);
        assert_eq!(outcome.domains[0].tasks.iter().map(|t| t.items).sum::<u64>(), 100);
    }
}

/// A workload that starts tasks runs beside one that never gives way.
#[test]
fn workloads_that_start_tasks_run_beside_others() {
    let make = r#"{"jobs": 2, "units": 6, "user": 2000000000, "system": 500000000}"#;
    for preemption in PREEMPTIONS {
        let make = with::<Kernbench>(make);
        let mut both = guest(2, "mcs", GuestScheduler::Eevdf618, make);
        both.kernel.preemption = preemption;
        let hogs = domain("", 2, "mcs", with::<BurnWait>(r#"{"threads": 2}"#));
        both.workload.0.extend(hogs.workload.0);
        let all = scenario(1, "credit", Picos::ms(20_000), vec![both]);
        let Some(outcome) = run(&Hv::default(), &all) else { return };
        assert_eq!(outcome.ending, Ending::Finished, "{preemption:?}");
        let tasks = &outcome.domains[0].tasks;
        let hogs = tasks.iter().filter(|t| t.name.starts_with("burn-wait"));
        assert!(
            hogs.clone().count() == 2 && hogs.clone().all(|t| t.cpu > Picos::ZERO),
            "{tasks:?}"
        );
        assert_eq!(tasks.len() - 2, 1 + 3 * 6);
    }
}

#[test]
fn what_no_kernel_could_do_is_refused() {
    let mut without_ticks = program("ticket", GuestScheduler::Eevdf);
    without_ticks.kernel.hz = 0;
    let refused = Hv::default().supports(&scenario(1, "credit", Picos::ms(1), vec![without_ticks]));
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("set `kernel.hz`") && why.contains("mode = \"kernel\""), "{why}");
    let mut folds = program("ticket", GuestScheduler::Eevdf);
    folds.kernel.steal_governor = Some(overspin_scenario::StealGovernor::default());
    let refused = Hv::default().supports(&scenario(1, "credit", Picos::ms(1), vec![folds]));
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("kernel.steal_governor") && why.contains("world `sim`"), "{why}");
    // What the kernel of a guest honours is not reported as ignored.
    let ignored = |domain| {
        let ignored =
            Hv::default().supports(&scenario(1, "credit", Picos::ms(1), vec![domain])).unwrap();
        ignored.into_iter().map(|i| i.key).filter(|k| k.starts_with("domain.kernel")).collect()
    };
    let shared: Vec<String> = ignored(program("ticket", GuestScheduler::Eevdf));
    assert_eq!(shared, ["domain.kernel.task_switch and domain.kernel.tick_work"]);
    let single: Vec<String> = ignored(domain("one", 2, "ticket", with::<LockLoop>("{}")));
    assert_eq!(single, ["domain.kernel"]);
}
