//! Guests that preempt: locks that programs take, with more threads than vCPUs, and preemptible kernels.

use crate::attribution::check_outcome;
use crate::common::{domain, host, lock_loop, run, scenario, traced};
use crate::conservation::{check_locks, check_times};
use overspin_scenario::{
    Cause, Domain, Ending, GuestScheduler, Kernel, MS, NS, Picos, Preemption, SEC, Scenario, US,
    Workloads,
};
use overspin_workload::{BurnWait, Distribution, LockLoop, Mode, Ping, Replay};

/// Eight threads of a program on two vCPUs with a pCPU each.
fn program(lock: &str, scheduler: GuestScheduler) -> Scenario {
    let work =
        LockLoop { threads: 8, mode: Mode::User, irqs_off: false, ..lock_loop(5 * US, 20 * US) };
    let kernel = Kernel { hz: 250, scheduler, ..Kernel::default() };
    let guest = Domain { kernel, ..domain(2, lock, work) };
    scenario(host(2, "eevdf"), vec![guest], 2 * SEC)
}

/// Acquisitions in a second.
fn rate(scenario: &Scenario) -> u64 {
    run(scenario, 1).domains[0].locks[0].acquisitions / 2
}

/// The order of magnitude of real threads on two CPUs of Linux 6.18, measured beside this model (docs/simulator.md): first
/// come, first served collapses, since the next in line has no vCPU; a mutex does not.
#[test]
fn a_programs_fair_spinlock_collapses_and_its_mutex_does_not() {
    for scheduler in GuestScheduler::ALL {
        let fair = rate(&program("ticket", scheduler));
        let mutex = rate(&program("mutex", scheduler));
        assert!(fair < 5_000 && mutex > 60_000, "{scheduler:?}: {fair} and {mutex} a second");
    }
    // In the guest's kernel the same threads cannot be preempted while they wait or hold.
    let mut of_kernel = program("ticket", GuestScheduler::Cfs2008);
    of_kernel.domains[0].workload.0[0].edit(|w: &mut LockLoop| w.mode = Mode::Kernel);
    assert!(rate(&of_kernel) > 60_000);
}

/// Queue locks have records for each thread, many more than vCPUs.
#[test]
fn the_memory_has_room_for_the_records_of_all_threads() {
    for lock in ["mcs", "clh", "cna", "hemlock", "malthusian"] {
        let mut program = program(lock, GuestScheduler::Eevdf);
        program.limit = 2 * MS;
        program.domains[0].workload.0[0].edit(|w: &mut LockLoop| w.threads = 2048);
        assert!(run(&program, 1).domains[0].locks[0].acquisitions > 0, "{lock}");
    }
}

/// Two threads on one vCPU that never leaves its pCPU, with a section of 3 ms and ticks every ms: the holder loses the vCPU
/// to the other thread, which spins until its turn is over. So all of the wait is for the guest, and none for the host.
#[test]
fn the_guest_is_named_as_the_cause() {
    for scheduler in GuestScheduler::ALL {
        let work = LockLoop {
            threads: 2,
            fixed: true,
            mode: Mode::User,
            irqs_off: false,
            ..lock_loop(30 * MS, Picos::ZERO)
        };
        let kernel = Kernel { hz: 1000, scheduler, slice: MS, ..Kernel::default() };
        let guest = Domain { kernel, ..domain(1, "ticket", work) };
        let scenario = scenario(host(1, "null"), vec![guest], 2 * SEC);
        let (outcome, trace) = traced(&scenario, 1);
        check_locks(&scenario, &outcome, &trace);
        check_outcome(&scenario, &outcome);
        let lock = &outcome.domains[0].locks[0];
        let of = |cause| lock.wait_causes.of(cause).ratio(lock.wait_total);
        // The waiter is absent while the holder runs, and the holder while the waiter spins.
        let (guest, own) = (of(Cause::HolderPreemptedByGuest), of(Cause::OwnPreemption));
        assert!(guest > 0.3 && own > 0.3 && guest + own > 0.95, "{:?}", lock.wait_causes);
        assert_eq!(of(Cause::HolderPreempted) + of(Cause::NextPreempted), 0.0);
        assert!(outcome.worst_waits.iter().all(|w| w.of_tasks));
    }
}

/// A host that takes the pCPU of a lone holder is not the guest.
#[test]
fn the_host_is_named_as_the_cause() {
    let work = LockLoop { mode: Mode::User, irqs_off: false, ..lock_loop(5 * US, 5 * US) };
    let guest = domain(2, "ticket", work);
    let hog = domain(1, "ticket", crate::common::hog());
    let scenario = scenario(host(2, "eevdf"), vec![guest, hog], SEC);
    let (outcome, trace) = traced(&scenario, 1);
    check_locks(&scenario, &outcome, &trace);
    check_outcome(&scenario, &outcome);
    let causes = &outcome.domains[0].locks[0].wait_causes;
    assert_eq!(causes.holder_preempted_by_guest + causes.next_preempted_by_guest, Picos::ZERO);
    assert!(causes.holder_preempted + causes.next_preempted > Picos::ZERO);
}

