//! `[[vary]]`: many runs from one file. Each table is an axis. Every combination of their values is a
//! separate scenario, made as `--set` would make it.

use super::keys::ROOT;
use super::lower;
use super::reader::Reader;
use super::set;
use super::tree::{Document, Value};
use crate::machine::MACHINES;
use overspin_located::LocatedError;
use overspin_names::Names;
use overspin_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values, as labelled or as written.
    pub values: Vec<String>,
}

/// A scenario of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its value on each axis, by index.
    pub at: Vec<usize>,
    /// The `--set` arguments that run it alone.
    pub sets: Vec<String>,
    /// The scenario.
    pub scenario: Scenario,
}

/// A scenario file with `[[vary]]` tables.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Name of the scenario.
    pub name: String,
    /// The question.
    pub description: String,
    /// Axes; the first one's values are the rows.
    pub axes: Vec<Axis>,
    /// All combinations, the last axis fastest.
    pub points: Vec<Point>,
    /// Seeds with which each point runs: the values of a `[[vary]]` of the seed, which is not an axis. Empty
    /// means the scenario's seed.
    pub seeds: Vec<u64>,
}

/// Most runs of a sweep: a larger one might never end, and nobody could read it.
pub const MOST_RUNS: usize = 100_000;
/// Most bytes of the scenarios of all points together, as long as their file each.
const MOST_BYTES: usize = 1 << 30;

/// An axis, with the arguments that make each of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The axis.
    pub axis: Axis,
    /// The `--set` arguments of each value.
    pub sets: Vec<Vec<String>>,
}

/// The sweep that a document describes; `None` if it has no `[[vary]]`.
pub(super) fn sweep(
    names: &Names,
    document: &Document,
    default_name: &str,
) -> Result<Option<Sweep>, LocatedError> {
    let (dimensions, seeds) = dimensions(names, document, "")?;
    let points = dimensions.iter().map(|d| d.axis.values.len()).product();
    if dimensions.is_empty() && seeds.is_empty() {
        return Ok(None);
    }
    let size = document.sources[0].text.len().saturating_mul(points);
    if size > MOST_BYTES {
        let message = format!("{points} combinations of a scenario this long need too much memory");
        return Err(document.error(&document.root.at, "vary", message, "vary less at once"));
    }
    let base = without_axes(document);
    let points = (0..points)
        .map(|i| point(names, &base, &dimensions, i, default_name))
        .collect::<Result<Vec<_>, _>>()?;
    let first = points.first().map(|p| &p.scenario);
    Ok(Some(Sweep {
        name: first.map_or_else(String::new, |s| s.name.clone()),
        description: first.map_or_else(String::new, |s| s.description.clone()),
        axes: dimensions.into_iter().map(|d| d.axis).collect(),
        points,
        seeds,
    }))
}

/// The document without its `[[vary]]` tables.
pub(super) fn without_axes(document: &Document) -> Document {
    let mut base = document.clone();
    if let Value::Table(root) = &mut base.root.value {
        root.remove("vary");
    }
    base
}

/// The axes of a document, and the seeds that it names. Messages call its keys `path…`.
pub(super) fn dimensions(
    names: &Names,
    document: &Document,
    path: &str,
) -> Result<(Vec<Dimension>, Vec<u64>), LocatedError> {
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut runs = 1_usize;
    let mut seeds: Vec<u64> = Vec::new();
    // If required tables are missing, the reader rightly reports those first.
    for reader in
        Reader::open(names, document, &document.root, path.to_owned(), &ROOT)?.tables("vary")?
    {
        let dimension = dimension(&reader)?;
        runs = runs.saturating_mul(dimension.axis.values.len());
        if runs > MOST_RUNS {
            let message = format!("there are more than {MOST_RUNS} combinations");
            return Err(reader.error("to", message, "vary less at once"));
        }
        if reader.some::<String>("set")?.trim() == "seed" {
            if !seeds.is_empty() {
                let message = "the seed is varied twice";
                return Err(reader.error("set", message, "name all seeds in one [[vary]]"));
            }
            seeds = numbers(&reader)?;
        } else {
            dimensions.push(dimension);
        }
    }
    Ok((dimensions, seeds))
}

/// The seeds that a `[[vary]]` names.
fn numbers(reader: &Reader<'_>) -> Result<Vec<u64>, LocatedError> {
    let (mut seeds, mut known) = (Vec::new(), BTreeSet::new());
    for value in reader.some::<Vec<String>>("to")? {
        let Ok(seed) = value.trim().parse() else {
            let message = format!("`{value}` is not a seed");
            return Err(reader.error("to", message, "seeds are whole numbers from 0"));
        };
        if !known.insert(seed) {
            let message = format!("seed {seed} is listed twice");
            return Err(reader.error("to", message, "the same seed gives the same run"));
        }
        seeds.push(seed);
    }
    Ok(seeds)
}

fn dimension(reader: &Reader<'_>) -> Result<Dimension, LocatedError> {
    let (name, set): (_, String) = (reader.some("name")?, reader.some("set")?);
    let keys: Vec<&str> = set.split('/').map(str::trim).collect();
    let mut values = Vec::new();
    for value in reader.some::<Vec<String>>("to")? {
        match value.as_str() {
            "every lock" => values.extend(reader.names().locks().map(|(l, _)| l.name.to_owned())),
            "every scheduler" => {
                values.extend(reader.names().schedulers().iter().map(|s| s.name.to_owned()));
            }
            "every machine" => values.extend(MACHINES.iter().map(|m| m.name.to_owned())),
            _ => values.push(value),
        }
    }
    let mut sets = Vec::new();
    for value in &mut values {
        let parts: Vec<&str> = value.split('/').map(str::trim).collect();
        if parts.len() != keys.len() {
            let message = format!("`{value}` has {} parts for {} keys", parts.len(), keys.len());
            return Err(reader.error("to", message, "write one value for each key of `set`"));
        }
        // An empty part leaves its key as it is.
        let pairs = || {
            let set = keys.iter().zip(&parts).filter(|(_, part)| !part.is_empty());
            set.map(|(key, part)| (key, reader.names().own_name(key, part)))
        };
        sets.push(pairs().map(|(key, part)| format!("{key}={part}")).collect());
        if pairs().any(|(_, part)| !parts.contains(&part)) {
            // An alias: the axis shows the name that it stands for.
            *value = pairs().map(|(_, part)| part).collect::<Vec<_>>().join(" / ");
        }
    }
    if let Some(labels) = reader.get::<Vec<String>>("labels")? {
        if labels.len() != values.len() {
            let message = format!("{} labels for {} values", labels.len(), values.len());
            return Err(reader.error("labels", message, "write one for each value of `to`"));
        }
        values = labels;
    }
    Ok(Dimension { axis: Axis { name, values }, sets })
}

fn point(
    names: &Names,
    base: &Document,
    dimensions: &[Dimension],
    number: usize,
    default_name: &str,
) -> Result<Point, LocatedError> {
    let mut rest = number;
    let mut at: Vec<usize> = dimensions
        .iter()
        .rev()
        .map(|d| {
            let index = rest % d.axis.values.len();
            rest /= d.axis.values.len();
            index
        })
        .collect();
    at.reverse();
    let mut document = base.clone();
    let mut sets = Vec::new();
    for (dimension, index) in dimensions.iter().zip(&at) {
        for argument in &dimension.sets[*index] {
            set::apply(&mut document, argument)?;
            sets.push(argument.clone());
        }
    }
    let scenario = lower::scenario(names, &document, &document.root, "", default_name)?;
    Ok(Point { at, sets, scenario })
}
