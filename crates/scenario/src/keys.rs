//! Declarations of the keys of a scenario file: name, type, default, legal values, meaning. The reader of
//! files, the reference, the JSON Schema and the validation of workloads use these tables.

use crate::{LONGEST, Picos, SEC, Tree, parse_time};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
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
    /// pCPU lists.
    Cpus,
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
    /// A meaning that the documentation describes with this text.
    Means(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
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

    /// The default values of the keys, as in an empty table; keys without a default are left out.
    #[must_use]
    pub fn defaults(&self) -> Tree {
        let mut tree = Tree::new();
        for key in self.keys {
            let value = match (key.kind, key.absent) {
                (Kind::Integer { .. }, Absent::Is(text)) => {
                    text.parse::<u64>().ok().map(Value::from)
                }
                (Kind::Boolean, Absent::Is(text)) => Some((text == "true").into()),
                (Kind::Time { .. }, Absent::Is(text)) => {
                    parse_time(text).ok().map(|time| time.0.into())
                }
                (_, Absent::Is(text)) => Some(text.into()),
                (Kind::Table(inner), Absent::Means(_)) => Some(inner.defaults().into()),
                (Kind::Tables(_), Absent::Means(_)) => Some(Value::Array(Vec::new())),
                (_, Absent::Required | Absent::Means(_)) => None,
            };
            if let Some(value) = value {
                tree.insert(key.name.to_owned(), value);
            }
        }
        tree
    }
}

/// Declares a key of a table.
#[must_use]
pub const fn key(name: &'static str, kind: Kind, absent: Absent, doc: &'static str) -> Key {
    Key { name, kind, absent, doc }
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

/// Any time, including 0.
pub const ANY: Kind = time(Picos::ZERO, LONGEST);
/// The cost of one operation: more than a second is a typing error.
pub const COST: Kind = time(Picos::ZERO, SEC);

/// The type of a key, in words.
#[must_use]
pub fn expected(key: &Key) -> &'static str {
    match key.kind {
        Kind::Text
        | Kind::Lock
        | Kind::Scheduler
        | Kind::Machine
        | Kind::Workload
        | Kind::Choice(_) => "a string",
        Kind::Integer { .. } => "an integer",
        Kind::Boolean => "true or false",
        Kind::Time { .. } => "a time in quotes, such as \"30ms\"",
        Kind::Texts => "an array of strings",
        Kind::Numbers => "an array of integers",
        Kind::Cpus => "a CPU list or an array of them",
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
        Kind::Choice(words) => format!("one of: {}", words.join(", ")),
        Kind::Integer { min, max: u64::MAX } => format!("a whole number from {min}"),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Boolean => "true or false".into(),
        Kind::Time { min, max } => format!(
            "a time from {} to {} with its unit in quotes (ps, ns, us, ms, s, min, h), such as \"30ms\"",
            min,
            max
        ),
        Kind::Texts => "texts in quotes between brackets, at least one: [\"2us\", \"10us\"]".into(),
        Kind::Cpus => {
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
