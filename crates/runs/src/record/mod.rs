//! Records, with `.bench` files beside them: both are read wherever a result is, and a record of scenarios wherever a
//! scenario is.

use crate::scenario_file;
use crate::schedbench::{self, BenchFile};
use overspin_located::LocatedError;
pub use overspin_record::*;
use overspin_scenario_file::AxisArgument;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::Path;

/// Fields that `.bench` files have.
#[derive(Deserialize)]
struct Bench {
    schema: Option<serde::de::IgnoredAny>,
    #[serde(rename = "Runs")]
    runs: Option<serde::de::IgnoredAny>,
    #[serde(rename = "Input")]
    input: Option<serde::de::IgnoredAny>,
}

/// The text of `path`, as [`overspin_record::read_text`] reads it. Where there is no such file, an example of that name is the one
/// that was compiled in.
///
/// # Errors
/// As that function.
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    use overspin_scenario_file::LoadError::Read;
    let read = overspin_record::read_text(path);
    match (&read, crate::examples::at(path)) {
        (Err(LoadError::File(Read { cause, .. })), Some(text))
            if cause.kind() == ErrorKind::NotFound =>
        {
            Ok(text.into())
        }
        _ => read,
    }
}

/// Reads the record at `path`: every command that takes results finds them here. `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or is neither a record nor a `.bench` file.
pub fn read_path(path: &Path) -> Result<Record, LoadError> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    // Every record begins like this, and no scenario does.
    if !text.trim_start().starts_with('{') {
        let message = "this is not a record: it does not begin with `{`";
        let help = format!(
            "if it is a scenario, make a record of it first: overspin run {name} --json r.json"
        );
        return Err(
            Box::new(LocatedError::at(&name, text.as_str(), 0..0, "", message, help)).into()
        );
    }
    Ok(read(&name, &text).map_err(Box::new)?)
}

/// Reads a record that messages call `path`, or a `.bench` file as the record of its complete runs.
///
/// # Errors
/// If it is neither; with the place if it is not JSON.
pub fn read(path: &str, text: &str) -> Result<Record, LocatedError> {
    overspin_record::read(path, text).or_else(|error| match serde_json::from_str::<Bench>(text) {
        Ok(Bench { schema: None, runs, input }) if runs.is_some() || input.is_some() => {
            Ok(schedbench::record(&BenchFile::parse(path, text)?, path))
        }
        _ => Err(error),
    })
}

/// Loads a scenario file with `sets` and `axes` applied, or a record of a run, of seeds or of a sweep.
///
/// # Errors
/// If the file cannot be read, is not a legal scenario, or is a record of something else.
pub fn load(path: &Path, sets: &[String], axes: &[AxisArgument]) -> Result<Again, LoadError> {
    let text = read_text(path)?;
    Ok(load_text(path, &text, sets, axes)?)
}

/// Like [`load`], for a file whose text has been read.
///
/// # Errors
/// If it is not a legal scenario, or is a record of something else.
pub fn load_text(
    path: &Path,
    text: &str,
    sets: &[String],
    axes: &[AxisArgument],
) -> Result<Again, Box<LocatedError>> {
    // Every record begins like this, and no scenario does.
    if !text.trim_start().starts_with('{') {
        let loaded = scenario_file::load_text(path, text, sets, axes)?;
        return Ok(Again { loaded, world: None, set: sets.to_vec(), seed: None, seeds: None });
    }
    let name = path.display().to_string();
    let record = read(&name, text)?;
    let fail = |message: String, help: &str| {
        Box::new(LocatedError::at(&name, text, 0..0, "", message, help))
    };
    if !sets.is_empty() || !axes.is_empty() {
        let message = "--set, -L and -P change a scenario file, but this is a record".to_owned();
        return Err(fail(
            message,
            "leave them out, or run the scenario file that it was made from",
        ));
    }
    match record.loaded() {
        Ok(Some(loaded)) => {
            let seeds = record.own_seeds();
            Ok(Again { loaded, world: record.world, set: record.set, seed: record.seed, seeds })
        }
        Ok(None) => {
            let message =
                format!("this is a record of {}, which has no scenario", record.kind.words());
            Err(fail(message, &remedy(&record)))
        }
        Err(message) => Err(fail(message, "write the record again")),
    }
}

/// Says how to repeat a record that cannot be run as a scenario.
fn remedy(record: &Record) -> String {
    match &record.command {
        Some(command) => format!("run it again with the command that made it: {command}"),
        None => "records of runs, of seeds and of sweeps can be run".into(),
    }
}
