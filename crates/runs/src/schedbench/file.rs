//! The `.bench` file: a plan, the runs that it expands to, and their results, in schedbench's format. Unknown
//! keys are kept unchanged.

use super::{Origin, WorkerArgs};
use crate::record::json_error;
use overspin_located::LocatedError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Length of a run if the plan gives none.
const RUNTIME_SECONDS: u64 = 10;
/// schedbench's built-in preset.
const BUILT_IN: (&str, [&str; 3]) = ("P001", ["burnwait", "70", "200000"]);
/// Most runs of a plan, and workers of a run.
const MOST_RUNS: usize = 10_000;
const MOST_WORKERS: u64 = 10_000;
/// Most sets of workers of all runs of a plan together.
const MOST_SETS: usize = 100_000;

/// Workers, and the combinations of them to run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Input {
    /// Workers by name.
    #[serde(deserialize_with = "null_is_empty")]
    pub worker_presets: BTreeMap<String, Preset>,
    /// The combinations to run.
    pub simple_matrix: Option<SimpleMatrix>,
}

/// A named worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Preset {
    /// Its command line.
    pub args: Option<Vec<String>>,
    /// vCPUs, each with the whole queue of items; our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
}

/// Schedulers x counts of workers, and each worker alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SimpleMatrix {
    /// Schedulers; none means the host's own.
    pub schedulers: Option<Vec<String>>,
    /// Workers that run together.
    pub workers: Option<Vec<String>>,
    /// The numbers of each.
    pub count: Option<Vec<u64>>,
    /// With and without NUMA awareness.
    pub numa_disable: Option<Vec<bool>>,
}

/// The place of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RunConfig {
    /// cpupool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Its pCPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// Its scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// No NUMA awareness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_disable: Option<bool>,
}

/// The program of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkerParams {
    /// Its command line.
    #[serde(deserialize_with = "null_is_empty")]
    pub args: Vec<String>,
    /// vCPUs; our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
}

/// Equal workers of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkerSet {
    /// Their program.
    pub params: WorkerParams,
    /// Their place.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub config: Value,
    /// Their number.
    pub count: u64,
}

/// Number of a worker: its set, and its place in the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkerId {
    /// Set.
    pub set: usize,
    /// Place in it.
    pub id: usize,
}

/// A report of a worker. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Report {
    /// The worker.
    pub id: WorkerId,
    /// Time of the report.
    pub now: u64,
    /// Work since the start, in thousands of operations.
    pub kops: u64,
    /// Largest lateness of an item since the last report.
    pub max_delta: u64,
    /// CPU time since the start.
    pub cputime: u64,
    /// Items with a deadline since the start; our extension.
    #[serde(skip_serializing_if = "is_zero")]
    pub deadlines: u64,
    /// Items that finished after their deadline.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
}

/// schedbench writes an empty list as null.
fn null_is_empty<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Results {
    /// Reports of all workers, in the order of time.
    pub raw: Option<Vec<Report>>,
    /// Data that schedbench keeps for itself.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub summary: Value,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Run {
    /// Name.
    pub label: String,
    /// The workers.
    #[serde(deserialize_with = "null_is_empty")]
    pub worker_sets: Vec<WorkerSet>,
    /// The place.
    #[serde(alias = "WorkerConfig")]
    pub run_config: RunConfig,
    /// Length.
    pub runtime_seconds: u64,
    /// Whether it has been run.
    pub completed: bool,
    /// The results.
    pub results: Results,
    /// The origin of these results, if this program made them; our extension.
    #[serde(rename = "Overspin", skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The parts of the file that we use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Known {
    input: Option<Input>,
    run_config: RunConfig,
    /// The pool's place in older files.
    pool: Option<String>,
    runs: Option<Vec<Run>>,
}

/// A `.bench` file.
#[derive(Clone, Debug)]
pub struct BenchFile {
    path: String,
    text: Arc<str>,
    all: Value,
    input: Option<Input>,
    config: RunConfig,
    /// Runs, planned and completed.
    pub runs: Vec<Run>,
}

impl BenchFile {
    /// Reads the text of a file that messages call `path`.
    ///
    /// # Errors
    /// If it is not JSON, or something in it has the wrong type or an absurd value.
    pub fn parse(path: &str, text: &str) -> Result<Self, LocatedError> {
        let help =
            "docs/schedbench.md describes the file; `overspin schedbench plan` fills in its runs";
        let located = |e: &serde_json::Error| json_error(path, text, e, help);
        let all: Value = serde_json::from_str(text).map_err(|e| located(&e))?;
        let known: Known = serde_json::from_str(text).map_err(|e| located(&e))?;
        let mut config = known.run_config;
        config.pool = config.pool.or(known.pool);
        let file = Self {
            path: path.into(),
            text: text.into(),
            all,
            input: known.input,
            config,
            runs: known.runs.unwrap_or_default(),
        };
        for run in &file.runs {
            file.check(run)?;
        }
        Ok(file)
    }

