//! Kernbench under several locks and loads.

mod measure;
mod report;
pub(crate) mod samples;

use super::Along;
use super::Kind;
use super::file::{self, Head};
use crate::{Found, Progress, ReproduceError, Settings, on_all_threads, raw};
use measure::Sample;
use overspin_claims::Vocabulary;
use overspin_located::LocatedError;
use overspin_runs::scenario_file::tree::Document;
use overspin_scenario::Scenario;
use overspin_workload::Kernbench as Compile;
use report::Session;
use serde::{Deserialize, Serialize};

/// A load of the workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Name in figures.
    pub name: String,
    /// Name in reports.
    pub title: String,
    /// `N` of `make -jN`.
    pub jobs: u32,
}

/// What is compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    locks: Vec<String>,
    loads: Vec<Load>,
}

/// An experiment that varies the lock and the jobs of a kernbench domain.
#[derive(Clone, Debug)]
pub struct Kernbench {
    /// The part that all kinds have.
    pub head: Head,
    /// Locks to compare.
    pub locks: Vec<String>,
    /// Loads to compare, in the order in which they were run.
    pub loads: Vec<Load>,
}

impl Kernbench {
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, LocatedError> {
        let (head, setup): (Head, Setup) = file::read(document, text)?;
        if !head.scenario.domains.iter().any(|d| d.workload.get::<Compile>().is_some()) {
            let message = "no domain runs kernbench".into();
            let help = "this experiment varies the jobs of a kernbench domain";
            return file::fail(document, "scenario.domain", message, help);
        }
        for (i, lock) in setup.locks.iter().enumerate() {
            if overspin_runs::catalog::lock(lock).is_none() {
                let message = format!("there is no lock `{lock}`");
                let help = "see `overspin list locks`";
                return file::fail(document, &format!("setup.locks.{i}"), message, help);
            }
        }
        Ok(Self { head, locks: setup.locks, loads: setup.loads })
    }

    /// The scenario of one run: this lock, this load, 1/scale of the length.
    #[must_use]
    pub fn variant(&self, lock: &str, load: &Load, scale: u32) -> Scenario {
        let mut scenario = self.head.scenario.clone();
        let scale = scale.max(1);
        scenario.limit /= u64::from(scale);
        for domain in &mut scenario.domains {
            let change = |bench: &mut Compile| {
                bench.jobs = load.jobs;
                bench.units = (bench.units / scale).max(1);
            };
            if domain.workload.edit(change) {
                domain.lock = lock.to_owned();
            }
        }
        scenario
    }
}

impl Kind for Kernbench {
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
        ("elapsed_s", "elapsed time [s]")
    }

    fn along(&self) -> &'static [Along] {
        &[Along {
            metrics: &[
                ("elapsed", "elapsed"),
                ("system", "system time"),
                ("context-switches", "switches"),
            ],
            only: &[],
            words: 2,
            x: 1,
            title: "load",
            plots: &[],
        }]
    }

    fn run(&self, settings: Settings<'_>, progress: Progress<'_>) -> Result<Found, ReproduceError> {
        let scale = settings.scale(&self.head);
        let mut jobs = Vec::new();
        for lock in &self.locks {
            for load in &self.loads {
                jobs.extend(settings.seeds(&self.head).into_iter().map(|seed| (lock, load, seed)));
            }
        }
        let one = |(lock, load, seed): (&String, &Load, u64)| {
            let scenario = self.variant(lock, load, scale);
            let run = || format!("{lock}, {} load", load.name);
            let outcome = settings.simulate(&scenario, seed, run)?;
            Ok(Sample::new(lock, &load.name, &outcome, f64::from(scale)))
        };
        let runs = on_all_threads(jobs, settings.threads, progress, one)?;
        Ok(assemble(self, scale, &runs))
    }
}

/// Assembles the results.
fn assemble(experiment: &Kernbench, scale: u32, runs: &[Sample]) -> Found {
    Found {
        limit_s: Some(experiment.head.scenario.limit.seconds() / f64::from(scale)),
        samples: samples::samples(runs),
        runs: raw(runs),
        details: report::blocks(&Session { experiment, runs }),
    }
}

#[cfg(test)]
mod tests;
