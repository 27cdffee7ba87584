//! Kernbench under several locks and loads.

use super::{Claim, Parameter, Role, fitted, head};
use crate::scenario_file::ScenarioError;
use crate::scenario_file::tree::{Document, Node};
use overspin_scenario::{Scenario, Workload};
use serde::{Deserialize, Serialize};

/// A published figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Lock.
    pub lock: String,
    /// Load, for figures of a load.
    #[serde(default)]
    pub load: Option<String>,
    /// vCPU, for figures of a vCPU.
    #[serde(default)]
    pub vcpu: Option<usize>,
    /// What was measured, with its unit.
    pub metric: String,
    /// Published mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Published standard deviation.
    #[serde(default)]
    pub stddev: Option<f64>,
    /// It was published that this never ended.
    #[serde(default)]
    pub never: bool,
    /// What it may be used for.
    pub role: Role,
}

impl Figure {
    /// Where it was measured, in words.
    #[must_use]
    pub fn place(&self) -> String {
        match (&self.load, self.vcpu) {
            (Some(load), _) => format!("{}, {load} load", self.lock),
            (None, Some(vcpu)) => format!("{}, vcpu {vcpu}", self.lock),
            (None, None) => self.lock.clone(),
        }
    }
}

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

/// The file without its scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    title: String,
    source: String,
    scale: u32,
    seeds: u32,
    locks: Vec<String>,
    loads: Vec<Load>,
    figures: Vec<Figure>,
    parameter: Vec<Parameter>,
    claim: Vec<Claim>,
    #[serde(rename = "scenario")]
    _scenario: serde::de::IgnoredAny,
}

/// An experiment that varies the lock and the jobs of a kernbench domain.
#[derive(Clone, Debug)]
pub struct Kernbench {
    /// Name on the command line.
    pub id: String,
    /// One line: what it is.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs are 1/scale of the published length by default.
    pub scale: u32,
    /// Runs of each configuration by default.
    pub seeds: u32,
    /// Locks to compare.
    pub locks: Vec<String>,
    /// Loads to compare, in the order in which they were run.
    pub loads: Vec<Load>,
    /// Published figures.
    pub figures: Vec<Figure>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// The scenario at the published length.
    pub scenario: Scenario,
}

impl Kernbench {
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, ScenarioError> {
        let (file, node, scenario): (File, &Node, Scenario) =
            head(document, text, |f: &File| &f.id)?;
        let fail =
            |key: &str, message: String, help: &str| super::fail(document, key, message, help);
        if !scenario.domains.iter().any(|d| matches!(d.workload, Workload::Kernbench(_))) {
            let help = "this experiment varies the jobs of a kernbench domain";
            return fail("scenario.domain", "no domain runs kernbench".into(), help);
        }
        if file.scale == 0 {
            return fail(
                "scale",
                "`scale` is 0".into(),
                "1 is the published length, 20 a twentieth of it",
            );
        }
        for (i, lock) in file.locks.iter().enumerate() {
            if crate::names::lock(lock).is_none() {
                return fail(
                    &format!("locks.{i}"),
                    format!("there is no lock `{lock}`"),
                    "see `overspin list locks`",
                );
            }
        }
        let parameters = fitted(document, node, file.parameter)?;
        Ok(Self {
            id: file.id,
            title: file.title,
            source: file.source,
            scale: file.scale,
            seeds: file.seeds,
            locks: file.locks,
            loads: file.loads,
            figures: file.figures,
            parameters,
            claims: file.claim,
            scenario,
        })
    }

    /// The scenario of one run: this lock, this load, 1/scale of the length.
    #[must_use]
    pub fn variant(&self, lock: &str, load: &Load, scale: u32) -> Scenario {
        let mut scenario = self.scenario.clone();
        let scale = scale.max(1);
        scenario.limit /= u64::from(scale);
        for domain in &mut scenario.domains {
            if let Workload::Kernbench(bench) = &mut domain.workload {
                domain.lock = lock.to_owned();
                bench.jobs = load.jobs;
                bench.units = (bench.units / scale).max(1);
            }
        }
        scenario
    }
}
