//! Tables from rows of JSON: short lists that the command writes as JSON, too.

use super::{Columns, Table, fault};
use pyo3::prelude::*;
use serde_json::Value;

/// What a column holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    Text,
    /// A list of texts.
    Texts,
    Number,
    Count,
    Flag,
    /// A list of rows whose columns, with these names, are texts.
    Rows(&'static [&'static str]),
}

/// The table of an array of objects; each column has a key, a sort and a unit. A key that is missing is null.
pub(crate) fn of_rows(rows: &Value, columns: &[(&str, Sort, &str)]) -> PyResult<Table> {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    let mut table = Columns::default();
    for (key, sort, unit) in columns {
        let of = || rows.iter().map(|row| row.get(key));
        table = match sort {
            Sort::Text => table.maybe_texts(key, of().map(|v| v.and_then(text))),
            Sort::Texts => table.lists(key, of().map(texts)),
            Sort::Number => table.numbers(key, unit, of().map(|v| v.and_then(Value::as_f64))),
            Sort::Count => table.counts(key, unit, of().map(|v| v.and_then(Value::as_u64))),
            Sort::Flag => table.flags(key, of().map(|v| v.and_then(Value::as_bool))),
            Sort::Rows(names) => {
                let inner: Vec<&[Value]> = of()
                    .map(|v| v.and_then(Value::as_array).map_or(&[][..], Vec::as_slice))
                    .collect();
                let lengths: Vec<usize> = inner.iter().map(|rows| rows.len()).collect();
                let nested = names.iter().fold(Columns::default(), |columns, name| {
                    let cell = |row: &Value| row.get(name).and_then(text);
                    columns.maybe_texts(name, inner.iter().flat_map(|rows| rows.iter()).map(cell))
                });
                table.nested(key, &lengths, nested).map_err(|e| fault(&e))?
            }
        };
    }
    table.table()
}

/// A value as a text: itself, or its JSON.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(text).collect()
}
