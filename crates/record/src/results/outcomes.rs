//! Outcomes of single runs that a command has made so far, for a command whose result is written as a whole. A
//! run is a function of scenario, seed and version; so the same command, or another that makes the same run, takes
//! the outcome from here.

use super::error::{ResultsError, io_error};
use super::journal;
use overspin_host::Refused;
use overspin_scenario::{Ending, Outcome, Scenario};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file of outcomes. It is gone when the command has ended.
pub(super) const OUTCOMES: &str = "outcomes.jsonl";

/// A run: its key, and what came out.
#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    outcome: Outcome,
}

/// Outcomes that are kept as runs end.
#[derive(Debug)]
pub struct Outcomes {
    path: PathBuf,
    file: Mutex<File>,
    found: HashMap<String, Outcome>,
}

impl Outcomes {
    /// Opens the file in `dir`, and reads what a killed command left there.
    pub(super) fn open(dir: &Path) -> Result<Self, ResultsError> {
        let path = dir.join(OUTCOMES);
        let file = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let file = file.map_err(io_error("write to", &path))?;
        let lines: Vec<Line> = journal::lines(&path, &file)?;
        let found = lines.into_iter().map(|line| (line.run, line.outcome)).collect();
        Ok(Self { path, file: Mutex::new(file), found })
    }

    /// The number of outcomes that were found.
    #[must_use]
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// The outcome of a run: from the file, or made by `run` and then kept. An outcome that was stopped from
    /// outside is not kept.
    ///
    /// # Errors
    /// If `run` fails.
    pub fn get(
        &self,
        scenario: &Scenario,
        seed: u64,
        run: impl FnOnce() -> Result<Outcome, Refused>,
    ) -> Result<Outcome, Refused> {
        let key = key(scenario, seed);
        if let Some(outcome) = self.found.get(&key) {
            return Ok(outcome.clone());
        }
        let outcome = run()?;
        if !matches!(outcome.ending, Ending::Stopped { .. }) {
            let line = Line { run: key, outcome: outcome.clone() };
            // It has only numbers, texts, lists and structs, which JSON can express.
            let line = serde_json::to_string(&line).unwrap_or_default() + "\n";
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            // A disk that is full now is reported when the result is written. Until then only a resumption
            // would miss this line.
            let _ = file.write_all(line.as_bytes());
        }
        Ok(outcome)
    }

    /// Removes the file.
    pub(super) fn remove(self) {
        // The result is written; a file that stays costs nothing but space.
        let _ = std::fs::remove_file(self.path);
    }
}

/// Identifies a run: 128 bits of its scenario (FNV-1a), its seed, and the version.
fn key(scenario: &Scenario, seed: u64) -> String {
    let text = serde_json::to_string(scenario).unwrap_or_default();
    let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    let (version, model) = (env!("CARGO_PKG_VERSION"), overspin_host::MODEL_VERSION);
    format!("{hash:032x}-{seed}-{version}-{model}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const SCENARIO: &str = "limit = \"1ms\"\n[host]\ncores = 1\n[[domain]]\nname = \"g\"\nvcpus = 2\n\
        lock = \"ticket\"\nworkload = { kind = \"lock-loop\" }\n";

    #[test]
    fn a_run_is_made_once_and_another_scenario_is_another_run() {
        let dir = tempfile::tempdir().unwrap();
        let (names, made) = (overspin_names::Names::default(), Cell::new(0));
        let get = |outcomes: &Outcomes, vcpus: u32, seed: u64| {
            let text = SCENARIO.replace("vcpus = 2", &format!("vcpus = {vcpus}"));
            let scenario = overspin_scenario_file::parse(&names, "t", "t", &text, &[]).unwrap();
            let run = || {
                made.set(made.get() + 1);
                overspin_sim::run(&scenario, seed)
            };
            outcomes.get(&scenario, seed, run).unwrap()
        };
        let outcomes = Outcomes::open(dir.path()).unwrap();
        let first = get(&outcomes, 2, 1);
        drop(outcomes);
        let outcomes = Outcomes::open(dir.path()).unwrap();
        assert_eq!((outcomes.found(), get(&outcomes, 2, 1), made.get()), (1, first, 1));
        get(&outcomes, 3, 1);
        get(&outcomes, 2, 2);
        assert_eq!(made.get(), 3);
        outcomes.remove();
        assert_eq!(Outcomes::open(dir.path()).unwrap().found(), 0);
    }
}
