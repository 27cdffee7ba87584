//! The worlds `threads` and `processes`: scenarios on this machine, under its own kernel.
//!
//! Each task of a domain is a thread, kept to as many CPUs as the scenario has pCPUs. In `threads` all of them belong to
//! this process, in `processes` each domain is a process of its own. The kernel of the machine is hypervisor and guest
//! kernel at once. Locks are those of the registry, work is a calibrated loop, weights are nice values.
//! `docs/worlds.md` says what the worlds can and cannot do.
//!
//! Start reading at `run.rs` (who is there, and when it is over), then `task.rs` (a thread, and what its program can
//! ask), `locks.rs` and `platform.rs`. `switches.rs`, `trace.rs` and `moments.rs` make the stream of moments,
//! `outcome.rs` the outcome. `processes.rs` starts a process for each domain, `domain_process.rs` is its life.

mod burn;
mod control_group;
mod domain_process;
mod kernel;
mod locks;
mod moments;
mod outcome;
mod platform;
mod processes;
mod run;
mod semaphores;
mod supports;
mod switches;
mod task;
mod trace;

pub use control_group::{ControlGroup, Share, Throttling};
pub use kernel::own_nice;
pub use platform::RunThreads;
pub use processes::ProcessesWorld;
pub use supports::{narrowed_weights, refused_caps};
pub use switches::{Switch, SwitchKind, Switches, has_cpu, migrations};
pub use trace::{Held, INTEREST, Trace, VcpuTrace};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World};
use overspin_locks::RawLock;
use overspin_scenario::{Domain, Ending, Host, Outcome, Picos, Scenario};
use overspin_workload::{Kinds, LayoutOf, Loads};

use crate::bench::warnings;
use crate::measure::allowed_cpus;
use burn::Burn;
use locks::Known;
use platform::Ending as Drain;
use run::{DomainRun, Run};

/// How often a run looks whether to stop, and reads the kernel's records.
const LOOK: Duration = Duration::from_millis(10);

/// The world of threads; see the [module](self).
#[derive(Clone, Debug, Default)]
pub struct ThreadsWorld {
    locks: Vec<Known>,
    workloads: Kinds,
}

impl ThreadsWorld {
    /// Adds a lock of your own; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<L>(mut self) -> Self
    where
        L: RawLock<RunThreads> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        let own = Known::of::<L>();
        self.locks.retain(|known| known.info.name != own.info.name);
        self.locks.push(own);
        self
    }

    /// Replaces the kinds of workloads by these.
    #[must_use]
    pub fn with_workloads(mut self, workloads: Kinds) -> Self {
        self.workloads = workloads;
        self
    }

    fn lock(&self, name: &str) -> Option<Known> {
        let own = self.locks.iter().find(|own| own.info.name == name).copied();
        own.or_else(|| locks::registered(name))
    }

    fn lock_names(&self) -> String {
        let own = self.locks.iter().map(|own| own.info.name);
        let all = overspin_locks::infos().iter().map(|info| info.name).chain(own);
        all.collect::<Vec<_>>().join(", ")
    }
}

impl World for ThreadsWorld {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        supports::check(scenario, self)?;
        let mut ignored = Ignored::of(&supports::IGNORED, scenario);
        ignored.extend(refused_caps(scenario));
        ignored.extend(narrowed_weights(&scenario.domains));
        Ok(ignored)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let doubts = warnings().iter().map(ToString::to_string).collect();
        let machine = (Burn::calibrated(), doubts);
        self.run_beside(scenario, seed, machine, &mut *observer, (&Alone, cancel))
    }
}

/// Runs of other processes that belong to the same run of a scenario.
trait Company {
    /// Whether the tasks of this domain are ours.
    fn is_ours(&self, domain: usize) -> bool;
    /// All our tasks are there; returns when they may begin.
    fn begin(&self);
    /// Everything that is awaited of ours has ended. Whether that is the end of the run.
    fn ends_with_us(&self) -> bool;
}

/// There are no others.
struct Alone;

impl Company for Alone {
    fn is_ours(&self, _: usize) -> bool {
        true
    }
    fn begin(&self) {}
    fn ends_with_us(&self) -> bool {
        true
    }
}

/// The tasks begin when this returns.
struct Begin<'a>(&'a dyn Fn());

impl Company for Begin<'_> {
    fn is_ours(&self, _: usize) -> bool {
        true
    }
    fn begin(&self) {
        (self.0)();
    }
    fn ends_with_us(&self) -> bool {
        true
    }
}

impl ThreadsWorld {
    /// Runs it inside a virtual machine, whose CPU time may have been another's; the tasks begin when `begin` returns.
    ///
    /// # Errors
    /// As [`World::run`].
    pub fn run_as_guest(
        &self,
        scenario: &Scenario,
        seed: u64,
        begin: &dyn Fn(),
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let machine = (Burn::of_guest(), Vec::new());
        self.run_beside(scenario, seed, machine, &mut (), (&Begin(begin), cancel))
    }

