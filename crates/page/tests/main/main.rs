//! Tests of the laboratory from outside: of all crates below the command. They are one program, so that it is linked once.
//!
//! What records, reports and pages contain is tested here, without processes; `crates/cli/tests` tests what only a
//! process has: arguments, files, exit codes and signals.

// An experiment in a file of the user: its claims and its figures.
mod claims;
// The tests of difference against scipy, and what `overspin compare` prints.
mod compare;
// Damaged files and lines, given to everything that reads such.
mod damaged;
// examples/io-beside-hog.toml against a closed form.
mod io_beside_hog;
// The text of records: what is written is read again, and what is wrong is told.
mod layout;
// Mistakes in scenario files: their places, messages and remedies.
mod mistakes;
// Traces, decoded with Perfetto's own definitions.
mod perfetto_decode;
// What reads files and lines from outside.
mod readers;
// Every kind of record, read by every reader.
mod records;
// Directories of results, filled by runs.
mod results;
// Plans, workers and results of schedbench.
mod schedbench;
// Runs of many seeds and of sweeps: samples, means and reports.
mod seeds;

use overspin_runs::scenario_file::{self, Loaded};
use overspin_scenario::Scenario;
use std::path::Path;

/// What a scenario file with this text asks for.
#[track_caller]
fn load(text: &str, sets: &[&str]) -> Loaded {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let loaded = scenario_file::load_text(Path::new("s.toml"), text, &sets, &[]);
    loaded.unwrap_or_else(|e| panic!("{e}"))
}

/// The scenario of a file that asks for one run.
#[track_caller]
fn one(text: &str, sets: &[&str]) -> Scenario {
    let Loaded::One(scenario) = load(text, sets) else { panic!("it is one run") };
    *scenario
}
