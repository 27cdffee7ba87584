//! What the other setting does to the first, as `overspin compare` says it.

use crate::problem::Problem;
use overspin_lab::compare::{answer, compare, read};
use overspin_report::Block;
use overspin_runs::record::Record;

/// Confidence of intervals and tests, as of the command.
const CONFIDENCE: f64 = 0.95;
/// Column of times in files of other kinds, which records do not have.
const COLUMN: usize = 0;

/// The first sentence and the table of a comparison; empty if the records have nothing in common.
pub(crate) fn compared(first: &Record, other: &Record) -> Result<Vec<Block>, Problem> {
    // A run that was cut has no figures.
    if first.samples.is_empty() || other.samples.is_empty() {
        return Ok(Vec::new());
    }
    let mut inputs = Vec::new();
    for (name, record) in [("left", first), ("right", other)] {
        inputs.push((name.to_owned(), read(name, &record.to_json(), COLUMN)?));
    }
    let all = compare(&inputs, CONFIDENCE, None);
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let mut blocks = answer(&all, CONFIDENCE, None);
    // What follows tells of options of the command.
    let table = blocks.iter().position(|block| matches!(block, Block::Grid(_)));
    blocks.truncate(table.map_or(1, |place| place + 1));
    Ok(blocks)
}
