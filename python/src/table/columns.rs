//! Makes tables column by column.

use super::{Table, UNIT, fault};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use overspin_scenario::{Cause, Picos, WaitCauses};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// The columns of a table that is being made. All have the same number of rows.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Adds a column with a name and a unit, which is empty for texts and plain numbers.
    fn add(mut self, name: &str, unit: &str, array: ArrayRef) -> Self {
        let mut field = Field::new(name, array.data_type().clone(), true);
        if !unit.is_empty() {
            field = field.with_metadata(HashMap::from([(UNIT.to_owned(), unit.to_owned())]));
        }
        self.fields.push(field);
        self.arrays.push(array);
        self
    }

    pub(crate) fn texts<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.maybe_texts(name, values.into_iter().map(Some))
    }

    pub(crate) fn maybe_texts<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        self.add(name, "", Arc::new(values.into_iter().collect::<StringArray>()))
    }

    pub(crate) fn lists(self, name: &str, values: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for list in values {
            lists.append_value(list.into_iter().map(Some));
        }
        self.add(name, "", Arc::new(lists.finish()))
    }

    pub(crate) fn numbers(
        self,
        name: &str,
        unit: &str,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        self.add(name, unit, Arc::new(values.into_iter().collect::<Float64Array>()))
    }

    pub(crate) fn counts(
        self,
        name: &str,
        unit: &str,
        values: impl IntoIterator<Item = Option<u64>>,
    ) -> Self {
        self.add(name, unit, Arc::new(values.into_iter().collect::<UInt64Array>()))
    }

    /// Numbers of things: pCPUs, vCPUs, runs.
    pub(crate) fn indices(self, name: &str, values: impl IntoIterator<Item = Option<u32>>) -> Self {
        self.add(name, "", Arc::new(values.into_iter().collect::<UInt32Array>()))
    }

    pub(crate) fn flags(self, name: &str, values: impl IntoIterator<Item = Option<bool>>) -> Self {
        self.add(name, "", Arc::new(values.into_iter().collect::<BooleanArray>()))
    }

    /// Times, in microseconds; the name says so.
    pub(crate) fn times(self, name: &str, values: impl IntoIterator<Item = Picos>) -> Self {
        self.maybe_times(name, values.into_iter().map(Some))
    }

    pub(crate) fn maybe_times(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<Picos>>,
    ) -> Self {
        let values = values.into_iter().map(|time| time.map(Picos::micros));
        self.numbers(&format!("{name}_us"), "us", values)
    }

    /// A column for each cause of waits.
    pub(crate) fn causes<'a>(
        self,
        values: impl IntoIterator<Item = &'a WaitCauses> + Clone,
    ) -> Self {
        const NAMES: [&str; Cause::ALL.len()] = [
            "cause_holder_running",
            "cause_holder_preempted",
            "cause_next_preempted",
            "cause_kick_wake",
            "cause_own_preemption",
            "cause_line_transfer",
            "cause_holder_preempted_by_guest",
            "cause_next_preempted_by_guest",
            "cause_holder_throttled",
            "cause_next_throttled",
        ];
        NAMES.iter().zip(Cause::ALL).fold(self, |columns, (name, cause)| {
            columns.times(name, values.clone().into_iter().map(|causes| causes.of(cause)))
        })
    }

    /// A column of lists of rows: row `i` has the next `lengths[i]` rows of `rows`.
    ///
    /// # Errors
    /// If the columns do not fit.
    pub(crate) fn nested(
        self,
        name: &str,
        lengths: &[usize],
        rows: Self,
    ) -> Result<Self, ArrowError> {
        let fields = Fields::from(rows.fields);
        let structs = StructArray::try_new(fields.clone(), rows.arrays, None)?;
        let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths(lengths.iter().copied());
        let lists = ListArray::try_new(item, offsets, Arc::new(structs), None)?;
        Ok(self.add(name, "", Arc::new(lists)))
    }

    /// The table.
    ///
    /// # Errors
    /// If the columns do not fit each other, which is a fault in this program.
    pub(crate) fn table(self) -> PyResult<Table> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema, self.arrays).map_err(|e| fault(&e))?;
        Ok(Table { batch })
    }
}
