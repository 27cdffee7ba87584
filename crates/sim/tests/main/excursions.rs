//! Entries of tasks into their kernel in the middle of sections, compared with results derived by hand.

use crate::common::{domain, host, lock_loop, run, scenario};
use overspin_scenario::{
    Domain, ExcursionOutcome, ExtensionOutcome, Kernel, Outcome, Picos, Preemption, SEC, Scenario,
    US,
};
use overspin_workload::{Excursion, LockLoop, Mode, SliceRequest, Waking};

fn excursions(outcome: &Outcome) -> ExcursionOutcome {
    outcome.domains[0].excursions.expect("it makes some")
}

/// A lone thread on a vCPU without ticks, with 100 sections.
fn alone(excursion: Picos, kind: Excursion) -> (Outcome, Picos) {
    let work = LockLoop {
        threads: 1,
        mode: Mode::User,
        irqs_off: false,
        count: 100,
        excursion,
        excursion_kind: kind,
        run_up: 5 * US,
        fixed: true,
        ..lock_loop(11 * US, 20 * US)
    };
    let kernel = Kernel { hz: 0, ..Kernel::default() };
    let guest = Domain { kernel, ..domain(1, "ticket", work) };
    let s = scenario(host(1, "null"), vec![guest], SEC);
    let system_call = s.host.costs.system_call;
    (run(&s, 1), system_call)
}

/// A section with an excursion takes as long as one without, and as long as the excursion; a system call also takes its entry and
/// its return. Nothing else changes, and nobody takes over.
#[test]
fn a_section_takes_its_work_and_its_excursion() {
    let (without, _) = alone(Picos::ZERO, Excursion::Fault);
    assert_eq!(excursions(&without), ExcursionOutcome::default());
    let held = |outcome: &Outcome| outcome.domains[0].locks[0].hold_total;
    for kind in Excursion::ALL {
        let (outcome, system_call) = alone(3 * US, kind);
        let entry = if kind == Excursion::SystemCall { system_call } else { Picos::ZERO };
        assert_eq!(held(&outcome) - held(&without), (3 * US + entry) * 100, "{kind:?}");
        assert_eq!(outcome.elapsed - without.elapsed, (3 * US + entry) * 100, "{kind:?}");
        assert_eq!(excursions(&outcome), ExcursionOutcome { number: 100, preempted: 0 });
    }
}

/// One section in four has an excursion: by lot, so that the number is that of a binomial distribution.
#[test]
fn excursions_are_as_frequent_as_asked() {
    let work = LockLoop {
        threads: 1,
        mode: Mode::User,
        irqs_off: false,
        count: 10_000,
        excursion: US,
        excursion_every: 4,
        ..lock_loop(US, US)
    };
    let outcome = run(&scenario(host(1, "null"), vec![domain(1, "ticket", work)], SEC), 1);
    // Four standard deviations of 43.
    assert!((2_330..2_670).contains(&excursions(&outcome).number), "{:?}", excursions(&outcome));
}

/// 32 threads on eight vCPUs, which others wake. Each round has 10 us of other work, 90 us of the run-up, 2 us of the section, and
/// 1 us in the kernel within.
fn woken(preemption: Preemption, request: SliceRequest, kind: Excursion) -> Scenario {
    let work = LockLoop {
        threads: 32,
        mode: Mode::User,
        irqs_off: false,
        idle: 200 * US,
        woken: Waking::Elsewhere,
        excursion: US,
        excursion_kind: kind,
        run_up: 90 * US,
        slice_request: request,
        ..lock_loop(2 * US, 10 * US)
    };
    let kernel = Kernel {
        preemption,
        wakeup_granularity: Picos::ZERO,
        slice_extension: (request != SliceRequest::Never).then_some(50 * US),
        ..Kernel::default()
    };
    let guest = Domain { kernel, ..domain(8, "futex", work) };
    scenario(host(8, "null"), vec![guest], SEC)
}

/// A request to take over comes at any time of a round of 103 us. A kernel that interrupts finds the task in its excursion for
/// 1 us of these: 1 %. A lazy one waits for the next return to user mode. That is in the section for 92 us of them: nine in ten.
/// One in eight requests is of the vCPU itself, whose interrupt woke the task, and does not wait. Such an interrupt comes about once in a
/// round, whomever it wakes, and ends a wait before: a wait of up to 92 us then lasts to its end in two of three cases. So about
/// half of all requests end in the section.
#[test]
fn what_a_lazy_kernel_puts_off_meets_at_the_excursion() {
    let share = |preemption| {
        let outcome = run(&woken(preemption, SliceRequest::Never, Excursion::Fault), 1);
        let e = excursions(&outcome);
        let all: u64 = outcome.domains[0].tasks.iter().map(|t| t.preemptions).sum();
        assert!(e.number > 10_000 && all > 500, "{e:?} of {all}");
        e.preempted as f64 / all as f64
    };
    let lazy = share(Preemption::Lazy);
    // Waiters of the lock sleep and are woken, too, at other times of a round.
    assert!((0.1..0.7).contains(&lazy), "{lazy}");
    for interrupts in [Preemption::None, Preemption::Full] {
        assert!(share(interrupts) * 10.0 < lazy, "{interrupts:?}: {}", share(interrupts));
    }
}

/// The return from a fault grants an extension, in which the holder finishes. A system call does not: it ends the request.
#[test]
fn a_fault_may_bring_an_extension_and_a_system_call_does_not() {
    let of = |request, kind| {
        let outcome = run(&woken(Preemption::Lazy, request, kind), 1);
        (excursions(&outcome).preempted, outcome.domains[0].extensions.unwrap_or_default())
    };
    let (never, _) = of(SliceRequest::Never, Excursion::Fault);
    let (fault, e) = of(SliceRequest::Holding, Excursion::Fault);
    assert!(never > 500 && fault * 20 < never, "{never} and {fault}");
    // It gives the extension back, unless its release wakes a waiter, which is a system call.
    let ExtensionOutcome { granted, yielded, aborted, .. } = e;
    assert!(granted > never / 2 && yielded > granted / 2, "{e:?}");
    assert!(yielded + aborted > granted * 9 / 10, "{e:?}");
    let (call, _) = of(SliceRequest::Holding, Excursion::SystemCall);
    assert!(call > never / 2, "{never} and {call}");
}
