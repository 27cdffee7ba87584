//! Options of the host: pause-loop exits, directed yields, halt polling; and the guest's `nopvspin`.

use crate::common::{crowd, domain, hog, host, lock_loop, near, run, scenario, tickless};
use overspin_scenario::{
    Costs, DirectedYieldRules, Domain, GuestType, HaltPolling, Host, MS, NS, Outcome,
    PauseLoopExiting, Picos, SEC, Scenario, US,
};
use overspin_workload::{Again, BenchItem, BurnWait, Distribution, LockLoop, Schedbench};

fn exiting() -> Option<PauseLoopExiting> {
    Some(PauseLoopExiting::default())
}

/// Four vCPUs on two pCPUs that want one ticket lock all the time. Every other time the next in line is
/// descheduled, and the running vCPUs spin for the lock.
fn queue_on(host: Host) -> Scenario {
    let work = LockLoop { fixed: true, ..lock_loop(20 * US, 20 * US) };
    scenario(host, vec![tickless(4, "ticket", work)], 2 * SEC)
}

fn sections(outcome: &Outcome) -> u64 {
    outcome.domains[0].locks[0].acquisitions
}

fn spinning(outcome: &Outcome) -> Picos {
    outcome.domains[0].vcpus.iter().map(|v| v.spinning).sum()
}

fn exits(outcome: &Outcome) -> u64 {
    outcome.domains[0].vcpus.iter().map(|v| v.spin_exits).sum()
}

#[test]
fn pause_loop_exits_save_the_time_lost_to_a_descheduled_ticket_holder() {
    // Not `credit-2013`: its rate limit keeps even a vCPU that yields on its pCPU for 1 ms.
    for scheduler in ["credit", "credit2", "rr", "cfs", "eevdf", "eevdf-6.18"] {
        let without = run(&queue_on(host(2, scheduler)), 1);
        let options = Host { pause_loop_exiting: exiting(), ..host(2, scheduler) };
        let with = run(&queue_on(options), 1);
        assert_eq!(exits(&without), 0);
        assert!(exits(&with) > 1000, "{scheduler}: {} exits", exits(&with));
        // Every second time the next in line is descheduled. Without exits it waits until the slice of
        // a spinner is over, at least the 1 ms of `cfs`, so there are at most four sections in 1 ms.
        // With exits it waits for a few exits and switches of 2.5 us each: even ten of them and the
        // section of 20 us make 22 sections in 1 ms.
        let (slow, fast) = (sections(&without), sections(&with));
        assert!(slow < 4 * 2000, "{scheduler}: {slow} sections");
        assert!(fast > 22 * 2000, "{scheduler}: {fast} sections");
        assert!(2 * spinning(&with) < spinning(&without), "{scheduler}");
    }
}

/// Only hardware-virtualised guests exit. On a host with both, the paravirtual one spins as on a host without exits.
#[test]
fn only_hardware_guests_exit_in_pause_loops() {
    let of = |types: [GuestType; 2], exiting: Option<PauseLoopExiting>| {
        let work = LockLoop { fixed: true, ..lock_loop(20 * US, 20 * US) };
        let domain = |(guest_type, name): (GuestType, &str)| Domain {
            name: name.into(),
            guest_type: Some(guest_type),
            ..tickless(4, "ticket", work.clone())
        };
        let domains = types.into_iter().zip(["first", "second"]).map(domain).collect();
        scenario(Host { pause_loop_exiting: exiting, ..host(2, "credit2") }, domains, SEC)
    };
    let exits = |outcome: &Outcome, domain: usize| -> u64 {
        outcome.domains[domain].vcpus.iter().map(|v| v.spin_exits).sum()
    };
    let mixed = run(&of([GuestType::Pv, GuestType::Hvm], exiting()), 1);
    assert_eq!(exits(&mixed, 0), 0);
    assert!(exits(&mixed, 1) > 500, "{}", exits(&mixed, 1));
    // Without exits the type changes nothing.
    let hash = |types| run(&of(types, None), 1).trace_hash;
    assert_eq!(hash([GuestType::Pv; 2]), hash([GuestType::Hvm; 2]));
    // Exits that no guest could have, and guests that no hypervisor has, are refused, with the remedy.
    let refused = |scenario: &Scenario| overspin_sim::run(scenario, 1).unwrap_err().to_string();
    let none = refused(&of([GuestType::Pv; 2], exiting()));
    assert!(none.contains("`first`") && none.contains("\"hvm\""), "{none}");
    let mut kvm = of([GuestType::Hvm, GuestType::Pv], None);
    kvm.host.scheduler = "eevdf".into();
    let no_pv = refused(&kvm);
    assert!(no_pv.contains("`second`") && no_pv.contains("scheduler of Xen"), "{no_pv}");
}

