//! The guest's own scheduler, and the costs of migration and of a shared core.

use crate::common::{domain, hog, host, near, run, scenario, tickless, traced};
use overspin_host::Moment;
use overspin_scenario::{
    Domain, Ending, Host, Kernel, MS, NewProcess, Outcome, Picos, SEC, US, Workloads,
};
use overspin_workload::{BurnWait, Kernbench};

fn burn_wait(threads: u32, burn: Picos, wait: Picos, count: u64) -> Workloads {
    Workloads::from(BurnWait { threads, burn, wait, count, ..BurnWait::default() })
}

#[test]
fn tasks_of_one_vcpu_share_it_to_within_a_slice() {
    let guest = domain(1, "ticket", burn_wait(3, MS, Picos::ZERO, 0));
    let slice = guest.kernel.slice;
    let outcome = run(&scenario(host(1, "null"), vec![guest], 3 * SEC), 1);
    let cpu: Vec<Picos> = outcome.domains[0].tasks.iter().map(|t| t.cpu).collect();
    // A tick preempts a task that is more than a slice ahead of the first waiting task. It does so up to
    // a period of 1 ms late, and a fraction of that goes to the tick and the switch.
    for task in &cpu {
        near(*task, cpu.iter().sum::<Picos>() / 3, slice + 2 * MS);
    }
    let preemptions: u64 = outcome.domains[0].tasks.iter().map(|t| t.preemptions).sum();
    // A task that starts level with one of the others runs for a slice; a task that starts a slice
    // behind both runs for two. The two cases alternate, and each slice takes up to a tick more. So a
    // turn takes one and a half slices of 15 to 16 ms on average: 22.5 to 24 ms.
    assert!((3000 / 24..=3000 * 10 / 225 + 1).contains(&preemptions), "{preemptions}");
}

