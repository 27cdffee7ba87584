//! Sweeps: every combination of a scenario's axes, run with one or more seeds and measured in the same way.

mod curves;
mod measure;
mod record;
mod report;
mod seeding;

pub use curves::{curves, is_along_numbers};
pub use record::{record, record_head};
pub use report::{answer, report, tables, warnings};

pub use measure::{COUNT, MEASURES, Measure, TABLES, THROUGHPUT};
pub use seeding::{MOST_SEEDS, Narrow, Shard};

use crate::parallel::{ParallelError, in_parallel};
use crate::record::{Record, Run};
use crate::runner::Runner;
use crate::scenario_file::{MOST_RUNS, Point, Sweep};
use crate::seeds::seeds_from;
use overspin_host::Refused;
use overspin_record::results::{Finished, Kept, Results};
use overspin_scenario::{Ending, Scenario};
use overspin_stats::Spread;

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a> {
    /// Seed of every run, or the first one; `None` means the sweep's own.
    pub seed: Option<u64>,
    /// Runs of each point, with consecutive seeds; `None` means as many as the sweep names seeds.
    pub seeds: Option<u32>,
    /// More seeds for the points whose interval is too wide.
    pub until: Option<Narrow>,
    /// Only this part of the runs.
    pub shard: Option<Shard>,
    /// Threads; 0 means one for each CPU.
    pub threads: usize,
    /// The world to run in, and when to stop: an unfinished run then ends as [`Ending::Stopped`].
    pub runner: Runner,
    /// Where finished runs are kept as they end, and found again.
    pub results: Option<&'a Results>,
}

/// One run of a sweep, measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its seed, how it ended, and what its waits were spent on.
    pub run: Run,
    /// The [`MEASURES`] of the run, in their units. Those of a run that deadlocked or was stopped are 0.
    pub values: [f64; COUNT],
}

impl Cell {
    /// Makes a run and measures it.
    ///
    /// # Errors
    /// If the world refuses the scenario.
    pub fn new(runner: Runner, scenario: &Scenario, seed: u64) -> Result<Self, Refused> {
        let outcome = runner.run_quietly(scenario, seed)?;
        Ok(Self { run: Run::of(&outcome), values: measure::measure(scenario, &outcome) })
    }

    /// How it ended; every cell has an ending.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.run.ending.as_ref()
    }

    /// Whether it ran to its intended end.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.ending().is_some_and(Ending::is_sound)
    }

    /// Whether all its work was done before the limit.
    fn is_finished(&self) -> bool {
        matches!(self.ending(), Some(Ending::Finished))
    }

    /// Whether it was stopped from outside.
    fn was_stopped(&self) -> bool {
        matches!(self.ending(), Some(Ending::Stopped { .. }))
    }

    /// Its samples, without those of a run that did not come to its end: metric, unit and value.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&'static Measure, f64)> {
        MEASURES.iter().zip(self.values).filter(|_| self.is_sound())
    }

    /// What a results directory keeps of it.
    fn finished(&self) -> Finished {
        let figure = |(m, value): (&Measure, f64)| Kept {
            place: String::new(),
            metric: m.metric.name.into(),
            unit: m.metric.unit.into(),
            value,
        };
        let figures = self.samples().map(figure).collect();
        Finished { run: self.run.clone(), figures, seconds: None }
    }

    /// The cell of a run that was kept.
    fn of_kept(kept: Finished) -> Self {
        let value = |m: &Measure| kept.figures.iter().find(|f| f.metric == m.metric.name);
        let values = std::array::from_fn(|i| value(&MEASURES[i]).map_or(0.0, |f| f.value));
        Self { run: kept.run, values }
    }
}

/// A point of a sweep: its runs, with consecutive seeds.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its value on each axis.
    pub at: Vec<String>,
    /// Its runs; none if they belong to another shard.
    pub cells: Vec<Cell>,
}

impl Measured {
    /// The values of one of the [`MEASURES`] in the runs that came to their end, with their seeds.
    #[must_use]
    pub fn samples(&self, measure: usize) -> (Vec<u64>, Vec<f64>) {
        let sound = || self.cells.iter().filter(|c| c.is_sound());
        (sound().filter_map(|c| c.run.seed).collect(), sound().map(|c| c.values[measure]).collect())
    }

    /// Statistics of these values; `None` if there are none.
    #[must_use]
    pub fn spread(&self, measure: usize) -> Option<Spread> {
        let (seeds, samples) = self.samples(measure);
        Spread::of(&seeds, &samples)
    }
}

/// All runs of a sweep. [`record`](record()) writes it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Name of the scenario.
    pub name: String,
    /// The question.
    pub description: String,
    /// Axes by name, with their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Points, with the last axis fastest.
    pub points: Vec<Measured>,
}

