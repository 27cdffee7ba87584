//! Events, lock operations and simulated seconds that the simulator does in a second.

use super::{BenchResult, Limit, REPETITIONS};
use overspin_host::{Observer, Refused, Timed, World};
use overspin_runs::catalog;
use overspin_scenario::{
    Costs, Domain, Host, Kernel, MS, Outcome, PauseLoopExiting, Picos, SEC, Scenario, Settings, US,
    Workloads,
};
use overspin_sim::Simulator;
use overspin_workload::{BurnWait, LockLoop};
use std::time::Instant;

/// The name of the figure of a lock alone on its vCPU, without the lock's name.
const UNCONTENDED: &str = "uncontended, lock operations: ";
/// The least rate of the slowest lock's uncontended operations, relative to lock-byte's.
const SLOWEST_LOCK: f64 = 1.0 / 3.0;

/// A named scenario and the figures read from its run.
struct Case {
    scenario: Scenario,
    figures: Vec<Figure>,
}

impl Case {
    /// Takes the figures of a run that began at `begin`.
    fn measured(&mut self, outcome: &Outcome, begin: Instant) {
        let wall = begin.elapsed().as_secs_f64();
        for f in &mut self.figures {
            f.samples.push((f.read)(outcome, wall));
        }
    }
}

struct Figure {
    name: String,
    unit: &'static str,
    target: Option<f64>,
    at_most: bool,
    /// From the outcome and the wall seconds.
    read: fn(&Outcome, f64) -> f64,
    samples: Vec<f64>,
}

impl Figure {
    fn new(
        name: String,
        unit: &'static str,
        target: Option<f64>,
        read: fn(&Outcome, f64) -> f64,
    ) -> Self {
        Self { name, unit, target, at_most: false, read, samples: Vec::new() }
    }

    fn finish(self) -> BenchResult {
        let limit = match self.target {
            Some(target) if self.at_most => Limit::AtMost(target),
            Some(target) => Limit::AtLeast(target),
            None => Limit::None,
        };
        BenchResult::of(self.name, self.samples, self.unit, limit)
    }
}

fn events(o: &Outcome, wall: f64) -> f64 {
    o.events as f64 / wall / 1e6
}

fn lock_operations(o: &Outcome, wall: f64) -> f64 {
    let locks = o.domains.iter().flat_map(|d| &d.locks);
    locks.map(|l| l.acquisitions).sum::<u64>() as f64 / wall / 1e6
}

fn simulated_seconds(o: &Outcome, wall: f64) -> f64 {
    o.elapsed.seconds() / wall
}

/// Peak resident memory of this process so far, in MiB; 0 where the system does not report it.
fn peak_memory(_: &Outcome, _: f64) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Without noise: the benchmark measures the engine, and its figures stay comparable.
fn host(pcpus: u32) -> Host {
    Host {
        sockets: 1,
        cores: pcpus,
        threads: 1,
        smt_permille: 600,
        governor: None,
        scheduler: "credit".into(),
        params: Settings::new(),
        costs: Costs::default(),
        ..Host::default().undisturbed()
    }
}

fn scenario(
    pcpus: u32,
    domains: u32,
    vcpus: u32,
    hz: u32,
    limit: Picos,
    workload: &Workloads,
) -> Scenario {
    Scenario::new(
        "bench",
        host(pcpus),
        (0..domains)
            .map(|i| Domain {
                kernel: Kernel { hz, ..Kernel::default() },
                ..Domain::new(format!("d{i}"), vcpus, "ticket", workload.clone())
            })
            .collect(),
        limit,
    )
}

fn lock_loop(vcpus: u32, count: u64) -> Scenario {
    let workload = Workloads::from(LockLoop {
        section: Picos::ZERO,
        outside: Picos::ZERO,
        fixed: true,
        irqs_off: false,
        count: count / u64::from(vcpus),
        ..LockLoop::default()
    });
    scenario(vcpus, 1, vcpus, 1000, 3600 * SEC, &workload)
}