    /// Runs the domains that are ours. The outcome has all domains.
    fn run_beside(
        &self,
        scenario: &Scenario,
        seed: u64,
        (burn, doubts): (Burn, Vec<String>),
        observer: &mut dyn Observer,
        (company, cancel): (&dyn Company, &dyn Cancel),
    ) -> Result<Outcome, Refused> {
        let loads = supports::check(scenario, self)?;
        let cpus = cpus(&scenario.host)?;
        let wanted = observer.interest().meets(INTEREST);
        let domains = self.domains(scenario, &loads, &cpus);
        let run = Arc::new(Run::new(seed, burn, (scenario.host.stagger, wanted), domains));
        let ending = make(&run, scenario, &loads, (company, cancel))?;
        let measured = outcome::Measured { cpus: &cpus, doubts, ending };
        Ok(measured.outcome(&run, observer))
    }
}

/// Starts the tasks, waits for the end, and ends the threads.
fn make(
    run: &Arc<Run>,
    scenario: &Scenario,
    loads: &[Loads],
    (company, cancel): (&dyn Company, &dyn Cancel),
) -> Result<(Ending, Picos), Refused> {
    if scenario.limit == Picos::ZERO {
        return Ok((Ending::Limit, Picos::ZERO));
    }
    // Nobody waits for endless domains if there are others.
    let finite = loads.iter().any(|load| !load.is_endless());
    for (d, (load, domain)) in loads.iter().zip(&scenario.domains).enumerate() {
        for first in load.start(domain.vcpus).into_iter().filter(|_| company.is_ours(d)) {
            let awaited = first.awaited && !(finite && load.is_endless());
            let whose = (d, Arc::clone(&first.vcpus), awaited);
            run.start(whose, first.start.name, first.start.vcpu, first.start.program);
        }
    }
    company.begin();
    run.go();
    let mut end_of_warmup = Some(scenario.warmup(!finite)).filter(|at| *at > Picos::ZERO);
    let ending = loop {
        let (news, now) = (run.news(), run.now());
        run.look();
        if end_of_warmup.is_some_and(|at| at <= now) {
            end_of_warmup = None;
            run.count_from_here();
            outcome::read_throttling(run, 0);
        }
        if run.failure().is_some() {
            break Ending::Limit;
        }
        if run.has_finished() && !scenario.to_the_limit && company.ends_with_us() {
            break Ending::Finished;
        }
        if now >= scenario.limit {
            break Ending::Limit;
        }
        if let Some(by) = cancel.asked(now) {
            break Ending::Stopped { by };
        }
        outcome::read_switches(run);
        let next = end_of_warmup.map_or(scenario.limit, |at| at.min(scenario.limit));
        let left = Duration::from_nanos(next.saturating_sub(now).0.div_ceil(1_000));
        run.wait_for_news(news, left.min(LOOK));
    };
    let at = run.now();
    run.look();
    outcome::close_accounts(run);
    let _drain = Drain::begin();
    run.end();
    run.join();
    match run.failure() {
        None => Ok((ending, at)),
        Some(cause) => {
            let remedy = "look whether this process may have so many threads and these CPUs".into();
            Err(Refused::Machine { cause, remedy })
        }
    }
}

/// The CPUs that stand for the pCPUs of `host`: the first ones that this process may use.
///
/// # Errors
/// If there are too few.
pub fn cpus(host: &Host) -> Result<Vec<usize>, Refused> {
    let allowed = allowed_cpus().map_err(|e| Refused::Machine {
        cause: format!("cannot tell which CPUs this process may use: {e}"),
        remedy: "a measured world needs them; run it in the world `sim`".into(),
    })?;
    let wanted = host.pcpus() as usize;
    if allowed.len() < wanted {
        let (n, s) = (allowed.len(), if allowed.len() == 1 { "" } else { "s" });
        return Err(Refused::Machine {
            cause: format!(
                "the scenario has {wanted} pCPUs, but this process may use only {n} CPU{s} of this machine"
            ),
            remedy: format!(
                "run it on a larger machine, in the world `sim`, or with --set host.cores={n} --set \
                 host.sockets=1 --set host.threads=1 (a .bench file: with fewer `Cpus`)"
            ),
        });
    }
    Ok(allowed.into_iter().take(wanted).collect())
}

/// Where the thread of a vCPU runs, and how it is weighed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The CPUs of this machine that it may use.
    pub cpus: Vec<usize>,
    /// Its nice value.
    pub nice: i32,
}

