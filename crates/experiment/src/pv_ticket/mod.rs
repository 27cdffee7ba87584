//! Paravirtual ticket locks: published statistics computed again, the cost on threads, and guests with too
//! few CPUs under several locks.

mod capacity;
mod measure;
mod published;
mod report;
pub(crate) mod samples;
mod threads;

use super::Along;
use super::Kind;
use super::file::{self, Head};
use crate::panels::of_figures;
use crate::{Compared, Figure, KindResult, Progress, ReproduceError, Reproduction, Settings};
use capacity::Capacity;
use measure::{Measured, Sample};
use overspin_claims::{Samples, Vocabulary};
use overspin_located::LocatedError;
use overspin_native::bench::{PairedReport, Pairs, ticket_against_pv_ticket};
use overspin_report::{Block, Panel};
use overspin_runs::record::Run;
use overspin_runs::scenario_file::tree::Document;
use overspin_scenario::Scenario;
use overspin_workload::{Kernbench, Pgbench};
use published::Average;
use serde::{Deserialize, Serialize};

/// Pairs of runs on threads at the published length.
const FULL_PAIRS: usize = 300;

/// A lock, with the time that its waiters spin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name in reports.
    pub label: String,
    /// Lock algorithm.
    pub lock: String,
    /// Wait-loop iterations before a blocking lock blocks; the default is the lock's own number.
    #[serde(default)]
    pub spin_budget: Option<u32>,
}

/// A domain with an amount of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Name in reports.
    pub name: String,
    /// Domain of the scenario, which runs alone.
    pub domain: String,
    /// Clients of pgbench, or jobs of kernbench.
    pub tasks: u32,
}

/// What is compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    base: String,
    averages: Vec<Average>,
    pcpus: Vec<u32>,
    locks: Vec<Variant>,
    loads: Vec<Load>,
    #[serde(default)]
    capacity: Vec<String>,
}

/// An experiment that varies lock, load and number of pCPUs, and measures locks on threads.
#[derive(Clone, Debug)]
pub struct PvTicket {
    /// The scenario at the published length.
    scenario: Scenario,
    /// The kernel with which the others are compared.
    pub base: String,
    /// Published averages.
    pub averages: Vec<Average>,
    /// Numbers of pCPUs.
    pub pcpus: Vec<u32>,
    /// Locks to compare.
    pub locks: Vec<Variant>,
    /// Loads to compare.
    pub loads: Vec<Load>,
    /// Locks whose capacity in CPUs is determined.
    pub capacity: Vec<String>,
}

impl PvTicket {
    pub(super) fn parse(
        document: &Document,
        head: &Head,
        setup: Setup,
    ) -> Result<Self, LocatedError> {
        let fail =
            |key: &str, message: String, help: &str| file::fail(document, key, message, help);
        let compared = setup.locks.iter().enumerate();
        let compared = compared.map(|(i, v)| (format!("setup.locks.{i}.lock"), v.lock.as_str()));
        let counted = setup.capacity.iter().enumerate();
        let counted = counted.map(|(i, lock)| (format!("setup.capacity.{i}"), lock.as_str()));
        for (key, lock) in compared.chain(counted) {
            if overspin_runs::catalog::lock(lock).is_none() {
                let message = format!("there is no lock `{lock}`");
                return fail(&key, message, "see `overspin list locks`");
            }
        }
        for (i, load) in setup.loads.iter().enumerate() {
            let domain = head.scenario.domains.iter().find(|d| d.name == load.domain);
            let known = domain.is_some_and(|d| {
                d.workload.get::<Pgbench>().is_some() || d.workload.get::<Kernbench>().is_some()
            });
            if !known {
                let message = format!("no domain `{}` runs pgbench or kernbench", load.domain);
                let help = "name a domain of the scenario whose clients or jobs can be set";
                return fail(&format!("setup.loads.{i}.domain"), message, help);
            }
            if load.tasks == 0 {
                let message = "`tasks` is 0".into();
                return fail(
                    &format!("setup.loads.{i}.tasks"),
                    message,
                    "a load needs at least one task",
                );
            }
        }
        if let Some(i) = setup.pcpus.iter().position(|n| *n == 0) {
            let help = "guests need at least one pCPU";
            return fail(&format!("setup.pcpus.{i}"), "the number of pCPUs is 0".into(), help);
        }
        let based = |a: &&Average| published::base(&setup.averages, &setup.base, a).is_some();
        if let Some(alone) = setup.averages.iter().find(|a| !based(a)) {
            let message = format!("`{}` has no averages beside {}", setup.base, alone.place());
            let help = "setup.averages needs a row of `base` for each scale and number of clients";
            return fail("setup.base", message, help);
        }
        Ok(Self {
            scenario: head.scenario.clone(),
            base: setup.base,
            averages: setup.averages,
            pcpus: setup.pcpus,
            locks: setup.locks,
            loads: setup.loads,
            capacity: setup.capacity,
        })
    }