/// Every lock, alone on its vCPU.
fn every_lock(count: u64) -> impl Iterator<Item = Case> {
    catalog::names().locks().map(move |(lock, _)| {
        let mut scenario = lock_loop(1, count);
        scenario.domains[0].lock = lock.name.into();
        let name = format!("{UNCONTENDED}{}", lock.name);
        Case { scenario, figures: vec![Figure::new(name, "M/s", None, lock_operations)] }
    })
}

fn contention(vcpus: u32, count: u64) -> Case {
    let what = match vcpus {
        1 => "uncontended ticket lock".into(),
        n => format!("{n} vCPUs contend on a ticket lock"),
    };
    let (event_target, lock_target) = match vcpus {
        1 => (None, Some(40.0)),
        4 => (Some(12.0), Some(6.0)),
        64 => (Some(8.0), None),
        _ => (None, None),
    };
    let mut figures = Vec::new();
    if vcpus > 1 {
        figures.push(Figure::new(format!("{what}: engine events"), "M/s", event_target, events));
    }
    figures.push(Figure::new(
        format!("{what}: lock operations"),
        "M/s",
        lock_target,
        lock_operations,
    ));
    Case { scenario: lock_loop(vcpus, count), figures }
}

/// Four vCPUs that contend, with other observers than the other cases.
fn contention_observed(how: &str) -> Case {
    let mut case = contention(4, 2_000_000);
    for f in &mut case.figures {
        f.name = f.name.replace("contend on", &format!("contend, {how}, on"));
        f.target = None;
    }
    case
}

/// Guests that want four times the pCPUs that exist, and spin for most of that time. Each spinner exits to
/// the host every few microseconds. The host replaces it with another spinner (a plain yield) or with the
/// next holder (a directed yield).
fn crowded_host(scheduler: &str, directed_yield: bool) -> Case {
    let workload =
        Workloads::from(LockLoop { section: 2 * US, outside: 10 * US, ..LockLoop::default() });
    let mut scenario = scenario(32, 8, 16, 1000, 200 * MS, &workload);
    scenario.host.scheduler = scheduler.into();
    scenario.host.pause_loop_exiting = Some(PauseLoopExiting::default());
    scenario.host.directed_yield = directed_yield;
    let yields = if directed_yield { "directed" } else { "plain" };
    let name = format!(
        "8 domains x 16 vCPUs on 32 pCPUs, ticket, pause-loop exits, {scheduler}, {yields} yields"
    );
    let simulated =
        Figure::new(format!("{name}: simulated time"), "s/s", Some(1.0), simulated_seconds);
    Case { scenario, figures: vec![simulated] }
}

fn large_host() -> Case {
    let workload = Workloads::from(BurnWait {
        threads: 0,
        burn: 300 * US,
        wait: 2 * MS,
        count: 0,
        ..BurnWait::default()
    });
    let name = "1,000 pCPUs x 10,000 vCPUs burn and wait";
    let mut memory = Figure::new(format!("{name}: peak memory"), "MiB", Some(2048.0), peak_memory);
    memory.at_most = true;
    Case {
        // Long enough that making 20,000 stacks, a third of a second, hardly matters.
        scenario: scenario(1000, 2500, 4, 100, 600 * MS, &workload),
        figures: vec![Figure::new(format!("{name}: engine events"), "M/s", None, events), memory],
    }
}

/// The load of the large host on 1/250 of it, for comparison.
fn small_host() -> Case {
    let workload = Workloads::from(BurnWait {
        threads: 0,
        burn: 300 * US,
        wait: 2 * MS,
        count: 0,
        ..BurnWait::default()
    });
    Case {
        scenario: scenario(4, 10, 4, 100, 60 * SEC, &workload),
        figures: vec![Figure::new(
            "4 pCPUs x 40 vCPUs burn and wait: engine events".into(),
            "M/s",
            None,
            events,
        )],
    }
}

