//! Tables as bytes, in Arrow's stream format: how they go from one process to another.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;

/// The bytes of a table.
pub(super) fn write(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// The table of such bytes.
pub(super) fn read(bytes: &[u8]) -> Result<RecordBatch, ArrowError> {
    let reader = StreamReader::try_new(bytes, None)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    arrow_select::concat::concat_batches(&schema, &batches)
}
