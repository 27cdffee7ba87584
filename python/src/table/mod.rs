//! Tables: columns in Arrow's memory layout, which other libraries read in place through Arrow's C interface.

mod columns;
mod ipc;
mod parquet;
mod rows;
mod show;
mod value;

pub(crate) use self::parquet::{merge_parquet, parquet_note, read_parquet};
pub(crate) use columns::Columns;
pub(crate) use rows::{Sort, of_rows};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, Schema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList};
use std::path::PathBuf;
use std::sync::Arc;

/// What makes an unpickled table: a function and its argument.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// The key of a column's unit in the metadata of its Arrow field.
const UNIT: &str = "unit";

/// A table that never changes. Its columns have names and units.
#[pyclass(frozen, module = "overspin", eq)]
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    batch: RecordBatch,
}

/// A fault of this program: its columns do not fit each other.
pub(crate) fn fault(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("cannot make a table: {error}; this is a fault in overspin"))
}

impl Table {
    /// The unit of a column; empty for texts and plain numbers.
    fn unit(&self, column: usize) -> &str {
        self.batch.schema_ref().field(column).metadata().get(UNIT).map_or("", String::as_str)
    }

    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, column) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            dict.set_item(field.name(), value::of(py, column, row)?)?;
        }
        Ok(dict)
    }
}

/// One table of the rows of many, in their order. All have the same columns.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, tables: Vec<Py<Table>>) -> PyResult<Table> {
    let batches: Vec<&RecordBatch> = tables.iter().map(|table| &table.get().batch).collect();
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), |batch| batch.schema());
    py.detach(|| arrow_select::concat::concat_batches(&schema, batches))
        .map(|batch| Table { batch })
        .map_err(|e| fault(&e))
}

#[pymethods]
impl Table {
    /// A pickled table is Arrow's stream of it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py>> {
        let bytes = py.detach(|| ipc::write(&self.batch)).map_err(|e| fault(&e))?;
        let again = py.get_type::<Self>().getattr("_again")?;
        Ok((again, (PyBytes::new(py, &bytes),)))
    }

    /// Makes an unpickled one.
    #[staticmethod]
    fn _again(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let batch = py.detach(|| ipc::read(bytes)).map_err(|e| fault(&e))?;
        Ok(Self { batch })
    }

    /// Writes the table as a Parquet file, with `note` in its metadata.
    #[pyo3(signature = (path, note = ""))]
    fn to_parquet(&self, py: Python<'_>, path: PathBuf, note: &str) -> PyResult<()> {
        py.detach(|| parquet::write(&path, note, [Ok(self.batch.clone())]))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema =
            FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref()).map_err(|e| fault(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The stream's schema is always the table's own: the interface leaves it to the reader to convert.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
    }

    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for (i, name) in self.column_names().into_iter().enumerate() {
            units.set_item(name, self.unit(i))?;
        }
        Ok(units)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| {
            let known = self.column_names().join(", ");
            PyKeyError::new_err(format!("there is no column `{name}`; columns are: {known}"))
        })?;
        let values: Vec<_> =
            (0..column.len()).map(|row| value::of(py, column, row)).collect::<PyResult<_>>()?;
        PyList::new(py, values)
    }

    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (0..self.batch.num_rows()).map(|row| self.row(py, row)).collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.to_dicts(py)?)?.try_iter()
    }

    fn to_pyarrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let frame = slf.py().import("pandas")?.getattr("DataFrame")?;
        match frame.getattr("from_arrow") {
            Ok(from_arrow) => from_arrow.call1((slf,)),
            // Before pandas 3.0, pyarrow converts.
            Err(_) => Self::to_pyarrow(slf)?.call_method0("to_pandas"),
        }
    }

    fn __repr__(&self) -> String {
        show::text(self)
    }

    fn _repr_html_(&self) -> String {
        show::html(self)
    }
}
