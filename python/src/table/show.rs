//! Tables for people: aligned text for a terminal, HTML for a notebook. Both show the columns that tell something, with times
//! in the unit that suits each value; a program reads the others, and whole numbers, from the table itself.

use super::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use maud::html;
use overspin_report::{short, time};
use overspin_scenario::Picos;

/// Rows that are shown at the beginning and at the end of a long table.
const ENDS: usize = 10;
/// Longest text of a cell in a terminal.
const LONGEST: usize = 40;
/// Widest text.
const WIDTH: usize = 100;
/// Space between columns.
const GAP: &str = "  ";

/// A cell of a table, with a time in the unit that suits it.
fn shown(table: &Table, column: usize, row: usize) -> String {
    let array = table.batch.column(column);
    match (table.unit(column), array.data_type()) {
        ("us", DataType::Float64) if !array.is_null(row) => {
            let us = array.as_primitive::<Float64Type>().value(row);
            if us.is_finite() && us >= 0.0 { time(Picos((us * 1e6) as u64)) } else { short(us) }
        }
        _ => cell(array, row),
    }
}

/// Whether a column tells something: some number in it is not 0, or something else stands there.
fn tells(column: &ArrayRef) -> bool {
    (0..column.len()).any(|row| match column.data_type() {
        _ if column.is_null(row) => false,
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row) != 0.0,
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row) != 0,
        // Numbers of vCPUs and the like begin with 0.
        DataType::UInt32 => true,
        DataType::Utf8 => !column.as_string::<i32>().value(row).is_empty(),
        _ => true,
    })
}

/// The columns to show: all of a table without rows.
fn telling(table: &Table) -> Vec<usize> {
    let all = table.batch.columns();
    (0..all.len()).filter(|i| table.batch.num_rows() == 0 || tells(&all[*i])).collect()
}

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

/// The name of a column, with its unit; without it where each cell has its own.
fn heading(table: &Table, column: usize) -> String {
    let name = table.batch.schema_ref().field(column).name();
    match table.unit(column) {
        "us" => name.strip_suffix("_us").unwrap_or(name).to_owned(),
        "" => name.clone(),
        unit if name.ends_with(&format!("_{unit}")) => name.clone(),
        unit => format!("{name} [{unit}]"),
    }
}

/// The size of a table of which so many columns are shown.
fn size(table: &Table, shown: usize) -> String {
    let (rows, columns) = (table.batch.num_rows(), table.batch.num_columns());
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let of = if shown == columns { String::new() } else { format!("{shown} of ") };
    format!("{rows} row{}, {of}{columns} column{}", s(rows), s(columns))
}

/// A column as lines of equal width, its heading first.
fn lines(table: &Table, column: usize, rows: &[Option<usize>]) -> Vec<String> {
    let array = table.batch.column(column);
    let mut cells = vec![heading(table, column)];
    cells.extend(rows.iter().map(|row| match row {
        Some(row) => cut(shown(table, column, *row), LONGEST),
        None => "…".into(),
    }));
    let width = cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let pad = |cell: String| match is_number(array) {
        true => format!("{cell:>width$}"),
        false => format!("{cell:<width$}"),
    };
    cells.into_iter().map(pad).collect()
}

/// As aligned text, with the size below. Columns that do not fit beside the first ones are left out.
pub(super) fn text(table: &Table) -> String {
    let rows = rows(table);
    let mut used = 0;
    let mut columns: Vec<Vec<String>> = Vec::new();
    for column in telling(table).into_iter().map(|i| lines(table, i, &rows)) {
        let width = column[0].chars().count() + GAP.len();
        if used + width <= WIDTH || columns.is_empty() {
            used += width;
            columns.push(column);
        }
    }
    let mut out = String::new();
    for line in 0..=rows.len() {
        let cells: Vec<&str> = columns.iter().map(|c| &*c[line]).collect();
        out.push_str(cells.join(GAP).trim_end());
        out.push('\n');
    }
    format!("{}\n({})", out.trim_end(), size(table, columns.len()))
}

/// As an HTML table, with the size below.
pub(super) fn html(table: &Table) -> String {
    let columns = telling(table);
    let array = |column: usize| table.batch.column(column);
    let style = |column: usize| {
        if is_number(array(column)) { "text-align:right" } else { "text-align:left" }
    };
    let cell_of = |column, row: Option<usize>| {
        row.map_or_else(|| "…".into(), |row| shown(table, column, row))
    };
    let html = html! {
        div style="overflow-x:auto" {
            table {
                thead {
                    tr {
                        @for i in &columns { th style=(style(*i)) { (heading(table, *i)) } }
                    }
                }
                tbody {
                    @for row in rows(table) {
                        "\n" tr { @for i in &columns { td style=(style(*i)) { (cell_of(*i, row)) } } }
                    }
                }
            }
        }
        "\n" p { (size(table, columns.len())) } "\n"
    };
    html.0
}
