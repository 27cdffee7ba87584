//! Preemption notification: which guests are asked, when the pCPU changes hands (to the picosecond), and how
//! long a guest that never gives up can keep it.

use crate::common::{domain, host, lock_loop, run, scenario, tickless, traced};
use overspin_host::Moment;
use overspin_scenario::{
    Costs, Domain, Host, MS, NS, NotificationProtocol, NotifiedGuests, Outcome, Picos,
    PreemptionNotification, SEC, Scenario, US, WindowOutcome,
};
use overspin_workload::{Count, LockLoop, Ping};

const UPCALL: PreemptionNotification = PreemptionNotification {
    guests: NotifiedGuests::All,
    protocol: NotificationProtocol::Upcall,
    window: MS,
    strikes: 3,
    back_off: Picos::ms(100),
};
const DEFERRAL: PreemptionNotification =
    PreemptionNotification { protocol: NotificationProtocol::Deferral, ..UPCALL };

/// Only the costs that a test adds up: an interrupt to a pCPU, one to a guest, a hypercall.
fn costs() -> Costs {
    Costs {
        cache_hit: Picos(1),
        atomic: Picos::ZERO,
        same_core: Picos::ZERO,
        cross_core: Picos::ZERO,
        cross_socket: Picos::ZERO,
        spin_iteration: 10 * NS,
        fence: Picos::ZERO,
        context_switch: Picos::ZERO.into(),
        preemption: Picos::ZERO.into(),
        hypercall: (500 * NS).into(),
        system_call: Picos::ZERO,
        pause_loop_exit: 500 * NS,
        yield_to: Picos::ZERO,
        run_queue: Picos::ZERO,
        host_interrupt: 500 * NS,
        ipi: (3 * US).into(),
        timer: Picos::ZERO.into(),
        host_timer: Picos::ZERO.into(),
        interrupt: 7 * US,
        migration: Picos::ZERO,
    }
}

/// A host of one pCPU, where a vCPU that wakes preempts at once.
fn one_pcpu(notification: Option<PreemptionNotification>) -> Host {
    Host { costs: costs(), preemption_notification: notification, ..host(1, "bvt") }
}

/// Answers to pings, which come `rate` times a second and take 100 us each.
fn pings(rate: u32) -> Domain {
    let work = Ping { rate, resolution: Picos::ZERO, round_trip: Picos::ZERO, work: 100 * US };
    Domain { name: "dom0".into(), ..tickless(1, "ticket", work) }
}

fn counting() -> Domain {
    tickless(1, "ticket", Count { to: 1_000_000_000, step: NS })
}

/// A guest that holds one lock for `section` each time, with interrupts on and 100 us of user code between.
fn holding(section: Picos) -> Domain {
    let work = LockLoop { irqs_off: false, fixed: true, ..lock_loop(section, 100 * US) };
    tickless(1, "ticket", work)
}

/// Answers to pings preempt `guest` on one pCPU.
fn preempted(guest: Domain, notification: Option<PreemptionNotification>) -> Scenario {
    scenario(one_pcpu(notification), vec![guest, pings(100)], SEC)
}

fn windows(outcome: &Outcome) -> WindowOutcome {
    outcome.domains[0].vcpus[0].windows.expect("it is asked")
}

/// Times from each wake-up of vCPU 1 to the switch from vCPU 0 to it.
fn waits(trace: &[(Picos, Moment)]) -> Vec<Picos> {
    let mut woken = None;
    let mut waits = Vec::new();
    for (at, event) in trace {
        match event {
            Moment::Wake { vcpu: 1, runnable: true, .. } => woken = Some(at),
            Moment::Switch { prev: Some(0), next: Some(1), .. } => {
                // It comes up at the beginning without a wake-up.
                waits.extend(woken.take().map(|woken| *at - *woken));
            }
            _ => {}
        }
    }
    waits
}

/// Without a protocol the only cost is the interrupt of the pCPU. With an upcall, the guest also takes an
/// interrupt and answers by a hypercall. With deferral, the hypervisor sees a lock count of 0 and preempts
/// as without a protocol.
#[test]
fn user_code_gives_up_at_once() {
    for (notification, expected) in
        [(None, 3 * US), (Some(UPCALL), 3 * US + 7 * US + 500 * NS), (Some(DEFERRAL), 3 * US)]
    {
        let (outcome, trace) = traced(&preempted(counting(), notification.clone()), 1);
        let waits = waits(&trace);
        assert!(waits.len() > 80, "{} waits", waits.len());
        assert!(waits.iter().all(|w| *w == expected), "{notification:?}: {waits:?}");
        let Some(options) = notification else { continue };
        let windows = windows(&outcome);
        // One more window opens when dom0 comes up.
        let asked = options.protocol == NotificationProtocol::Upcall;
        let n = if asked { waits.len() as u64 + 1 } else { 0 };
        assert_eq!((windows.offered, windows.used, windows.expired), (n, n, 0));
        assert_eq!(windows.time, n * (7 * US + 500 * NS), "interrupt and hypercall");
    }
}