/// Hogs of another domain want the pCPUs as well. A plain yield runs the next vCPU, and happens even if
/// the holder runs. A directed yield goes to a sibling, and only if a sibling waits. (`eevdf` ignores the
/// target, but under it, too, no vCPU yields without need, and each yield there moves a deadline away.)
#[test]
fn a_directed_yield_helps_the_holder_where_a_plain_one_helps_anybody() {
    for scheduler in ["cfs", "eevdf"] {
        a_directed_yield_is_better_under(scheduler);
    }
}

fn a_directed_yield_is_better_under(scheduler: &str) {
    let beside_hogs = |directed_yield| {
        let options = Host { pause_loop_exiting: exiting(), directed_yield, ..host(2, scheduler) };
        let mut scenario = queue_on(options);
        scenario.domains.push(domain(4, "ticket", hog()));
        run(&scenario, 1)
    };
    let (plain, directed) = (beside_hogs(false), beside_hogs(true));
    let (slow, fast) = (sections(&plain), sections(&directed));
    assert!(10 * fast > 11 * slow, "{scheduler}: {slow} to {fast} sections");
    let (many, few) = (exits(&plain), exits(&directed));
    assert!(0 < few && 3 * few < 2 * many, "{scheduler}: {many} to {few} exits");
}

/// `rr` has no directed yields. The host makes a plain one instead if there is a candidate.
#[test]
fn a_scheduler_without_directed_yields_gets_plain_ones() {
    let with = |directed_yield| {
        let options = Host { pause_loop_exiting: exiting(), directed_yield, ..host(2, "rr") };
        sections(&run(&queue_on(options), 1))
    };
    assert_eq!(with(false), with(true), "four vCPUs on two pCPUs: there is always a candidate");
}

/// A busy sibling thread slows the work of an exit, but not the picosecond after it in which the scheduling pass of
/// its yield comes: none is lost where time is converted to work.
#[test]
fn a_pass_comes_before_the_next_instruction_beside_a_busy_sibling_too() {
    let ple = PauseLoopExiting { grow: 2, max: 2 * SEC, ..PauseLoopExiting::default() };
    let core = Host { cores: 1, threads: 2, smt_permille: 661, ..host(1, "null") };
    let options = Host { pause_loop_exiting: Some(ple), ..core };
    let work = LockLoop { fixed: true, count: 1, ..lock_loop(SEC, Picos::ZERO) };
    let outcome = run(&scenario(options, vec![tickless(2, "ticket", work)], 3 * SEC), 1);
    let exit = Picos(Costs::default().pause_loop_exit.0 * 1000 / 661 + 1);
    let exiting: Picos = outcome.domains[0].vcpus.iter().map(|v| v.exiting).sum();
    assert!(exits(&outcome) > 10);
    assert_eq!(exiting, exits(&outcome) * exit);
}

/// One vCPU holds the lock for 1 s; the other spins for it on a pCPU of its own. It is never dispatched
/// anew, so its window grows: exits come after 2.048 us, then after twice that, and so on. The last exit
/// within the second is number k with 2.048 us (2^k - 1) <= 1 s: k = 18.
#[test]
fn windows_double_at_each_exit() {
    let exits_with = |grow, max| {
        let ple = PauseLoopExiting { grow, max, ..PauseLoopExiting::default() };
        let options = Host { pause_loop_exiting: Some(ple), ..host(2, "null") };
        let work = LockLoop { fixed: true, count: 1, ..lock_loop(SEC, Picos::ZERO) };
        let guest = tickless(2, "ticket", work);
        exits(&run(&scenario(options, vec![guest], 3 * SEC), 1))
    };
    assert_eq!(exits_with(2, 2 * SEC), 18);
    // Constant windows: each exit comes after 2.048 us and takes 0.62 us itself.
    let constant = exits_with(1, 2 * SEC);
    let expected = SEC / (2048 * NS + 620 * NS);
    assert!(constant.abs_diff(expected) <= expected / 1000, "{constant} for {expected}");
    // Windows of at most 1 ms: after 9 exits the window is that long, and 1.05 ms have passed.
    let bounded = exits_with(2, MS);
    assert!((1005..=1009).contains(&bounded), "{bounded}");
}

