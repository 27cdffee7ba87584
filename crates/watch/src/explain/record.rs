//! Explains a record of any kind. Runs of it that can be repeated are repeated for what no record keeps.

use super::{Worst, drawing, many, reproduction, run, samples, worst};
use overspin_host::Refused;
use overspin_report::Block;
use overspin_runs::record::{Kind, Record};
use overspin_runs::runner::Runner;
use overspin_scenario::{Outcome, Scenario};

/// Repeats runs; a command also shows how far it is.
pub trait Repeat {
    /// Makes a run.
    ///
    /// # Errors
    /// If the world refuses the scenario.
    fn run(&self, scenario: &Scenario, seed: u64) -> Result<Outcome, Refused>;

    /// Draws the longest wait of a run: see [`drawing()`].
    ///
    /// # Errors
    /// If the world refuses the scenario.
    fn drawing(&self, scenario: &Scenario, outcome: &Outcome) -> Result<Vec<Block>, Refused>;
}

/// Without a word about how far it is.
impl Repeat for Runner {
    fn run(&self, scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
        (*self).run(scenario, seed, &mut (), &|_| {})
    }

    fn drawing(&self, scenario: &Scenario, outcome: &Outcome) -> Result<Vec<Block>, Refused> {
        drawing(scenario, outcome, *self, &|_| {})
    }
}

/// Why a record cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// It lacks what it should have, or its parts do not fit each other.
    #[error("{message}")]
    Record {
        /// The cause.
        message: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The world refuses its scenario.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Explains a record. One run, or the worst of many, is repeated by `again` for the drawing of its longest wait.
///
/// # Errors
/// If the record lacks a part, or the simulator refuses its scenario.
pub fn record(record: &Record, again: &dyn Repeat) -> Result<Vec<Block>, ExplainError> {
    match record.kind {
        Kind::Run => one(record, again),
        Kind::Seeds | Kind::Sweep => of_many(record, again),
        Kind::Reproduction => Ok(reproduction(record)),
        Kind::Bench
        | Kind::BenchLocks
        | Kind::Schedbench
        | Kind::Noise
        | Kind::Calibration
        | Kind::Real
        | Kind::Validation => Ok(samples(record)),
    }
}

fn one(record: &Record, again: &dyn Repeat) -> Result<Vec<Block>, ExplainError> {
    let outcome = record.runs.first().and_then(|run| run.outcome.as_ref());
    let Some((scenario, outcome)) = record.scenario.as_ref().zip(outcome) else {
        return Err(ExplainError::Record {
            message: "this record of a run has no scenario or no outcome".into(),
            remedy: "write it again with `overspin run --json`",
        });
    };
    let mut blocks = run(scenario, outcome, record.trace.as_deref());
    match not_again(record) {
        Some(why) => blocks.push(why),
        None => blocks.extend(again.drawing(scenario, outcome)?),
    }
    Ok(blocks)
}

/// The causes in all runs, and the story of the worst run, which is repeated.
fn of_many(record: &Record, again: &dyn Repeat) -> Result<Vec<Block>, ExplainError> {
    let mut blocks = many(record);
    if let Some(why) = not_again(record) {
        blocks.push(why);
        return Ok(blocks);
    }
    let worst = worst(record)
        .map_err(|message| ExplainError::Record { message, remedy: "write the record again" })?;
    if let Some(worst) = worst {
        let outcome = again.run(&worst.scenario, worst.seed)?;
        blocks.push(Block::Heading(format!("The worst run: {}", worst.name)));
        blocks.extend(other_run(&worst, &outcome, record));
        // Its title is already printed.
        blocks.extend(run(&worst.scenario, &outcome, None).into_iter().skip(1));
        blocks.extend(again.drawing(&worst.scenario, &outcome)?);
    }
    Ok(blocks)
}

/// Why no run of the record is made again to look at it, if none can be.
fn not_again(record: &Record) -> Option<Block> {
    record.unrepeatable().map(|why| {
        Block::Text(format!(
            "No run is repeated for its longest wait: {why}. All of this is from the record."
        ))
    })
}

/// A warning, if the repeated run differs from the one in the record.
fn other_run(worst: &Worst, outcome: &Outcome, record: &Record) -> Option<Block> {
    let same = worst.trace_hash.is_none_or(|hash| hash == outcome.trace_hash);
    (!same && outcome.ending.is_sound()).then(|| {
        Block::Text(format!(
            "WARNING: the repeated run differs: the record was written by version {}, whose model is {}.",
            record.version, record.model_version
        ))
    })
}
