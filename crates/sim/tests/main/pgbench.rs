//! Clients of a database: a closed form for one client, saturation by many, and sums that every run must
//! give.

use crate::common::{domain, host, near, pgbench, run, scenario, tickless};
use overspin_scenario::{Ending, Outcome, SEC, US};
use overspin_workload::Pgbench;

fn transactions(outcome: &Outcome) -> u64 {
    outcome.domains[0].tasks.iter().map(|t| t.items).sum()
}

#[test]
fn one_client_takes_its_work_and_two_switches_a_transaction() {
    let w = Pgbench { locks: Vec::new(), ..pgbench(1, 2000) };
    let guest = tickless(1, "ticket", w);
    let outcome = run(&scenario(host(1, "null"), vec![guest], SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    assert_eq!(transactions(&outcome), 2000);
    // 100 us of work. The server's 50 us are uniform over 50 us, the client's 10 us over 10 us. The four
    // messages are two pairs, each uniform over twice 10 us. The standard deviation is
    // sqrt((50^2 + 10^2 + 2 x 20^2) / 12) = 16.8 us, 0.75 ms over 2000 transactions. A switch to each
    // side takes 2 us. The wake-ups and switches take the run queue's lock, all hits: at most 1 us for
    // both sides together.
    let work = 2000 * 100 * US;
    let switches = 2000 * 2 * 2 * US;
    near(outcome.elapsed, work + switches + 2000 * US / 2, 2000 * US / 2 + 3 * 750 * US);
}

#[test]
fn every_client_gets_its_transactions_from_a_process_of_its_own() {
    for (clients, workers) in [(7, 1), (7, 3), (3, 8)] {
        let w = Pgbench { workers, ..pgbench(clients, 20) };
        let guest = domain(2, "lock-byte", w);
        let outcome = run(&scenario(host(2, "credit"), vec![guest], SEC), 1);
        assert_eq!(outcome.ending, Ending::Finished, "{clients} clients");
        let tasks = &outcome.domains[0].tasks;
        let server: Vec<u64> =
            tasks.iter().filter(|t| t.name.starts_with("postgres")).map(|t| t.items).collect();
        assert_eq!(server, vec![20; clients as usize]);
        let threads = tasks.iter().filter(|t| t.name.starts_with("pgbench")).count();
        assert_eq!(threads, workers.min(clients) as usize);
    }
}

#[test]
fn many_clients_keep_all_vcpus_busy_with_their_work() {
    let w = Pgbench { workers: 4, ..pgbench(32, 0) };
    let guest = tickless(4, "ticket", w);
    let outcome = run(&scenario(host(4, "null"), vec![guest], SEC / 2), 1);
    assert_eq!(outcome.ending, Ending::Limit);
    // 2 s of CPU time in transactions of at least 100 us, without switches, and at most 106 us: each of the
    // two sides adds a switch of 2 us and 1 us for locks.
    let most = 2 * SEC / (100 * US);
    let least = 2 * SEC / (106 * US);
    let done = transactions(&outcome);
    assert!((least * 98 / 100..=most).contains(&done), "{done} of {least} to {most}");
    // 40 us in the kernel for each transaction. An acquisition comes every 20 us, plus the 1 us for which it
    // holds the lock: the gap does not run during a section.
    let hot = &outcome.domains[0].locks[0];
    let expected = done as f64 * 40.0 / 21.0;
    // Poisson, apart from the holds: the standard deviation is the square root; four of them are allowed.
    assert!((hot.acquisitions as f64 - expected).abs() < 4.0 * expected.sqrt(), "{hot:?}");
}
