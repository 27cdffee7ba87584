//! Records run again: a record of a scenario is read wherever a scenario file is.

use super::{Record, read};
use crate::scenario_file::{self, LoadError, Loaded, ScenarioError};
use std::path::Path;

/// A scenario to run, from a file of its own or from a record.
#[derive(Debug)]
pub struct Again {
    /// What to run.
    pub loaded: Loaded,
    /// `--set` arguments that are in it: those of the command, or those of the record.
    pub set: Vec<String>,
    /// The seed that a map was run with by `--seed`, if it is from a record of one.
    pub seed: Option<u64>,
    /// Runs of each point, if it is from a record of a map whose points have seeds of their own.
    pub seeds: Option<u32>,
}

/// Loads a scenario file with `sets` applied, or a record of a run, of seeds or of a map.
///
/// # Errors
/// If the file cannot be read, is not a legal scenario, or is a record of something else.
pub fn load(path: &Path, sets: &[String]) -> Result<Again, LoadError> {
    let text = scenario_file::read_text(path)?;
    Ok(load_text(path, &text, sets)?)
}

fn load_text(path: &Path, text: &str, sets: &[String]) -> Result<Again, Box<ScenarioError>> {
    // No scenario begins like this, and every record does.
    if !text.trim_start().starts_with('{') {
        let loaded = scenario_file::load_text(path, text, sets)?;
        return Ok(Again { loaded, set: sets.to_vec(), seed: None, seeds: None });
    }
    let name = path.display().to_string();
    let record = read(&name, text)?;
    let fail = |message: String, help: &str| {
        Box::new(ScenarioError::at(&name, text, 0..0, "", message, help))
    };
    if !sets.is_empty() {
        let message = "--set changes a scenario file, and this is a record".to_owned();
        return Err(fail(message, "leave --set out, or run the scenario file that it was made of"));
    }
    match record.loaded() {
        Ok(Some(loaded)) => {
            let seeds = record.own_seeds();
            Ok(Again { loaded, set: record.set, seed: record.seed, seeds })
        }
        Ok(None) => {
            let message =
                format!("this is a record of {}, and has no scenario", record.kind.words());
            Err(fail(message, &remedy(&record)))
        }
        Err(message) => Err(fail(message, "write the record again")),
    }
}

/// How what cannot be run as a scenario is run again.
fn remedy(record: &Record) -> String {
    match &record.command {
        Some(command) => format!("run it again with the command that made it: {command}"),
        None => "records of runs, of seeds and of maps can be run".into(),
    }
}
