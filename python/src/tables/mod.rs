//! The tables of records and outcomes. Names of columns are the keys of JSON records; a time has its unit in its name.

mod experiment;
mod outcome;
mod samples;
mod timeline;
mod waits;

pub(crate) use experiment::{claims, figures};
pub(crate) use outcome::{locks, pcpus, tasks, vcpus};
pub(crate) use samples::{metrics, runs};
pub(crate) use timeline::{marks, slices};
pub(crate) use waits::waits;

/// A value of an enum as it is written in JSON; `None` for what is none.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}
