//! Columns under construction.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::error::Result as EngineResult;

/// The rows of a table, column by column.
#[derive(Default)]
pub(super) struct Rows {
    rows: usize,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Rows {
    pub(super) fn of(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    fn push(mut self, name: &str, data_type: DataType, column: ArrayRef) -> Self {
        self.fields.push(Field::new(name, data_type, true));
        self.columns.push(column);
        self
    }

    pub(super) fn int(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let as_int =
            |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        let column: Int64Array = values.map(as_int).collect();
        self.push(name, DataType::Int64, Arc::new(column))
    }

    pub(super) fn id(self, name: &str, values: impl Iterator<Item = Option<i64>>) -> Self {
        let column: Int64Array = values.collect();
        self.push(name, DataType::Int64, Arc::new(column))
    }

    pub(super) fn one(self, name: &str, value: impl TryInto<u64>) -> Self {
        self.int(name, std::iter::once(value.try_into().ok()))
    }

    pub(super) fn float(self, name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        let column: Float64Array = values.collect();
        self.push(name, DataType::Float64, Arc::new(column))
    }

    pub(super) fn bool(self, name: &str, values: impl Iterator<Item = bool>) -> Self {
        let column: BooleanArray = values.map(Some).collect();
        self.push(name, DataType::Boolean, Arc::new(column))
    }

    pub(super) fn text<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        let column: StringArray = values.collect();
        self.push(name, DataType::Utf8, Arc::new(column))
    }

    pub(super) fn time(self, name: &str, unix_ms: impl Iterator<Item = Option<i64>>) -> Self {
        let zone: Arc<str> = "UTC".into();
        let micros = unix_ms.map(|ms| ms.map(|ms| ms.saturating_mul(1000)));
        let column: TimestampMicrosecondArray = micros.collect();
        let column = column.with_timezone(Arc::clone(&zone));
        self.push(name, DataType::Timestamp(TimeUnit::Microsecond, Some(zone)), Arc::new(column))
    }

    pub(super) fn finish(self) -> EngineResult<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.columns, &options)?)
    }
}
