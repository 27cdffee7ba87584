//! Schedules that repeat a loop: all of them run, and they find what random ones cannot.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use overspin_check::schedules::{
    Plan, SchedulePlatform, ScheduleU32, Strategy, on_cpus, pairs, world,
};
use overspin_check::{Limits, Mutation, Verdict, checks_by_name};
use overspin_locks::{AtomicCell, Ticket};

/// Two polite CPUs: each raises its flag, and lowers it again if the other's is up.
fn polite() -> Plan {
    Plan::new(2, || {
        let flags = Arc::new([ScheduleU32::new(0), ScheduleU32::new(0)]);
        on_cpus(2, move |cpu| {
            loop {
                flags[cpu].store(1, SeqCst);
                if flags[1 - cpu].load(SeqCst) == 0 {
                    break;
                }
                flags[cpu].store(0, SeqCst);
            }
            world().acquired();
            flags[cpu].store(0, SeqCst);
        });
    })
}

/// In step with each other they go on for ever. At random they fall out of step soon: the chance to stay in step for 200,000
/// accesses is nil.
#[test]
fn only_lassos_find_a_livelock() {
    let random = polite().explore(Strategy::Random, 2_000, 1, Mutation::None);
    assert_eq!(random.fault, None);
    let lasso = polite().explore(Strategy::Lasso, usize::MAX, 1, Mutation::None);
    let fault = lasso.fault.expect("it lives on");
    assert!(fault.contains("every waiter keeps looking"), "{fault}");
}

/// Stems of two CPUs have 10 steps, those of three have 4. Loops of up to 6 steps, of which none is another one begun elsewhere
/// or repeated, are the Lyndon words in which each CPU occurs: 1 + 2 + 3 + 6 + 9 for two CPUs; for three, those of three letters
/// less those of each pair of letters, (8 - 6) + (18 - 9) + (48 - 18) + (116 - 27).
#[test]
fn all_stems_and_loops_run() {
    for (cpus, all) in [(2, 1_024 * 21), (3, 81 * 130)] {
        let plan = pairs::<Ticket<SchedulePlatform>>(cpus, 1, 1);
        let report = plan.explore(Strategy::Lasso, usize::MAX, 1, Mutation::None);
        assert_eq!((report.runs, report.fault), (all, None));
    }
}

/// By a fair schedule a test-and-set lock can keep a CPU away for ever; a queue cannot.
#[test]
fn locks_starve_a_cpu_as_they_say() {
    let limits = Limits { schedules: 1_000, ..Limits::default() };
    for (lock, verdict) in
        [("lock-byte", Verdict::KnownFlaw), ("ticket", Verdict::Passes), ("cna", Verdict::Passes)]
    {
        let checks = checks_by_name(lock, &limits).expect("a lock of the registry");
        let lassos = checks.iter().filter(|it| it.bound.contains(Strategy::Lasso.name()));
        let rivals: Vec<_> = lassos.filter(|it| it.name == "one among rivals").collect();
        assert_eq!(rivals.len(), 2, "{lock}: with two CPUs, and with three");
        for check in rivals {
            assert_eq!(check.verdict(&check.run()), verdict, "{lock}, {} CPUs", check.cpus);
        }
    }
}
