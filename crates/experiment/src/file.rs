//! Experiment files: the part that all kinds have, and the part of each kind.

use super::figure::Figure;
use overspin_claims::{Condition, Sentence};
use overspin_located::LocatedError;
use overspin_runs::catalog::names;
use overspin_runs::record::Parameter;
use overspin_runs::scenario_file;
use overspin_runs::scenario_file::tree::{Document, Node, Value};
use overspin_scenario::{Scenario, parse_time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A published finding that must hold again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Number.
    pub id: u32,
    /// The finding, in words.
    pub text: String,
    /// The condition, over what is measured, under which it holds.
    #[serde(default)]
    pub holds: Option<String>,
    /// How the condition reads the words.
    #[serde(default)]
    pub note: Option<String>,
    /// The numbers that decide it, in a sentence.
    #[serde(default)]
    pub in_words: Option<String>,
    /// The condition, once it is read.
    #[serde(skip)]
    pub condition: Option<Condition>,
    /// The sentence, once it is read.
    #[serde(skip)]
    pub sentence: Option<Sentence>,
}

/// A file: `S` is the set-up of its kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<S> {
    id: String,
    #[serde(rename = "kind")]
    _kind: String,
    title: String,
    source: String,
    #[serde(default = "published_length")]
    scale: u32,
    seeds: u32,
    setup: S,
    #[serde(default)]
    figures: Vec<Figure>,
    #[serde(default)]
    parameter: Vec<Parameter>,
    #[serde(default)]
    claim: Vec<Claim>,
    #[serde(rename = "scenario")]
    _scenario: serde::de::IgnoredAny,
}

fn published_length() -> u32 {
    1
}

/// The part that experiments of all kinds have.
#[derive(Clone, Debug)]
pub struct Head {
    /// Name on the command line.
    pub id: String,
    /// Its description in one line.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs are 1/scale of the published length by default.
    pub scale: u32,
    /// Runs of each configuration by default.
    pub seeds: u32,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Published figures.
    pub figures: Vec<Figure>,
    /// The scenario at the published length.
    pub scenario: Scenario,
}

/// The kind of a file.
pub(super) fn kind(document: &Document) -> Result<&str, LocatedError> {
    match document.root.find("kind").map(|node| &node.value) {
        Some(Value::Text(kind)) => Ok(kind),
        Some(_) => fail(document, "kind", "`kind` is not a text".into(), "quote it"),
        None => {
            let help = "compare with the experiments that come with the program";
            fail(document, "", "`kind` is missing".into(), help)
        }
    }
}

/// The part that all kinds have, and the set-up.
pub(super) fn read<S: DeserializeOwned>(
    document: &Document,
    text: &str,
) -> Result<(Head, S), LocatedError> {
    let file: File<S> = match toml::from_str(text) {
        Ok(file) => file,
        Err(e) => {
            let mut at = document.root.at.clone();
            at.span = e.span().unwrap_or(0..0);
            let help = "compare with the experiments that come with the program";
            return Err(document.error(&at, "", e.message(), help));
        }
    };
    if file.scale == 0 {
        let help = "1 is the published length, 20 a twentieth of it";
        return fail(document, "scale", "`scale` is 0".into(), help);
    }
    for (i, figure) in file.figures.iter().enumerate() {
        figure.check(document, i)?;
    }
    let Some(node) = document.root.find("scenario") else {
        return fail(document, "", "`scenario` is missing".into(), "add a [scenario] table");
    };
    let scenario = scenario_file::lower_scenario(names(), document, node, "scenario", &file.id)?;
    let head = Head {
        parameters: fitted(document, node, file.parameter)?,
        id: file.id,
        title: file.title,
        source: file.source,
        scale: file.scale,
        seeds: file.seeds,
        claims: file.claim,
        figures: file.figures,
        scenario,
    };
    Ok((head, file.setup))
}

/// An error about a key of the file.
pub(super) fn fail<T>(
    document: &Document,
    key: &str,
    message: String,
    help: &str,
) -> Result<T, LocatedError> {
    let at = document.root.find(key).map_or(&document.root.at, |n| &n.at);
    Err(document.error(at, key, message, help))
}

/// The parameters with their values from the scenario, which must be plausible.
fn fitted(
    document: &Document,
    scenario: &Node,
    mut parameters: Vec<Parameter>,
) -> Result<Vec<Parameter>, LocatedError> {
    for (i, parameter) in parameters.iter_mut().enumerate() {
        let Some(value) = scenario.find(&parameter.key).and_then(shown) else {
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

fn shown(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(Some(value)) => Some(value.to_string()),
        _ => None,
    }
}

/// A time in picoseconds, or a plain number.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().or_else(|| parse_time(text).ok().map(|time| time.0 as f64))
}
