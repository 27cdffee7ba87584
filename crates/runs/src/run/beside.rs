//! Runs beside a run, which answer what its reader asks next: what would it do with enough pCPUs, and with another lock?
//!
//! They are made where they take no time that a reader would notice. What is not known is left out, never guessed.

use crate::catalog::names;
use crate::runner::{Runner, Until};
use overspin_locks::find;
use overspin_scenario::{Domain, Outcome, Scenario};
use std::time::{Duration, Instant};

/// Real time for all runs beside one.
const MOST: Duration = Duration::from_millis(1500);
/// Most vCPUs for which as many pCPUs are tried.
const MOST_VCPUS: u32 = 128;

/// Locks that a guest's kernel could take instead: what Linux and Xen have had for overcommitted hosts, and a lock without
/// order.
const OF_KERNELS: [&str; 4] = ["pv-qspinlock", "pv-ticket", "xen-pv", "lock-byte"];
/// Locks that a program could take instead.
const OF_PROGRAMS: [&str; 4] = ["mutex", "futex", "flexguard", "lock-byte"];

/// The runs beside one.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The same with a pCPU for each vCPU, and their number.
    pub enough: Option<(u32, Outcome)>,
    /// The same with another lock in the domain that the answer is about.
    pub locks: Vec<(&'static str, Outcome)>,
}

impl Beside {
    /// Makes the runs beside the run of `scenario` with `seed`, which took `took` of real time. There are none in worlds that
    /// measure, and none if that run was long.
    #[must_use]
    pub fn of(
        runner: Runner,
        scenario: &Scenario,
        seed: u64,
        domain: usize,
        took: Duration,
    ) -> Self {
        let mut beside = Self::default();
        if !runner.world.is_deterministic() || took > MOST / 3 {
            return beside;
        }
        let ours = Instant::now() + MOST;
        let deadline = Some(runner.until.deadline.map_or(ours, |theirs| theirs.min(ours)));
        let runner = Runner { until: Until { deadline, ..runner.until }, ..runner };
        let run = |scenario: &Scenario| {
            let outcome = runner.run(scenario, seed, &mut (), &|_| {}).ok()?;
            outcome.ending.is_sound().then_some(outcome)
        };
        if let Some(enough) = with_enough_pcpus(scenario) {
            beside.enough = run(&enough).map(|outcome| (enough.host.pcpus(), outcome));
        }
        let Some(own) = scenario.domains.get(domain) else { return beside };
        for lock in
            others(scenario, domain).filter(|lock| Some(*lock) != find(&own.lock).map(|l| l.name))
        {
            let mut other = scenario.clone();
            other.domains[domain].lock = lock.into();
            beside.locks.extend(run(&other).map(|outcome| (lock, outcome)));
        }
        beside
    }
}

/// The locks that a domain could have instead.
fn others(scenario: &Scenario, domain: usize) -> impl Iterator<Item = &'static str> + use<> {
    let of_program = names().locks_in_user_mode(&scenario.domains[domain]);
    if of_program { OF_PROGRAMS } else { OF_KERNELS }.into_iter()
}

/// The scenario with a pCPU for each vCPU. `None` if it has enough already, or if more pCPUs would not do: vCPUs are bound
/// to some, or are kept from running by a cap.
fn with_enough_pcpus(scenario: &Scenario) -> Option<Scenario> {
    let host = &scenario.host;
    let vcpus = scenario.vcpus();
    let bound = |d: &Domain| !d.affinity.is_empty() || d.cap > 0;
    let plain =
        host.pools.is_empty() && scenario.events.is_empty() && !scenario.domains.iter().any(bound);
    if !plain || vcpus <= host.pcpus() || vcpus > MOST_VCPUS {
        return None;
    }
    let mut enough = scenario.clone();
    enough.host.cores = vcpus.div_ceil(host.sockets * host.threads);
    Some(enough)
}
