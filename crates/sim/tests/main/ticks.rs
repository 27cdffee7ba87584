//! Tick accounting as in kernels of 2008: every tick that a vCPU takes charges one period to the task that it
//! finds. A vCPU with interrupts off takes its ticks late, and only once for all of them.

use crate::common::{domain, host, lock_loop, near, run, scenario};
use overspin_scenario::{DomainOutcome, MS, Picos, SEC, US};
use overspin_workload::LockLoop;

const PERIOD: Picos = MS;

/// Two vCPUs, each on its own pCPU, that hold a lock for 10 ms in turn and spin for it in between. After each
/// section they spend 100 us in user mode.
fn holders_and_spinners(irqs_off: bool) -> DomainOutcome {
    let work = LockLoop { irqs_off, fixed: true, ..lock_loop(10 * MS, 100 * US) };
    let guest = domain(2, "ticket", work);
    run(&scenario(host(2, "null"), vec![guest], SEC), 1).domains.remove(0)
}

#[test]
fn charges_are_ticks_taken() {
    for irqs_off in [false, true] {
        let d = holders_and_spinners(irqs_off);
        for (task, v) in d.tasks.iter().zip(&d.vcpus) {
            assert_eq!(task.user_ticks + task.system_ticks, v.ticks * PERIOD);
        }
    }
}

#[test]
fn with_interrupts_on_all_time_is_charged_spinning_included() {
    let d = holders_and_spinners(false);
    for (task, v) in d.tasks.iter().zip(&d.vcpus) {
        // A vCPU that is never idle takes a tick every period; the first and the last period are cut.
        near(task.user_ticks + task.system_ticks, SEC, 2 * PERIOD);
        // It spins while the other vCPU holds the lock: 10 of 20 ms, less the 0.1 ms outside.
        near(v.spinning, SEC / 2, 15 * MS);
        // User mode is 0.1 of 20 ms; the kernel is charged for the rest. Samples of a part p in 1000 ticks
        // have a standard deviation of sqrt(1000 p): 2.2 ticks for 0.5 %, of which the test allows five.
        near(task.user_ticks, SEC / 200, 12 * PERIOD);
    }
}

#[test]
fn with_interrupts_off_holding_and_spinning_are_charged_to_nobody() {
    let d = holders_and_spinners(true);
    for (task, v) in d.tasks.iter().zip(&d.vcpus) {
        // Each section of 10 ms hides ten ticks, of which the vCPU takes one at its end. Another tick may
        // come in the time outside. The first and the last section are cut.
        assert!((task.items..=2 * task.items + 2).contains(&v.ticks), "{task:?} {v:?}");
        // One section in 20 ms gives 50 items, and at most 100 ticks of the 1000 that passed.
        assert!((48..=51).contains(&task.items), "{task:?}");
        assert!(task.user_ticks + task.system_ticks <= SEC / 10 + 2 * PERIOD);
        // Yet the host sees that the vCPU ran all the time, and spun for half of it.
        near(v.running, SEC, MS);
        near(v.spinning, SEC / 2, 20 * MS);
    }
}

#[test]
fn a_tickless_kernel_charges_nothing() {
    let mut guest = domain(1, "ticket", lock_loop(10 * US, 10 * US));
    guest.kernel.hz = 0;
    let outcome = run(&scenario(host(1, "null"), vec![guest], 100 * MS), 1);
    let d = &outcome.domains[0];
    let charged = d.tasks[0].user_ticks + d.tasks[0].system_ticks;
    assert_eq!((d.vcpus[0].ticks, charged), (0, Picos::ZERO));
    assert!(d.tasks[0].items > 4_000, "20 us an item on average: {:?}", d.tasks[0]);
}

#[test]
fn an_idle_vcpu_takes_no_ticks() {
    let work = LockLoop { threads: 1, ..lock_loop(10 * US, 10 * US) };
    let guest = domain(2, "ticket", work);
    let outcome = run(&scenario(host(2, "null"), vec![guest], SEC), 1);
    let [busy, idle] = &outcome.domains[0].vcpus[..] else { panic!("two vCPUs") };
    assert!((998..=1000).contains(&busy.ticks), "{busy:?}");
    // `NO_HZ`: at most the tick that was programmed while the vCPU booted.
    assert!(idle.ticks <= 1, "{idle:?}");
}
