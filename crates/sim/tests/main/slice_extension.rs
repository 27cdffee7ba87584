//! Extensions of time slices, compared with results derived by hand.

use crate::common::{domain, host, lock_loop, run, scenario, traced};
use overspin_host::Moment;
use overspin_scenario::{
    Domain, ExtensionOutcome, Kernel, MS, NS, Outcome, Picos, SEC, Scenario, US, Workload,
    Workloads,
};
use overspin_workload::{BurnWait, LockLoop, Mode, SliceRequest};

/// A program of which each thread asks so, with a section of this length.
fn program(threads: u32, section: Picos, slice_request: SliceRequest) -> LockLoop {
    let of = lock_loop(section, Picos::ZERO);
    LockLoop { threads, mode: Mode::User, irqs_off: false, slice_request, ..of }
}

/// A guest of one vCPU that never leaves its pCPU. Its kernel lets the other task run at each tick of 1 ms.
fn guest(extension: Option<Picos>, work: impl Into<Workloads>) -> Scenario {
    let kernel = Kernel {
        slice: Picos::ZERO,
        wakeup_granularity: Picos::ZERO,
        slice_extension: extension,
        ..Kernel::default()
    };
    let guest = Domain { kernel, ..domain(1, "ttas", work) };
    scenario(host(1, "null"), vec![guest], SEC)
}

fn extensions(outcome: &Outcome) -> ExtensionOutcome {
    outcome.domains[0].extensions.expect("its kernel grants them")
}

/// The extensions that had not ended at the end: each is of a task that runs.
#[track_caller]
pub fn outstanding(of: &ExtensionOutcome, vcpus: u32) -> u64 {
    let ended = of.yielded + of.aborted + of.expired + of.revoked;
    assert!(ended <= of.granted && of.granted <= ended + u64::from(vcpus), "{of:?}");
    of.granted - ended
}

fn preempted(outcome: &Outcome) -> u64 {
    outcome.domains[0].locks[0].holder_preempted
}

/// A section of 30 us fits into an extension of 50 us: the holder gives the rest back, and no holder is preempted. Without
/// extensions nearly every tick finds a holder, or the waiter that spins for it.
#[test]
fn a_holder_that_asks_is_not_preempted() {
    let of = |extension, request| run(&guest(extension, program(2, 30 * US, request)), 1);
    let without = of(None, SliceRequest::Holding);
    assert!(preempted(&without) > 300 && without.domains[0].extensions.is_none());

    let silent = of(Some(50 * US), SliceRequest::Never);
    assert_eq!(
        preempted(&silent),
        of(None, SliceRequest::Never).domains[0].locks[0].holder_preempted
    );
    assert_eq!(extensions(&silent), ExtensionOutcome::default());

    let outcome = of(Some(50 * US), SliceRequest::Holding);
    let e = extensions(&outcome);
    // The request comes a store after the lock is taken.
    assert!(preempted(&outcome) <= 2, "{}", preempted(&outcome));
    assert!(e.yielded > 900 && e.yielded + outstanding(&e, 1) == e.granted, "{e:?}");
    assert!(
        outcome.domains[0].locks[0].acquisitions > without.domains[0].locks[0].acquisitions * 3 / 2
    );
}

/// 16 threads on eight vCPUs, with 2 us in the section and 2 us outside, an extension of 5 us, and waits of some 15 us. A thread that asks while it waits
/// uses its extension up for nothing, and comes back without a request: so it is preempted later, as a holder.
#[test]
fn a_waiter_that_asks_wastes_its_extension() {
    let of = |request| {
        let work = LockLoop { outside: 2 * US, ..program(16, 2 * US, request) };
        let mut s = guest(Some(5 * US), work);
        s.domains[0].lock = "lock-byte".into();
        s.domains[0].vcpus = 8;
        s.host.cores = 8;
        s.limit = 300 * MS;
        run(&s, 1)
    };
    let [never, holding, waiting] = SliceRequest::ALL.map(of);
    let sections = |outcome: &Outcome| outcome.domains[0].locks[0].acquisitions;
    let e = extensions(&holding);
    assert!(e.expired == 0 && e.yielded + outstanding(&e, 8) == e.granted, "{e:?}");
    let w = extensions(&waiting);
    assert!(w.expired > w.granted / 4, "{w:?}");
    assert!(
        preempted(&holding) * 10 < preempted(&waiting) && preempted(&waiting) < preempted(&never)
    );
    assert!(sections(&holding) > sections(&waiting) && sections(&waiting) > sections(&never));
}