/// Guests that do not run in step: two with a lock each, on as many pCPUs as one of them has vCPUs, and a
/// third that wakes at random.
fn out_of_step(ple: PauseLoopExiting, costs: Costs) -> Scenario {
    let options =
        Host { pause_loop_exiting: Some(ple), directed_yield: true, costs, ..host(4, "cfs") };
    let guest = || tickless(4, "ticket", lock_loop(5 * US, 20 * US));
    let noise = BurnWait {
        threads: 1,
        burn: 50 * US,
        burn_distribution: Distribution::Exponential,
        wait: 5 * MS,
        wait_distribution: Distribution::Exponential,
        ..BurnWait::default()
    };
    let noise = tickless(1, "ticket", noise);
    scenario(options, vec![guest(), guest(), noise], 200 * MS)
}

fn totals(outcome: &Outcome) -> (u64, u64, Picos) {
    let vcpus = || outcome.domains.iter().flat_map(|d| &d.vcpus);
    (
        vcpus().map(|v| v.spin_exits).sum(),
        vcpus().map(|v| v.directed_yields).sum(),
        vcpus().map(|v| v.exiting).sum(),
    )
}

/// A vCPU that spins on a pCPU of its own finds no vCPU to yield to. So each exit takes its cost, and the host's reads of
/// the siblings' states.
#[test]
fn an_exit_costs_what_the_host_says() {
    let ple = PauseLoopExiting { grow: 1, ..PauseLoopExiting::default() };
    let costs = Costs { pause_loop_exit: 900 * NS, ..Costs::default() };
    let options =
        Host { pause_loop_exiting: Some(ple), directed_yield: true, costs, ..host(4, "cfs") };
    let work = LockLoop { fixed: true, ..lock_loop(50 * US, Picos::ZERO) };
    let guest = tickless(4, "ticket", work);
    let outcome = run(&scenario(options, vec![guest], 20 * MS), 1);
    let (exits, directed, exiting) = totals(&outcome);
    // Three of four vCPUs spin all the time, with an exit every 2.948 us. The hand-over cuts short one exit
    // in 17.
    assert!(exits > 3 * 20 * MS / (2948 * NS) * 15 / 17, "{exits} exits");
    assert_eq!(directed, 0);
    // The end of the run cuts short at most three exits. The host also reads the states of three siblings, each a transfer
    // from another core, for which another spinner's read may come first.
    let scan = 3 * 2 * 60 * NS;
    let (least, most) = ((exits - 3) * 900 * NS, exits * (900 * NS + scan));
    assert!(least <= exiting && exiting <= most, "{least} {exiting} {most}");
    let spinning = spinning(&outcome);
    let running: Picos = outcome.domains[0].vcpus.iter().map(|v| v.running).sum();
    assert!(spinning + exiting <= running, "time in the host does not count as spinning");
}

/// A directed yield locks two run queues. It costs at least the exit and `yield_to`; contention comes on
/// top.
#[test]
fn a_directed_yield_waits_for_the_locks_of_two_run_queues() {
    for rules in DirectedYieldRules::ALL {
        let ple = PauseLoopExiting { rules, grow: 1, ..PauseLoopExiting::default() };
        let costs = Costs { yield_to: US, ..Costs::default() };
        let outcome = run(&out_of_step(ple, costs), 1);
        let (exits, directed, exiting) = totals(&outcome);
        assert!(directed > 0 && directed <= exits, "{rules:?}: {directed} of {exits}");
        // Exits under way at the end are counted, but their time is not: at most one for each vCPU.
        let least = (exits - 8) * 620 * NS + directed * US;
        assert!(exiting > least, "{rules:?}: {exiting} of {least} at least");
    }
}

