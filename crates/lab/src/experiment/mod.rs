//! Experiments: a scenario, what to vary in it, and what was published about it. The files are
//! compiled in, so that the command needs nothing beside itself; a changed copy can be read too.
//!
//! To add an experiment: its file, and a line in `BUILT_IN`. A new kind of experiment is a file
//! here, a variant of [`Experiment`], and a folder in `reproduce`.

mod kernbench;
mod schedbench;

pub use kernbench::{Figure, Kernbench, Load};
pub use schedbench::{BenchFigure, Policy, Schedbench};

use crate::scenario_file::tree::{Document, Node, Value};
use crate::scenario_file::{self, ScenarioError, format_time, nearest, parse_time};
use crate::schedbench::Machine;
use overspin_scenario::Scenario;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Name and text of the experiments that come with the program.
const BUILT_IN: [(&str, &str); 2] = [
    ("2008-spinlocks", include_str!("../../../../experiments/2008-spinlocks.toml")),
    ("2016-schedbench", include_str!("../../../../experiments/2016-schedbench.toml")),
];

/// What a figure may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To set a parameter.
    Fit,
    /// To judge the model: it must come out by itself.
    Predict,
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

/// An experiment.
#[derive(Clone, Debug)]
pub enum Experiment {
    /// Kernbench under several locks and loads.
    Kernbench(Box<Kernbench>),
    /// schedbench under several schedulers.
    Schedbench(Box<Schedbench>),
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

/// The machine of the 2016 experiment.
///
/// # Errors
/// If its file is not legal, which a test excludes.
pub fn schedbench_machine() -> Result<Machine, ScenarioError> {
    let (name, text) = BUILT_IN[1];
    let document = Document::parse(name, text)?;
    Ok(Schedbench::parse(&document, text)?.machine)
}

impl Experiment {
    /// Parses an experiment file that messages call `path`.
    ///
    /// # Errors
    /// If it is not a legal experiment.
    pub fn parse(path: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = Document::parse(path, text)?;
        if find(&document.root, "schedbench").is_some() {
            Ok(Self::Schedbench(Box::new(Schedbench::parse(&document, text)?)))
        } else {
            Ok(Self::Kernbench(Box::new(Kernbench::parse(&document, text)?)))
        }
    }

    /// Name on the command line.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Kernbench(e) => &e.id,
            Self::Schedbench(e) => &e.id,
        }
    }

    /// One line: what it is.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Kernbench(e) => &e.title,
            Self::Schedbench(e) => &e.title,
        }
    }

    /// Where it was published.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Kernbench(e) => &e.source,
            Self::Schedbench(e) => &e.source,
        }
    }

    /// How many figures and claims were published.
    #[must_use]
    pub fn published(&self) -> (usize, usize) {
        match self {
            Self::Kernbench(e) => (e.figures.len(), e.claims.len()),
            Self::Schedbench(e) => (e.figures.len(), e.claims.len()),
        }
    }

    /// Its scenario at the published length.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        match self {
            Self::Kernbench(e) => &e.scenario,
            Self::Schedbench(e) => &e.scenario,
        }
    }
}

/// An error about a key of the file.
fn fail<T>(
    document: &Document,
    key: &str,
    message: String,
    help: &str,
) -> Result<T, ScenarioError> {
    let at = find(&document.root, key).map_or(&document.root.at, |n| &n.at);
    Err(document.error(at, key, message, help))
}

/// The part of a file beside its scenario, the scenario's node, and the scenario.
fn head<'a, F: DeserializeOwned>(
    document: &'a Document,
    text: &str,
    id: impl Fn(&F) -> &str,
) -> Result<(F, &'a Node, Scenario), ScenarioError> {
    let file: F = match toml::from_str(text) {
        Ok(file) => file,
        Err(e) => {
            let mut at = document.root.at.clone();
            at.span = e.span().unwrap_or(0..0);
            let help = "compare with the experiments that come with the program";
            return Err(document.error(&at, "", e.message(), help));
        }
    };
    let Some(node) = find(&document.root, "scenario") else {
        return fail(document, "", "`scenario` is missing".into(), "add a [scenario] table");
    };
    let scenario = scenario_file::build_scenario(document, node, "scenario", id(&file))?;
    Ok((file, node, scenario))
}

/// The parameters with their values from the scenario, which must be plausible.
fn fitted(
    document: &Document,
    scenario: &Node,
    mut parameters: Vec<Parameter>,
) -> Result<Vec<Parameter>, ScenarioError> {
    for (i, parameter) in parameters.iter_mut().enumerate() {
        let Some(value) = find(scenario, &parameter.key).and_then(shown) else {
            let key = format!("parameter.{i}.key");
            let message = format!("the scenario does not set `{}`", parameter.key);
            let help = "name a key that the scenario sets to a time or a number";
            return fail(document, &key, message, help);
        };
        parameter.value = value;
        let range =
            number(&parameter.low).zip(number(&parameter.high)).zip(number(&parameter.value));
        if !range.is_some_and(|((low, high), value)| low <= value && value <= high) {
            let message = format!(
                "`{}` is {}, not between {} and {}",
                parameter.key, parameter.value, parameter.low, parameter.high
            );
            let help = "a fitted value must be plausible";
            return fail(document, &format!("parameter.{i}"), message, help);
        }
    }
    Ok(parameters)
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