impl Outcome {
    /// The runs of a record of a sweep.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let mut values = vec![[0.0; COUNT]; record.runs.len()];
        for sample in &record.samples {
            let measure = MEASURES.iter().position(|m| m.metric.name == sample.metric);
            if let Some((values, i)) = values.get_mut(sample.run as usize).zip(measure) {
                values[i] = sample.value;
            }
        }
        let measured = |p: &crate::record::Point| Measured { at: p.at.clone(), cells: Vec::new() };
        let mut points: Vec<Measured> = record.points.iter().map(measured).collect();
        for (run, values) in record.runs.iter().zip(values) {
            if let Some(point) = run.point.and_then(|p| points.get_mut(p as usize)) {
                point.cells.push(Cell { run: run.clone(), values });
            }
        }
        Self {
            name: record.name.clone(),
            description: record.description.clone(),
            axes: record.axes.iter().map(|a| (a.name.clone(), a.values.clone())).collect(),
            points,
        }
    }

    /// Every run, point after point.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.points.iter().flat_map(|p| &p.cells)
    }

    /// The most runs that a point has.
    #[must_use]
    pub fn most_seeds(&self) -> usize {
        self.points.iter().map(|p| p.cells.len()).max().unwrap_or(0)
    }
}

/// Why a sweep could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// More runs than a sweep may have.
    #[error("the sweep has {runs} runs; at most {MOST_RUNS} are possible")]
    TooMany {
        /// How many.
        runs: usize,
    },
    /// A run could not be made or kept.
    #[error(transparent)]
    Run(#[from] ParallelError),
}

/// The seeds with which each point begins.
fn seeds_of(sweep: &Sweep, settings: &Settings<'_>, point: &Point) -> Vec<u64> {
    match settings {
        Settings { seed: None, seeds: None, until: None, .. } if !sweep.seeds.is_empty() => {
            sweep.seeds.clone()
        }
        _ => {
            let first = settings.seed.unwrap_or(point.scenario.seed);
            let fewest = settings.until.map_or(1, |_| seeding::FEWEST);
            seeds_from(first, settings.seeds.unwrap_or(fewest))
        }
    }
}

/// The number of runs that the sweep begins with, in all shards together.
#[must_use]
pub fn count(sweep: &Sweep, settings: &Settings<'_>) -> usize {
    let each = sweep.points.first().map_or(0, |p| seeds_of(sweep, settings, p).len());
    sweep.points.len().saturating_mul(each)
}

/// A run to make: its point, and its seed.
type Job = (usize, u64);

/// Runs all points of `sweep` with all seeds, on as many threads as asked for. Calls `progress` with the runs
/// done and the runs in all. The result does not depend on the threads, nor on which runs were kept before.
///
/// # Errors
/// If a scenario is refused, if a run cannot be kept, if the threads cannot be started, or if there are too
/// many runs.
pub fn run(
    sweep: &Sweep,
    settings: Settings<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome, SweepError> {
    let runs = count(sweep, &settings);
    if runs > MOST_RUNS {
        return Err(SweepError::TooMany { runs });
    }
    let at = |point: &Point| {
        let values = sweep.axes.iter().zip(&point.at).map(|(a, i)| a.values[*i].clone());
        Measured { at: values.collect(), cells: Vec::new() }
    };
    let mut points: Vec<Measured> = sweep.points.iter().map(at).collect();
    let mut jobs: Vec<Job> = Vec::with_capacity(runs);
    for (i, point) in sweep.points.iter().enumerate() {
        for seed in seeds_of(sweep, &settings, point) {
            jobs.push((i, seed));
        }
    }
    if let Some(shard) = settings.shard {
        jobs = shard.of(jobs, settings.until.is_some());
    }
    let mut done = 0;
    while !jobs.is_empty() {
        let tell = |now: usize, total: usize| progress(done + now, done + total);
        let cells = in_parallel(
            settings.runner.at_a_time(settings.threads),
            &jobs,
            &tell,
            |(point, seed)| one(sweep, &settings, *point, *seed),
        )?;
        done += jobs.len();
        for ((point, _), cell) in jobs.iter().zip(cells) {
            points[*point].cells.push(cell);
        }
        let stopped = || points.iter().flat_map(|p| &p.cells).any(Cell::was_stopped);
        jobs = match settings.until {
            Some(narrow) if !stopped() => narrow.more(&points, MOST_RUNS - done),
            _ => Vec::new(),
        };
    }
    Ok(Outcome {
        name: sweep.name.clone(),
        description: sweep.description.clone(),
        axes: sweep.axes.iter().map(|a| (a.name.clone(), a.values.clone())).collect(),
        points,
    })
}

/// Makes a run and keeps it, or finds it among those that were kept.
fn one(
    sweep: &Sweep,
    settings: &Settings<'_>,
    number: usize,
    seed: u64,
) -> Result<Cell, ParallelError> {
    let point = &sweep.points[number];
    let key = u32::try_from(number).ok();
    if let Some(kept) = settings.results.and_then(|r| r.kept(key, seed)) {
        return Ok(Cell::of_kept(kept));
    }
    let mut cell = Cell::new(settings.runner, &point.scenario, seed)
        .map_err(|cause| ParallelError::Sim { set: point.sets.clone(), cause })?;
    cell.run.point = key;
    if let Some(results) = settings.results {
        results.keep(&cell.finished())?;
    }
    Ok(cell)
}

#[cfg(test)]
mod tests;
