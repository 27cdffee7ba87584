//! Experiments: a scenario, what to vary in it, and what was published about it. The files are
//! compiled in, so that the command needs nothing beside itself; a changed copy can be read too.

use crate::scenario_file::tree::{Document, Node, Value};
use crate::scenario_file::{self, ScenarioError, format_time, nearest, parse_time};
use overspin_scenario::{Scenario, Workload};
use serde::{Deserialize, Serialize};

/// Name and text of the experiments that come with the program.
const BUILT_IN: [(&str, &str); 1] =
    [("2008-spinlocks", include_str!("../../../../experiments/2008-spinlocks.toml"))];

/// What a figure may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To set a parameter.
    Fit,
    /// To judge the model: it must come out by itself.
    Predict,
}

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

/// A parameter that was set to make the `fit` figures come out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its key in the scenario.
    pub key: String,
    /// What it is.
    pub meaning: String,
    /// Least plausible value.
    pub low: String,
    /// Largest plausible value.
    pub high: String,
    /// Which figures it was set by.
    pub reason: String,
    /// Its value, as the scenario writes it.
    #[serde(default)]
    pub value: String,
}

/// Something that was found and must be found again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Number.
    pub id: u32,
    /// What holds.
    pub text: String,
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

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
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

/// Names of the experiments that come with the program.
#[must_use]
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// An experiment that comes with the program; `None` if there is none of this name.
#[must_use]
pub fn built_in(name: &str) -> Option<Result<Experiment, ScenarioError>> {
    BUILT_IN
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(n, text)| Experiment::parse(&format!("{n}.toml"), text))
}

/// The experiment name that was probably meant.
#[must_use]
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, names())
}

impl Experiment {
    /// Parses an experiment file that messages call `path`.
    ///
    /// # Errors
    /// If it is not a legal experiment.
    pub fn parse(path: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = Document::parse(path, text)?;
        let fail = |key: &str, message: String, help: &str| {
            let at = find(&document.root, key).map_or(&document.root.at, |n| &n.at);
            Err(document.error(at, key, message, help))
        };
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(e) => {
                let mut at = document.root.at.clone();
                at.span = e.span().unwrap_or(0..0);
                let help = "compare with the experiments that come with the program";
                return Err(document.error(&at, "", e.message(), help));
            }
        };
        let Some(node) = find(&document.root, "scenario") else {
            return fail("", "`scenario` is missing".into(), "add a [scenario] table");
        };
        let scenario = scenario_file::build_scenario(&document, node, "scenario", &file.id)?;
        if !scenario.domains.iter().any(|d| matches!(d.workload, Workload::Kernbench(_))) {
            let help = "an experiment varies the jobs of a kernbench domain";
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
        let mut parameters = file.parameter;
        for (i, parameter) in parameters.iter_mut().enumerate() {
            let Some(value) = find(node, &parameter.key).and_then(shown) else {
                let key = format!("parameter.{i}.key");
                let message = format!("the scenario does not set `{}`", parameter.key);
                return fail(
                    &key,
                    message,
                    "name a key that the scenario sets to a time or a number",
                );
            };
            parameter.value = value;
            let range =
                number(&parameter.low).zip(number(&parameter.high)).zip(number(&parameter.value));
            if !range.is_some_and(|((low, high), value)| low <= value && value <= high) {
                let message = format!(
                    "`{}` is {}, not between {} and {}",
                    parameter.key, parameter.value, parameter.low, parameter.high
                );
                return fail(
                    &format!("parameter.{i}"),
                    message,
                    "a fitted value must be plausible",
                );
            }
        }
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

/// The node at a dotted path; elements of arrays go by number or name.
fn find<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(node, |node, part| match &node.value {
        Value::Table(table) => table.get(part).map(|e| &e.node),
        Value::Array(items) => match part.parse::<usize>() {
            Ok(i) => items.get(i),
            Err(_) => items.iter().find(|item| {
                matches!(find(item, "name").map(|n| &n.value), Some(Value::Text(name)) if name == part)
            }),
        },
        _ => None,
    })
}

fn shown(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(Some(value)) => Some(value.to_string()),
        _ => None,
    }
}

/// A time in picoseconds, or a plain number.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().or_else(|| parse_time(text).ok().map(|p| p as f64))
}

/// The limit of a scenario, in words.
#[must_use]
pub fn limit_text(scenario: &Scenario) -> String {
    format_time(scenario.limit)
}

#[cfg(test)]
mod tests;
