//! One pCPU as a server of queueing theory, and the shares promised by weights and caps.
//!
//! Each of `N` domains, of one vCPU, sleeps for an exponential time and then asks for service. Its runnable
//! time is its waiting time in the queue. If schedulers, kernels and the machine cost nothing and `N` is
//! large, this is an open queue with Poisson arrivals. For exponential service the tests use the closed
//! form for a finite number of sources instead.
//!
//! Sources: Kleinrock, Queueing Systems I (1975), §3.8 for M/M/1//N, §5.6 for the mean value of
//! Pollaczek and Khinchine, and II (1976), §4.4 for processor sharing.

use crate::common::{domain, hog, host, near, run, scenario, tickless};
use overspin_scenario::{Costs, Domain, Host, Kernel, MS, Outcome, Picos, SEC, Setting, US};
use overspin_workload::{BurnWait, Distribution};

const SOURCES: u32 = 200;
/// Mean service time.
const SERVICE: Picos = MS;

/// A machine on which only work takes time. The few memory operations of a wake-up, 0.5 ns each, are about
/// a millionth of an item.
fn free() -> Costs {
    Costs {
        context_switch: Picos::ZERO.into(),
        hypercall: Picos::ZERO.into(),
        ipi: Picos::ZERO.into(),
        interrupt: Picos::ZERO,
        migration: Picos::ZERO,
        atomic: Picos::ZERO,
        ..Costs::default()
    }
}

/// Mean wait in the queue, in service times, and its standard error, from `runs` runs of 10 s. `permille` is
/// the load that the sources would make if they never waited.
fn wait(runs: u64, quantum: Picos, service: Distribution, permille: u64) -> (f64, f64) {
    let work = BurnWait {
        threads: 1,
        burn: SERVICE,
        wait: (u64::from(SOURCES) * 1000 - permille) * SERVICE / permille,
        count: 0,
        burn_distribution: service,
        burn_quantiles: None,
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

/// Mean wait in M/M/1//N, in service times, for a think time of `think` service times. If `p(k)` is the
/// probability of `k` in the system, `p(k) = p(k-1) (N - k + 1) / think`. The wait is the mean number of
/// waiting sources over the throughput (Little).
fn finite_source(think: f64) -> f64 {
    let (mut p, mut sum, mut waiting) = (1.0, 1.0, 0.0);
    for k in 1..=SOURCES {
        p *= f64::from(SOURCES - k + 1) / think;
        sum += p;
        waiting += p * f64::from(k - 1);
    }
    // Throughput: the server is busy unless the system is empty.
    waiting / (sum - 1.0)
}

/// The think time, in service times, of the load `permille` in [`wait`].
fn think(permille: u64) -> f64 {
    f64::from(SOURCES) * 1000.0 / permille as f64 - 1.0
}

/// Checks that `measured` is `expected`, except for chance (three standard errors, which must themselves be
/// small) and for `bias`, a fraction of `expected`.
#[track_caller]
fn agrees((measured, error): (f64, f64), expected: f64, bias: f64) {
    assert!(error < 0.04 * expected, "the runs are too short: {measured} +- {error}");
    let off = (measured - expected).abs();
    assert!(off < 3.0 * error + bias * expected, "{measured} +- {error}, expected {expected}");
}

/// A quantum longer than any item, which gives first come, first served.
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
    // The finite form is near that of the open queue: rho / (1 - rho), which is 1 for a load of a half.
    assert!((finite_source(think(500)) - 1.0).abs() < 0.05);
}

/// With constant service times the wait is half of that: rho / 2 (1 - rho). The finite number of sources
/// shortens it, but by a smaller part than with exponential service, where longer queues keep more
/// sources from asking.
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

/// Short quanta are processor sharing, where the wait depends on the mean service only. It equals that of
/// M/M/1 for any distribution; for fixed service it is twice that of first come, first served. This holds
/// for finite sources too (the network has a product form). A quantum of a twentieth of the service
/// adds an error of about half a quantum for each source in the system, two on average.
#[test]
fn short_quanta_are_processor_sharing() {
    for service in [Distribution::Fixed, Distribution::Exponential] {
        agrees(wait(8, 50 * US, service, 500), finite_source(think(500)), 0.03);
    }
}

/// The largest error of a vCPU's time after 100 s. `credit`: 90 ms, see `shares.rs`. `credit2`: a slice and
/// a reset of credits, 10 ms each. `cfs` and `eevdf`: a slice and a tick, 4 to 6 ms each; a cap is a quota
/// for each 100 ms.
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
    // `credit` gives each of four vCPUs a slice of 30 ms in turn. So the fourth cannot use the five
    // eighths of 120 ms that it is owed, and loses the rest of its credit. The others charge exactly.
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
        // A quarter of the time stays unused.
        shares(&[10, 25, 40], &[10 * SEC, 25 * SEC, 40 * SEC]);
        // Equal weights: a domain whose cap is below an equal part of the remaining time gets its cap; 10
        // is less than 100 / 4, 25 less than 90 / 3, and 40 more than 65 / 2.
        shares(&[10, 25, 40, 0], &[10 * SEC, 25 * SEC, 32_500 * MS, 32_500 * MS]);
    }
}
