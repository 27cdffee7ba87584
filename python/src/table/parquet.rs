//! Tables as Parquet files. A file appears whole or not at all. Equal tables give equal bytes.

use super::Table;
use crate::errors;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use overspin_record::output::Output;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The key of the note in a file's metadata.
const NOTE: &str = "overspin";
/// Rows of a row group: a reader that filters skips groups, and a writer holds one in memory.
const GROUP: usize = 1 << 16;

/// Writes batches of rows, which have equal columns, as one file. Holds one row group in memory.
pub(super) fn write(
    path: &Path,
    note: &str,
    batches: impl IntoIterator<Item = PyResult<RecordBatch>>,
) -> PyResult<()> {
    let mut output = Output::create(path).map_err(|e| errors::output(&e))?;
    let failed = |output: &Output, error: ParquetError| {
        errors::output(&output.error(std::io::Error::other(error)))
    };
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    for batch in batches {
        let batch = batch?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let made = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties(note)))
                    .map_err(|e| failed(&output, e))?;
                writer.insert(made)
            }
        };
        writer.write(&batch).map_err(|e| failed(&output, e))?;
        drain(writer.inner_mut(), &mut output)?;
    }
    if let Some(writer) = writer {
        let mut rest = writer.into_inner().map_err(|e| failed(&output, e))?;
        drain(&mut rest, &mut output)?;
    }
    output.commit().map_err(|e| errors::output(&e))
}

/// Moves finished bytes to the file.
fn drain(bytes: &mut Vec<u8>, output: &mut Output) -> PyResult<()> {
    let written = std::io::Write::write_all(output, bytes);
    bytes.clear();
    written.map_err(|cause| errors::output(&output.error(cause)))
}

fn properties(note: &str) -> WriterProperties {
    let note = KeyValue::new(NOTE.to_owned(), note.to_owned());
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP))
        .set_created_by(format!("overspin {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![note]))
        .build()
}

/// A file that cannot be read is an `OSError`, as everywhere in Python.
fn unreadable(path: &Path, cause: &dyn std::fmt::Display) -> PyErr {
    PyOSError::new_err(format!("cannot read `{}`: {cause}", path.display()))
}

fn open(path: &Path) -> PyResult<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(|cause| match cause.raw_os_error() {
        Some(code) => PyOSError::new_err((code, "cannot read", path.to_owned())),
        None => unreadable(path, &cause),
    })?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| unreadable(path, &e))
}

/// The rows of a file, without the note, which is metadata of the file.
fn rows(path: &Path) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let reader = open(path)?.with_batch_size(GROUP).build().map_err(|e| unreadable(path, &e))?;
    let schema = reader.schema();
    let batches: Result<Vec<_>, ArrowError> = reader.collect();
    Ok((schema, batches.map_err(|e| unreadable(path, &e))?))
}

/// The table of a Parquet file that `Table.to_parquet` or `merge_parquet` wrote.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    py.detach(|| {
        let (schema, batches) = rows(&path)?;
        arrow_select::concat::concat_batches(&schema, &batches)
            .map(|batch| Table { batch })
            .map_err(|e| unreadable(&path, &e))
    })
}

/// The note in the metadata of a Parquet file; `None` if it has none.
#[pyfunction]
pub(crate) fn parquet_note(path: PathBuf) -> PyResult<Option<String>> {
    let builder = open(&path)?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let note = metadata.and_then(|all| all.iter().find(|one| one.key == NOTE));
    Ok(note.and_then(|note| note.value.clone()))
}

/// Writes the rows of many Parquet files, in their order, as one. Holds one of them in memory.
#[pyfunction]
pub(crate) fn merge_parquet(
    py: Python<'_>,
    parts: Vec<PathBuf>,
    path: PathBuf,
    note: &str,
) -> PyResult<()> {
    py.detach(|| {
        let batches = parts.iter().flat_map(|part| match rows(part) {
            Ok((_, batches)) => batches.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        write(&path, note, batches)
    })
}
