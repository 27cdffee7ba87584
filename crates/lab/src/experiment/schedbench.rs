//! schedbench under several schedulers.

use super::{Claim, Parameter, Role, fitted, head};
use crate::reproduce::BenchSample;
use crate::scenario_file::ScenarioError;
use crate::scenario_file::tree::{Document, Node};
use crate::schedbench::{BenchFile, Machine};
use crate::stats::Summary;
use overspin_scenario::Scenario;
use serde::{Deserialize, Serialize};

/// A scheduler, as it is called in figures, and the profile that stands for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Name in figures.
    pub name: String,
    /// Name in scenarios.
    pub profile: String,
}

/// A worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Name in figures.
    pub name: String,
    /// Command line.
    pub args: String,
}

/// A published figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchFigure {
    /// Run: `baseline`, `1a+1b` and so on, `overcommitted`.
    pub run: String,
    /// Scheduler, or `any`.
    pub scheduler: String,
    /// Worker.
    pub worker: String,
    /// What was measured.
    pub metric: String,
    /// Published value.
    pub mean: f64,
    /// Its unit.
    pub unit: String,
    /// What it may be used for.
    pub role: Role,
}

impl BenchFigure {
    /// Where it was measured, in words.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}, {}, {}", self.run, self.scheduler, self.worker)
    }
}

/// What is run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    schedulers: Vec<Policy>,
    workers: Vec<Worker>,
    counts: Vec<u32>,
}

/// The file without its scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    title: String,
    source: String,
    seeds: u32,
    schedbench: Plan,
    figures: Vec<BenchFigure>,
    parameter: Vec<Parameter>,
    claim: Vec<Claim>,
    #[serde(rename = "scenario")]
    _scenario: serde::de::IgnoredAny,
}

/// An experiment that runs workers alone and together under several schedulers.
#[derive(Clone, Debug)]
pub struct Schedbench {
    /// Name on the command line.
    pub id: String,
    /// One line: what it is.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs of each configuration by default.
    pub seeds: u32,
    /// Schedulers to compare.
    pub policies: Vec<Policy>,
    /// Workers.
    pub workers: Vec<Worker>,
    /// How many of each run together.
    pub counts: Vec<u32>,
    /// Published figures.
    pub figures: Vec<BenchFigure>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// The machine, with a worker on it.
    pub scenario: Scenario,
    /// The machine.
    pub machine: Machine,
    /// All runs, planned: for each scheduler each worker alone, then together.
    pub plan: BenchFile,
}

impl Schedbench {
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, ScenarioError> {
        let (file, node, scenario): (File, &Node, Scenario) =
            head(document, text, |f: &File| &f.id)?;
        let fail =
            |key: &str, message: String, help: &str| super::fail(document, key, message, help);
        let Some(machine) = Machine::of(&scenario) else {
            let help = "the rate of a schedbench worker is the machine's";
            return fail("scenario.domain", "no domain runs schedbench".into(), help);
        };
        let plan = file.schedbench;
        for (i, policy) in plan.schedulers.iter().enumerate() {
            if overspin_sched::find(&policy.profile).is_err() {
                let key = format!("schedbench.schedulers.{i}.profile");
                let message = format!("there is no scheduler `{}`", policy.profile);
                return fail(&key, message, "see `overspin list schedulers`");
            }
        }
        let names: Vec<&str> = plan.workers.iter().map(|w| w.name.as_str()).collect();
        let presets: serde_json::Map<String, serde_json::Value> = plan
            .workers
            .iter()
            .map(|w| {
                let args: Vec<&str> = w.args.split_whitespace().collect();
                (w.name.clone(), serde_json::json!({ "Args": args }))
            })
            .collect();
        let profiles: Vec<&str> = plan.schedulers.iter().map(|p| p.profile.as_str()).collect();
        let matrix = serde_json::json!({
            "Schedulers": profiles, "Workers": names, "Count": plan.counts
        });
        let cpus: Vec<u32> = (0..machine.host.pcpus()).collect();
        let bench = serde_json::json!({
            "Input": { "WorkerPresets": presets, "SimpleMatrix": matrix },
            "RunConfig": { "Cpus": cpus },
        });
        let expanded = BenchFile::parse("schedbench", &bench.to_string()).and_then(|mut bench| {
            bench.plan()?;
            Ok(bench)
        });
        let bench = match expanded {
            Ok(bench) => bench,
            Err(e) => return fail("schedbench", e.message.to_string(), &e.help),
        };
        let parameters = fitted(document, node, file.parameter)?;
        Ok(Self {
            id: file.id,
            title: file.title,
            source: file.source,
            seeds: file.seeds,
            policies: plan.schedulers,
            workers: plan.workers,
            counts: plan.counts,
            figures: file.figures,
            parameters,
            claims: file.claim,
            scenario,
            machine,
            plan: bench,
        })
    }

    /// Names of the runs under one scheduler, in the order of the plan: `baseline-a`, .., `2a+2b`.
    #[must_use]
    pub fn run_names(&self) -> Vec<String> {
        let letters: Vec<String> = self.workers.iter().map(|w| w.name.to_lowercase()).collect();
        let alone = letters.iter().map(|l| format!("baseline-{l}"));
        let together = self.counts.iter().map(|n| {
            let parts: Vec<String> = letters.iter().map(|l| format!("{n}{l}")).collect();
            parts.join("+")
        });
        alone.chain(together).collect()
    }

    /// Mean throughput in Mops/s of the `set`-th worker alone.
    #[must_use]
    pub fn alone(&self, runs: &[BenchSample], scheduler: &str, set: usize) -> Option<f64> {
        let name = self.run_names().into_iter().nth(set)?;
        let of: Vec<f64> = runs
            .iter()
            .filter(|r| r.scheduler == scheduler && r.run == name)
            .filter_map(|r| r.summary.sets.first())
            .map(|s| s.throughput.total / 1000.0)
            .collect();
        Summary::of(&of).map(|s| s.mean)
    }
}
