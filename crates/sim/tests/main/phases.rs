//! The workload `phases`: yields, timers, starts and alignment to ticks, compared with results derived by
//! hand; and the share of a program that always sleeps when the host samples, under credit as of 2008.

use crate::common::{domain, hog, host, near, run, scenario, tickless};
use overspin_scenario::{Costs, Domain, Host, MS, Outcome, Picos, SEC, US};
use overspin_workload::{Align, Phase, Phases, Step};

fn phases(steps: &[Step]) -> Phases {
    let phases = vec![Phase { times: 1, steps: steps.to_vec() }];
    Phases { threads: 1, phases, count: 0, start: Picos::ZERO, align: Align::None }
}

fn alone(guest: Domain) -> Outcome {
    run(&scenario(host(1, "null"), vec![guest], SEC), 1)
}

/// Runs for `burn` after each tick of the host and sleeps until the next, beside a hog on one pCPU.
fn thief(scheduler: &str, burn: Picos, seed: u64) -> Outcome {
    let work = Phases { align: Align::HostTick, start: 20 * US, ..phases(&[Step::Run(burn)]) };
    let thief = tickless(1, "ticket", work);
    let guests = vec![thief, tickless(1, "ticket", hog())];
    run(&scenario(host(1, scheduler), guests, 10 * SEC), seed)
}

/// Xen commit 78c9b2a64b says of the accounting before it: a guest that gives its pCPU up 9.5 ms after
/// each tick is never charged and can have 95 % of the pCPU.
///
/// The derivation: the tick at 10k ms finds the hog and takes 100 of its credits. The sleeper wakes at
/// 10k + 0.02 ms. It was never charged, so it is UNDER and boosted. The tick has just found the hog, which is
/// UNDER at most, so the sleeper preempts. It runs for its burn b and for the kernel's work c for the sleep
/// and the wake-up. It sleeps before the next tick if 20 us + b + c and a switch of 2 us fit into 10 ms.
/// So it gets (b + c) / 10 ms, whatever its weight earns; c is under 20 us as in `shares`.
#[test]
fn a_guest_that_sleeps_at_ticks_is_never_charged_in_2008() {
    let mut last = Picos::ZERO;
    for burn in [1_000, 2_500, 5_000, 7_500, 9_000, 9_300, 9_500, 9_700, 9_900] {
        let outcome = thief("credit-2008", burn * US, burn);
        let d = &outcome.domains[0];
        // Each of the ticks from 10 ms to 9990 ms begins a round.
        assert_eq!(d.tasks[0].items, 999, "{burn} us");
        near(d.vcpus[0].running, 999 * burn * US, 999 * 20 * US);
        assert!(d.vcpus[0].running > last, "more burn, more time: {burn} us");
        last = d.vcpus[0].running;
        if burn == 9_500 {
            near(d.vcpus[0].running, SEC * 95 / 10, SEC * 3 / 100);
        }
    }
}

/// A tick samples a burn that lasts past it, like any other. The guest runs for 10.5 ms of each two periods
/// and is found once in them. So it pays 150 credits in 30 ms, which is its fair half of 300.
#[test]
fn a_guest_that_a_tick_finds_gets_its_half_in_2008() {
    let outcome = thief("credit-2008", 10_500 * US, 1);
    near(outcome.domains[0].vcpus[0].running, 10 * SEC * 105 / 200, 10 * SEC / 20);
}

/// A yield gives up the rest of the quantum. So the yielder gets 1 ms in each turn, and the hog 10 ms.
#[test]
fn a_yield_gives_the_pcpu_to_the_next() {
    let yielder = tickless(1, "ticket", phases(&[Step::Run(MS), Step::Yield]));
    let guests = vec![yielder, tickless(1, "ticket", hog())];
    let outcome = run(&scenario(host(1, "rr"), guests, 11 * SEC), 1);
    // Each turn begins with a switch of 2 us, and the hypercall takes 0.5 us.
    near(outcome.domains[0].vcpus[0].running, SEC, 5 * MS);
    near(outcome.domains[1].vcpus[0].running, 10 * SEC, 10 * MS);
}

