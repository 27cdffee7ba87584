//! A scenario file from which the points of a sweep are made.

use super::{Stop, batch};
use crate::interrupt::interruptible;
use crate::scenario::Scenario;
use crate::table::Table;
use crate::{errors, own};
use overspin_located::LocatedError;
use overspin_runs::catalog::names;
use overspin_runs::scenario_file::{self, AxisArgument};
use pyo3::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// An axis: its name, and its values, each with its `--set` arguments.
type Axis = (String, Vec<String>, Vec<Vec<String>>);
/// What makes an unpickled template: a function and its arguments.
type Pickled<'py, 'a> = (Bound<'py, PyAny>, (PathBuf, &'a str, Vec<String>));

/// A scenario file that has been read. It can be pickled.
#[pyclass(frozen, module = "overspin._overspin")]
#[derive(Debug)]
pub(crate) struct Template {
    path: PathBuf,
    text: Arc<str>,
    sets: Vec<String>,
    template: scenario_file::Template,
}

impl Template {
    fn read(path: PathBuf, text: Arc<str>, sets: Vec<String>) -> PyResult<Self> {
        let template =
            scenario_file::Template::new(&path, &text, &sets).map_err(|e| errors::scenario(&e))?;
        Ok(Self { path, text, sets, template })
    }
}

#[pymethods]
impl Template {
    #[new]
    fn new(scenario: &Scenario) -> PyResult<Self> {
        let Some((path, text, sets)) = scenario.source() else {
            return Err(errors::plain(
                "ScenarioError",
                &format!("{}: this is the record of a sweep", scenario.file()),
                "give the scenario file that it was made from",
            ));
        };
        Self::read(path, text, sets)
    }

    /// The axes of the file and those given, each a key with its values; and the seeds that the file names.
    fn axes(&self, more: Vec<(String, Vec<String>)>) -> PyResult<(Vec<Axis>, Vec<u64>)> {
        let more: Vec<AxisArgument> =
            more.into_iter().map(|(key, values)| AxisArgument::Values(key, values)).collect();
        let (axes, seeds) = self.template.axes(names(), &more).map_err(|e| errors::scenario(&e))?;
        let axes = axes.into_iter().map(|d| (d.axis.name, d.axis.values, d.sets));
        Ok((axes.collect(), seeds))
    }

    /// Reads the scenario of every point, each given by its `--set` arguments. Returns a digest of what is run: equal
    /// digests stand for equal scenarios, whatever their text, and for one version of the model.
    fn check(&self, py: Python<'_>, points: Vec<Vec<String>>) -> PyResult<String> {
        let digest = interruptible(py, None, |until| -> Result<_, Box<LocatedError>> {
            let mut digest = Sha256::new();
            digest.update(overspin_sim::MODEL_VERSION.to_le_bytes());
            for sets in &points {
                if until.over().is_some() {
                    break;
                }
                let mut scenario = self.template.scenario(names(), sets)?;
                // What it is called changes no result, and each run has its own seed.
                scenario.seed = 0;
                scenario.name.clear();
                scenario.description.clear();
                // A scenario has only numbers, texts, lists and structs, which JSON can express.
                digest.update(serde_json::to_vec(&scenario).unwrap_or_default());
                digest.update([b'\n']);
            }
            Ok(digest.finalize())
        })?;
        let digest = digest.map_err(|e| errors::scenario(&e))?;
        Ok(digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    /// Makes runs one after the other. Run `first + i` is `jobs[i]`: a point, by its number in `points`, and a seed.
    /// A point has `--set` arguments and a value for each of `columns`. Returns a row for each run that has ended, and
    /// the seconds of the work.
    #[pyo3(signature = (first, points, jobs, columns, stop = None))]
    fn run(
        &self,
        py: Python<'_>,
        first: u64,
        points: Vec<batch::Point>,
        jobs: Vec<(usize, u64)>,
        columns: Vec<(String, String)>,
        stop: Option<Py<Stop>>,
    ) -> PyResult<(Table, f64)> {
        let work = |until| batch::run(&self.template, &points, &jobs, until);
        let (rows, seconds) = match stop {
            Some(stop) => {
                let until = stop.get().flag.until(None);
                // A part in Python ends the run by a panic that carries its exception.
                catch_unwind(AssertUnwindSafe(|| py.detach(|| work(until)))).map_err(own::raised)?
            }
            None => interruptible(py, None, work)?,
        };
        Ok((batch::table(first, &points, &columns, &rows)?, seconds))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py, '_>> {
        let again = py.get_type::<Self>().getattr("_again")?;
        Ok((again, (self.path.clone(), &self.text, self.sets.clone())))
    }

    /// Makes an unpickled one.
    #[staticmethod]
    fn _again(path: PathBuf, text: &str, sets: Vec<String>) -> PyResult<Self> {
        Self::read(path, text.into(), sets)
    }
}
