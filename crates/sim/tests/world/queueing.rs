//! One pCPU as a server of queueing theory, and the shares that weights and caps promise.
//!
//! Each of `N` domains, of one vCPU, sleeps for an exponential time and then asks for service. Its
//! runnable time is the time that it waited in the queue. Where schedulers, kernels and the machine
//! cost nothing and `N` is large this is an open queue with Poisson arrivals; for exponential service
//! the finite number of sources has a closed form of its own, which is used instead.
//!
//! Sources: Kleinrock, Queueing Systems I (1975), §3.8 for M/M/1//N, §5.6 for the mean value of
//! Pollaczek and Khinchine, and II (1976), §4.4 for processor sharing.

use crate::common::{domain, hog, host, near, run, scenario, tickless};
use overspin_scenario::{Costs, Domain, Host, Kernel, MS, Outcome, Picos, SEC, Setting, US};
use overspin_workload::{BurnWait, Distribution};

const SOURCES: u32 = 200;
/// Mean service time.
const SERVICE: Picos = MS;

/// A machine on which only work takes time: the few memory operations of a wake-up, half a
/// nanosecond each, are a millionth of an item.
fn free() -> Costs {
    Costs {
        context_switch: Picos::ZERO,
        hypercall: Picos::ZERO,
        ipi: Picos::ZERO,
        interrupt: Picos::ZERO,
        migration: Picos::ZERO,
        atomic: Picos::ZERO,
        ..Costs::default()
    }
}

/// Mean wait in the queue, in service times, and its standard error, for a load of `permille` that
/// the sources would make if they never waited, from so many runs of 10 s.
fn wait(runs: u64, quantum: Picos, service: Distribution, permille: u64) -> (f64, f64) {
    let work = BurnWait {
        threads: 1,
        burn: SERVICE,
        wait: (u64::from(SOURCES) * 1000 - permille) * SERVICE / permille,
        count: 0,
        burn_distribution: service,
        wait_distribution: Distribution::Exponential,
    };
    let kernel =
        Kernel { hz: 0, task_switch: Picos::ZERO, tick_work: Picos::ZERO, ..Kernel::default() };
    let guest = Domain { kernel, ..tickless(1, "ticket", work) };
    let params = [("quantum".to_owned(), Setting::Time(quantum))].into();
    let host = Host { costs: free(), params, ..host(1, "rr") };
    let queue = scenario(host, vec![guest; SOURCES as usize], 10 * SEC);
    let means: Vec<f64> = (1..=runs).map(|seed| mean_wait(&run(&queue, seed))).collect();
    let mean = means.iter().sum::<f64>() / runs as f64;
    let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
    (mean, (squares / (runs - 1) as f64 / runs as f64).sqrt())
}

fn mean_wait(outcome: &Outcome) -> f64 {
    let items: u64 = outcome.domains.iter().flat_map(|d| &d.tasks).map(|t| t.items).sum();
    let waited: Picos = outcome.domains.iter().flat_map(|d| &d.vcpus).map(|v| v.runnable).sum();
    assert!(items > 1000);
    waited.ratio(SERVICE) / items as f64
}

/// Mean wait in M/M/1//N, in service times, for a think time of `think` service times. With `p(k)`
/// the probability of `k` in the system, `p(k) = p(k-1) (N - k + 1) / think`; the wait is the mean
/// number that waits over the throughput (Little).
fn finite_source(think: f64) -> f64 {
    let (mut p, mut sum, mut waiting) = (1.0, 1.0, 0.0);
    for k in 1..=SOURCES {
        p *= f64::from(SOURCES - k + 1) / think;
        sum += p;
        waiting += p * f64::from(k - 1);
    }
    // Throughput: the server is busy unless nobody is there.
    waiting / (sum - 1.0)
}

/// `think` as in [`wait`].
fn think(permille: u64) -> f64 {
    f64::from(SOURCES) * 1000.0 / permille as f64 - 1.0
}

/// `measured` is `expected`, but for chance (three standard errors, which must be small themselves)
/// and `bias`, a part of it.
#[track_caller]
fn agrees((measured, error): (f64, f64), expected: f64, bias: f64) {
    assert!(error < 0.04 * expected, "the runs are too short: {measured} +- {error}");
    let off = (measured - expected).abs();
    assert!(off < 3.0 * error + bias * expected, "{measured} +- {error}, expected {expected}");
}

/// Longer than any item: first come, first served.
const FIFO: Picos = Picos::sec(10);

