//! Tables for people: aligned text for a terminal, HTML for a notebook.

use super::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use maud::html;
use overspin_report::short;

/// Rows that are shown at the beginning and at the end of a long table.
const ENDS: usize = 10;
/// Longest text of a cell in a terminal.
const LONGEST: usize = 40;
/// Widest text.
const WIDTH: usize = 120;
/// Space between columns.
const GAP: &str = "  ";

/// A cell in words, whole.
fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "-".into();
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Float64 => short(column.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::Boolean => if column.as_boolean().value(row) { "yes" } else { "no" }.into(),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            match items.data_type() {
                DataType::Struct(_) => format!("{} rows", items.len()),
                _ => (0..items.len()).map(|i| cell(&items, i)).collect::<Vec<_>>().join(", "),
            }
        }
        other => other.to_string(),
    }
}

fn is_number(column: &ArrayRef) -> bool {
    column.data_type().is_numeric()
}

/// A text cut to so many characters.
fn cut(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// The rows to show; `None` stands for those that are left out.
fn rows(table: &Table) -> Vec<Option<usize>> {
    let all = table.batch.num_rows();
    if all <= 2 * ENDS + 1 {
        return (0..all).map(Some).collect();
    }
    (0..ENDS).map(Some).chain([None]).chain((all - ENDS..all).map(Some)).collect()
}

/// The name of a column, with its unit where the name does not end with it.
fn heading(table: &Table, column: usize) -> String {
    let name = table.batch.schema_ref().field(column).name();
    match table.unit(column) {
        "" => name.clone(),
        unit if name.ends_with(&format!("_{unit}")) => name.clone(),
        unit => format!("{name} [{unit}]"),
    }
}

fn size(table: &Table) -> String {
    let (rows, columns) = (table.batch.num_rows(), table.batch.num_columns());
    let s = |n: usize| if n == 1 { "" } else { "s" };
    format!("{rows} row{}, {columns} column{}", s(rows), s(columns))
}

/// A column as lines of equal width, its heading first.
fn lines(table: &Table, column: usize, rows: &[Option<usize>]) -> Vec<String> {
    let array = table.batch.column(column);
    let mut cells = vec![heading(table, column)];
    cells.extend(rows.iter().map(|row| match row {
        Some(row) => cut(cell(array, *row), LONGEST),
        None => "…".into(),
    }));
    let width = cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let pad = |cell: String| match is_number(array) {
        true => format!("{cell:>width$}"),
        false => format!("{cell:<width$}"),
    };
    cells.into_iter().map(pad).collect()
}

/// As aligned text, with the size below. A wide table is spread over several, each of which begins with the columns
/// that name its rows.
pub(super) fn text(table: &Table) -> String {
    let shown = rows(table);
    let columns: Vec<Vec<String>> =
        (0..table.batch.num_columns()).map(|i| lines(table, i, &shown)).collect();
    let width = |column: &Vec<String>| column[0].chars().count() + GAP.len();
    let naming = table.batch.columns().iter().take_while(|c| !is_number(c)).count().clamp(1, 2);
    let naming = naming.min(columns.len());
    let beside: usize = columns[..naming].iter().map(width).sum();
    let (mut parts, mut used) = (vec![Vec::new()], beside);
    for column in &columns[naming..] {
        if used + width(column) > WIDTH && used > beside {
            parts.push(Vec::new());
            used = beside;
        }
        used += width(column);
        if let Some(part) = parts.last_mut() {
            part.push(column);
        }
    }
    let mut out = String::new();
    for part in parts {
        for line in 0..=shown.len() {
            let cells: Vec<&str> =
                columns[..naming].iter().chain(part.iter().copied()).map(|c| &*c[line]).collect();
            out.push_str(cells.join(GAP).trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    format!("{}\n({})", out.trim_end(), size(table))
}

/// As an HTML table, with the size below.
pub(super) fn html(table: &Table) -> String {
    let columns = table.batch.columns();
    let style = |column| if is_number(column) { "text-align:right" } else { "text-align:left" };
    let cell_of =
        |column, row: Option<usize>| row.map_or_else(|| "…".into(), |row| cell(column, row));
    let html = html! {
        div style="overflow-x:auto" {
            table {
                thead {
                    tr {
                        @for (i, column) in columns.iter().enumerate() {
                            th style=(style(column)) { (heading(table, i)) }
                        }
                    }
                }
                tbody {
                    @for row in rows(table) {
                        "\n" tr { @for column in columns { td style=(style(column)) { (cell_of(column, row)) } } }
                    }
                }
            }
        }
        "\n" p { (size(table)) } "\n"
    };
    html.0
}
