//! Shares of pCPUs and waits for them, compared with results derived by hand.

use crate::common::{domain, hog, host, lock_loop, near, run, scenario, tickless};
use overspin_scenario::{Costs, Domain, Ending, Host, MS, Outcome, Picos, SEC, US, Workloads};
use overspin_workload::{BurnWait, LockLoop};

const CREDIT: [&str; 3] = ["credit", "credit-2013", "credit-2008"];

/// The largest difference between a vCPU's time and its share under a credit scheduler, at any time. Credit
/// stays within plus and minus 300, and one credit is 100 us. So earned and burned credit differ by at
/// most 600 credits or 60 ms. A slice of 30 ms may be under way and not charged yet.
const CREDIT_SLACK: Picos = Picos::ms(90);

/// The first dispatch: the first vCPU comes up at 0, and an interprocessor interrupt (1 us) tells its pCPU.
const FIRST_DISPATCH: Picos = US;

fn running(outcome: &Outcome) -> Vec<Picos> {
    outcome.domains.iter().flat_map(|d| &d.vcpus).map(|v| v.running).collect()
}

#[test]
fn equals_on_one_pcpu_get_half_each() {
    let two = || vec![domain(1, "ticket", hog()), domain(1, "ticket", hog())];
    let outcome = run(&scenario(host(1, "rr"), two(), 10 * SEC), 1);
    let shares = running(&outcome);
    // They take turns of one quantum, 10 ms. The second vCPU comes up 10 us after the first.
    near(shares[0], shares[1], 10 * MS + 10 * US);
    assert_eq!(shares[0] + shares[1], 10 * SEC - FIRST_DISPATCH);
    for name in CREDIT {
        let shares = running(&run(&scenario(host(1, name), two(), 10 * SEC), 1));
        near(shares[0], 5 * SEC, CREDIT_SLACK);
        assert_eq!(shares[0] + shares[1], 10 * SEC - FIRST_DISPATCH, "{name}");
    }
}

#[test]
fn weights_of_one_to_three_give_a_quarter_and_three_quarters() {
    for name in CREDIT {
        let heavy = Domain { weight: 768, ..domain(1, "ticket", hog()) };
        let domains = vec![domain(1, "ticket", hog()), heavy];
        let shares = running(&run(&scenario(host(1, name), domains, 10 * SEC), 1));
        near(shares[0], 10 * SEC / 4, CREDIT_SLACK);
        near(shares[1], 10 * SEC / 4 * 3, CREDIT_SLACK);
    }
}

#[test]
fn a_cap_of_half_a_pcpu_gives_half_a_pcpu_to_one_who_is_alone() {
    for name in CREDIT {
        let capped = Domain { cap: 50, ..domain(1, "ticket", hog()) };
        let outcome = run(&scenario(host(1, name), vec![capped], 10 * SEC), 1);
        near(running(&outcome)[0], 5 * SEC, CREDIT_SLACK);
        // The cap keeps it from running although it wants to: its pCPU idles, but the vCPU is not blocked.
        near(outcome.pcpus[0].idle, 5 * SEC, CREDIT_SLACK);
        assert_eq!(outcome.domains[0].vcpus[0].blocked, Picos::ZERO, "{name}");
    }
}

#[test]
fn a_busy_sibling_slows_a_hardware_thread_by_the_stated_factor() {
    let work = BurnWait {
        threads: 0,
        burn: 600 * US,
        wait: Picos::ZERO,
        count: 100,
        ..BurnWait::default()
    };
    let one = || tickless(1, "ticket", work.clone());
    let core = Host { cores: 1, threads: 2, smt_permille: 600, ..host(1, "null") };
    let alone = run(&scenario(core.clone(), vec![one()], SEC), 1);
    let both = run(&scenario(core, vec![one(), one()], SEC), 1);
    // 100 items take 600 us each at full speed, 1000 us at 600 permille. The boot takes some 10 us, and in
    // the first and the last 10 us the sibling is not busy.
    near(alone.elapsed, 60 * MS, 30 * US);
    near(both.domains[0].finished.expect("finite"), 100 * MS, 60 * US);
    near(both.domains[1].finished.expect("finite"), 100 * MS, 60 * US);
}

