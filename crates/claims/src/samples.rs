//! Samples, while they are collected and when claims ask for them.

use super::vocabulary::{Name, place};
use overspin_record::Sample;
use overspin_record::metric::Metric;
use std::collections::{BTreeMap, BTreeSet};

/// Measurements in long form, and the seeds of their runs.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The samples.
    pub rows: Vec<Sample>,
    /// Seeds by number of run; `None` for a run without a seed.
    pub seeds: Vec<Option<u64>>,
}

impl Samples {
    /// Begins the next run.
    pub fn run(&mut self, seed: Option<u64>) -> Run<'_> {
        let number = u32::try_from(self.seeds.len()).unwrap_or(u32::MAX);
        self.seeds.push(seed);
        Run { samples: self, number }
    }
}

/// A run during the collection of its samples.
#[derive(Debug)]
pub struct Run<'a> {
    samples: &'a mut Samples,
    number: u32,
}

impl Run<'_> {
    /// Adds a number that was measured at a place. A missing or infinite number is not a sample.
    pub fn add(
        &mut self,
        at: &[&str],
        metric: &Metric,
        value: impl Into<Option<f64>>,
    ) -> &mut Self {
        if let Some(value) = value.into().filter(|v| v.is_finite()) {
            self.samples.rows.push(Sample {
                run: self.number,
                place: place(at),
                metric: metric.name.into(),
                unit: metric.unit.into(),
                value,
            });
        }
        self
    }
}

/// Samples by name.
#[derive(Debug)]
pub struct Index<'a> {
    /// Runs and values of each metric of a place.
    values: BTreeMap<(&'a str, &'a str), Vec<(u32, f64)>>,
    /// Runs that have a sample at a place.
    runs: BTreeMap<&'a str, BTreeSet<u32>>,
    seeds: &'a [Option<u64>],
}

impl<'a> Index<'a> {
    /// An index of these samples.
    #[must_use]
    pub fn new(samples: &'a Samples) -> Self {
        let (mut values, mut runs) = (BTreeMap::new(), BTreeMap::new());
        for s in &samples.rows {
            let name = (s.place.as_str(), s.metric.as_str());
            values.entry(name).or_insert_with(Vec::new).push((s.run, s.value));
            runs.entry(name.0).or_insert_with(BTreeSet::new).insert(s.run);
        }
        Self { values, runs, seeds: &samples.seeds }
    }

    fn seed(&self, run: u32) -> Option<u64> {
        self.seeds.get(run as usize).copied().flatten()
    }

    /// The runs of a configuration: those with a sample at the place or at a place that contains it. A run
    /// that did not finish has samples there too, at least one that says so.
    fn runs_at(&self, at: &[String], seed: Option<u64>) -> BTreeSet<u32> {
        let of = (1..=at.len()).filter_map(|n| self.runs.get(place(&at[..n]).as_str()));
        let all = of.flatten().copied();
        all.filter(|run| seed.is_none() || self.seed(*run) == seed).collect()
    }

    /// Values of a metric in its unit, one or more for each run.
    ///
    /// # Errors
    /// If there is no run, or if a run has no value: the mean would be that of the lucky runs.
    pub fn values(&self, name: &Name, seed: Option<u64>) -> Result<Vec<f64>, String> {
        let runs = self.runs_at(&name.place, seed);
        if runs.is_empty() {
            return Err(format!("there is no run of {}", place(&name.place)));
        }
        let (values, with) = self.present(name, seed);
        if with.len() < runs.len() {
            let (without, runs) = (runs.len() - with.len(), runs.len());
            let what = format!("{}.{}", place(&name.place), name.metric.name);
            return Err(format!("{without} of {runs} runs have no {what}"));
        }
        Ok(values)
    }

    /// How many runs have a value, and how many runs there are.
    pub fn runs(&self, name: &Name) -> (usize, usize) {
        (self.present(name, None).1.len(), self.runs_at(&name.place, None).len())
    }

    /// The number of values; a run without a value counts as none.
    pub fn count(&self, name: &Name, seed: Option<u64>) -> Result<usize, String> {
        if self.runs_at(&name.place, seed).is_empty() {
            return Err(format!("there is no run of {}", place(&name.place)));
        }
        Ok(self.present(name, seed).0.len())
    }

    fn present(&self, name: &Name, seed: Option<u64>) -> (Vec<f64>, BTreeSet<u32>) {
        let text = place(&name.place);
        let all = self.values.get(&(text.as_str(), name.metric.name)).map_or(&[][..], |v| v);
        let of_seed = all.iter().filter(|(run, _)| seed.is_none() || self.seed(*run) == seed);
        of_seed.map(|(run, value)| (*value, *run)).unzip()
    }

    /// Seeds of the runs at these places.
    pub fn seeds<'n>(&self, names: impl Iterator<Item = &'n Name>) -> BTreeSet<u64> {
        let runs = names.flat_map(|name| self.runs_at(&name.place, None));
        runs.filter_map(|run| self.seed(run)).collect()
    }
}