#[test]
fn exponential_service_first_come_first_served_is_m_m_1() {
    for permille in [300, 500, 700] {
        agrees(
            wait(16, FIFO, Distribution::Exponential, permille),
            finite_source(think(permille)),
            0.0,
        );
    }
    // And that is near the open queue: rho / (1 - rho), 1 for a half.
    assert!((finite_source(think(500)) - 1.0).abs() < 0.05);
}

/// With service that does not vary the wait is half of that: rho / 2 (1 - rho). What the finite
/// number of sources takes off is bounded by what it takes off with exponential service, where longer
/// queues keep more sources from asking.
#[test]
fn fixed_service_first_come_first_served_is_m_d_1() {
    for permille in [300, 500, 700] {
        let rho = permille as f64 / 1000.0;
        let open = rho / (1.0 - rho);
        let bias = 1.0 - finite_source(think(permille)) / open;
        assert!((0.0..0.15).contains(&bias), "{bias}");
        agrees(wait(16, FIFO, Distribution::Fixed, permille), open / 2.0, bias);
    }
}

/// Short quanta are processor sharing, where the wait depends on the mean service only: it is that
/// of M/M/1, whatever the distribution; so for fixed service twice that of first come, first served.
/// For finite sources too (the network has a product form). A quantum of a twentieth of the service is
/// off by half a quantum or so for each that is there, two on average.
#[test]
fn short_quanta_are_processor_sharing() {
    for service in [Distribution::Fixed, Distribution::Exponential] {
        agrees(wait(8, 50 * US, service, 500), finite_source(think(500)), 0.03);
    }
}

/// How far from its promise a vCPU's time may be after 100 s. `credit`: see `shares.rs`, 90 ms.
/// `credit2`: a slice and a reset of credits, 10 ms each. `cfs` and `eevdf`: slice and tick, 4 to 6 ms
/// each; a cap is a quota for each 100 ms.
const SLACK: Picos = Picos::ms(90);

fn running(scheduler: &str, domains: impl IntoIterator<Item = Domain>) -> Vec<Picos> {
    let domains = domains.into_iter().collect();
    let outcome = run(&scenario(host(1, scheduler), domains, 100 * SEC), 1);
    outcome.domains.iter().map(|d| d.vcpus.iter().map(|v| v.running).sum()).collect()
}

#[test]
fn weights_divide_a_pcpu_in_their_proportion() {
    let shares = |scheduler, weights: &[u32]| {
        let weighted = |w: &u32| Domain { weight: *w, ..domain(1, "ticket", hog()) };
        let total: u64 = weights.iter().copied().map(u64::from).sum();
        for (ran, w) in running(scheduler, weights.iter().map(weighted)).into_iter().zip(weights) {
            near(ran, 100 * SEC * u64::from(*w) / total, SLACK);
        }
    };
    for scheduler in ["credit", "credit2", "cfs", "eevdf"] {
        shares(scheduler, &[128, 384]);
        shares(scheduler, &[256, 256, 512]);
        shares(scheduler, &[100, 200, 300]);
    }
    // `credit` gives a slice of 30 ms to each of four in turn, so nobody can use the five eighths
    // of 120 ms that it is owed; the rest of its credit is taken away. The others charge exactly.
    for scheduler in ["credit2", "cfs", "eevdf"] {
        shares(scheduler, &[64, 128, 192, 640]);
    }
}

#[test]
fn caps_hold_whether_or_not_there_is_time_to_spare() {
    for scheduler in ["credit", "credit2", "cfs", "eevdf"] {
        let shares = |caps: &[u32], expected: &[Picos]| {
            let capped = |cap: &u32| Domain { cap: *cap, ..domain(1, "ticket", hog()) };
            let ran = running(scheduler, caps.iter().map(capped));
            ran.into_iter().zip(expected).for_each(|(ran, expected)| near(ran, *expected, SLACK));
        };
        shares(&[50], &[50 * SEC]);
        shares(&[25, 0], &[25 * SEC, 75 * SEC]);
        // A quarter of the time is left over, and stays so.
        shares(&[10, 25, 40], &[10 * SEC, 25 * SEC, 40 * SEC]);
        // Equal weights: who may have less than an equal part of what is left gets what it may; 10 is
        // less than 100 / 4, 25 less than 90 / 3, and 40 more than 65 / 2.
        shares(&[10, 25, 40, 0], &[10 * SEC, 25 * SEC, 32_500 * MS, 32_500 * MS]);
    }
}