/// A memory operation waits for the memory, not for the thread. So its duration must not depend on an event
/// that comes before its end. With two vCPUs there mostly is one.
#[test]
fn a_busy_sibling_does_not_slow_memory_operations() {
    let work = Workloads::from(LockLoop { fixed: true, ..lock_loop(Picos::ZERO, Picos::ZERO) });
    let core = Host { cores: 1, threads: 2, smt_permille: 500, ..host(1, "null") };
    let domains = vec![tickless(1, "ticket", work.clone()), tickless(1, "ticket", work)];
    let outcome = run(&scenario(core, domains, 10 * MS), 1);
    // A pair of atomic operations on a line that the vCPU owns.
    let pair = 2 * (Costs::default().cache_hit + Costs::default().atomic);
    for domain in outcome.domains {
        near(domain.locks[0].acquisitions * pair, 10 * MS, 100 * US);
    }
}

#[test]
fn other_cores_do_not_slow_each_other() {
    let work = BurnWait {
        threads: 0,
        burn: 600 * US,
        wait: Picos::ZERO,
        count: 100,
        ..BurnWait::default()
    };
    let two = tickless(2, "ticket", work);
    let outcome = run(&scenario(Host { smt_permille: 600, ..host(2, "null") }, vec![two], SEC), 1);
    near(outcome.elapsed, 60 * MS, 40 * US);
}

/// A closed queueing network of one server: `n` tasks compute for B on one vCPU and think for Z.
/// With fixed B and Z, tasks fall into a pattern without waits if they fit. So the throughput is the
/// asymptotic bound itself: min(n / (B + Z), 1 / B) (Denning and Buzen 1978). B is the burn and the
/// kernel's work for it: two task switches of 2 us, a timer interrupt of 1 us, two programmings of the
/// timer of 0.5 us each, together 6 us, and some memory operations. So B is 1 ms to 1.01 ms.
#[test]
fn throughput_of_a_closed_network_is_its_asymptotic_bound() {
    let items = |threads: u32| {
        let work = BurnWait { threads, burn: MS, wait: 9 * MS, count: 0, ..BurnWait::default() };
        let guest = tickless(1, "ticket", work);
        let outcome = run(&scenario(host(1, "null"), vec![guest], SEC), 1);
        let d = &outcome.domains[0];
        (d.tasks.iter().map(|t| t.items).sum::<u64>(), d.vcpus[0].running)
    };
    let (light, busy) = items(4);
    // 4 tasks in 1 s: each completes an item every 10 to 10.02 ms. The first items wait for each other.
    assert!((4 * 99..=4 * 100).contains(&light), "{light}");
    near(busy, SEC * 4 / 10, 10 * MS);
    let (heavy, busy) = items(20);
    // The vCPU is never idle: 1 s / (1 ms to 1.01 ms).
    assert!((990..=1000).contains(&heavy), "{heavy}");
    assert_eq!(busy, SEC - FIRST_DISPATCH);
}

/// The outcome for a vCPU that computes for 1 ms and sleeps for 9 ms, on one pCPU with a hog.
fn sleeper_and_hog(scheduler: &str) -> Outcome {
    let work = BurnWait { threads: 1, burn: MS, wait: 9 * MS, count: 100, ..BurnWait::default() };
    let sleeper = tickless(1, "ticket", work);
    let outcome =
        run(&scenario(host(1, scheduler), vec![sleeper, tickless(1, "ticket", hog())], 3 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    outcome
}

/// Costs of the host and the kernel around the 100 items. For each item they are two vCPU switches of 2 us,
/// the kernel's work of 6 us as above, and an interrupt: under 20 us.
const OVERHEAD: Picos = Picos::us(100 * 20);

#[test]
fn a_wakeup_waits_for_the_rest_of_the_quantum_under_round_robin() {
    let outcome = sleeper_and_hog("rr");
    // The hog is dispatched when the sleeper falls asleep, and runs for its quantum of 10 ms. The sleeper
    // wakes 9 ms later and waits for the remaining 1 ms. So an item takes 1 + 9 + 1 ms, the last one without
    // its sleep.
    near(outcome.domains[0].vcpus[0].runnable, 100 * MS, OVERHEAD + 10 * MS);
    near(outcome.elapsed, 100 * 11 * MS, OVERHEAD + 10 * MS);
}

#[test]
fn a_wakeup_is_boosted_past_the_hog_under_credit() {
    let outcome = sleeper_and_hog("credit-2008");
    // The sleeper is entitled to half of the pCPU and uses a tenth. So it has credit, and each of its wake-ups
    // preempts the hog, except before its first credits come, within two slices.
    near(outcome.domains[0].vcpus[0].runnable, Picos::ZERO, OVERHEAD + 60 * MS);
    near(outcome.elapsed, 100 * 10 * MS, OVERHEAD + 60 * MS);
}
