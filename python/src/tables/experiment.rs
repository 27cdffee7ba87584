//! Published figures beside simulated ones, and claims.

use super::word;
use crate::table::{Columns, Table};
use overspin_experiment::{Compared, Judged};
use overspin_runs::record::{Experiment, Record};
use pyo3::prelude::*;

/// Every figure.
pub(crate) fn figures(record: &Record) -> PyResult<Table> {
    let of = |e: &'_ Experiment| (e.id.clone(), e.figures.clone());
    let all: Vec<(String, Compared)> = record
        .experiments
        .iter()
        .map(of)
        .flat_map(|(id, figures)| figures.into_iter().map(move |f| (id.clone(), f)))
        .collect();
    let number = |of: fn(&Compared) -> Option<f64>| all.iter().map(move |(_, f)| of(f));
    Columns::default()
        .texts("experiment", all.iter().map(|(id, _)| id))
        .texts("metric", all.iter().map(|(_, f)| &f.metric))
        .texts("where", all.iter().map(|(_, f)| &f.place))
        .numbers("published", "", number(|f| f.published))
        .numbers("published_stddev", "", number(|f| f.published_stddev))
        .numbers("simulated", "", number(|f| f.simulated))
        .numbers("simulated_stddev", "", number(|f| f.simulated_stddev))
        .numbers("error", "", number(|f| f.error))
        .maybe_texts("role", all.iter().map(|(_, f)| word(&f.role)))
        .maybe_texts("grade", all.iter().map(|(_, f)| word(&f.grade)))
        .maybe_texts("note", all.iter().map(|(_, f)| f.note.as_ref()))
        .table()
}

/// Every claim.
pub(crate) fn claims(record: &Record) -> PyResult<Table> {
    let of = |e: &'_ Experiment| (e.id.clone(), e.claims.clone());
    let all: Vec<(String, Judged)> = record
        .experiments
        .iter()
        .map(of)
        .flat_map(|(id, claims)| claims.into_iter().map(move |c| (id.clone(), c)))
        .collect();
    Columns::default()
        .texts("experiment", all.iter().map(|(id, _)| id))
        .indices("id", all.iter().map(|(_, c)| Some(c.id)))
        .texts("text", all.iter().map(|(_, c)| &c.text))
        .flags("holds", all.iter().map(|(_, c)| c.holds))
        .maybe_texts("in_words", all.iter().map(|(_, c)| c.in_words.as_ref()))
        .texts("evidence", all.iter().map(|(_, c)| &c.evidence))
        .table()
}