    /// An error about `quoted`, which occurs in the text; its last occurrence is shown.
    pub(super) fn error(
        &self,
        quoted: &str,
        message: impl Into<String>,
        help: &str,
    ) -> LocatedError {
        let quoted = format!("\"{quoted}\"");
        let at = self.text.rfind(&quoted).unwrap_or(0);
        let span = at..at + if self.text[at..].starts_with(&quoted) { quoted.len() } else { 0 };
        LocatedError::at(&self.path, std::sync::Arc::clone(&self.text), span, "", message, help)
    }

    fn check(&self, run: &Run) -> Result<(), LocatedError> {
        let label = &run.label;
        let workers: u64 =
            run.worker_sets.iter().fold(0, |n: u64, set| n.saturating_add(set.count));
        if !(1..=MOST_WORKERS).contains(&workers) {
            let message = format!("run `{label}` has {workers} workers");
            return Err(self.error(label, message, "a run has 1 to 10,000 workers"));
        }
        if !(1..=86_400).contains(&run.runtime_seconds) {
            let message = format!("run `{label}`: RuntimeSeconds is {}", run.runtime_seconds);
            return Err(self.error(label, message, "a run lasts 1 to 86,400 seconds"));
        }
        for set in &run.worker_sets {
            self.worker(label, &set.params.args)?;
            if set.params.vcpus.is_some_and(|n| !(1..=1024).contains(&n)) {
                let message = format!("run `{label}`: a worker has {:?} vCPUs", set.params.vcpus);
                return Err(self.error("Vcpus", message, "a worker has 1 to 1,024 vCPUs"));
            }
        }
        if run.run_config.cpus.as_ref().is_some_and(|cpus| !(1..=4096).contains(&cpus.len())) {
            let message = format!("run `{label}`: the pool has no pCPU, or more than 4,096");
            return Err(self.error("Cpus", message, "name the pool's pCPUs, or leave Cpus out"));
        }
        Ok(())
    }

    /// Reads a worker's command line.
    pub(super) fn worker(&self, of: &str, args: &[String]) -> Result<WorkerArgs, LocatedError> {
        WorkerArgs::parse(args).map_err(|e| {
            let quoted = args.get(e.word).map_or(of, String::as_str);
            let help = "for example [\"burnwait\", \"70\", \"200000\"]";
            self.error(quoted, format!("worker of `{of}`: {}", e.message), help)
        })
    }

