//! Cells as Python values.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The value in `row` of a column: `None`, a string, a number, a boolean, a list or a dict.
pub(crate) fn of<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt64 => {
            column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt32 => {
            column.as_primitive::<UInt32Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Boolean => {
            column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let items: Vec<_> =
                (0..items.len()).map(|i| of(py, &items, i)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(column.as_struct().columns()) {
                dict.set_item(field.name(), of(py, column, row)?)?;
            }
            dict.into_any()
        }
        other => {
            return Err(PyNotImplementedError::new_err(format!("a column of type {other}")));
        }
    })
}
