//! What a key takes, in words.

use super::keys::{Key, Kind, Whose};
use super::quantity::format_time;

/// The type of a key, in words.
pub(crate) fn expected(key: &Key) -> &'static str {
    match key.kind {
        Kind::Text | Kind::Lock | Kind::Scheduler | Kind::Machine | Kind::Choice(_) => "a string",
        Kind::Integer { .. } => "an integer",
        Kind::Boolean => "true or false",
        Kind::Time { .. } => "a time in quotes, such as \"30ms\"",
        Kind::Texts => "an array of strings",
        Kind::Cpus => "a CPU list or an array of them",
        Kind::Table(_) | Kind::OneOf(_) | Kind::Params(_) => "a table",
        Kind::Tables(_) => "an array of tables",
    }
}

/// Legal values of a key, in words.
pub(crate) fn legal(key: &Key) -> String {
    match key.kind {
        Kind::Text => "any text in quotes".into(),
        Kind::Lock => "a name that `overspin list locks` shows".into(),
        Kind::Scheduler => "a name that `overspin list schedulers` shows".into(),
        Kind::Machine => "a name that `overspin list machines` shows".into(),
        Kind::Choice(words) => format!("one of: {}", words.join(", ")),
        Kind::Integer { min, max: u64::MAX } => format!("a whole number from {min}"),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Boolean => "true or false".into(),
        Kind::Time { min, max } => format!(
            "a time from {} to {} with its unit in quotes (ps, ns, us, ms, s, min, h), such as \"30ms\"",
            format_time(min),
            format_time(max)
        ),
        Kind::Texts => "texts in quotes between brackets, at least one: [\"2us\", \"10us\"]".into(),
        Kind::Cpus => {
            "\"0-3,6\" for all vCPUs, or [\"0-1\", \"2\", …] with one list for each vCPU".into()
        }
        Kind::Table(section) | Kind::Tables(section) => format!("written as {}", section.heading),
        Kind::OneOf(_) => "written as [domain.workload] with a kind".into(),
        Kind::Params(Whose::Scheduler) => "written as [host.scheduler_params]".into(),
        Kind::Params(Whose::Domain) => "written as [domain.scheduler_params]".into(),
    }
}
