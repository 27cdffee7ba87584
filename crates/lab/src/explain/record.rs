//! Records that can be explained: what `run --json` and `reproduce --json` write.

use crate::scenario_file::ScenarioError;
use overspin_scenario::{Outcome, Scenario, WaitCauses};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Layout of [`RunRecord`].
pub const RUN_SCHEMA: &str = "overspin-run/2";
/// What it was before `trace_hash` became a text; it is still read.
const RUN_SCHEMA_1: &str = "overspin-run/1";

/// What `overspin run --json` writes. No wall-clock time in it: the same run gives the same bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord<'a> {
    /// [`RUN_SCHEMA`].
    pub schema: Cow<'a, str>,
    /// Program version.
    pub version: Cow<'a, str>,
    /// Seed of the run.
    pub seed: u64,
    /// `--set` arguments.
    pub set: Cow<'a, [String]>,
    /// The trace that was written in the same run.
    pub trace: Option<String>,
    /// What was run.
    pub scenario: Cow<'a, Scenario>,
    /// What came out.
    pub outcome: Cow<'a, Outcome>,
}

/// What `overspin reproduce --json` writes, as far as it says why runs took as long as they did.
#[derive(Clone, Debug, Deserialize)]
pub struct ReproductionRecord {
    /// Experiment.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Times of runs are multiplied by it.
    pub scale: u32,
    /// The runs.
    pub runs: Vec<ReproducedRun>,
}

/// A run of a [`ReproductionRecord`].
#[derive(Clone, Debug, Deserialize)]
pub struct ReproducedRun {
    /// Lock.
    pub lock: String,
    /// Load.
    pub load: String,
    /// `finished`, `limit` or `deadlock`.
    pub ending: String,
    /// Running time of each vCPU.
    pub vcpu_time_s: Vec<f64>,
    /// What waits for locks were spent on, as simulated.
    pub wait_causes: WaitCauses,
}

/// A record that can be explained.
#[derive(Clone, Debug)]
pub enum Record {
    /// Of a run.
    Run(Box<RunRecord<'static>>),
    /// Of an experiment.
    Reproduction(ReproductionRecord),
}

/// Reads a record; `path` is what messages call it.
///
/// # Errors
/// If it is not one that can be explained, with the place if it is not JSON.
pub fn read(path: &str, text: &str) -> Result<Record, ScenarioError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let fail = |e: &serde_json::Error, help: &str| {
        // Lines and columns from 1, bytes in the column; 0 if there is no place.
        let start: usize =
            text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
        let at = start + e.column().saturating_sub(1);
        ScenarioError::at(path, text, at..at, "", e.to_string(), help)
    };
    let known = "a record of `overspin run --json` or `overspin reproduce --json`, or a scenario";
    let head: Head = serde_json::from_str(text).map_err(|e| fail(&e, known))?;
    let older = "write it again: an older version of the program said less of waits";
    match head.schema.as_str() {
        RUN_SCHEMA | RUN_SCHEMA_1 => {
            let record = serde_json::from_str(text).map_err(|e| fail(&e, older))?;
            Ok(Record::Run(Box::new(record)))
        }
        "overspin-reproduction/1" | "overspin-reproduction/2" => {
            let record = serde_json::from_str(text).map_err(|e| {
                fail(&e, "known are the runs of kernbench, of this version of the program")
            })?;
            Ok(Record::Reproduction(record))
        }
        other => {
            let message = format!("a record of layout `{other}` says nothing of waits for locks");
            Err(ScenarioError::at(path, text, 0..0, "schema", message, known))
        }
    }
}