/// A vCPU that has yielded stays in its exit until it runs again. If the simulator forgot that when the vCPU
/// leaves its pCPU, no candidate would ever be passed over, and the rules of 2011 and 2012 would boost
/// the same vCPUs.
#[test]
fn spinners_off_their_pcpu_are_passed_over() {
    let by = |rules| {
        let ple = PauseLoopExiting { rules, grow: 1, ..PauseLoopExiting::default() };
        run(&out_of_step(ple, Costs::default()), 1)
    };
    let (any, eligible) = (by(DirectedYieldRules::Y2011), by(DirectedYieldRules::Y2012));
    assert_ne!(any.trace_hash, eligible.trace_hash);
    let per_exit = |o: &Outcome| 1000 * totals(o).1 / totals(o).0;
    assert!(per_exit(&any) > per_exit(&eligible), "{any:?} {eligible:?}");
}

#[test]
fn runs_with_directed_yields_are_deterministic_and_cause_no_storm() {
    for rules in DirectedYieldRules::ALL {
        for yield_to in [Picos::ZERO, 500 * NS, 20 * US] {
            let ple = PauseLoopExiting { rules, ..PauseLoopExiting::default() };
            let s = out_of_step(ple, Costs { yield_to, ..Costs::default() });
            let outcome = run(&s, 7);
            assert_eq!(outcome, run(&s, 7), "{rules:?}");
            let exits = totals(&outcome).0;
            let vcpus = || outcome.domains.iter().flat_map(|d| &d.vcpus);
            let dispatches: u64 = vcpus().map(|v| v.dispatches).sum();
            let sections: u64 = outcome.domains.iter().map(|d| d.locks[0].acquisitions).sum();
            // Events of an exit: itself, two for each of three siblings that it tries, two for its end,
            // and a pass on two pCPUs that may be put off. Events of a dispatch: a pass, a switch, and
            // an operation that goes on. Events of a section: its own operations, and looks at the
            // lock by each of three waiters. The rest are timers.
            let most = 12 * exits + 8 * dispatches + 20 * sections + 10_000;
            assert!(outcome.events < most, "{rules:?}: {} events, {exits} exits", outcome.events);
        }
    }
}

/// A host with directed yields whose interrupts take `cost`, and one vCPU that computes alone on its pCPU.
fn ticked(cost: Picos, directed_yield: bool) -> Outcome {
    let costs = Costs { host_interrupt: cost, ..Costs::default() };
    let options = Host { pause_loop_exiting: exiting(), directed_yield, costs, ..host(1, "cfs") };
    run(&scenario(options, vec![tickless(1, "ticket", hog())], SEC), 1)
}

/// The host's tick comes every 4 ms, and switches nothing.
#[test]
fn a_tick_of_the_host_takes_a_running_vcpu_out_of_its_guest() {
    let outcome = ticked(20 * US, true);
    let vcpu = &outcome.domains[0].vcpus[0];
    near(vcpu.interrupted, 250 * 20 * US, 20 * US);
    // What is left of its time is work, in items of 1 ms; the last is incomplete.
    near(vcpu.running - vcpu.interrupted, outcome.domains[0].tasks[0].items * MS, MS);
    assert_eq!(ticked(20 * US, false).domains[0].vcpus[0].interrupted, Picos::ZERO);
}

/// A spinner is not spinning while the host handles an interrupt on its pCPU, and begins a new pause loop after it.
#[test]
fn interrupts_of_the_host_are_no_time_of_spinning() {
    let of = |host_interrupt| {
        let ple = PauseLoopExiting { window: MS / 2, grow: 1, ..PauseLoopExiting::default() };
        let costs = Costs { host_interrupt, ..Costs::default() };
        let options =
            Host { pause_loop_exiting: Some(ple), directed_yield: true, costs, ..host(4, "cfs") };
        let work = LockLoop { fixed: true, ..lock_loop(100 * MS, Picos::ZERO) };
        run(&scenario(options, vec![tickless(4, "ticket", work)], 400 * MS), 1)
    };
    for cost in [620 * NS, 100 * US] {
        let outcome = of(cost);
        let sum = |part: fn(&overspin_scenario::VcpuOutcome) -> Picos| -> Picos {
            outcome.domains[0].vcpus.iter().map(part).sum()
        };
        let (running, interrupted) = (sum(|v| v.running), sum(|v| v.interrupted));
        // Four pCPUs, a tick for each every 4 ms. The ticks of spinners that are in an exit cost nothing.
        assert!(interrupted > 380 * cost && interrupted <= 400 * cost, "{interrupted}");
        assert!(sum(|v| v.spinning) + sum(|v| v.exiting) + interrupted <= running);
        // Each tick ends the loop of three spinners: seven exits between two ticks, where eight halves of a millisecond
        // and their exits do not fit.
        let exits = totals(&outcome).0;
        assert!((2050..=2150).contains(&exits), "{exits} exits");
    }
}

