//! The answer as a batch.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, TimeUnit};
use stoa_error::{Error, Result};

use crate::aggregate::{Cell, Groups};
use crate::report::{Item, Report};

/// Puts the groups together in the answer's order.
///
/// # Errors
/// `Internal` where the report's schema does not fit its items.
pub(crate) fn answer(report: &Report, groups: &Groups<'_>) -> Result<RecordBatch> {
    let order = groups.ordered();
    let columns = report.items.iter().zip(report.schema.fields()).map(|(item, field)| {
        column(groups, &order, *item, field.data_type()).ok_or_else(|| {
            Error::internal(format!(
                "a report has no {} called {}",
                field.data_type(),
                field.name()
            ))
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
    RecordBatch::try_new_with_options(report.schema.clone(), columns, &options).map_err(|source| {
        Error::internal("a report's answer is not as planned").with_source(source)
    })
}

fn column(
    groups: &Groups<'_>,
    order: &[usize],
    item: Item,
    data_type: &DataType,
) -> Option<ArrayRef> {
    let cells = order.iter().map(|group| groups.cell(*group, item));
    let numbers = cells.clone().map(|cell| match cell {
        Cell::Number(number) => Some(number),
        _ => None,
    });
    let floats = cells.clone().map(|cell| match cell {
        Cell::Float(value) => Some(value),
        _ => None,
    });
    Some(match data_type {
        DataType::Int8 => Arc::new(narrow::<Int8Type>(numbers, |n| n as i8)),
        DataType::Int16 => Arc::new(narrow::<Int16Type>(numbers, |n| n as i16)),
        DataType::Int32 => Arc::new(narrow::<Int32Type>(numbers, |n| n as i32)),
        DataType::Int64 => Arc::new(narrow::<Int64Type>(numbers, |n| n as i64)),
        DataType::Date32 => Arc::new(narrow::<Date32Type>(numbers, |n| n as i32)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => Arc::new(
            narrow::<TimestampMicrosecondType>(numbers, |n| n as i64)
                .with_timezone_opt(zone.clone()),
        ),
        DataType::Decimal128(precision, scale) => Arc::new(
            narrow::<Decimal128Type>(numbers, |n| n)
                .with_precision_and_scale(*precision, *scale)
                .ok()?,
        ),
        DataType::Boolean => Arc::new(numbers.map(|n| n.map(|n| n != 0)).collect::<BooleanArray>()),
        DataType::Float64 => Arc::new(floats.collect::<Float64Array>()),
        DataType::Float32 => {
            Arc::new(floats.map(|v| v.map(|v| v as f32)).collect::<Float32Array>())
        }
        DataType::Utf8 => {
            let texts = cells.map(|cell| match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            });
            Arc::new(texts.collect::<StringArray>())
        }
        _ => return None,
    })
}

fn narrow<T: arrow_array::ArrowPrimitiveType>(
    numbers: impl Iterator<Item = Option<i128>>,
    as_native: impl Fn(i128) -> T::Native,
) -> PrimitiveArray<T> {
    numbers.map(|number| number.map(&as_native)).collect()
}