#[test]
fn spinning_tasks_need_ticks() {
    let mut scenario = program("ticket", GuestScheduler::Eevdf);
    scenario.domains[0].kernel.hz = 0;
    let refused = overspin_sim::check(&scenario).unwrap_err().to_string();
    assert!(
        refused.contains("`kernel.hz`") && refused.contains("8 tasks for 2 vCPUs"),
        "{refused}"
    );
}

/// Every lock works in user mode, whatever the kernel preempts and wherever, and no thread is lost.
#[test]
fn every_lock_serves_a_program() {
    for lock in overspin_locks::infos() {
        for (i, preemption) in Preemption::ALL.into_iter().enumerate() {
            let scheduler = GuestScheduler::ALL[i % 3];
            let work = LockLoop {
                threads: 5,
                mode: Mode::User,
                irqs_off: false,
                count: 50,
                ..lock_loop(20 * US, 20 * US)
            };
            let kernel = Kernel { scheduler, preemption, ..Kernel::default() };
            let guest = Domain { kernel, ..domain(2, lock.name, work) };
            let scenario = scenario(host(2, "eevdf"), vec![guest], 60 * SEC);
            let (outcome, trace) = traced(&scenario, 1);
            assert_eq!(outcome.ending, Ending::Finished, "{}", lock.name);
            check_times(&outcome);
            check_locks(&scenario, &outcome, &trace);
            check_outcome(&scenario, &outcome);
            let d = &outcome.domains[0];
            assert!(d.tasks.iter().all(|t| t.items == 50), "{}", lock.name);
        }
    }
}

/// A handler interrupts a waiter of a program's lock. It takes and releases a run queue's lock, whose releaser looks whether
/// another vCPU takes over: that is no wait for the program's lock. Without that rule this seed panicked.
#[test]
fn a_release_above_a_waiter_is_no_wait_for_its_lock() {
    let mut program = program("mutexee", GuestScheduler::Eevdf618);
    program.limit = SEC;
    program.domains[0].kernel.hz = 1000;
    program.domains[0].workload.0[0].edit(|w: &mut LockLoop| {
        (w.section, w.outside) = (100 * NS, 200 * NS);
    });
    check_times(&run(&program, 1));
}

/// A thread that works for 10 us every ms, beside one that is in its kernel for 20 of 40 ms. Without preemption it waits for
/// the end of that work; with `lazy`, for the next tick.
#[test]
fn a_preemptible_kernel_answers_within_a_tick() {
    let items = |preemption: Preemption| {
        let ping = Ping { rate: 25, resolution: Picos::ZERO, round_trip: MS, work: 20 * MS };
        let sleeper = BurnWait {
            threads: 1,
            burn: 10 * US,
            wait: MS,
            burn_distribution: Distribution::Fixed,
            wait_distribution: Distribution::Fixed,
            ..BurnWait::default()
        };
        let both = Workloads(vec![ping.into(), sleeper.into()]);
        let kernel = Kernel { preemption, wakeup_granularity: Picos::ZERO, ..Kernel::default() };
        let guest = Domain { kernel, ..domain(1, "ticket", both) };
        let outcome = run(&scenario(host(1, "null"), vec![guest], SEC), 1);
        let thread = outcome.domains[0].tasks.iter().find(|t| t.name.contains("burn")).unwrap();
        thread.items
    };
    let [none, voluntary, lazy, full] = Preemption::ALL.map(items);
    // Half of the time there is nothing to wait for: 490 items. In the other half it wakes in vain, once a tick late
    // (240 items), or at once (490).
    assert!((480..540).contains(&none) && (480..540).contains(&voluntary), "{none} {voluntary}");
    assert!((650..800).contains(&lazy), "{lazy}");
    assert!(full > 950, "{full}");
}

/// Two tasks on one vCPU: one holds a lock for 30 ms, the other wants it. A kernel's holder goes on to its end; a program's
/// shares the vCPU with the waiter, which spins.
#[test]
fn a_recorded_holder_is_preempted_if_its_lock_is_a_programs() {
    let tasks = ["a: hold x 30ms", "b: run 1ms, hold x 1ms"].map(str::to_owned).into();
    let replay = Replay { tasks, mode: Mode::Kernel };
    let finish = |mode: Mode| {
        let kernel = Kernel { hz: 250, scheduler: GuestScheduler::Eevdf, ..Kernel::default() };
        let guest = Domain {
            kernel,
            ..domain(1, "ticket", Workloads::from(Replay { mode, ..replay.clone() }))
        };
        let outcome = run(&scenario(host(1, "eevdf"), vec![guest], SEC), 1);
        let causes = outcome.domains[0].locks[0].wait_causes;
        (outcome.domains[0].finished.unwrap(), causes.holder_preempted_by_guest)
    };
    let (kernel, user) = (finish(Mode::Kernel), finish(Mode::User));
    assert!(kernel.0 < 35 * MS && kernel.1 == Picos::ZERO, "{kernel:?}");
    assert!(user.0 > 45 * MS && user.1 > 15 * MS, "{user:?}");
}
