//! TLB shootdowns, compared with results derived by hand.

use crate::common::{hog, host, lock_loop, near, run, scenario, tickless};
use overspin_scenario::{
    DirectedYieldRules, Domain, Host, Kernel, MS, NS, Outcome, PauseLoopExiting, Picos, SEC,
    Setting, Settings, ShootdownOutcome, US, Workload, Workloads,
};
use overspin_workload::LockLoop;

/// A thread on vCPU 0 that unmaps memory after each item, and one that computes on each other vCPU.
fn guest(vcpus: u32) -> Domain {
    let unmaps = LockLoop { threads: 1, unmap_every: 1, ..lock_loop(US, 10 * US) };
    let on = |of: Workload, vcpus: Vec<u32>| Workload { vcpus, ..of };
    let mut all = vec![on(unmaps.into(), vec![0])];
    all.extend(hog().0.into_iter().map(|of| on(of, (1..vcpus).collect())));
    tickless(vcpus, "ticket", Workloads(all))
}

fn shootdowns(outcome: &Outcome) -> &ShootdownOutcome {
    outcome.domains[0].shootdowns.as_ref().expect("its thread unmaps")
}

/// The sender's hypercall takes 0.5 us, the way of the interrupt 1 us, and its handler 1 us. The handler then writes to a line of the
/// sender, which looks at it again: 60 ns each. Of several that are asked, each costs a hypercall, and the last one decides.
#[test]
fn a_shootdown_takes_the_hypercalls_the_way_and_the_handler() {
    for others in 1..4 {
        let outcome = run(&scenario(host(4, "null"), vec![guest(1 + others)], 100 * MS), 1);
        let s = shootdowns(&outcome);
        assert!(s.shootdowns > 5_000, "one after each item of some 14 us: {s:?}");
        // The first few find vCPUs that have not come up.
        let rounds = s.interrupts / u64::from(others);
        assert!((s.shootdowns - 3..=s.shootdowns).contains(&rounds), "{s:?}");
        assert_eq!((s.skipped, s.preempted), (0, Picos::ZERO));
        let expected = u64::from(others) * 500 * NS + 2 * US + 120 * NS;
        near(s.waited / rounds, expected, 80 * NS * u64::from(others));
    }
}

/// Two vCPUs take turns of 1 ms on one pCPU. The one that is asked has no pCPU and gets it when the sender's turn ends: the sender
/// spins up to there, and until its own next turn the other has answered. So it gets about one item done in each turn.
#[test]
fn a_vcpu_without_a_pcpu_keeps_the_sender_waiting() {
    let params = Settings::from([("quantum".to_owned(), Setting::Time(MS))]);
    let host = Host { params, ..host(1, "rr") };
    let outcome = run(&scenario(host.clone(), vec![guest(2)], SEC), 1);
    let s = shootdowns(&outcome);
    assert!((450..=500).contains(&s.interrupts), "one in each turn of 2 ms: {s:?}");
    // The sender waits for the rest of its turn, in which the other has no pCPU, and for the other's turn.
    near(s.waited, SEC, SEC / 20);
    near(s.preempted, s.waited / 2, SEC / 20);

    let told = Domain { kernel: Kernel { pv_tlb_flush: true, ..guest(2).kernel }, ..guest(2) };
    let outcome = run(&scenario(host, vec![told], SEC), 1);
    let s = shootdowns(&outcome);
    assert_eq!((s.interrupts, s.waited), (0, Picos::ZERO));
    // In the first turn the other vCPU has not come up.
    assert!((s.shootdowns - 110..s.shootdowns).contains(&s.skipped), "{s:?}");
    assert!(s.shootdowns > 40_000, "half of the time, one in some 11 us: {s:?}");
}

/// A vCPU that idles is not asked.
#[test]
fn nobody_asks_a_vcpu_that_idles() {
    let unmaps = LockLoop { threads: 1, unmap_every: 1, ..lock_loop(US, 10 * US) };
    let outcome = run(&scenario(host(2, "null"), vec![tickless(2, "ticket", unmaps)], 10 * MS), 1);
    let s = shootdowns(&outcome);
    assert!(s.shootdowns > 500);
    assert_eq!((s.interrupts, s.waited), (0, Picos::ZERO));
}

/// Senders that wait for each other answer meanwhile. With one waiter on each vCPU nobody waits for ever.
#[test]
fn senders_answer_each_other() {
    for scheduler in ["null", "credit", "cfs"] {
        let pcpus = if scheduler == "null" { 4 } else { 2 };
        let unmaps = LockLoop { unmap_every: 2, count: 2_000, ..lock_loop(US, 2 * US) };
        let outcome =
            run(&scenario(host(pcpus, scheduler), vec![tickless(4, "mcs", unmaps)], 100 * SEC), 3);
        assert_eq!(outcome.domains[0].tasks.iter().map(|t| t.items).sum::<u64>(), 8_000);
    }
}

/// One pCPU under `eevdf-6.18`, whose ticks end turns of 4 ms, and these rules of directed yields.
fn exiting(rules: DirectedYieldRules, apicv: bool) -> Host {
    let relaxed_round = false;
    let ple = PauseLoopExiting { rules, apicv, relaxed_round, ..PauseLoopExiting::default() };
    Host { pause_loop_exiting: Some(ple), directed_yield: true, ..host(1, "eevdf-6.18") }
}

/// The vCPU that is asked computes in user mode, so by the rules of 2019 the spinning sender does not yield to it: it spins for
/// its turn of 4 ms, and the other answers in its own, so 1 s has 125 shootdowns. A host that notes the interrupt, or sees
/// that it is pending, lets the sender yield at once: a shootdown for each turn of the other, 250.
#[test]
fn a_host_that_knows_the_receiver_saves_the_senders_turn() {
    use DirectedYieldRules::{IpiAware, Y2019, Y2021};
    let by = |rules, apicv| run(&scenario(exiting(rules, apicv), vec![guest(2)], SEC), 1);
    let number = |outcome: &Outcome| shootdowns(outcome).interrupts;
    let (blind, noted, seen) = (by(Y2019, true), by(IpiAware, false), by(Y2021, true));
    assert!((115..=130).contains(&number(&blind)), "{:?}", shootdowns(&blind));
    for outcome in [&noted, &seen] {
        assert!((225..=255).contains(&number(outcome)), "{:?}", shootdowns(outcome));
    }
    // All that the rules of 2021 add is the sight of pending interrupts.
    assert_eq!(by(Y2021, false).trace_hash, blind.trace_hash);
}
