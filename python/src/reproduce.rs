//! Experiments beside what was published.

use crate::errors;
use crate::interrupt::interruptible;
use crate::record::Record;
use overspin_experiment as experiment;
use overspin_experiment::Experiment;
use overspin_experiment::{ReproduceError, Settings, reproduce as make};
use overspin_runs::record;
use pyo3::prelude::*;
use std::path::Path;

/// Runs an experiment, by name or from a file.
#[pyfunction]
#[pyo3(signature = (experiment, seeds = None, full = false, threads = 0))]
pub(crate) fn reproduce(
    py: Python<'_>,
    experiment: &str,
    seeds: Option<u32>,
    full: bool,
    threads: usize,
) -> PyResult<Record> {
    let found = find(experiment)?;
    let result = interruptible(py, None, |until| {
        make(&found, Settings { seeds, full, threads, outcomes: None, until }, &|_, _| {})
    })?;
    let result = result.map_err(|error| match error {
        ReproduceError::Plan(error) => errors::scenario(&error),
        error => errors::plain("RunError", &error.to_string(), "change the experiment's file"),
    })?;
    let record = overspin_experiment::record(std::slice::from_ref(&result));
    Ok(Record::new(record.made_here(format!("overspin reproduce {experiment}"))))
}

/// An experiment by name, or from a changed copy of its file.
fn find(name: &str) -> PyResult<Experiment> {
    if let Some(found) = experiment::built_in(name) {
        return found.map_err(|e| errors::scenario(&e));
    }
    if !name.ends_with(".toml") {
        return Err(errors::unknown("experiment", name, &experiment::names()));
    }
    let text = record::read_text(Path::new(name)).map_err(|e| errors::load(&e))?;
    experiment::parse(name, &text).map_err(|e| errors::scenario(&e))
}
