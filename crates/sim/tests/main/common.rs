//! Short forms of scenarios, and a recorder of traces.

use overspin_host::{Attribution, Moment, Timed};
use overspin_scenario::{
    Costs, Domain, Host, Kernel, MS, Outcome, Picos, Scenario, Settings, US, WaitCauses, Workloads,
};
use overspin_sim::Simulator;
use overspin_workload::{BurnWait, Kernbench, KernelLock, LockLoop, Pgbench};

/// A host of `pcpus` single-threaded cores in one socket, without noise, which closed forms leave out.
pub fn host(pcpus: u32, scheduler: &str) -> Host {
    Host {
        sockets: 1,
        cores: pcpus,
        threads: 1,
        smt_permille: 650,
        governor: None,
        scheduler: scheduler.into(),
        params: Settings::new(),
        costs: Costs::default(),
        ..Host::default().undisturbed()
    }
}

/// A domain with the default weight, no cap, any pCPU, and a kernel with ticks at 1000 Hz.
pub fn domain(vcpus: u32, lock: &str, workload: impl Into<Workloads>) -> Domain {
    Domain::new("guest", vcpus, lock, workload)
}

/// Like `domain`, without ticks.
pub fn tickless(vcpus: u32, lock: &str, workload: impl Into<Workloads>) -> Domain {
    let domain = domain(vcpus, lock, workload);
    Domain { kernel: Kernel { hz: 0, ..Kernel::default() }, ..domain }
}

/// All of it counts: traces and closed forms begin at the start.
pub fn scenario(host: Host, domains: Vec<Domain>, limit: Picos) -> Scenario {
    let all = Scenario::new("test", host, domains, limit);
    Scenario { warmup: Some(Picos::ZERO), ..all }
}

/// An endless loop of one thread on each vCPU, with a random time outside and interrupts off.
pub fn lock_loop(section: Picos, outside: Picos) -> LockLoop {
    LockLoop { section, outside, ..LockLoop::default() }
}

/// One thread on each vCPU that computes without end, in items of 1 ms.
pub fn hog() -> Workloads {
    Workloads::from(BurnWait {
        threads: 0,
        burn: MS,
        wait: Picos::ZERO,
        count: 0,
        ..BurnWait::default()
    })
}

/// A small parallel compile with two kernel locks.
pub fn kernbench(jobs: u32, units: u32) -> Workloads {
    let lock = |name: &str, every, irqs_off| KernelLock {
        name: name.into(),
        hold: 2 * US,
        every,
        irqs_off,
    };
    Workloads::from(Kernbench {
        jobs,
        units,
        user: 20 * MS,
        system: 5 * MS,
        pipe_sleeps: 10,
        locks: vec![lock("zone", 100 * US, true), lock("dcache", 200 * US, false)],
    })
}

/// Clients of a database, each with `transactions` transactions of 100 us, on one thread of pgbench. Each
/// transaction takes the lock about twice.
pub fn pgbench(clients: u32, transactions: u64) -> Pgbench {
    let hot = KernelLock { name: "hot".into(), hold: US, every: 20 * US, irqs_off: true };
    Pgbench {
        clients,
        workers: 1,
        transactions,
        server: 50 * US,
        client: 10 * US,
        system: 40 * US,
        locks: vec![hot],
    }
}

/// Four vCPUs of one guest on `pcpus` pCPUs that all want one lock: the smallest case that depends on seeds.
pub fn crowd(lock: &str, pcpus: u32, limit: Picos) -> Scenario {
    let work = Workloads::from(lock_loop(5 * US, 50 * US));
    scenario(host(pcpus, "credit-2008"), vec![domain(4, lock, work)], limit)
}

#[track_caller]
pub fn run(scenario: &Scenario, seed: u64) -> Outcome {
    overspin_sim::run(scenario, seed).expect("a legal scenario")
}

/// The outcome of a run, and every moment of it.
#[track_caller]
pub fn traced(scenario: &Scenario, seed: u64) -> (Outcome, Vec<(Picos, Moment)>) {
    let mut moments: Vec<Timed> = Vec::new();
    let outcome = overspin_host::run(&Simulator::new(), scenario, seed, &mut moments, &())
        .expect("a legal scenario");
    (outcome, moments.into_iter().map(|t| (t.at, t.moment)).collect())
}

/// For each moment of a run: the causes of the wait that ended in it, if any.
pub fn waited(scenario: &Scenario, moments: &[(Picos, Moment)]) -> Vec<Option<WaitCauses>> {
    let mut attribution = Attribution::new(scenario);
    moments.iter().map(|(at, moment)| attribution.record(*at, moment)).collect()
}

/// `actual` is within `slack` of `expected`.
#[track_caller]
pub fn near(actual: Picos, expected: Picos, slack: Picos) {
    let off = actual.abs_diff(expected);
    assert!(off <= slack, "{actual} is {off} ps off {expected}, more than {slack}");
}
