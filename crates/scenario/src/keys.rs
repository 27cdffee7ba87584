//! Declarations of the keys of a scenario file: name, type, default, legal values, meaning. The reader and the writer of
//! files, the reference, the JSON Schema and the checks of scenarios and workloads use these tables. The macro
//! [`parameters!`](crate::parameters!) makes most of them.

use crate::{Fault, LONGEST, Picos, QUANTILES, SEC, Tree, parse_time};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

/// The type of the value of a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// Name of a lock.
    Lock,
    /// Name of a scheduler.
    Scheduler,
    /// Name of a machine.
    Machine,
    /// Name of a kind of workload.
    Workload,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// One of a few words, or `none`, which stands for no such table.
    ChoiceOrNone(&'static [&'static str]),
    /// A whole number.
    Integer {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// `true` or `false`.
    Boolean,
    /// A time with its unit.
    Time {
        /// Shortest.
        min: Picos,
        /// Longest.
        max: Picos,
    },
    /// A time that may vary: with its unit, or a table of quantiles.
    Varying {
        /// Shortest, if it does not vary.
        min: Picos,
        /// Longest, if it does not vary.
        max: Picos,
    },
    /// A list of pCPUs.
    Cpus,
    /// A list of pCPUs for all vCPUs, or one for each.
    Affinity,
    /// An array of whole numbers.
    Numbers,
    /// An array of texts.
    Texts,
    /// A table.
    Table(&'static Section),
    /// An array of tables.
    Tables(&'static Section),
    /// A table whose keys depend on its `kind`, or an array of them: workloads.
    Workloads,
    /// A table whose keys are the parameters of the host's scheduler, for itself or for a domain.
    Params(Whose),
}

/// Whose parameters a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The scheduler's own.
    Scheduler,
    /// A domain's.
    Domain,
}

/// The meaning of an absent key.
#[derive(Clone, Copy, Debug)]
pub enum Absent {
    /// An error.
    Required,
    /// Read as if this text stood there.
    Is(&'static str),
    /// A table of its own defaults, which the documentation describes with this text.
    Defaults(&'static str),
    /// A value that depends on the keys that are present, and that the documentation describes with this text.
    Follows(fn(&Tree) -> Value, &'static str),
    /// No value, no elements, or one that the reader of the table chooses. The documentation describes it with this text.
    Means(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its name in a scenario as data: that of the field.
    pub field: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Its meaning when it is absent.
    pub absent: Absent,
    /// Its meaning, in a sentence.
    pub doc: &'static str,
}

/// The keys of one table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its place, as the author of a file writes it.
    pub heading: &'static str,
    /// Its subject.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|k| k.name)
    }

    /// The key of this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }

    /// The values of the keys in an empty table; keys without a default are left out.
    #[must_use]
    pub fn defaults(&self) -> Tree {
        let mut tree = Tree::new();
        self.fill(&mut tree);
        tree
    }

    /// Adds the values of absent keys to a table as data.
    pub fn fill(&self, tree: &mut Tree) {
        for key in self.keys {
            if !tree.contains_key(key.field)
                && let Some(value) = key.default(tree)
            {
                tree.insert(key.field.to_owned(), value);
            }
        }
    }

    /// Refuses the fields that are left in a table as data when all keys were taken out of it.
    ///
    /// # Errors
    /// If there is one.
    pub fn refuse_others(&self, left: &Tree) -> Result<(), serde_json::Error> {
        let Some(field) = left.keys().next() else { return Ok(()) };
        let fields: Vec<_> = self.keys.iter().map(|k| format!("`{}`", k.field)).collect();
        let expected = fields.join(", ");
        Err(Error::custom(format!("unknown field `{field}`, expected one of {expected}")))
    }

    /// Checks that the numbers and times of a table as data are within the ranges of their keys. A file was checked when
    /// it was read; values from other programs were not.
    ///
    /// # Errors
    /// Says which key is out of range.
    pub fn check(&self, tree: &Tree) -> Result<(), Fault> {
        for key in self.keys {
            let inside = |at: &str, inner: &Section, value: &Value| match value {
                Value::Object(tree) => inner.check(tree).map_err(|fault| fault.within(at)),
                _ => Ok(()),
            };
            match (key.kind, tree.get(key.field)) {
                (
                    Kind::Integer { .. } | Kind::Time { .. } | Kind::Varying { .. },
                    Some(Value::Number(number)),
                ) => {
                    if number.as_u64().is_some_and(|value| key.kind.contains(value)) {
                        continue;
                    }
                    let shown = match (key.kind, number.as_u64()) {
                        (Kind::Time { .. } | Kind::Varying { .. }, Some(picos)) => {
                            Picos(picos).to_string()
                        }
                        _ => number.to_string(),
                    };
                    let message = format!("{shown} is out of range");
                    return Err(Fault::new(key.name, message, legal(key)));
                }
                (Kind::Varying { .. }, Some(value)) => inside(key.name, &QUANTILES, value)?,
                (Kind::Table(inner), Some(value)) => inside(key.name, inner, value)?,
                (Kind::Tables(inner), Some(Value::Array(values))) => {
                    for (i, value) in values.iter().enumerate() {
                        inside(&format!("{}.{i}", key.name), inner, value)?;
                    }
                }
                // A value whose type differs from its key's is found when the structure is made.
                _ => {}
            }
        }
        Ok(())
    }
}

impl Kind {
    /// Whether a whole number, or a time in picoseconds, is in the range of the key.
    #[must_use]
    pub fn contains(self, value: u64) -> bool {
        match self {
            Self::Integer { min, max }
            | Self::Time { min: Picos(min), max: Picos(max) }
            | Self::Varying { min: Picos(min), max: Picos(max) } => (min..=max).contains(&value),
            _ => false,
        }
    }

    /// The words of a choice; empty for other types.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        match self {
            Self::Choice(words) => words.to_vec(),
            Self::ChoiceOrNone(words) => [&[NONE], words].concat(),
            _ => Vec::new(),
        }
    }
}

impl Key {
    /// The value of the key in a table that lacks it; `tree` has the keys that are present. `None` if it has none, or
    /// if the reader of the table chooses it.
    #[must_use]
    pub fn default(&self, tree: &Tree) -> Option<Value> {
        match (self.kind, self.absent) {
            (_, Absent::Required) => None,
            (_, Absent::Follows(value, _)) => Some(value(tree)),
            (Kind::Integer { .. }, Absent::Is(text)) => text.parse::<u64>().ok().map(Value::from),
            (Kind::Boolean, Absent::Is(text)) => Some((text == "true").into()),
            (Kind::Time { .. } | Kind::Varying { .. }, Absent::Is(text)) => {
                parse_time(text).ok().map(|time| time.0.into())
            }
            (_, Absent::Is(text)) => Some(text.into()),
            (Kind::Table(inner), Absent::Defaults(_)) => Some(inner.defaults().into()),
            (Kind::Tables(_) | Kind::Cpus | Kind::Affinity | Kind::Numbers, Absent::Means(_)) => {
                Some(Value::Array(Vec::new()))
            }
            (Kind::Params(_), Absent::Means(_)) => Some(Tree::new().into()),
            (_, Absent::Defaults(_) | Absent::Means(_)) => None,
        }
    }
}

/// The word of a [`Kind::ChoiceOrNone`] that stands for no table.
pub const NONE: &str = "none";

/// Takes a field out of a table as data.
///
/// # Errors
/// If it has another type, or is missing and its type has no value for that.
pub fn take<T: DeserializeOwned>(tree: &mut Tree, field: &str) -> Result<T, serde_json::Error> {
    match tree.remove(field) {
        Some(value) => serde_json::from_value(value),
        None => serde_json::from_value(Value::Null)
            .map_err(|_| Error::custom(format!("missing field `{field}`"))),
    }
}

/// A structure from some of its fields; all others have the values of absent keys.
///
/// # Panics
/// If `given` lacks a field whose key has no default.
#[must_use]
pub fn with_defaults<T: DeserializeOwned>(given: Value) -> T {
    serde_json::from_value(given).expect("all other keys have legal defaults")
}

/// Declares a key of a table.
#[must_use]
pub const fn key(name: &'static str, kind: Kind, absent: Absent, doc: &'static str) -> Key {
    Key { name, field: name, kind, absent, doc }
}

/// The type of whole numbers from `min` to `max`.
#[must_use]
pub const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

/// The type of times from `min` to `max`.
#[must_use]
pub const fn time(min: Picos, max: Picos) -> Kind {
    Kind::Time { min, max }
}

/// The type of times from `min` to `max` that may vary.
#[must_use]
pub const fn varying(min: Picos, max: Picos) -> Kind {
    Kind::Varying { min, max }
}

/// Any time, including 0.
pub const ANY: Kind = time(Picos::ZERO, LONGEST);
/// The weight of a domain. The schedulers have the same limits, which `overspin-host` makes sure of.
pub const WEIGHT: Kind = integer(1, 65_535);
/// The cap of a domain, in percent of one pCPU.
pub const CAP: Kind = integer(0, 65_534);
/// The cost of one operation: more than a second is a typing error.
pub const COST: Kind = time(Picos::ZERO, SEC);
/// The cost of an operation that takes longer at times.
pub const VARYING_COST: Kind = varying(Picos::ZERO, SEC);

/// The type of a key, in words.
#[must_use]
pub fn expected(key: &Key) -> &'static str {
    match key.kind {
        Kind::Text
        | Kind::Lock
        | Kind::Scheduler
        | Kind::Machine
        | Kind::Workload
        | Kind::Choice(_)
        | Kind::ChoiceOrNone(_) => "a string",
        Kind::Integer { .. } => "an integer",
        Kind::Boolean => "true or false",
        Kind::Time { .. } => "a time in quotes, such as \"30ms\"",
        Kind::Varying { .. } => "a time in quotes or a table of quantiles",
        Kind::Texts => "an array of strings",
        Kind::Numbers => "an array of integers",
        Kind::Cpus => "a CPU list or an array of pCPUs",
        Kind::Affinity => "a CPU list or an array of them",
        Kind::Table(_) | Kind::Params(_) => "a table",
        Kind::Workloads => "a table or an array of tables",
        Kind::Tables(_) => "an array of tables",
    }
}