/// Without pause-loop exits their costs have no effect, even if directed yields are on.
#[test]
fn costs_of_exits_change_nothing_without_exits() {
    for scheduler in ["credit", "cfs"] {
        let with = |pause_loop_exit, yield_to| {
            let costs = Costs { pause_loop_exit, yield_to, ..Costs::default() };
            let options = Host { directed_yield: true, costs, ..host(2, scheduler) };
            run(&queue_on(options), 1)
        };
        assert_eq!(with(620 * NS, 500 * NS), with(MS, Picos::ZERO), "{scheduler}");
    }
}

#[test]
fn slow_pauses_are_no_loop() {
    let costs = Costs { spin_iteration: 65 * NS, ..Costs::default() };
    let options = Host { pause_loop_exiting: exiting(), costs, ..host(2, "credit") };
    assert_eq!(exits(&run(&queue_on(options), 1)), 0);
}

/// The hardware sees every kind of wait loop, even one that looks at its lock between pauses.
#[test]
fn locks_that_pause_between_looks_exit_too() {
    for lock in ["ticket", "lock-byte", "mcs", "ticket-backoff", "ttas", "mcs-tp"] {
        let options = Host { pause_loop_exiting: exiting(), ..host(2, "credit") };
        let mut scenario = queue_on(options);
        scenario.domains[0].lock = lock.into();
        scenario.limit = 200 * MS;
        assert!(exits(&run(&scenario, 1)) > 0, "{lock}");
    }
}

/// A task that sleeps for `wait` after each 100 us of work, alone on its pCPU.
fn sleeper(polling: Option<HaltPolling>, wait: Picos) -> Outcome {
    let work = BurnWait { threads: 1, burn: 100 * US, wait, count: 2000, ..BurnWait::default() };
    let guest = tickless(1, "ticket", work);
    run(&scenario(Host { halt_polling: polling, ..host(1, "credit") }, vec![guest], 5 * SEC), 1)
}

#[test]
fn halt_polling_saves_the_wakeup_and_costs_cpu_time() {
    let without = sleeper(None, 100 * US);
    let with = sleeper(Some(HaltPolling::default()), 100 * US);
    // Each of 2000 sleeps ends with an interrupt to the idle pCPU, 1 us, and a switch, 2 us. With polling
    // a sleep has neither, except the first ones, for which the window is too short.
    near(without.elapsed - with.elapsed, 2000 * 3 * US, 40 * 3 * US);
    let vcpu = &with.domains[0].vcpus[0];
    // The window is long enough after six sleeps. Every 30 ms of the 400 ms, the accounting of `credit`
    // makes the pCPU schedule, which ends a poll.
    assert!(vcpu.dispatches <= 6 + 14, "{} dispatches", vcpu.dispatches);
    assert_eq!(without.domains[0].vcpus[0].polling, Picos::ZERO);
    // The sleeps, 200 ms in all, now take pCPU time, once the window has grown to 100 us.
    near(vcpu.polling, 200 * MS, 20 * MS);
    near(with.pcpus[0].busy - without.pcpus[0].busy, 200 * MS, 20 * MS);
    assert!(with.pcpus[0].idle <= 20 * 110 * US, "the sleeps that were not polled to their end");
}

#[test]
fn sleeps_longer_than_the_longest_window_are_not_polled() {
    let outcome = sleeper(Some(HaltPolling::default()), MS);
    assert_eq!(outcome.domains[0].vcpus[0].polling, Picos::ZERO);
    assert_eq!(outcome, sleeper(None, MS), "the run is the same as without polling");
}