    /// Expands the plan: each worker alone, then the given numbers of each together; all of these for each
    /// scheduler, and with and without NUMA awareness if the plan says so. Returns the number of runs.
    ///
    /// # Errors
    /// If there are runs already, or if the plan is incomplete.
    pub fn plan(&mut self) -> Result<usize, LocatedError> {
        if !self.runs.is_empty() {
            let help = "remove them to plan again, or continue with `overspin schedbench run`";
            return Err(self.error("Runs", "the file already has runs", help));
        }
        let Some(input) = &self.input else {
            return Err(self.error("", "`Input` is missing", "add WorkerPresets and SimpleMatrix"));
        };
        let Some(matrix) = &input.simple_matrix else {
            let help = "add SimpleMatrix with Workers and Count";
            return Err(self.error("Input", "`SimpleMatrix` is missing", help));
        };
        let names = matrix.workers.clone().unwrap_or_default();
        self.is_plan_small(matrix)?;
        let mut workers = Vec::new();
        for name in &names {
            let params = self.preset(input, name)?;
            self.worker(name, &params.args)?;
            workers.push(params);
        }
        if workers.is_empty() {
            let help = "name presets in Workers";
            return Err(self.error("SimpleMatrix", "the matrix has no workers", help));
        }
        let set = |params: &WorkerParams, count| WorkerSet {
            params: params.clone(),
            config: serde_json::json!({ "Pool": self.config.pool.clone().unwrap_or_default() }),
            count,
        };
        let alone = names
            .iter()
            .zip(&workers)
            .map(|(name, params)| (format!("{name} baseline"), vec![set(params, 1)]));
        let counts = matrix.count.clone().unwrap_or_default();
        let together = counts.iter().map(|n| {
            let label: Vec<String> = names.iter().map(|name| format!("{name} {n}")).collect();
            (label.join(" + "), workers.iter().map(|params| set(params, *n)).collect())
        });
        let sets: Vec<(String, Vec<WorkerSet>)> = alone.chain(together).collect();
        let some = |list: &Option<Vec<String>>| match list {
            Some(list) if !list.is_empty() => list.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let schedulers: Vec<Option<String>> = some(&matrix.schedulers);
        let numa: Vec<Option<bool>> = match &matrix.numa_disable {
            Some(list) if !list.is_empty() => list.iter().copied().map(Some).collect(),
            _ => vec![None],
        };
        let mut runs = Vec::new();
        for disable in numa {
            for scheduler in &schedulers {
                for (label, worker_sets) in &sets {
                    let mut label = label.clone();
                    let mut run_config = self.config.clone();
                    if let Some(scheduler) = scheduler.clone().filter(|s| !s.is_empty()) {
                        label = format!("{label} {scheduler}");
                        run_config.scheduler = Some(scheduler);
                    }
                    if let Some(disable) = disable {
                        label.push_str(if disable { " NumaOff" } else { " NumaOn " });
                        run_config.numa_disable = Some(disable);
                    }
                    runs.push(Run {
                        label,
                        worker_sets: worker_sets.clone(),
                        run_config,
                        runtime_seconds: RUNTIME_SECONDS,
                        ..Run::default()
                    });
                }
            }
        }
        for run in &runs {
            self.check(run)?;
        }
        self.runs = runs;
        Ok(self.runs.len())
    }

    /// Refuses a plan that would be too large, before any of it is made.
    fn is_plan_small(&self, matrix: &SimpleMatrix) -> Result<(), LocatedError> {
        let of = |list: Option<usize>| list.unwrap_or(0);
        let workers = of(matrix.workers.as_ref().map(Vec::len));
        let counts = of(matrix.count.as_ref().map(Vec::len));
        let schedulers = of(matrix.schedulers.as_ref().map(Vec::len)).max(1);
        let numa = of(matrix.numa_disable.as_ref().map(Vec::len)).max(1);
        let times = schedulers.saturating_mul(numa);
        let runs = workers.saturating_add(counts).saturating_mul(times);
        let sets = counts.saturating_add(1).saturating_mul(workers).saturating_mul(times);
        if runs > MOST_RUNS {
            let message = format!("the matrix has {runs} runs");
            return Err(self.error("SimpleMatrix", message, "a plan has at most 10,000 runs"));
        }
        if sets > MOST_SETS {
            let message = format!("the runs of the matrix have {sets} sets of workers together");
            let help = "a plan has at most 100,000: name fewer Workers, or fewer numbers in Count";
            return Err(self.error("SimpleMatrix", message, help));
        }
        Ok(())
    }

    fn preset(&self, input: &Input, name: &str) -> Result<WorkerParams, LocatedError> {
        let found = input.worker_presets.get(name);
        match found.and_then(|p| p.args.clone().map(|args| (args, p.vcpus))) {
            Some((args, vcpus)) => Ok(WorkerParams { args, vcpus }),
            None if found.is_none() && name == BUILT_IN.0 => {
                let args = BUILT_IN.1.map(str::to_owned).to_vec();
                Ok(WorkerParams { args, vcpus: None })
            }
            None => {
                let what = if found.is_some() { "has no Args" } else { "is missing" };
                let known: Vec<&str> = input.worker_presets.keys().map(String::as_str).collect();
                let message = format!("the preset `{name}` {what}");
                let help = format!("presets are: {}", known.join(", "));
                Err(self.error(name, message, &help))
            }
        }
    }

    /// The file as JSON, as it was read but with the current runs.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut all = self.all.clone();
        if let Value::Object(all) = &mut all {
            let before = all.get("Runs").and_then(Value::as_array).cloned().unwrap_or_default();
            let runs = self.runs.iter().enumerate().map(|(i, run)| {
                // Unknown keys of a run are kept, too.
                let ours = serde_json::to_value(run).unwrap_or(Value::Null);
                match (before.get(i).cloned(), ours) {
                    (Some(Value::Object(mut run)), Value::Object(mut ours)) => {
                        if run.contains_key("WorkerConfig")
                            && let Some(config) = ours.remove("RunConfig")
                        {
                            ours.insert("WorkerConfig".into(), config);
                        }
                        run.extend(ours);
                        Value::Object(run)
                    }
                    (_, ours) => ours,
                }
            });
            all.insert("Runs".into(), runs.collect());
        }
        format!("{all:#}\n")
    }
}