/// The guest holds a lock for longer than any window. The hypervisor preempts it by force at the end of the
/// window, and without a window while the guest is barred.
#[test]
fn who_never_gives_up_is_preempted_at_the_end_of_the_window() {
    for options in [UPCALL, DEFERRAL] {
        let guest = holding(10 * SEC);
        let (outcome, trace) = traced(&preempted(guest, Some(options)), 1);
        let waits = waits(&trace);
        let forced = waits.iter().filter(|w| **w == 3 * US + MS).count() as u64;
        let at_once = waits.iter().filter(|w| **w == 3 * US).count() as u64;
        assert_eq!(forced + at_once, waits.len() as u64, "{waits:?}");
        let windows = windows(&outcome);
        // Another window opens when dom0 comes up.
        assert_eq!((windows.offered, windows.used), (forced + 1, 0));
        assert_eq!((windows.expired, windows.refused), (forced + 1, at_once));
        assert_eq!(windows.time, (forced + 1) * MS);
        // A ping comes every 10 ms: three windows open in 21 ms, then none for 100 ms, in which nine or ten
        // pings come. A second has seven whole rounds of 130 ms and part of an eighth.
        assert!((21..=24).contains(&windows.offered), "{windows:?}");
    }
}

/// Sections of 300 us with interrupts on, 100 us between. Three of four windows open while the guest holds
/// the lock, and end with its release and a hypercall. The guest is never preempted while it holds the lock.
#[test]
fn a_holder_is_preempted_after_its_release() {
    let without = run(&preempted(holding(300 * US), None), 1);
    let held = without.domains[0].locks[0].holder_preempted;
    // 100 pings at times unrelated to the sections: 75 expected, with a standard deviation below 5.
    assert!((55..=95).contains(&held), "{held}");
    for options in [UPCALL, DEFERRAL] {
        let (outcome, trace) = traced(&preempted(holding(300 * US), Some(options.clone())), 1);
        assert_eq!(outcome.domains[0].locks[0].holder_preempted, 0);
        let windows = windows(&outcome);
        assert_eq!((windows.expired, windows.refused), (0, 0));
        // From a release to the switch: 1 ps for the store that frees the lock, and the hypercall.
        let mut released = Picos::ZERO;
        let mut after_release = 0;
        for (at, event) in &trace {
            match event {
                Moment::LockReleased { vcpu: 0, .. } => released = *at,
                Moment::Switch { prev: Some(0), next: Some(1), .. } => {
                    after_release += u64::from(*at - released == Picos(1) + 500 * NS);
                }
                _ => {}
            }
        }
        // With deferral no window opens outside the sections.
        let in_user_code = windows.used - after_release;
        match options.protocol {
            NotificationProtocol::Upcall => assert!((5..=45).contains(&in_user_code)),
            NotificationProtocol::Deferral => assert_eq!(in_user_code, 0),
        }
        assert!((55..=95).contains(&after_release), "{after_release}");
    }
}

/// Interrupts are off in the section, so the guest would take the upcall only when they are on again. The
/// release looks at the count of locks before that.
#[test]
fn a_section_with_interrupts_off_ends_its_window_at_the_release() {
    let mut guest = holding(300 * US);
    assert!(guest.workload.edit(|work: &mut LockLoop| work.irqs_off = true));
    let outcome = run(&preempted(guest, Some(UPCALL)), 1);
    let windows = windows(&outcome);
    assert_eq!((windows.expired, windows.refused), (0, 0));
    assert_eq!(outcome.domains[0].locks[0].holder_preempted, 0);
    assert!(windows.used > 80, "{windows:?}");
}

/// If only guests with several vCPUs are notified, a guest with one vCPU runs exactly as without
/// notification.
#[test]
fn who_is_not_asked_sees_no_difference() {
    let smp = PreemptionNotification { guests: NotifiedGuests::Smp, ..UPCALL };
    let plain = run(&preempted(counting(), None), 1);
    let others = run(&preempted(counting(), Some(smp)), 1);
    assert_eq!(plain, others);
}

/// The hypervisor does not ask a vCPU that yields whether it may be preempted.
#[test]
fn yields_are_no_preemptions() {
    use overspin_scenario::PauseLoopExiting;
    let work = LockLoop { fixed: true, ..lock_loop(20 * US, 20 * US) };
    let exiting = Host {
        pause_loop_exiting: Some(PauseLoopExiting::default()),
        preemption_notification: Some(UPCALL),
        ..host(2, "rr")
    };
    let guest = domain(4, "ticket", work);
    let outcome = run(&scenario(exiting, vec![guest], SEC), 1);
    let (mut exits, mut offered) = (0, 0);
    for v in &outcome.domains[0].vcpus {
        let windows = v.windows.expect("it is asked");
        exits += v.spin_exits;
        offered += windows.offered;
        assert!(windows.used + windows.expired + windows.left <= windows.offered);
    }
    // The slice of `rr` is 10 ms or more: two pCPUs for a second have at most 200 ends of slices.
    assert!(exits > 10 * offered, "{exits} exits, {offered} windows");
}

#[test]
fn two_runs_are_equal() {
    let scenario = preempted(holding(300 * US), Some(UPCALL));
    assert_eq!(run(&scenario, 3), run(&scenario, 3));
    assert_ne!(run(&scenario, 3).trace_hash, run(&scenario, 4).trace_hash);
}
