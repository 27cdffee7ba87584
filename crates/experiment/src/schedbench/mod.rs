//! schedbench under several schedulers.

mod measure;
mod report;
pub(crate) mod samples;

use super::Along;
use super::Kind;
use super::file::{self, Head};
use crate::panels::of_figures;
use crate::{Compared, KindResult, Progress, ReproduceError, Reproduction, Settings};
use measure::BenchSample;
use overspin_claims::Vocabulary;
use overspin_located::LocatedError;
use overspin_report::Panel;
use overspin_runs::catalog::names;
use overspin_runs::record::Run;
use overspin_runs::scenario_file::Template;
use overspin_runs::scenario_file::tree::Document;
use overspin_runs::schedbench::{self, BenchFile, Machine, summarize};
use overspin_scenario::Scenario;
use overspin_stats::Summary;
use serde::{Deserialize, Serialize};

/// A scheduler, by its name in figures, and the profile that stands for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Name in figures.
    pub name: String,
    /// Name in scenarios.
    pub profile: String,
    /// `--set` arguments for the scenario under this scheduler: its parameters, or another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
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

/// What to run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    schedulers: Vec<Policy>,
    workers: Vec<Worker>,
    counts: Vec<u32>,
}

/// An experiment that runs workers alone and together under several schedulers.
#[derive(Clone, Debug)]
pub struct Schedbench {
    /// Schedulers to compare.
    pub policies: Vec<Policy>,
    /// Workers.
    pub workers: Vec<Worker>,
    /// The numbers of each worker that run together.
    pub counts: Vec<u32>,
    /// The machine under each scheduler.
    pub machines: Vec<Machine>,
    /// All planned runs: for each scheduler, each worker alone and then together.
    pub plan: BenchFile,
}

impl Schedbench {
    pub(super) fn parse(
        document: &Document,
        head: &Head,
        plan: Plan,
    ) -> Result<Self, LocatedError> {
        let fail =
            |key: &str, message: String, help: &str| file::fail(document, key, message, help);
        let mut machines = Vec::new();
        for (i, policy) in plan.schedulers.iter().enumerate() {
            if overspin_runs::catalog::scheduler(&policy.profile).is_none() {
                let key = format!("setup.schedulers.{i}.profile");
                let message = format!("there is no scheduler `{}`", policy.profile);
                return fail(&key, message, "see `overspin list schedulers`");
            }
            let scenario = under(document, head, policy)?;
            let Some(machine) = Machine::of(&scenario) else {
                let help = "the rate of a schedbench worker sets the machine's rate";
                return fail("scenario.domain", "no domain runs schedbench".into(), help);
            };
            machines.push(machine);
        }
        let Some(machine) = machines.first() else {
            return fail("setup.schedulers", "there is no scheduler".into(), "name one or more");
        };
        if let Some(i) = machines.iter().position(|m| m.host.pcpus() != machine.host.pcpus()) {
            let key = format!("setup.schedulers.{i}.set");
            let help = "keep sockets, cores and threads: all runs have the same pCPUs";
            return fail(&key, "another number of pCPUs".into(), help);
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
            Err(e) => return fail("setup", e.message.to_string(), &e.help),
        };
        Ok(Self {
            policies: plan.schedulers,
            workers: plan.workers,
            counts: plan.counts,
            machines,
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

/// The scenario under a scheduler, with what its policy sets.
fn under(document: &Document, head: &Head, policy: &Policy) -> Result<Scenario, LocatedError> {
    let node = document.root.find("scenario").filter(|_| !policy.set.is_empty());
    let Some(node) = node else { return Ok(head.scenario.clone()) };
    let mut sets = vec![format!("host.scheduler={}", policy.profile)];
    sets.extend(policy.set.iter().cloned());
    let template = Template::within(document, node, "scenario", &head.id);
    template.scenario(names(), &sets).map_err(|error| *error)
}

impl Kind for Schedbench {
    fn vocabulary(&self) -> Vocabulary {
        samples::vocabulary(self)
    }

    fn picture(&self) -> (&str, &str) {
        ("throughput_total [Mops/s]", "throughput [Mops/s]")
    }

    /// Throughput, and how late items begin: these set the two schedulers apart.
    fn panels(&self, result: &Reproduction) -> Vec<Panel> {
        let (metric, words) = self.picture();
        let throughput = |f: &Compared| (f.metric == metric).then(|| f.place.clone());
        let delta = |f: &Compared| {
            let of = f.metric.strip_prefix("max_delta")?.split(" [").next()?;
            Some(format!("{}{}", f.place, of.replace('_', ", ")))
        };
        vec![
            of_figures(result, words, throughput),
            of_figures(result, "max_delta: how late an item began at worst [ms]", delta),
        ]
    }

    fn along(&self) -> Vec<Along> {
        vec![Along {
            metrics: [("throughput", "throughput of a worker"), ("utilization", "utilisation")]
                .map(|(metric, title)| (metric.into(), title.into()))
                .into(),
            only: Vec::new(),
            words: 3,
            x: 1,
            title: "workers of each kind".into(),
            plots: vec![2],
        }]
    }

    fn run(
        &self,
        head: &Head,
        settings: Settings<'_>,
        progress: Progress<'_>,
    ) -> Result<KindResult, ReproduceError> {
        let seeds = settings.seeds(head);
        let names = self.run_names();
        let mut jobs = Vec::new();
        for (i, run) in self.plan.runs.iter().enumerate() {
            let name = &names[i % names.len()];
            let (policy, machine) =
                (&self.policies[i / names.len()], &self.machines[i / names.len()]);
            jobs.extend(seeds.iter().map(|seed| (run, name, policy, machine, *seed)));
        }
        let made = settings.all(&jobs, progress, |&(run, name, policy, machine, seed)| {
            let scenario = schedbench::scenario(&self.plan, run, machine).map_err(Box::new)?;
            let outcome = settings.simulate(&scenario, seed, || run.label.clone())?;
            let alone = self.workers.iter().filter(|w| {
                name.strip_prefix("baseline-").is_some_and(|l| l == w.name.to_lowercase())
            });
            let workers: Vec<String> = match alone.map(|w| w.name.clone()).next() {
                Some(name) => vec![name],
                None => self.workers.iter().map(|w| w.name.clone()).collect(),
            };
            let place = format!("{name}.{}", policy.name);
            let sample = summarize(&schedbench::done(run, &outcome)).map(|summary| BenchSample {
                run: name.clone(),
                scheduler: policy.name.clone(),
                seed,
                workers,
                summary,
            });
            Ok(sample.map(|sample| (sample, Run { place, ..Run::of(&outcome) })))
        })?;
        let (samples, runs): (Vec<_>, Vec<_>) = made.into_iter().flatten().unzip();
        Ok(KindResult {
            limit_s: None,
            samples: samples::samples(&samples),
            runs,
            details: report::blocks(self, &samples),
        })
    }
}

#[cfg(test)]
mod tests;