fn kernbench(scenario: Scenario) -> Case {
    Case {
        scenario,
        figures: vec![Figure::new(
            "kernbench at half load, lock-byte: simulated time".into(),
            "s/s",
            Some(20.0),
            simulated_seconds,
        )],
    }
}

/// Takes every event and keeps nothing: the cost of tracing itself, without writing.
#[derive(Debug, Default)]
struct Count(u64);

impl Observer for Count {
    fn observe(&mut self, moments: &[Timed]) {
        self.0 += moments.len() as u64;
    }
}

/// Benchmarks of the simulator. `kernbench_2008` is the 2008 experiment's half load, with byte locks. `progress` gets the
/// repetitions done and to do.
///
/// # Errors
/// If a scenario is refused, which would be a fault of this program.
pub fn sim(
    kernbench_2008: Option<Scenario>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<BenchResult>, Refused> {
    let mut cases =
        vec![contention(4, 2_000_000), contention(16, 1_000_000), contention(64, 500_000)];
    cases.push(contention(1, 8_000_000));
    cases.extend(every_lock(4_000_000));
    cases.extend(kernbench_2008.map(kernbench));
    cases.push(crowded_host("credit", false));
    cases.push(crowded_host("cfs", true));
    cases.push(small_host());
    cases.push(large_host());
    let mut traced = contention_observed("traced");
    let mut unobserved = contention_observed("unobserved");
    let rounds = REPETITIONS * (cases.len() + 2);
    let mut done = 0;
    for _ in 0..REPETITIONS {
        for case in &mut cases {
            measure(case, &mut ())?;
            done += 1;
            progress(done, rounds);
        }
        let mut sink = Count::default();
        measure(&mut traced, &mut sink)?;
        measure_alone(&mut unobserved)?;
        done += 2;
        progress(done, rounds);
    }
    cases.extend([traced, unobserved]);
    let mut results: Vec<BenchResult> =
        cases.into_iter().flat_map(|c| c.figures).map(Figure::finish).collect();
    add_ratio(&mut results);
    set_lock_targets(&mut results);
    Ok(results)
}

/// Makes a run as `overspin run` does: with hash and attribution.
fn measure(case: &mut Case, observer: &mut dyn Observer) -> Result<(), Refused> {
    let begin = Instant::now();
    let outcome = overspin_host::run(&Simulator::new(), &case.scenario, 1, observer, &())?;
    case.measured(&outcome, begin);
    Ok(())
}

/// Makes a run with no observer at all.
fn measure_alone(case: &mut Case) -> Result<(), Refused> {
    let begin = Instant::now();
    let outcome = Simulator::new().run(&case.scenario, 1, &mut (), &())?;
    case.measured(&outcome, begin);
    Ok(())
}

/// Events a second on the large host, relative to the small one, repetition by repetition.
fn add_ratio(results: &mut Vec<BenchResult>) {
    let find = |what: &str| results.iter().find(|r| r.name.starts_with(what));
    let (Some(large), Some(small)) = (find("1,000 pCPUs"), find("4 pCPUs x 40")) else { return };
    let ratios: Vec<f64> = large.samples.iter().zip(&small.samples).map(|(l, s)| l / s).collect();
    let figure = Figure {
        samples: ratios,
        ..Figure::new(
            "large host: events against the small one".into(),
            "ratio",
            Some(1.0 / 3.0),
            events,
        )
    };
    results.push(figure.finish());
}

/// Sets a target for each lock: part of what lock-byte reached in this run.
fn set_lock_targets(results: &mut [BenchResult]) {
    let byte = format!("{UNCONTENDED}lock-byte");
    let Some(byte) = results.iter().find(|r| r.name == byte).map(|r| r.value) else { return };
    for r in results.iter_mut().filter(|r| r.name.starts_with(UNCONTENDED)) {
        r.target = Some(byte * SLOWEST_LOCK);
    }
}
