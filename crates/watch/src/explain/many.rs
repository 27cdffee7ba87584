//! Why several runs of a scenario wait: the causes in each of them, and the worst run.

use super::{main_cause, meaning, shares};
use overspin_report::{Block, MOST_LINES, seconds, share};
use overspin_runs::record::{Record, Run};
use overspin_runs::run::causes::{compact, grid, row};
use overspin_scenario::{Ending, Picos, Scenario};
use std::cmp::Reverse;

/// The run of a record that waited most, with what is needed to repeat it.
#[derive(Clone, Debug)]
pub struct Worst {
    /// Its number.
    pub number: u32,
    /// Its name, in words.
    pub name: String,
    /// The scenario of the run.
    pub scenario: Scenario,
    /// The seed of the run.
    pub seed: u64,
    /// The trace hash in the record.
    pub trace_hash: Option<u64>,
}

/// The worst run of a record of several simulated runs: a run that deadlocked, or else the one whose vCPUs
/// spent the largest part of their time on waiting for locks. `None` if no vCPU waited in any of them, or if
/// the record has no scenario to run.
///
/// # Errors
/// Says in words that a point of a sweep does not fit its scenario.
pub fn worst(record: &Record) -> Result<Option<Worst>, String> {
    let Some(run) =
        by_wait(record).first().copied().filter(|r| waited(r) > Picos::ZERO || stuck(r))
    else {
        return Ok(None);
    };
    let Some(scenario) = record.scenario_of(run)? else { return Ok(None) };
    let seed = run.seed.unwrap_or(scenario.seed);
    Ok(Some(Worst {
        number: run.number,
        name: name(record, run),
        scenario,
        seed,
        // A run that was stopped from outside continues further when it is repeated.
        trace_hash: run.trace_hash.filter(|_| run.ending.as_ref().is_some_and(Ending::is_sound)),
    }))
}

/// The causes of the waits of all runs of a record, the worst run first.
#[must_use]
pub fn many(record: &Record) -> Vec<Block> {
    let runs = by_wait(record);
    let mut blocks = vec![
        Block::Title(format!("{}: why it waits", record.name)),
        Block::Text(format!(
            "{} runs. Waits of all locks are added up, in percent of the time of all vCPUs. Causes are in \
             percent of the waits.",
            runs.len()
        )),
    ];
    let stuck: Vec<String> = runs.iter().filter(|r| stuck(r)).map(|r| name(record, r)).collect();
    if !stuck.is_empty() {
        blocks.push(Block::Text(format!(
            "DEADLOCK: nothing could ever happen again in {}.",
            stuck.join("; ")
        )));
    }
    let mut table = grid(&["run", "waited s", "of the time %"]);
    for run in runs.iter().take(MOST_LINES) {
        let Some(causes) = &run.wait_causes else { continue };
        let part = share(causes.total(), run.vcpu_time.unwrap_or_default());
        row(&mut table, [name(record, run), seconds(causes.total()), part], causes);
    }
    blocks.push(Block::Grid(compact(table)));
    if runs.len() > MOST_LINES {
        let text = format!("Shown are the {MOST_LINES} that waited most, of {}.", runs.len());
        blocks.push(Block::Text(text));
    }
    match runs.first().and_then(|run| Some((run, run.wait_causes?, main_cause(&run.wait_causes?)?)))
    {
        Some((run, causes, main)) => blocks.push(Block::Text(format!(
            "The worst is {}: {}. {}",
            name(record, run),
            shares(&causes),
            meaning(main)
        ))),
        None => blocks.push(Block::Text("No vCPU waited for a lock in any of them.".into())),
    }
    blocks
}

/// The runs, the worst first.
fn by_wait(record: &Record) -> Vec<&Run> {
    let mut runs: Vec<&Run> = record.runs.iter().collect();
    runs.sort_by_key(|r| (Reverse(stuck(r)), Reverse(part(r)), r.number));
    runs
}

/// Its waits, in millionths of the time of its vCPUs.
fn part(run: &Run) -> u128 {
    let of = u128::from(run.vcpu_time.unwrap_or_default().0).max(1);
    u128::from(waited(run).0) * 1_000_000 / of
}

fn waited(run: &Run) -> Picos {
    run.wait_causes.map_or(Picos::ZERO, |causes| causes.total())
}

fn stuck(run: &Run) -> bool {
    matches!(run.ending, Some(Ending::Deadlock { .. }))
}

/// The point of a run in words: its values on the axes.
#[must_use]
pub fn point(record: &Record, run: &Run) -> Option<String> {
    let point = record.points.get(run.point? as usize)?;
    let axes = record.axes.iter().zip(&point.at);
    let words: Vec<String> = axes.map(|(axis, value)| format!("{} {value}", axis.name)).collect();
    Some(words.join(", ")).filter(|words| !words.is_empty())
}

/// A run in words: its point, and its seed.
fn name(record: &Record, run: &Run) -> String {
    let seed = run.seed.map(|seed| format!("seed {seed}"));
    point(record, run).into_iter().chain(seed).collect::<Vec<_>>().join(", ")
}