/// The weight of a vCPU.
fn weight(domain: &Domain, vcpu: u32) -> u32 {
    domain.weights.get(vcpu as usize).copied().unwrap_or(domain.weight)
}

/// The weights of all vCPUs of these domains.
pub fn weights<'a>(domains: impl IntoIterator<Item = &'a Domain>) -> impl Iterator<Item = u32> {
    domains.into_iter().flat_map(|d| (0..d.vcpus).map(move |v| weight(d, v)))
}

/// The places of a domain's vCPUs, if `cpus` stand for the pCPUs of its scenario; `heaviest` is the weight that has the nice
/// value of the calling thread. [`narrowed_weights`] says if there are too few nice values beyond that.
#[must_use]
pub fn places(scenario: &Scenario, domain: &Domain, cpus: &[usize], heaviest: u32) -> Vec<Place> {
    let host = &scenario.host;
    let in_other_pools: Vec<u32> = host.pools.iter().flat_map(|p| p.cpus.clone()).collect();
    let pool = match host.pool(domain.pool) {
        Some(pool) => pool.cpus.clone(),
        None => (0..host.pcpus()).filter(|p| !in_other_pools.contains(p)).collect(),
    };
    let of_vcpu = |v: u32| {
        let wanted = domain.affinity.get(v as usize).filter(|list| !list.is_empty());
        let both = pool.iter().filter(|p| wanted.is_none_or(|list| list.contains(p)));
        let cpus = both.filter_map(|p| cpus.get(*p as usize)).copied().collect();
        let nice = kernel::own_nice() + kernel::steps(weight(domain, v), heaviest);
        Place { cpus, nice: nice.min(kernel::LAST_NICE) }
    };
    (0..domain.vcpus).map(of_vcpu).collect()
}

impl ThreadsWorld {
    fn domains(&self, scenario: &Scenario, loads: &[Loads], cpus: &[usize]) -> Vec<DomainRun> {
        let heaviest = weights(&scenario.domains).max().unwrap_or(1);
        let one = |(domain, loads): (&Domain, &Loads)| {
            let lock_names = loads.lock_names();
            let words = loads.layout(LayoutOf::types::<AtomicUsize, AtomicUsize>());
            let words = words.map_or(0, |layout| layout.words.len());
            DomainRun {
                name: domain.name.clone(),
                vcpus: domain.vcpus,
                places: places(scenario, domain, cpus, heaviest),
                // `supports` has said why if there is none.
                group: (domain.cap > 0)
                    .then_some(Share { cap: domain.cap, weight: None })
                    .and_then(|share| ControlGroup::new(share).ok()),
                capped: domain.capped_vcpus(),
                throttling: Mutex::default(),
                // `supports::check` has found the lock.
                bank: self.lock(&domain.lock).expect("the lock was checked").bank(
                    lock_names.len(),
                    domain.spin_budget,
                    domain.nopvspin,
                ),
                lock_names,
                words: (0..words).map(|_| AtomicUsize::new(0)).collect(),
                semaphores: semaphores::Semaphores::default(),
                awaited: AtomicUsize::new(0),
                finished: Mutex::default(),
            }
        };
        scenario.domains.iter().zip(loads).map(one).collect()
    }
}

/// A value behind a lock that nobody leaves in disorder.
fn of<T: Clone>(value: &Mutex<T>) -> T {
    value.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn picos(ns: u64) -> Picos {
    Picos(ns.saturating_mul(1_000))
}

/// A flag that stands alone.
fn is_set(flag: &std::sync::atomic::AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{Pool, Settings, Workloads};

    #[test]
    fn a_vcpu_has_its_place_in_its_pool() {
        let pool = Pool {
            name: "p".into(),
            cpus: vec![1, 3],
            scheduler: "credit".into(),
            params: Settings::new(),
        };
        let host = Host { cores: 4, pools: vec![pool], ..Host::default() };
        let domain = Domain::new("d", 2, "ticket", Workloads(Vec::new()));
        let light = Domain { pool: 1, affinity: vec![vec![0, 3], vec![]], ..domain.clone() };
        // The heavier one has the host's own pool. 1024 is three times 335, which is five nice values.
        let heavy = Domain { weight: 1024, ..domain };
        let light = Domain { weight: 335, ..light };
        let scenario = Scenario::new("s", host, vec![heavy, light], Picos::sec(1));
        let of = |d: usize| places(&scenario, &scenario.domains[d], &[10, 11, 12, 13], 1024);
        let nice = |steps: i32| (own_nice() + steps).min(19);
        let place = |cpus: &[usize], steps| Place { cpus: cpus.to_vec(), nice: nice(steps) };
        assert_eq!(of(0), [place(&[10, 12], 0), place(&[10, 12], 0)]);
        assert_eq!(of(1), [place(&[13], 5), place(&[11, 13], 5)]);
    }
}
