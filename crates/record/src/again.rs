//! Repeats records: a record of a scenario can be read wherever a scenario file can.

use super::{Kind, Point, Record, Run};
use crate::results::{self, ResultsError};
use overspin_located::LocatedError;
use overspin_scenario::Scenario;
use overspin_scenario_file::{self as scenario_file, Axis, Loaded, Point as SweepPoint, Sweep};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A scenario to run, from its own file or from a record.
#[derive(Clone, Debug)]
pub struct Again {
    /// What to run.
    pub loaded: Loaded,
    /// The world of the record, if this comes from one that was not simulated.
    pub world: Option<String>,
    /// `--set` arguments that it includes: those of the command, or those of the record.
    pub set: Vec<String>,
    /// The seed of the record, if this comes from one: a sweep may have been run with `--seed`.
    pub seed: Option<u64>,
    /// Runs of each point, if this comes from the record of a sweep whose points have their own seeds.
    pub seeds: Option<u32>,
}

/// Why a scenario or a record could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read, or its content is wrong.
    #[error(transparent)]
    File(#[from] scenario_file::LoadError),
    /// It is a directory without results, or with broken ones.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl From<Box<LocatedError>> for LoadError {
    fn from(error: Box<LocatedError>) -> Self {
        Self::File(error.into())
    }
}

/// The text of `path`, or of standard input for `-`. The text of a results directory is its record.
///
/// # Errors
/// If it cannot be read, is not UTF-8 or is longer than 512 MiB.
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    if path.is_dir() {
        return Ok(results::read(path)?.to_json());
    }
    Ok(scenario_file::read_text(path)?)
}

impl Record {
    /// The seeds of the runs of each point; the key `None` is for a record without points.
    fn seeds(&self) -> BTreeMap<Option<u32>, Vec<u64>> {
        let mut seeds = BTreeMap::<_, Vec<u64>>::new();
        for run in &self.runs {
            seeds.entry(run.point).or_default().extend(run.seed);
        }
        seeds
    }

    /// Runs of each point of a sweep if the seeds differ between points, because the seed varies together with
    /// something else; otherwise `None`.
    #[must_use]
    pub fn own_seeds(&self) -> Option<u32> {
        let seeds = self.seeds();
        let first = seeds.values().next()?;
        let differ = seeds.values().any(|of| of != first);
        if differ { u32::try_from(first.len()).ok() } else { None }
    }

    /// What the record is of: a scenario, many seeds of it, or a sweep.
    ///
    /// # Errors
    /// Says in words that it has no scenario, or that a point does not fit.
    pub fn into_loaded(self) -> Result<Loaded, String> {
        // A directory of many seeds has its seeds in its plan.
        if let (Kind::Seeds, Some(scenario)) = (self.kind, &self.scenario) {
            return Ok(Loaded::Seeds(scenario.clone(), Vec::new()));
        }
        let words = self.kind.words();
        self.loaded()?.ok_or_else(|| format!("this is a record of {words}, which has no scenario"))
    }

    /// The record's scenario: one run, runs with several seeds, or a sweep; `None` if it has none.
    ///
    /// # Errors
    /// Says in words that a point of the sweep does not fit the scenario or the axes.
    pub fn loaded(&self) -> Result<Option<Loaded>, String> {
        let Some(scenario) = &self.scenario else { return Ok(None) };
        let mut scenario = scenario.clone();
        Ok(match self.kind {
            Kind::Run => {
                scenario.seed = self.seed.unwrap_or(scenario.seed);
                Some(Loaded::One(scenario))
            }
            Kind::Seeds => match self.seeds().remove(&None) {
                Some(seeds) if !seeds.is_empty() => Some(Loaded::Seeds(scenario, seeds)),
                _ => return Err("there are no runs with seeds".into()),
            },
            Kind::Sweep => Some(Loaded::Sweep(self.sweep(&scenario)?)),
            _ => None,
        })
    }

    /// The sweep that it is a record of; `scenario` is that of its first point.
    ///
    /// # Errors
    /// Says in words that its points do not fit the scenario or the axes.
    pub fn sweep(&self, scenario: &Scenario) -> Result<Sweep, String> {
        let combinations = self.axes.iter().map(|a| a.values.len()).fold(1, usize::saturating_mul);
        if self.points.is_empty() || self.points.len() != combinations {
            let points = self.points.len();
            return Err(format!("there are {points} points for {combinations} combinations"));
        }
        let base = json(Some(scenario));
        let points = self.points.iter().enumerate().map(|(i, p)| self.point(i, p, &base));
        let points: Vec<SweepPoint> = points.collect::<Result<_, _>>()?;
        for (number, point) in points.iter().enumerate() {
            // The last axis is the fastest; reports rely on this.
            let axes = self.axes.iter().zip(&point.at);
            if axes.fold(0, |place, (axis, at)| place * axis.values.len() + at) != number {
                return Err(format!("points[{number}] is out of order"));
            }
        }
        let seeds = match self.own_seeds() {
            Some(_) => Vec::new(),
            None => self.seeds().into_values().next().unwrap_or_default(),
        };
        Ok(Sweep {
            name: self.name.clone(),
            description: self.description.clone(),
            axes: self.axes.clone(),
            points,
            seeds,
        })
    }

    /// The scenario of one of its runs; `None` if the record has none.
    ///
    /// # Errors
    /// As for [`Self::into_loaded`].
    pub fn scenario_of(&self, run: &Run) -> Result<Option<Scenario>, String> {
        let Some(scenario) = &self.scenario else { return Ok(None) };
        let point = run.point.map(|number| number as usize);
        let Some((number, point)) = point.and_then(|n| Some((n, self.points.get(n)?))) else {
            return Ok(Some((**scenario).clone()));
        };
        Ok(Some(self.point(number, point, &json(Some(scenario)))?.scenario))
    }

    fn point(&self, number: usize, point: &Point, base: &Value) -> Result<SweepPoint, String> {
        if point.at.len() != self.axes.len() {
            let (values, axes) = (point.at.len(), self.axes.len());
            return Err(format!("points[{number}].at has {values} values for {axes} axes"));
        }
        let index = |(value, axis): (&String, &Axis)| {
            let found = axis.values.iter().position(|v| v == value);
            let name = &axis.name;
            found.ok_or_else(|| format!("points[{number}].at: `{value}` is not on axis `{name}`"))
        };
        let at = point.at.iter().zip(&self.axes).map(index).collect::<Result<_, _>>()?;
        let changed = point.changes.apply(base);
        let changed = changed
            .map_err(|place| format!("points[{number}].changes: the scenario has no {place}"))?;
        let scenario = serde_json::from_value(changed)
            .map_err(|e| format!("points[{number}].changes: {e}"))?;
        Ok(SweepPoint { at, sets: point.set.clone(), scenario })
    }
}

/// A scenario, as its record stores it.
#[must_use]
pub fn json(scenario: Option<&Scenario>) -> Value {
    // It has only numbers, texts, lists and structs, which JSON can express.
    scenario.and_then(|s| serde_json::to_value(s).ok()).unwrap_or_default()
}