#[test]
fn a_yield_with_nobody_else_costs_a_hypercall() {
    let work = Phases { count: 1000, ..phases(&[Step::Run(10 * US), Step::Yield]) };
    let outcome = alone(tickless(1, "ticket", work));
    let hypercall = Host::default().costs.hypercall.median();
    near(outcome.elapsed, 1000 * (10 * US + hypercall), 20 * US);
}

#[test]
fn a_thread_begins_after_its_start() {
    let work = Phases { count: 1, start: 5 * MS, ..phases(&[Step::Run(MS)]) };
    let outcome = alone(tickless(1, "ticket", work));
    near(outcome.elapsed, 6 * MS, 30 * US);
}

/// As in rt-app, a timer's first period begins with the thread, wherever the timer stands in the round.
#[test]
fn a_timer_counts_from_the_threads_start() {
    for steps in
        [[Step::Run(6 * MS), Step::Timer(10 * MS)], [Step::Timer(10 * MS), Step::Run(6 * MS)]]
    {
        let work = Phases { count: 10, ..phases(&steps) };
        let outcome = alone(tickless(1, "ticket", work));
        let last = if steps[0] == Step::Run(6 * MS) { Picos::ZERO } else { 6 * MS };
        near(outcome.elapsed, 100 * MS + last, 40 * US);
    }
}

/// A program that runs from 1 ms to 9 ms after each tick of its kernel uses 80 % of the vCPU, but its
/// kernel charges it nothing: the guest's accounting samples too, and no tick finds the program. A program
/// that runs without regard to the tick is charged for the time that it uses.
#[test]
fn a_program_can_hide_from_its_own_kernels_tick() {
    let guest = |align| {
        let work = Phases { start: MS, align, ..phases(&[Step::Run(8 * MS), Step::Sleep(MS / 2)]) };
        let mut guest = domain(1, "ticket", work);
        guest.kernel.hz = 100;
        let outcome = alone(guest);
        let task = &outcome.domains[0].tasks[0];
        (outcome.domains[0].vcpus[0].running, task.user_ticks + task.system_ticks)
    };
    let (used, charged) = guest(Align::GuestTick);
    near(used, SEC * 8 / 10, 20 * MS);
    assert_eq!(charged, Picos::ZERO);
    // 8 of each 8.5 ms, charged by some 94 ticks. These drift through its period, each pass off by at most one.
    let (used, charged) = guest(Align::None);
    near(used, SEC * 80 / 85, 20 * MS);
    near(charged, used, 50 * MS);
}

#[test]
fn ticks_that_nobody_has_are_refused() {
    let guest = |align| {
        let work = Phases { align, ..phases(&[Step::Run(MS)]) };
        tickless(1, "ticket", work)
    };
    for (align, scheduler, message) in [
        (Align::GuestTick, "credit", "set kernel.hz"),
        (Align::HostTick, "credit2", "these do: credit, credit-2016"),
    ] {
        let scenario = scenario(host(1, scheduler), vec![guest(align)], SEC);
        let error = overspin_sim::run(&scenario, 1).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// A vCPU that yields has exited already, by its hypercall. So it pays for the switch, and not for the exit of a preemption.
#[test]
fn a_yield_is_no_preemption_that_costs_an_exit() {
    let elapsed = |preemption: Picos| {
        let work = Phases { count: 100, ..phases(&[Step::Run(50 * US), Step::Yield]) };
        let guests = vec![tickless(1, "ticket", work); 2];
        let costs = Costs { preemption: preemption.into(), ..Costs::default() };
        run(&scenario(Host { costs, ..host(1, "rr") }, guests, SEC), 1).elapsed
    };
    assert_eq!(elapsed(30 * US), elapsed(Picos::ZERO));
}
