//! Scenarios: a text with changes, and what it says.

use crate::errors;
use overspin_runs::examples;
use overspin_runs::record::{self, Again};
use overspin_runs::scenario_file::{self, Axis, Loaded};
use overspin_scenario::Scenario as Plain;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What makes an unpickled scenario: a function and its arguments.
type Pickled<'py, 'a> = (Bound<'py, PyAny>, (PathBuf, &'a str, Vec<String>));

/// What to run: hosts, domains, locks, workloads. It never changes: `set` returns another one.
#[pyclass(frozen, module = "overspin", eq)]
#[derive(Debug)]
pub(crate) struct Scenario {
    path: PathBuf,
    text: Arc<str>,
    sets: Vec<String>,
    pub(crate) again: Again,
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.text, &self.sets) == (&other.path, &other.text, &other.sets)
    }
}

impl Scenario {
    fn new(path: PathBuf, text: Arc<str>, sets: Vec<String>) -> PyResult<Self> {
        let again =
            record::load_text(&path, &text, &sets, &[]).map_err(|e| errors::scenario(&e))?;
        Ok(Self { path, text, sets, again })
    }

    /// A text from which it can be made again in many variants, with its path and its changes: its own, or that of
    /// the run of a record. `None` for the record of a sweep.
    pub(crate) fn source(&self) -> Option<(PathBuf, Arc<str>, Vec<String>)> {
        let is_record = self.text.trim_start().starts_with('{');
        match &self.again.loaded {
            _ if !is_record => Some((self.path.clone(), Arc::clone(&self.text), self.sets.clone())),
            Loaded::One(plain) | Loaded::Seeds(plain, _) => {
                Some((self.path.clone(), scenario_file::toml(plain).into(), Vec::new()))
            }
            Loaded::Sweep(_) => None,
        }
    }

    /// The name of its file, for messages.
    pub(crate) fn file(&self) -> String {
        self.path.display().to_string()
    }

    /// The scenario, that of its first point if it is a sweep.
    pub(crate) fn plain(&self) -> Option<&Plain> {
        match &self.again.loaded {
            Loaded::One(scenario) | Loaded::Seeds(scenario, _) => Some(scenario),
            Loaded::Sweep(sweep) => sweep.points.first().map(|point| &point.scenario),
        }
    }

    fn axis_list(&self) -> &[Axis] {
        match &self.again.loaded {
            Loaded::Sweep(sweep) => &sweep.axes,
            Loaded::One(_) | Loaded::Seeds(..) => &[],
        }
    }
}

#[pymethods]
impl Scenario {
    #[classmethod]
    fn from_file(_: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        let text = record::read_text(&path).map_err(|e| errors::load(&e))?;
        Self::new(path, text.into(), Vec::new())
    }

    #[classmethod]
    #[pyo3(signature = (text, name = "scenario"))]
    fn from_toml(_: &Bound<'_, PyType>, text: &str, name: &str) -> PyResult<Self> {
        Self::new(PathBuf::from(name), text.into(), Vec::new())
    }

    #[classmethod]
    fn example(_: &Bound<'_, PyType>, name: &str) -> PyResult<Self> {
        let known = examples::EXAMPLES.map(|(name, _)| name);
        let text = examples::text(name).ok_or_else(|| errors::unknown("example", name, &known))?;
        Self::new(Path::new("examples").join(name).with_extension("toml"), text.into(), Vec::new())
    }

    fn set(&self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let set = format!("{key}={}", argument(value)?);
        let sets = self.sets.iter().cloned().chain([set]).collect();
        Self::new(self.path.clone(), Arc::clone(&self.text), sets)
    }

    #[getter]
    fn name(&self) -> &str {
        match &self.again.loaded {
            Loaded::One(scenario) | Loaded::Seeds(scenario, _) => &scenario.name,
            Loaded::Sweep(sweep) => &sweep.name,
        }
    }

    #[getter]
    fn description(&self) -> &str {
        match &self.again.loaded {
            Loaded::One(scenario) | Loaded::Seeds(scenario, _) => &scenario.description,
            Loaded::Sweep(sweep) => &sweep.description,
        }
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.again.seed.or(self.plain().map(|scenario| scenario.seed)).unwrap_or_default()
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        match &self.again.loaded {
            Loaded::Seeds(_, seeds) => seeds.clone(),
            Loaded::Sweep(sweep) if !sweep.seeds.is_empty() => sweep.seeds.clone(),
            Loaded::One(_) | Loaded::Sweep(_) => vec![self.seed()],
        }
    }

    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let axes = PyDict::new(py);
        for axis in self.axis_list() {
            axes.set_item(&axis.name, PyTuple::new(py, &axis.values)?)?;
        }
        Ok(axes)
    }

    #[getter]
    fn changes(&self) -> Vec<String> {
        self.sets.clone()
    }

    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    fn to_toml(&self) -> String {
        self.plain().map_or_else(String::new, scenario_file::toml)
    }

    fn to_json(&self) -> String {
        // A scenario has only numbers, texts, lists and structs, which JSON can express.
        self.plain().and_then(|s| serde_json::to_string(s).ok()).unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        let sets: String = self.sets.iter().map(|set| format!(" {set}")).collect();
        let axes: Vec<String> = self
            .axis_list()
            .iter()
            .map(|axis| format!(" {} ({})", axis.name, axis.values.len()))
            .collect();
        let varies =
            if axes.is_empty() { String::new() } else { format!(", varies{}", axes.join(" and")) };
        format!("<overspin.Scenario {}{sets}{varies}>", self.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py, '_>> {
        let again = py.get_type::<Self>().getattr("_again")?;
        Ok((again, (self.path.clone(), &self.text, self.sets.clone())))
    }

    /// Makes an unpickled one.
    #[staticmethod]
    fn _again(path: PathBuf, text: &str, sets: Vec<String>) -> PyResult<Self> {
        Self::new(path, text.into(), sets)
    }
}

/// A Python value as what follows `=` after `--set`: a text that is no TOML needs no quotes.
#[pyfunction]
pub(crate) fn argument(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => toml(value),
    }
}

/// A Python value as TOML.
fn toml(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(if value.is_truthy()? { "true" } else { "false" }.into());
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(text.to_str()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items: Vec<String> =
            value.try_iter()?.map(|item| toml(&item?)).collect::<PyResult<_>>()?;
        return Ok(format!("[{}]", items.join(", ")));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<String> {
            Ok(format!("{} = {}", quoted(key.str()?.to_str()?), toml(&value)?))
        };
        let entries: Vec<String> = table.iter().map(entry).collect::<PyResult<_>>()?;
        return Ok(format!("{{ {} }}", entries.join(", ")));
    }
    // Numbers of numpy and of other libraries.
    if let Ok(number) = value.call_method0("__index__") {
        return toml(&number);
    }
    if let Ok(number) = value.call_method0("__float__") {
        return toml(&number);
    }
    let class = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "a scenario has no values of type {class}: use a string, a number, a boolean, a list or a dict"
    )))
}

/// A text as a basic string of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
