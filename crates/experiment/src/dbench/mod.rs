//! dbench with locks that lie among other data, or in their own cache lines.

mod measure;
mod report;
pub(crate) mod samples;

use super::Kind;
use super::file::{self, Head};
use crate::{Found, Progress, ReproduceError, Settings, on_all_threads, raw};
use measure::Sample;
use overspin_claims::Vocabulary;
use overspin_located::LocatedError;
use overspin_runs::run::VmstatRow;
use overspin_runs::scenario_file::tree::Document;
use overspin_scenario::Scenario;
use overspin_workload::{Dbench as FileServer, Placement};
use serde::{Deserialize, Serialize};

/// A kernel, by its name in figures, and its trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Name in figures.
    pub name: String,
    /// Where its locks lie.
    pub placement: Placement,
    /// The published lines of `vmstat 1`: r, b, bo, us, sy, id.
    pub trace: Vec<[f64; 6]>,
}

impl Kernel {
    /// The published lines.
    fn rows(&self) -> Vec<VmstatRow> {
        let row = |&[r, b, bo, us, sy, id]: &[f64; 6]| VmstatRow { r, b, bo, us, sy, id };
        self.trace.iter().map(row).collect()
    }
}

/// What is compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    kernels: [Kernel; 2],
}

/// An experiment that varies the placement of the locks in a dbench domain.
#[derive(Clone, Debug)]
pub struct Dbench {
    /// The part that all kinds have.
    pub head: Head,
    /// The kernels to compare: before and after.
    pub kernels: [Kernel; 2],
}

impl Dbench {
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, LocatedError> {
        let (head, setup): (Head, Setup) = file::read(document, text)?;
        let first = head.scenario.domains.first();
        let Some(domain) = first.filter(|d| d.workload.get::<FileServer>().is_some()) else {
            let message = "the first domain does not run dbench".into();
            let help = "this experiment varies the placement of the locks in a dbench domain";
            return file::fail(document, "scenario.domain", message, help);
        };
        if domain.kernel.vmstat.is_none() {
            let message = "its kernel does not set `vmstat`".into();
            let help = "the figures come from vmstat; set `vmstat = \"100ms\"`";
            return file::fail(document, "scenario.domain.0", message, help);
        }
        Ok(Self { head, kernels: setup.kernels })
    }

    /// The scenario of a kernel at 1/scale of the length. All work is done 1/scale times, and 1/scale of the
    /// data is written; the disk and the sections stay as they are.
    #[must_use]
    pub fn variant(&self, kernel: &Kernel, scale: u32) -> Scenario {
        let mut scenario = self.head.scenario.clone();
        scenario.limit /= u64::from(scale);
        for domain in &mut scenario.domains {
            if let Some(interval) = &mut domain.kernel.vmstat {
                *interval /= u64::from(scale);
            }
            domain.workload.edit(|w: &mut FileServer| {
                w.placement = kernel.placement;
                let pages = |files: u32| w.clients * files * w.pages;
                let written = pages(w.files).saturating_sub(w.dirty_limit) / scale;
                w.dirty_limit = pages(w.files / scale).saturating_sub(written);
                w.files /= scale;
                w.operations /= scale;
            });
        }
        scenario
    }
}

impl Kind for Dbench {
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

    fn run(&self, settings: Settings<'_>, progress: Progress<'_>) -> Result<Found, ReproduceError> {
        let scale = settings.scale(&self.head);
        let seeds = settings.seeds(&self.head);
        let pairs = self.kernels.iter().flat_map(|k| seeds.iter().map(move |seed| (k, *seed)));
        let runs =
            on_all_threads(pairs.collect(), settings.threads, progress, |(kernel, seed)| {
                let scenario = self.variant(kernel, scale);
                let run = || format!("{}, seed {seed}", kernel.name);
                let outcome = settings.simulate(&scenario, seed, run)?;
                Ok(Sample::new(&kernel.name, &scenario, outcome, scale))
            })?;
        Ok(assemble(self, &runs))
    }
}

/// Assembles the results.
fn assemble(experiment: &Dbench, runs: &[Sample]) -> Found {
    Found {
        limit_s: None,
        samples: samples::samples(runs),
        runs: raw(runs),
        details: report::blocks(experiment, runs),
    }
}

#[cfg(test)]
mod tests;
