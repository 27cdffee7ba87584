//! Records, with `.bench` files beside them, and scenarios with the [`names`] of this process.

use crate::catalog::names;
use crate::schedbench::{self, BenchFile};
use overspin_located::LocatedError;
pub use overspin_record::*;
use overspin_scenario_file::AxisArgument;
use serde::Deserialize;
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
    match serde_json::from_str::<Bench>(text) {
        Ok(Bench { schema: None, runs, input }) if runs.is_some() || input.is_some() => {
            Ok(schedbench::record(&BenchFile::parse(path, text)?, path))
        }
        _ => overspin_record::read(path, text),
    }
}

/// [`overspin_record::load`] with the names of this process.
///
/// # Errors
/// As that function.
pub fn load(path: &Path, sets: &[String], axes: &[AxisArgument]) -> Result<Again, LoadError> {
    overspin_record::load(names(), path, sets, axes)
}

/// [`overspin_record::load_text`] with the names of this process.
///
/// # Errors
/// As that function.
pub fn load_text(
    path: &Path,
    text: &str,
    sets: &[String],
    axes: &[AxisArgument],
) -> Result<Again, Box<LocatedError>> {
    overspin_record::load_text(names(), path, text, sets, axes)
}
