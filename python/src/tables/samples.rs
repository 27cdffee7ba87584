//! The numbers of a record, and its runs.

use super::word;
use crate::table::{Columns, Table};
use overspin_runs::record::Record;
use pyo3::prelude::*;
use std::collections::HashMap;

/// Every sample, in the columns of the CSV and Parquet files that the command writes.
pub(crate) fn metrics(record: &Record) -> PyResult<Table> {
    let seeds: HashMap<u32, u64> =
        record.runs.iter().filter_map(|r| Some((r.number, r.seed?))).collect();
    let samples = &record.samples;
    Columns::default()
        .indices("run", samples.iter().map(|s| Some(s.run)))
        .counts("seed", "", samples.iter().map(|s| seeds.get(&s.run).copied().or(record.seed)))
        .texts("where", samples.iter().map(|s| &s.place))
        .texts("metric", samples.iter().map(|s| &s.metric))
        .texts("unit", samples.iter().map(|s| &s.unit))
        .numbers("value", "", samples.iter().map(|s| Some(s.value)))
        .table()
}

/// Every run.
pub(crate) fn runs(record: &Record) -> PyResult<Table> {
    let runs = &record.runs;
    let ending = |run: &overspin_runs::record::Run| {
        let ending = serde_json::to_value(run.ending.as_ref()?).ok()?;
        word(ending.get("how")?)
    };
    Columns::default()
        .indices("number", runs.iter().map(|r| Some(r.number)))
        .texts("where", runs.iter().map(|r| &r.place))
        .counts("seed", "", runs.iter().map(|r| r.seed))
        .maybe_texts("ending", runs.iter().map(ending))
        .maybe_times("elapsed", runs.iter().map(|r| r.elapsed))
        .maybe_times("warmup", runs.iter().map(|r| Some(r.warmup)))
        .texts("unsteady", runs.iter().map(|r| r.unsteady.join(", ")))
        .maybe_times("vcpu_time", runs.iter().map(|r| r.vcpu_time))
        .maybe_texts("trace_hash", runs.iter().map(|r| r.trace_hash.map(|h| format!("{h:016x}"))))
        .table()
}
