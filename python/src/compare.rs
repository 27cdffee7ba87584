//! Whether two results differ.

use crate::errors;
use crate::record::Record;
use crate::table::{Sort, Table, of_rows};
use Sort::{Number, Text, Texts};
use overspin_lab::compare::{self as lab, Better, Choice, Finding, Input};
use overspin_report as report;
use overspin_report::Block;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The result of a comparison.
#[pyclass(frozen, module = "overspin")]
#[derive(Debug)]
pub(crate) struct Comparison {
    all: Vec<lab::Comparison>,
    confidence: f64,
    warnings: Vec<String>,
}

/// Compares the second result with the first, by name.
#[pyfunction]
#[pyo3(signature = (a, b, confidence = 0.95, better = None, metrics = Vec::new(), places = Vec::new()))]
pub(crate) fn compare(
    a: (String, PyRef<'_, Record>),
    b: (String, PyRef<'_, Record>),
    confidence: f64,
    better: Option<&str>,
    metrics: Vec<String>,
    places: Vec<String>,
) -> PyResult<Comparison> {
    if !(confidence > 0.0 && confidence < 1.0) {
        let message = format!("confidence is {confidence}, but must be between 0 and 1");
        return Err(PyValueError::new_err(message));
    }
    let better = match better {
        None => None,
        Some("lower") => Some(Better::Lower),
        Some("higher") => Some(Better::Higher),
        Some(other) => return Err(errors::unknown("direction", other, &["lower", "higher"])),
    };
    let mut inputs = Vec::new();
    for (name, record) in [a, b] {
        let input =
            lab::read(&name, &record.record.to_json(), 1).map_err(|e| errors::scenario(&e))?;
        inputs.push((name, input));
    }
    let choice = Choice { metrics, places };
    lab::choose(&choice, &mut inputs).map_err(|error| {
        errors::plain(
            "UnknownName",
            &error.to_string(),
            &format!("the result has: {}", error.known),
        )
    })?;
    let all = lab::compare(&inputs, confidence, better);
    if all.is_empty() {
        let known = lab::common(&inputs);
        return Err(errors::plain(
            "NotInResult",
            "the results have no measurement in common",
            &format!("compare results of one kind, or choose with metrics and places: {known}"),
        ));
    }
    let origin =
        |i: usize| inputs.get(i).map(|(name, input): &(String, Input)| (&**name, &input.origin));
    let warnings = origin(0).zip(origin(1)).map_or_else(Vec::new, |(a, b)| lab::differences(a, b));
    Ok(Comparison { all, confidence, warnings })
}

#[pymethods]
impl Comparison {
    /// A row for each metric in each place.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let rows = self.all.iter().map(|one| {
            let [a, b] = &one.summaries;
            let interval = one.ratio_interval.as_ref();
            serde_json::json!({
                "where": one.place, "metric": one.metric, "unit": one.unit,
                "mean_a": a.mean, "mean_b": b.mean, "samples_a": a.n, "samples_b": b.n, "ratio": one.ratio,
                "ratio_low": interval.map(|i| i.low), "ratio_high": interval.map(|i| i.high),
                "p": one.corrected_p, "finding": one.finding, "warnings": one.warnings,
            })
        });
        of_rows(
            &rows.collect(),
            &[
                ("where", Text, ""),
                ("metric", Text, ""),
                ("unit", Text, ""),
                ("mean_a", Number, ""),
                ("mean_b", Number, ""),
                ("samples_a", Sort::Count, ""),
                ("samples_b", Sort::Count, ""),
                ("ratio", Number, ""),
                ("ratio_low", Number, ""),
                ("ratio_high", Number, ""),
                ("p", Number, ""),
                ("finding", Text, ""),
                ("warnings", Texts, ""),
            ],
        )
    }

    /// The finding that decides the exit code of `overspin compare`: the worst of all.
    #[getter]
    fn finding(&self) -> &'static str {
        let has = |finding| self.all.iter().any(|one| one.finding == finding);
        if has(Finding::Regressed) {
            "regressed"
        } else if has(Finding::Undecided) {
            "undecided"
        } else if has(Finding::Different) {
            "different"
        } else if has(Finding::Improved) {
            "improved"
        } else {
            "same"
        }
    }

    /// Why the two may not be comparable.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// What `overspin compare` prints.
    fn __str__(&self) -> String {
        let warn = |w: &String| Block::Text(format!("WARNING: {w}"));
        let mut blocks: Vec<Block> = self.warnings.iter().map(warn).collect();
        blocks.extend(lab::report(&self.all, self.confidence));
        report::text(&blocks)
    }

    fn __repr__(&self) -> String {
        format!("<overspin.Comparison: {} of {} metrics>", self.finding(), self.all.len())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let table = Bound::new(py, self.table()?)?;
        Ok(table.call_method0("_repr_html_")?.unbind())
    }
}
