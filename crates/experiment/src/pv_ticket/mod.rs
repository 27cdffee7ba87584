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
use crate::{
    Compared, Found, Progress, ReproduceError, Reproduction, Settings, on_all_threads, raw,
};
use capacity::Capacity;
use measure::{Measured, Sample};
use overspin_claims::Vocabulary;
use overspin_located::LocatedError;
use overspin_native::bench::{PairedReport, Pairs, ticket_against_pv_ticket};
use overspin_report::Panel;
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
struct Setup {
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
    /// The part that all kinds have.
    pub head: Head,
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
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, LocatedError> {
        let (head, setup): (Head, Setup) = file::read(document, text)?;
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
            head,
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
        let mut scenario = self.head.scenario.clone();
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
    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn vocabulary(&self) -> Vocabulary {
        samples::vocabulary(self)
    }

    fn picture(&self) -> (&'static str, &'static str) {
        ("improvement_percent", "improvement over the base kernel, without a hypervisor [%]")
    }

    fn panels(&self, result: &Reproduction) -> Vec<Panel> {
        let (metric, words) = self.picture();
        let label = |f: &Compared| (f.metric == metric).then(|| f.place.clone());
        let mut improvements = of_figures(result, words, label);
        // These follow from other published figures; nothing here is simulated.
        improvements.series[1].0 = "computed again".into();
        vec![report::overcommit(self, &result.runs), improvements]
    }

    fn along(&self) -> &'static [Along] {
        &[Along {
            metrics: &[("of-best", "rate, of the best"), ("wait-p999", "p99.9 wait")],
            only: &[],
            words: 3,
            x: 2,
            title: "pCPUs of the host",
            plots: &[1],
        }]
    }

    fn run(&self, settings: Settings<'_>, progress: Progress<'_>) -> Result<Found, ReproduceError> {
        let scale = settings.scale(&self.head);
        let mut jobs = Vec::new();
        for lock in &self.locks {
            for load in &self.loads {
                for &pcpus in &self.pcpus {
                    let seeds = settings.seeds(&self.head).into_iter();
                    jobs.extend(seeds.map(|seed| (lock, load, pcpus, seed)));
                }
            }
        }
        let mut pairs = Pairs::default();
        if settings.full {
            pairs.pairs = FULL_PAIRS;
        }
        let (runs, total) = (jobs.len(), jobs.len() + pairs.total());
        let one = |(lock, load, pcpus, seed): (&Variant, &Load, u32, u64)| {
            let scenario = self.variant(lock, load, pcpus, scale);
            let run = || format!("{}, {}, {pcpus} pCPUs", lock.label, load.name);
            let outcome = settings.simulate(&scenario, seed, run)?;
            Ok(Sample::new(&lock.label, &load.name, pcpus, &outcome))
        };
        let samples =
            on_all_threads(jobs, settings.threads, &|done, _| progress(done, total), one)?;
        // Threads run after the simulations, which use all CPUs.
        let mut tell = |done: usize, _: usize| progress(runs + done, total);
        let threads = ticket_against_pv_ticket(&pairs, &mut tell)?;
        Ok(assemble(self, &samples, &threads))
    }
}

/// Assembles the computed, simulated and measured results.
fn assemble(experiment: &PvTicket, samples: &[Sample], threads: &PairedReport) -> Found {
    let measured = Measured::new(experiment, samples);
    let cost = threads::cost(threads);
    let capacities: Vec<Capacity> =
        experiment.capacity.iter().filter_map(|lock| capacity::of(lock)).collect();
    let mut runs = raw(samples);
    runs.extend(raw(&threads.points));
    runs.extend(raw(&capacities));
    let samples = samples::samples(&measured, samples, threads, &cost, &capacities);
    Found {
        limit_s: None,
        details: report::blocks(&samples, &measured, threads, &cost),
        samples,
        runs,
    }
}

#[cfg(test)]
mod tests;
