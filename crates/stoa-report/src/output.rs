//! The answer as a batch.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray,
};
use arrow_schema::{DataType, TimeUnit};
use stoa_error::{Error, Result};

use crate::aggregate::{Cell, Groups};
use crate::memory::Taken;
use crate::report::{Item, Report};

/// Bytes of all texts of an answer at most: it is one batch.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// Values that are put together before others on the thread have their turn.
const VALUES_AT_ONCE: usize = 16 << 10;

/// Puts the groups together in the answer's order; `None` where that takes more memory than there is.
///
/// # Errors
/// A sum that does not fit its type (22003); `Internal` where the report's schema does not fit its items.
pub(crate) async fn answer(
    report: &Report,
    groups: &Groups<'_>,
    taken: &mut Taken<'_>,
) -> Result<Option<RecordBatch>> {
    groups.check()?;
    let order = groups.ordered().await;
    let texts = text_bytes(report, groups, &order);
    let values = order.len() * report.items.len();
    if texts > TEXT_BYTES_MAX || !taken.resize(groups.memory_bytes() + texts + 32 * values) {
        return Ok(None);
    }
    let mut columns = Vec::with_capacity(report.items.len());
    let mut values = 0;
    for (item, field) in report.items.iter().zip(report.schema.fields()) {
        let column = column(groups, &order, *item, field.data_type()).map_err(|error| {
            let place = format!("{} called {}", field.data_type(), field.name());
            Error::internal(format!("a report has no {place}: {error}"))
        });
        columns.push(column?);
        values += order.len();
        if values > VALUES_AT_ONCE {
            tokio::task::yield_now().await;
            values = 0;
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
    let batch = RecordBatch::try_new_with_options(report.schema.clone(), columns, &options);
    batch.map(Some).map_err(|source| {
        Error::internal("a report's answer is not as planned").with_source(source)
    })
}

/// Bytes of the texts of an answer.
fn text_bytes(report: &Report, groups: &Groups<'_>, order: &[usize]) -> usize {
    let items = report.items.iter().zip(report.schema.fields());
    let texts = items.filter(|(_, field)| *field.data_type() == DataType::Utf8);
    let cells = texts.flat_map(|(item, _)| order.iter().map(|group| groups.cell(*group, *item)));
    let bytes = cells.map(|cell| match cell {
        Cell::Text(text) => text.len(),
        _ => 0,
    });
    bytes.sum()
}

fn column(
    groups: &Groups<'_>,
    order: &[usize],
    item: Item,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let cells = order.iter().map(|group| groups.cell(*group, item));
    let numbers = cells.clone().map(|cell| match cell {
        Cell::Number(number) => Ok(Some(number)),
        Cell::Null => Ok(None),
        other => Err(misfit(other)),
    });
    let floats = cells.clone().map(|cell| match cell {
        Cell::Float(value) => Ok(Some(value)),
        Cell::Null => Ok(None),
        other => Err(misfit(other)),
    });
    Ok(match data_type {
        DataType::Int8 => Arc::new(narrow::<Int8Type>(numbers)?),
        DataType::Int16 => Arc::new(narrow::<Int16Type>(numbers)?),
        DataType::Int32 => Arc::new(narrow::<Int32Type>(numbers)?),
        DataType::Int64 => Arc::new(narrow::<Int64Type>(numbers)?),
        DataType::Date32 => Arc::new(narrow::<Date32Type>(numbers)?),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(narrow::<TimestampMicrosecondType>(numbers)?.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => Arc::new(
            narrow::<Decimal128Type>(numbers)?
                .with_precision_and_scale(*precision, *scale)
                .map_err(|e| Error::internal(e.to_string()))?,
        ),
        DataType::Decimal256(precision, scale) => {
            let means = cells.map(|cell| match cell {
                Cell::Mean(digits) => Ok(Some(digits)),
                Cell::Null => Ok(None),
                other => Err(misfit(other)),
            });
            let means = means.collect::<Result<PrimitiveArray<Decimal256Type>>>()?;
            let means = means.with_precision_and_scale(*precision, *scale);
            Arc::new(means.map_err(|e| Error::internal(e.to_string()))?)
        }
        DataType::Boolean => {
            let truth = numbers.map(|number| Ok(number?.map(|number| number != 0)));
            Arc::new(truth.collect::<Result<BooleanArray>>()?)
        }
        DataType::Float64 => Arc::new(floats.collect::<Result<Float64Array>>()?),
        DataType::Float32 => {
            let narrowed = floats.map(|value| Ok(value?.map(|value| value as f32)));
            Arc::new(narrowed.collect::<Result<Float32Array>>()?)
        }
        DataType::Utf8 => {
            let texts = cells.map(|cell| match cell {
                Cell::Text(text) => Ok(Some(text)),
                Cell::Null => Ok(None),
                other => Err(misfit(other)),
            });
            Arc::new(texts.collect::<Result<StringArray>>()?)
        }
        other => return Err(Error::internal(format!("no report gives {other}"))),
    })
}

fn narrow<T>(numbers: impl Iterator<Item = Result<Option<i128>>>) -> Result<PrimitiveArray<T>>
where
    T: arrow_array::ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let native =
        |number: i128| T::Native::try_from(number).map_err(|_| misfit(Cell::Number(number)));
    numbers.map(|number| number?.map(native).transpose()).collect()
}

fn misfit(cell: Cell<'_>) -> Error {
    Error::internal(format!("{cell:?} is of another kind"))
}
