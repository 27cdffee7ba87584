//! Scenario files with the [`names`] of this process.

use crate::catalog::names;
use overspin_located::LocatedError;
use overspin_scenario::Scenario;
pub use overspin_scenario_file::*;
use std::path::Path;

/// [`overspin_scenario_file::load`] with the names of this process.
///
/// # Errors
/// As that function.
pub fn load(path: &Path, sets: &[String]) -> Result<Loaded, LoadError> {
    overspin_scenario_file::load(names(), path, sets)
}

/// [`overspin_scenario_file::load_text`] with the names of this process.
///
/// # Errors
/// As that function.
pub fn load_text(
    path: &Path,
    text: &str,
    sets: &[String],
    axes: &[AxisArgument],
) -> Result<Loaded, Box<LocatedError>> {
    overspin_scenario_file::load_text(names(), path, text, sets, axes)
}

/// [`overspin_scenario_file::parse`] with the names of this process.
///
/// # Errors
/// As that function.
pub fn parse(
    path: &str,
    default_name: &str,
    text: &str,
    sets: &[String],
) -> Result<Scenario, LocatedError> {
    overspin_scenario_file::parse(names(), path, default_name, text, sets)
}

/// [`overspin_scenario_file::toml`] with the names of this process.
#[must_use]
pub fn toml(scenario: &Scenario) -> String {
    overspin_scenario_file::toml(names(), scenario)
}