    /// The scenario of one run: the load's domain alone, on `pcpus` pCPUs.
    #[must_use]
    pub fn variant(&self, lock: &Variant, load: &Load, pcpus: u32, scale: u32) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.limit /= u64::from(scale.max(1));
        scenario.host.cores = pcpus;
        scenario.domains.retain(|d| d.name == load.domain);
        for domain in &mut scenario.domains {
            domain.lock.clone_from(&lock.lock);
            domain.spin_budget = lock.spin_budget;
            domain.workload.edit(|w: &mut Pgbench| w.clients = load.tasks);
            domain.workload.edit(|w: &mut Kernbench| w.jobs = load.tasks);
        }
        scenario
    }
}

impl Kind for PvTicket {
    fn vocabulary(&self) -> Vocabulary {
        samples::vocabulary(self)
    }

    fn measures_threads(&self) -> bool {
        true
    }

    fn picture(&self) -> (&str, &str) {
        ("improvement_percent", "improvement over the base kernel, without a hypervisor [%]")
    }

    fn panels(&self, result: &Reproduction) -> Vec<Panel> {
        let (metric, words) = self.picture();
        let label = |f: &Compared| (f.metric == metric).then(|| f.place.clone());
        let mut improvements = of_figures(result, words, label);
        // These follow from other published figures; nothing here is simulated.
        improvements.series[1].0 = "computed again".into();
        vec![report::overcommit(self, &result.samples), improvements]
    }

    fn along(&self) -> Vec<Along> {
        vec![Along {
            metrics: [("of-best", "rate, of the best"), ("wait-p999", "p99.9 wait")]
                .map(|(metric, title)| (metric.into(), title.into()))
                .into(),
            only: Vec::new(),
            words: 3,
            x: 2,
            title: "pCPUs of the host".into(),
            plots: vec![1],
        }]
    }

    fn run(
        &self,
        head: &Head,
        settings: Settings<'_>,
        progress: Progress<'_>,
    ) -> Result<KindResult, ReproduceError> {
        let scale = settings.scale(head);
        let mut jobs = Vec::new();
        for lock in &self.locks {
            for load in &self.loads {
                for &pcpus in &self.pcpus {
                    let seeds = settings.seeds(head).into_iter();
                    jobs.extend(seeds.map(|seed| (lock, load, pcpus, seed)));
                }
            }
        }
        let mut pairs = Pairs::default();
        if settings.full {
            pairs.pairs = FULL_PAIRS;
        }
        let (runs, total) = (jobs.len(), jobs.len() + pairs.total());
        let one = |(lock, load, pcpus, seed): &(&Variant, &Load, u32, u64)| {
            let scenario = self.variant(lock, load, *pcpus, scale);
            let run = || format!("{}, {}, {pcpus} pCPUs", lock.label, load.name);
            let outcome = settings.simulate(&scenario, *seed, run)?;
            let place = format!("{}.{}.pcpus-{pcpus}", lock.label, load.name);
            let sample = Sample::new(&lock.label, &load.name, *pcpus, &outcome);
            Ok((sample, Run { place, ..Run::of(&outcome) }))
        };
        let made = settings.all(&jobs, &|done, _| progress(done, total), one)?;
        let (samples, mut all) = made.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        // Threads run after the simulations, which use all CPUs.
        let mut tell = |done: usize, _: usize| progress(runs + done, total);
        let threads = ticket_against_pv_ticket(&pairs, &mut tell)?;
        let capacities: Vec<Capacity> =
            self.capacity.iter().filter_map(|lock| capacity::of(lock)).collect();
        all.extend(others(&threads, &capacities));
        let (samples, details) = assemble(self, &head.figures, &samples, &threads, &capacities);
        Ok(KindResult { limit_s: None, samples, runs: all, details })
    }
}

/// The runs that are not simulated.
fn others(threads: &PairedReport, capacities: &[Capacity]) -> impl Iterator<Item = Run> {
    let pairs = threads.points.iter().map(|point| {
        let (section, outside) = (point.section_ns, point.outside_ns);
        format!("threads-{}.section-{section}ns.outside-{outside}ns", point.threads)
    });
    let capacities = capacities.iter().map(|c| format!("{}.cpus-{}", c.lock, c.cpus));
    pairs.chain(capacities).map(|place| Run { place, ..Run::default() })
}

/// The samples and blocks of the computed, simulated and measured results.
fn assemble(
    experiment: &PvTicket,
    figures: &[Figure],
    samples: &[Sample],
    threads: &PairedReport,
    capacities: &[Capacity],
) -> (Samples, Vec<Block>) {
    let measured = Measured::new(experiment, samples);
    let cost = threads::cost(threads);
    let samples = samples::samples(&measured, samples, threads, &cost, capacities);
    let details = report::blocks(figures, &samples, &measured, threads, &cost);
    (samples, details)
}

#[cfg(test)]
mod tests;