/// Legal values of a key, in words.
#[must_use]
pub fn legal(key: &Key) -> String {
    match key.kind {
        Kind::Text => "any text in quotes".into(),
        Kind::Lock => "a name that `overspin list locks` shows".into(),
        Kind::Scheduler => "a name that `overspin list schedulers` shows".into(),
        Kind::Machine => "a name that `overspin list machines` shows".into(),
        Kind::Workload => "a name that `overspin list workloads` shows".into(),
        Kind::Numbers => "whole numbers between brackets, at least one: [0, 1]".into(),
        Kind::Choice(_) | Kind::ChoiceOrNone(_) => {
            format!("one of: {}", key.kind.words().join(", "))
        }
        Kind::Integer { min, max: u64::MAX } => format!("a whole number from {min}"),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Boolean => "true or false".into(),
        Kind::Time { min, max } => format!(
            "a time from {} to {} with its unit in quotes (ps, ns, us, ms, s, min, h), such as \"30ms\"",
            min,
            max
        ),
        Kind::Varying { min, max } => format!(
            "a time from {min} to {max} with its unit in quotes, such as \"3us\", or quantiles, such as {{ p50 = \"3us\", \
             p99 = \"20us\" }}"
        ),
        Kind::Texts => "texts in quotes between brackets, at least one: [\"2us\", \"10us\"]".into(),
        Kind::Cpus => "a list such as \"0-3,6\", or numbers between brackets: [0, 1]".into(),
        Kind::Affinity => {
            "\"0-3,6\" for all vCPUs, or [\"0-1\", \"2\", …] with one list for each vCPU".into()
        }
        Kind::Table(section) | Kind::Tables(section) => format!("written as {}", section.heading),
        Kind::Workloads => {
            "written as [domain.workload] with a kind, or as [[domain.workload]] for each of several"
                .into()
        }
        Kind::Params(Whose::Scheduler) => "written as [host.scheduler_params]".into(),
        Kind::Params(Whose::Domain) => "written as [domain.scheduler_params]".into(),
    }
}
