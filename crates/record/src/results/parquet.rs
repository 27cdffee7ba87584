//! Samples as Parquet, which pandas, polars, DuckDB and R read. The columns are those of the CSV.

use super::error::ResultsError;
use crate::Record;
use crate::output::Output;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Samples in one row group: a reader that filters skips groups, and a writer holds one in memory.
const GROUP: usize = 1 << 20;

/// Writes the samples of `record`. Equal samples give equal bytes.
pub(super) fn write(path: &Path, record: &Record) -> Result<(), ResultsError> {
    let mut output = Output::create(path)?;
    let bytes = encode(record).map_err(|e| output.error(std::io::Error::other(e)))?;
    output.write_all(&bytes).map_err(|cause| output.error(cause))?;
    Ok(output.commit()?)
}

fn encode(record: &Record) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("overspin {}", record.version))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
    let seeds: HashMap<u32, u64> =
        record.runs.iter().filter_map(|r| Some((r.number, r.seed?))).collect();
    for samples in record.samples.chunks(GROUP) {
        let seed = |run: u32| seeds.get(&run).copied().or(record.seed);
        let texts = |of: fn(&crate::Sample) -> &str| {
            Values::Texts(samples.iter().map(|s| ByteArray::from(of(s))).collect())
        };
        let columns = [
            Values::Integers(samples.iter().map(|s| i64::from(s.run)).collect()),
            // The bits of an unsigned number, as the format wants it.
            Values::Optional(samples.iter().map(|s| seed(s.run).map(u64::cast_signed)).collect()),
            texts(|s| &s.place),
            texts(|s| &s.metric),
            texts(|s| &s.unit),
            Values::Numbers(samples.iter().map(|s| s.value).collect()),
        ];
        let mut group = writer.next_row_group()?;
        for values in columns {
            let Some(mut column) = group.next_column()? else {
                return Err(ParquetError::General("the schema has fewer columns".into()));
            };
            values.write(column.untyped())?;
            column.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

/// The values of a column.
enum Values {
    Integers(Vec<i64>),
    Optional(Vec<Option<i64>>),
    Texts(Vec<ByteArray>),
    Numbers(Vec<f64>),
}

impl Values {
    fn write(self, column: &mut ColumnWriter<'_>) -> Result<usize, ParquetError> {
        match (self, column) {
            (Self::Integers(values), ColumnWriter::Int64ColumnWriter(to)) => {
                to.write_batch(&values, None, None)
            }
            (Self::Optional(values), ColumnWriter::Int64ColumnWriter(to)) => {
                let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                let present: Vec<i64> = values.into_iter().flatten().collect();
                to.write_batch(&present, Some(&levels), None)
            }
            (Self::Texts(values), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(&values, None, None)
            }
            (Self::Numbers(values), ColumnWriter::DoubleColumnWriter(to)) => {
                to.write_batch(&values, None, None)
            }
            _ => Err(ParquetError::General("a column has another type".into())),
        }
    }
}

fn schema() -> Result<TypePtr, ParquetError> {
    let column = |name, physical, logical: Option<LogicalType>, repetition| {
        let column = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        Ok::<_, ParquetError>(Arc::new(column.build()?))
    };
    let unsigned = || Some(LogicalType::integer(64, false));
    let text = || Some(LogicalType::String);
    let (always, maybe) = (Repetition::REQUIRED, Repetition::OPTIONAL);
    let fields = vec![
        column("run", Physical::INT64, None, always)?,
        column("seed", Physical::INT64, unsigned(), maybe)?,
        column("where", Physical::BYTE_ARRAY, text(), always)?,
        column("metric", Physical::BYTE_ARRAY, text(), always)?,
        column("unit", Physical::BYTE_ARRAY, text(), always)?,
        column("value", Physical::DOUBLE, None, always)?,
    ];
    Ok(Arc::new(Type::group_type_builder("samples").with_fields(fields).build()?))
}