/// The preempted hog gets the pCPU back at each halt, so the sleeper never polls.
#[test]
fn nobody_polls_while_another_wants_the_pcpu() {
    for scheduler in ["credit", "cfs", "rr"] {
        let work = BurnWait {
            threads: 1,
            burn: 100 * US,
            wait: 100 * US,
            count: 0,
            ..BurnWait::default()
        };
        let sleeper: Domain = tickless(1, "ticket", work);
        let options = Host { halt_polling: Some(HaltPolling::default()), ..host(1, scheduler) };
        let domains = vec![sleeper, domain(1, "ticket", hog())];
        let outcome = run(&scenario(options, domains, SEC), 1);
        assert_eq!(outcome.domains[0].vcpus[0].polling, Picos::ZERO, "{scheduler}");
    }
}

/// A vCPU polls until its timer for most of the time. Another one that wakes there gets the pCPU at once, as if it were idle: with
/// an interrupt and two switches, after the 10 us for which the first may be at work.
#[test]
fn a_poll_ends_when_another_one_wakes() {
    let work = BurnWait { threads: 1, burn: 10 * US, wait: 190 * US, ..BurnWait::default() };
    let options = Host { halt_polling: Some(HaltPolling::default()), ..host(1, "credit") };
    let guests = vec![tickless(1, "ticket", work), tickless(1, "ticket", sleepers())];
    let outcome = run(&scenario(options, guests, SEC), 1);
    assert!(outcome.domains[0].vcpus[0].polling > SEC / 2, "it polls for most of the time");
    let late = outcome.domains[1].tasks.iter().flat_map(|task| &task.reports);
    let late = late.map(|report| report.max_delta).max().unwrap();
    assert!(late < 40 * US, "{late}");
}

#[test]
fn nopvspin_keeps_the_waiters_of_paravirtual_locks_awake() {
    for lock in ["pv-ticket", "pv-ticket-2012-small", "pv-ticket-2012", "pv-qspinlock"] {
        let sleeps = |nopvspin| {
            let mut s = crowd(lock, 2, SEC / 5);
            s.domains[0].nopvspin = nopvspin;
            s.domains[0].spin_budget = Some(100);
            let outcome = run(&s, 1);
            outcome.domains[0].locks[0].slow_paths
        };
        assert!(sleeps(false) > 0, "{lock} sleeps");
        assert_eq!(sleeps(true), 0, "{lock} does not with nopvspin");
    }
}

/// A worker on each vCPU that computes for 100 us, sleeps for 2 ms, and reports how late it woke.
fn sleepers() -> Schedbench {
    let item = BenchItem { kops: 1, burn: 100 * US, again: Again::After(2 * MS) };
    Schedbench { items: vec![item], report_interval: MS }
}

fn latest(outcome: &Outcome) -> Picos {
    let reports = outcome.domains[0].tasks.iter().flat_map(|task| &task.reports);
    reports.map(|report| report.max_delta).max().unwrap()
}

/// A pCPU that sleeps leaves its sleep first; one that computes takes the interrupt at once.
#[test]
fn a_timer_that_ends_on_an_idle_pcpu_is_late() {
    let with = |timer: Picos, hogs: u32| {
        let timer = timer.into();
        let costs = Costs { timer, ..Costs::default() };
        let host = Host { costs, ..host(2, "credit") };
        let mut domains = vec![tickless(2, "ticket", sleepers())];
        if hogs > 0 {
            domains.push(Domain { name: "hog".into(), ..tickless(hogs, "ticket", hog()) });
        }
        latest(&run(&scenario(host, domains, 200 * MS), 1))
    };
    // An idle pCPU is woken by an interprocessor interrupt and switches: 1 us and 2 us. The vCPU takes the interrupt of
    // its timer, 1 us, and its kernel switches from the idle task to the sleeper.
    let without = with(Picos::ZERO, 0);
    assert!((4 * US..10 * US).contains(&without), "{without}");
    assert_eq!(with(30 * US, 0), without + 30 * US);
    assert_eq!(with(30 * US, 2), with(Picos::ZERO, 2), "beside hogs no pCPU is idle");
}