/// What holds a lock for long, and others that wake often and preempt it.
fn with_wakers(section: Picos, asleep: Picos, wakers: &[Picos]) -> Scenario {
    let holder = LockLoop { asleep, ..program(1, section, SliceRequest::Holding) };
    let wakes =
        |wait: &Picos| BurnWait { threads: 1, burn: US, wait: *wait, ..BurnWait::default() };
    let all = std::iter::once(holder.into()).chain(wakers.iter().map(|w| Workload::from(wakes(w))));
    guest(Some(50 * US), Workloads(all.collect()))
}

/// Two tasks wake every 100 to 200 us. The second wake-up falls into the extension that the first one brought about, or comes
/// after it has expired; the holder then leaves, and its request is gone for the rest of its section of 1 ms.
#[test]
fn each_request_brings_one_extension() {
    let outcome = run(&with_wakers(MS, Picos::ZERO, &[211 * US, 137 * US]), 1);
    let e = extensions(&outcome);
    let sections = outcome.domains[0].locks[0].acquisitions;
    assert!((sections - 1..=sections).contains(&e.granted), "{e:?} in {sections} sections");
    assert!(preempted(&outcome) >= sections - 1);
    assert!(e.revoked > sections / 10 && e.expired > sections / 10, "{e:?}");
    assert_eq!((e.yielded, e.aborted), (0, 0), "{e:?}");
}

/// The holder sleeps with its lock after 20 us of its section. An extension of 50 us that came before ends there.
#[test]
fn a_system_call_ends_an_extension() {
    let outcome = run(&with_wakers(20 * US, 40 * US, &[37 * US]), 1);
    let e = extensions(&outcome);
    assert!(e.aborted > 1000 && e.yielded + e.expired == 0, "{e:?}");
    // Ticks of 1 kHz fall into less than 20 us of each.
    assert!(e.revoked <= 20 * e.granted / 1000 && outstanding(&e, 1) <= 1, "{e:?}");
}

/// Waiters of some of these locks sleep. A task that computes on each vCPU leaves nobody alone there.
#[test]
fn extensions_add_up_with_locks_that_sleep() {
    for lock in ["futex", "ttas", "malthusian"] {
        for request in SliceRequest::ALL {
            let all = vec![program(5, 30 * US, request).into(), BurnWait::default().into()];
            let mut s = guest(Some(20 * US), Workloads(all));
            s.domains[0].lock = lock.into();
            s.domains[0].vcpus = 2;
            s.host.cores = 2;
            let e = extensions(&run(&s, 1));
            outstanding(&e, 2);
            assert_eq!(e.granted > 0, request != SliceRequest::Never, "{lock}: {e:?}");
        }
    }
}

/// A holder of one long section, and a task that computes. The first switch between them comes later by the extension, the
/// interrupt that ends it (1 us), and the programming of the timer after it (0.5 us).
#[test]
fn an_extension_takes_its_length_and_its_costs() {
    let first_switch = |extension| {
        let hog = BurnWait { threads: 1, ..BurnWait::default() };
        let holder = program(1, 10 * SEC, SliceRequest::Holding);
        let mut s = guest(extension, Workloads(vec![holder.into(), hog.into()]));
        s.limit = 10 * MS;
        let tasks: Vec<_> = traced(&s, 1)
            .1
            .into_iter()
            .filter_map(|(at, moment)| match moment {
                Moment::Task { task: Some(task), .. } => Some((at, task)),
                _ => None,
            })
            .collect();
        let holds = tasks.iter().position(|(_, task)| *task == 0).expect("the holder runs");
        tasks[holds + 1].0
    };
    let none = first_switch(None);
    for length in [5 * US, 50 * US] {
        assert_eq!(first_switch(Some(length)) - none, length + US + 500 * NS);
    }
}

#[test]
fn a_kernels_lock_needs_none() {
    let work = LockLoop { mode: Mode::Kernel, ..program(1, US, SliceRequest::Holding) };
    let refused = overspin_sim::check(&guest(None, work)).unwrap_err().to_string();
    assert!(refused.contains("slice_request") && refused.contains("mode = \"user\""), "{refused}");
}
