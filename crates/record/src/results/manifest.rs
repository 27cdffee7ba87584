//! What a results directory is the result of.

use super::error::{ResultsError, io_error};
use crate::Record;
use crate::output::Output;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the file.
pub const MANIFEST: &str = "manifest.json";
/// Layout of a results directory. It changes when a reader of the old layout could misread the new one.
const SCHEMA: &str = "overspin-results/1";

/// Which seeds a command runs, as far as a record cannot tell before they have run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// `--seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `--seeds` of a sweep. A larger number continues a smaller one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// The seeds of one scenario. A longer list continues a shorter one with which it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<u64>,
    /// `--until-interval`, as a part of 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The layout.
    pub schema: String,
    /// Whether all runs have ended.
    pub finished: bool,
    /// The seeds of the runs.
    pub plan: Plan,
    /// The record without its runs and samples, which have files of their own.
    pub record: Box<Record>,
}

impl Manifest {
    /// The manifest of this record, which may have its runs already.
    #[must_use]
    pub fn of(record: &Record, plan: Plan) -> Self {
        Self { schema: SCHEMA.into(), finished: false, plan, record: Box::new(head(record)) }
    }

    /// The manifest in `dir`; `None` if there is none.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, ResultsError> {
        let path = dir.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io_error("read", &path)(e)),
        };
        let broken = |line: usize, cause: String| ResultsError::Broken {
            path: path.display().to_string(),
            line,
            cause,
        };
        let schema: Value =
            serde_json::from_str(&text).map_err(|e| broken(e.line(), e.to_string()))?;
        match schema["schema"].as_str() {
            Some(SCHEMA) => {}
            other => {
                let other = other.unwrap_or("none");
                return Err(broken(1, format!("the layout is `{other}`, not `{SCHEMA}`")));
            }
        }
        // From the text, as records are read: from the value, all of that would be compiled a second time.
        let manifest: Self =
            serde_json::from_str(&text).map_err(|e| broken(e.line(), e.to_string()))?;
        if manifest.record.schema != crate::SCHEMA {
            let (other, ours) = (&manifest.record.schema, crate::SCHEMA);
            return Err(broken(1, format!("the layout of its record is `{other}`, not `{ours}`")));
        }
        Ok(Some(manifest))
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), ResultsError> {
        let text = crate::pretty(self);
        Ok(Output::create(&dir.join(MANIFEST))?.finish_with(&text)?)
    }

    /// Checks that a command with this manifest may go on with what was `found`.
    pub(super) fn continues(&self, found: &Self, dir: &Path) -> Result<(), ResultsError> {
        let other = |difference| ResultsError::Other { dir: dir.display().to_string(), difference };
        if let Some(difference) = self.difference(found) {
            return Err(other(difference));
        }
        let seeds = |m: &Self| m.plan.seeds.unwrap_or(1);
        if seeds(self) < seeds(found) {
            let (there, here) = (seeds(found), seeds(self));
            return Err(other(format!("it has {there} seeds, and this command asks for {here}")));
        }
        if !self.plan.list.starts_with(&found.plan.list) {
            let more = "its seeds are not the first ones that this command asks for";
            return Err(other(more.to_owned()));
        }
        Ok(())
    }

    /// Checks that this is the result of the same command of the same version, which may measure again.
    pub(super) fn is_of(&self, command: &str, dir: &Path) -> Result<(), ResultsError> {
        let of = |version: &str, model: u32, command: Option<&str>| serde_json::json!({ "version": version, "model_version": model, "command": command });
        let r = &self.record;
        let there = of(&r.version, r.model_version, r.command.as_deref());
        let here = of(env!("CARGO_PKG_VERSION"), overspin_host::MODEL_VERSION, Some(command));
        match difference(&there, &here, String::new()) {
            None => Ok(()),
            Some(found) => Err(ResultsError::Other {
                dir: dir.display().to_string(),
                difference: in_words(&found),
            }),
        }
    }

    /// The first difference in what is run: its place, what the other says, and what this one says. The
    /// number of seeds may differ.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let (here, there) = (self.identity(), other.identity());
        difference(&there, &here, String::new()).as_ref().map(in_words)
    }

    /// What must be equal for two commands to have one result. Where and how it is made does not count, nor
    /// what is only known afterwards.
    fn identity(&self) -> Value {
        let r = &*self.record;
        serde_json::json!({
            "version": r.version, "model_version": r.model_version, "kind": r.kind, "name": r.name,
            "world": r.world,
            "seed": self.plan.seed, "until": self.plan.until,
            "scenario": r.scenario, "axes": r.axes, "points": r.points,
            "experiments": r.experiments.iter().map(|e| &e.id).collect::<Vec<_>>(),
        })
    }
}

/// The record without its runs and samples.
fn head(record: &Record) -> Record {
    Record { runs: Vec::new(), samples: Vec::new(), ..record.clone() }
}

/// The first place where two values differ, as dotted words, and the values there.
fn difference(a: &Value, b: &Value, place: String) -> Option<(String, String, String)> {
    let inside = |key: &str| match place.as_str() {
        "" => key.to_owned(),
        place => format!("{place}.{key}"),
    };
    match (a, b) {
        (a, b) if a == b => None,
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            x.iter().find_map(|(key, value)| difference(value, &y[key], inside(key)))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            let each = x.iter().zip(y).enumerate();
            each.into_iter().find_map(|(i, (x, y))| difference(x, y, inside(&i.to_string())))
        }
        _ => Some((place, short(a), short(b))),
    }
}

/// Says a difference.
fn in_words((place, there, here): &(String, String, String)) -> String {
    format!("`{place}` is {there} there and {here} here")
}

/// A value in a few words.
fn short(value: &Value) -> String {
    match value {
        Value::Array(all) => format!("a list of {}", all.len()),
        Value::Object(all) => {
            format!("a table with {}", all.keys().cloned().collect::<Vec<_>>().join(", "))
        }
        Value::Null => "absent".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_has_a_place_and_two_values() {
        let a = json!({"version": "1", "scenario": {"domains": [{"lock": "mcs", "vcpus": 2}]}});
        let b = json!({"version": "1", "scenario": {"domains": [{"lock": "ticket", "vcpus": 4}]}});
        let found = difference(&a, &b, String::new()).unwrap();
        assert_eq!(found.0, "scenario.domains.0.lock");
        assert_eq!((found.1.as_str(), found.2.as_str()), ("\"mcs\"", "\"ticket\""));
        assert_eq!(difference(&a, &a, String::new()), None);
        let lists = difference(&json!([1]), &json!([1, 2]), String::new()).unwrap();
        assert_eq!((lists.1.as_str(), lists.2.as_str()), ("a list of 1", "a list of 2"));
    }
}
