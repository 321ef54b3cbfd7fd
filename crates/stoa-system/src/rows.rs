//! Rows of figures as record batches.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
    StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::error::Result as EngineResult;
use stoa_figures::{Column, Declaration, Group, Type, Value, Viewer};

/// The columns that a group declares.
pub(super) fn schema(group: &Declaration) -> SchemaRef {
    let field = |column: &Column| Field::new(column.sql_name(), data_type(column.r#type), true);
    Arc::new(Schema::new(group.columns.iter().map(field).collect::<Vec<Field>>()))
}

fn data_type(of: Type) -> DataType {
    match of {
        Type::Integer => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Boolean => DataType::Boolean,
        Type::Text | Type::Texts => DataType::Utf8,
        Type::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::Histogram => DataType::Null,
    }
}

/// Those of `rows` that `viewer` may see; `schema` is that of the group.
pub(super) fn batch<S>(
    group: &Group<S>,
    schema: &SchemaRef,
    rows: &[S],
    viewer: Viewer<'_>,
) -> EngineResult<RecordBatch> {
    let seen = group.seen_rows(rows, viewer);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        columns.push(array(field.data_type(), &group.values(index, &seen, viewer)));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(seen.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn array(data_type: &DataType, values: &[Value<'_>]) -> ArrayRef {
    let all = values.iter().copied();
    match data_type {
        DataType::Int64 => Arc::new(all.map(integer).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(all.map(float).collect::<Float64Array>()),
        DataType::Boolean => Arc::new(all.map(boolean).collect::<BooleanArray>()),
        DataType::Utf8 => Arc::new(all.map(text).collect::<StringArray>()),
        DataType::Timestamp(..) => {
            let column: TimestampMicrosecondArray = all.map(micros).collect();
            Arc::new(column.with_timezone("UTC"))
        }
        _ => Arc::new(NullArray::new(values.len())),
    }
}

fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

fn float(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        _ => None,
    }
}

fn boolean(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Boolean(is_so) => Some(is_so),
        _ => None,
    }
}

fn text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Texts(texts) => Some(Cow::Owned(texts.join(", "))),
        _ => None,
    }
}

fn micros(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Time(unix_ms) => Some(unix_ms.saturating_mul(1000)),
        _ => None,
    }
}