#[test]
fn an_idle_vcpu_pulls_a_task_that_waits_elsewhere() {
    // Three tasks of 100 ms, two of them on the first vCPU. The task on the second vCPU ends after
    // 100 ms, and that vCPU pulls one of the others. Each has 50 ms left then, give or take half a slice.
    let guest = domain(2, "ticket", burn_wait(3, MS, Picos::ZERO, 100));
    let outcome = run(&scenario(host(2, "null"), vec![guest], SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    assert!((150 * MS..160 * MS).contains(&outcome.elapsed), "{}", outcome.elapsed);
}

#[test]
fn a_moved_vcpu_loses_the_work_of_its_cold_caches() {
    let mut host = host(2, "rr");
    host.costs.migration = 3 * MS;
    let guests = vec![tickless(1, "ticket", hog()); 3];
    let outcome = run(&scenario(host, guests, SEC), 1);
    let (mut running, mut items, mut moves, mut dispatches) = (Picos::ZERO, 0, 0, 0);
    for d in &outcome.domains {
        running += d.vcpus[0].running;
        items += d.tasks[0].items;
        moves += d.vcpus[0].migrations;
        dispatches += d.vcpus[0].dispatches;
    }
    // Three vCPUs take turns of 10 ms on two pCPUs, each time on the free pCPU: 200 turns.
    assert!(moves > 50, "{moves}");
    // Time on a pCPU consists of items of 1 ms, switches of 2 us, and the costs of migrations. Each vCPU's
    // last item and last migration may be incomplete.
    near(running, items * MS + dispatches * 2 * US + moves * 3 * MS, 3 * (MS + 3 * MS));
}

/// Three vCPUs take turns of 10 ms on one pCPU. When one returns, the two others have run for 20 ms, switches
/// included: a thousandth of that is 20 us.
#[test]
fn a_vcpu_that_returns_loses_the_work_that_others_displaced() {
    let lost = |permille, migration| {
        let mut host = Host { rewarm_permille: permille, ..host(1, "rr") };
        host.costs.migration = migration;
        let guests = vec![tickless(1, "ticket", hog()); 3];
        let outcome = run(&scenario(host, guests, 3 * SEC), 1);
        let running: Picos = outcome.domains.iter().map(|d| d.vcpus[0].running).sum();
        let items: u64 = outcome.domains.iter().map(|d| d.tasks[0].items).sum();
        let dispatches: u64 = outcome.domains.iter().map(|d| d.vcpus[0].dispatches).sum();
        assert!((290..=301).contains(&dispatches), "{dispatches}");
        // Each vCPU's last item is incomplete.
        (running - items * MS - dispatches * 2 * US, 3 * MS)
    };
    let compare = |(lost, error), expected| near(lost, expected, error);
    compare(lost(0, 50 * US), Picos::ZERO);
    compare(lost(500, MS), 297 * MS);
    compare(lost(50, 10 * MS), 297 * MS);
}

#[test]
fn a_sibling_that_comes_and_goes_slows_only_while_it_is_there() {
    // One vCPU computes for 100 ms in one piece. The other computes for 10 ms, which takes 20 ms at half
    // speed, and sleeps for 10 ms. So the first does 20 ms of work in each 30 ms, and takes five rounds.
    let host = Host { cores: 1, threads: 2, smt_permille: 500, ..host(1, "null") };
    let guests = vec![
        tickless(1, "ticket", burn_wait(1, 100 * MS, Picos::ZERO, 1)),
        tickless(1, "ticket", burn_wait(1, 10 * MS, 10 * MS, 0)),
    ];
    let outcome = run(&scenario(host, guests, SEC), 1);
    // Each round has two vCPU switches and the kernel's work for a sleep, some 10 us.
    near(outcome.elapsed, 150 * MS, 150 * US);
}

/// A compile whose times are far below a slice, so that no tick preempts: what does is a fork or an exec.
fn short_compile(vcpus: u32, units: u32, new_process: NewProcess) -> Domain {
    let guest = domain(
        vcpus,
        "ticket",
        Workloads::from(Kernbench {
            jobs: 1,
            units,
            user: MS,
            system: 200 * US,
            pipe_sleeps: 1,
            locks: Vec::new(),
        }),
    );
    Domain { kernel: Kernel { new_process, ..guest.kernel }, ..guest }
}

/// How often a new task came in place of `make`, of all drivers, of all compilers and assemblers.
fn preemptions(outcome: &Outcome) -> [u64; 3] {
    let of = |names: &[&str]| {
        let tasks = outcome.domains[0].tasks.iter();
        tasks
            .filter(|t| names.iter().any(|n| t.name.starts_with(n)))
            .map(|t| t.preemptions)
            .sum::<u64>()
    };
    [of(&["make"]), of(&["gcc"]), of(&["cc1", "as"])]
}

/// With one vCPU nothing moves. Each child preempts its parent: a driver preempts `make`, its two children preempt it.
#[test]
fn a_new_process_preempts_its_parent() {
    let units = 20;
    for (new_process, expected) in
        [(NewProcess::Balanced, [0, 0, 0]), (NewProcess::Linux2626, [20, 40, 0])]
    {
        let guest = short_compile(1, units, new_process);
        let outcome = run(&scenario(host(1, "null"), vec![guest], SEC), 1);
        assert_eq!(outcome.ending, Ending::Finished);
        assert_eq!(preemptions(&outcome), expected, "{new_process:?}");
        let items: u64 = outcome.domains[0].tasks.iter().map(|t| t.items).sum();
        assert_eq!(items, 3 * u64::from(units));
    }
}

/// With several vCPUs each process also moves, and is preempted for that, because its parent waits on the vCPU where it begins.
/// Whether it moves or not, all work is done, and each run-queue lock that is taken is given back.
#[test]
fn a_process_that_executes_a_program_moves_away_from_its_parent() {
    for vcpus in [2, 4] {
        let guest = short_compile(vcpus, 20, NewProcess::Linux2626);
        let outcome = run(&scenario(host(vcpus, "null"), vec![guest], SEC), 1);
        assert_eq!(outcome.ending, Ending::Finished);
        assert_eq!(preemptions(&outcome), [20, 60, 40], "{vcpus}");
    }
}

/// Two vCPUs take turns on one pCPU. A process that moves to the idle vCPU waits there for that vCPU's turn. Its old vCPU soon
/// idles, and leaves it there.
#[test]
fn an_idle_vcpu_leaves_a_single_task_to_its_own_vcpu() {
    let guest = short_compile(2, 20, NewProcess::Linux2626);
    let (_, trace) = traced(&scenario(host(1, "rr"), vec![guest], SEC), 1);
    // Task 0 is `make`; each unit has three, the first of which is the driver. The second vCPU comes up after some units.
    for driver in (0..20).skip(10).map(|unit| 1 + 3 * unit) {
        let mut vcpus = trace.iter().filter_map(|(_, moment)| match *moment {
            Moment::Task { vcpu, task: Some(task) } if task == driver => Some(vcpu),
            _ => None,
        });
        assert_eq!([vcpus.next(), vcpus.next()], [Some(0), Some(1)], "{driver}");
    }
}

/// Of the time that a task slept through, a kernel of 2008 owes it four slices at most (`SLEEPER_SLICES`).
///
/// Both have half of the vCPU: the task's 500 ms take a second. Then it sleeps for a second. Its next 500 ms take a second
/// again, less the four slices.
#[test]
fn a_long_sleep_earns_a_task_four_slices() {
    let mut both = burn_wait(1, 500 * MS, SEC, 2);
    both.0.extend(hog().0);
    let guest = domain(1, "ticket", both);
    let slices = 4 * guest.kernel.slice;
    let outcome = run(&scenario(host(1, "null"), vec![guest], 10 * SEC), 1);
    // The second sleep follows the last item.
    near(outcome.elapsed, 4 * SEC - slices, slices);
}
