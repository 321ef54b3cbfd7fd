//! Arrays as a file has them to arrays as the table has them.
//!
//! Fields meet by id at every level. What Iceberg lets a column become (int to long, float to double,
//! wider decimals, date to timestamp) is converted; values that a file holds in another unit or
//! encoding too. Everything else is an error, never another value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit};
use stoa_error::{Error, Place, Result};

use super::fill::Fill;
use crate::schema::FIELD_ID_KEY;

/// The columns of `schema` out of `arrays`, which have the fields `from` with ids.
pub(super) fn batch(
    schema: &SchemaRef,
    from: &Fields,
    arrays: &[ArrayRef],
    rows: usize,
    fill: &Fill,
) -> Result<RecordBatch> {
    let columns = fields(from, arrays, schema.fields(), rows, fill)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| not_as_said(&e))
}

fn fields(
    from: &Fields,
    arrays: &[ArrayRef],
    to: &Fields,
    rows: usize,
    fill: &Fill,
) -> Result<Vec<ArrayRef>> {
    to.iter()
        .map(|field| {
            let id = id_of(field);
            let at = from.iter().position(|own| id.is_some() && id_of(own) == id);
            match at.and_then(|at| Some((from.get(at)?, arrays.get(at)?))) {
                Some((own, array)) => adapt(own, array, field, fill),
                None => fill.array(field, rows),
            }
        })
        .collect()
}

/// `array`, which has the type of `from`, in the type of `to`.
fn adapt(from: &Field, array: &ArrayRef, to: &Field, fill: &Fill) -> Result<ArrayRef> {
    if array.data_type() == to.data_type() {
        return Ok(array.clone());
    }
    match (from.data_type(), to.data_type()) {
        (DataType::Struct(own), DataType::Struct(wanted)) => {
            let array = array.as_struct();
            let children = fields(own, array.columns(), wanted, array.len(), fill);
            let children = children.map_err(|e| e.at(Place::field(to.name())))?;
            let nulls = array.nulls().cloned();
            struct_of(wanted, children, nulls, array.len())
        }
        (DataType::List(own), DataType::List(wanted)) => {
            let array = array.as_list::<i32>();
            let values = adapt(own, array.values(), wanted, fill)?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            let list = ListArray::try_new(wanted.clone(), offsets, values, nulls);
            list.map(|list| Arc::new(list) as ArrayRef).map_err(|e| not_as_said(&e))
        }
        (DataType::Map(own, _), DataType::Map(wanted, sorted)) => {
            map(own, array.as_map(), wanted, *sorted, fill)
        }
        (own, wanted) => primitive(array, own, wanted).map_err(|e| e.at(Place::field(to.name()))),
    }
}

fn struct_of(
    fields: &Fields,
    children: Vec<ArrayRef>,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef> {
    let array = match children.is_empty() {
        true => Ok(StructArray::new_empty_fields(rows, nulls)),
        false => StructArray::try_new(fields.clone(), children, nulls),
    };
    array.map(|array| Arc::new(array) as ArrayRef).map_err(|e| not_as_said(&e))
}

fn map(
    own: &FieldRef,
    array: &MapArray,
    wanted: &FieldRef,
    sorted: bool,
    fill: &Fill,
) -> Result<ArrayRef> {
    let (DataType::Struct(own), DataType::Struct(pair)) = (own.data_type(), wanted.data_type())
    else {
        return Err(Error::internal("a map without entries"));
    };
    let rows = array.entries().len();
    let children = fields(own, array.entries().columns(), pair, rows, fill)?;
    let entries =
        StructArray::try_new(pair.clone(), children, None).map_err(|e| not_as_said(&e))?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let map = MapArray::try_new(wanted.clone(), offsets, entries, nulls, sorted);
    map.map(|map| Arc::new(map) as ArrayRef).map_err(|e| not_as_said(&e))
}

/// Values of one type as another, where Iceberg says that they are the same.
fn primitive(array: &ArrayRef, own: &DataType, wanted: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    let may_be = match (own, wanted) {
        (T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16, T::Int32 | T::Int64) => true,
        (T::Int64 | T::UInt32, T::Int64) => true,
        (T::Float16 | T::Float32, T::Float32 | T::Float64) => true,
        (T::Float64, T::Float64) => true,
        (
            T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s),
            T::Decimal128(precision, scale),
        ) => s == scale && p <= precision,
        (T::Date32, T::Timestamp(_, None)) => true,
        (T::Timestamp(from, _), T::Timestamp(to, zone)) => {
            return timestamps(array, *from, *to, zone.clone());
        }
        // Of writers that do not mark times of the day: microseconds since midnight.
        (T::Int64 | T::Time32(_) | T::Time64(_), T::Time64(_)) => true,
        (T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary, T::Utf8) => true,
        (T::Binary | T::LargeBinary | T::FixedSizeBinary(_) | T::BinaryView, T::Binary) => true,
        (T::Utf8, T::Binary) => true,
        (T::FixedSizeBinary(own), T::FixedSizeBinary(wanted)) => own == wanted,
        // Of writers that do not mark UUIDs; of another length, it is none.
        (T::Binary, T::FixedSizeBinary(_)) => true,
        (T::Null, _) => true,
        (T::Dictionary(_, values), wanted) => {
            let values = cast(array, values)?;
            let own = values.data_type().clone();
            return match own == *wanted {
                true => Ok(values),
                false => primitive(&values, &own, wanted),
            };
        }
        _ => false,
    };
    if !may_be {
        return Err(Error::corrupt(format!("the file has values of type {own}, not {wanted}")));
    }
    cast(array, wanted)
}

/// A coarser unit is rounded down, also before 1970; a finer one must hold the value.
fn timestamps(
    array: &ArrayRef,
    from: TimeUnit,
    to: TimeUnit,
    zone: Option<Arc<str>>,
) -> Result<ArrayRef> {
    // The zone of a file's timestamps is UTC or none: the numbers stay.
    let plain = cast_with_options(array, &DataType::Int64, &STRICT).map_err(|e| not_as_said(&e))?;
    let from = per_second(from);
    let to_units = per_second(to);
    let numbers = plain.as_primitive::<arrow_array::types::Int64Type>();
    let scaled = numbers.try_unary::<_, arrow_array::types::Int64Type, Error>(|v| {
        match from <= to_units {
            true => v.checked_mul(to_units / from).ok_or_else(|| {
                Error::invalid("a timestamp in the file is outside of what nanoseconds can say")
                    .with_sqlstate("22008")
            }),
            false => Ok(v.div_euclid(from / to_units)),
        }
    })?;
    let (_, values, nulls) = scaled.into_parts();
    Ok(match to {
        TimeUnit::Nanosecond => Arc::new(
            arrow_array::PrimitiveArray::<TimestampNanosecondType>::new(values, nulls)
                .with_timezone_opt(zone),
        ),
        TimeUnit::Microsecond => Arc::new(
            arrow_array::PrimitiveArray::<TimestampMicrosecondType>::new(values, nulls)
                .with_timezone_opt(zone),
        ),
        _ => return Err(Error::internal("tables have timestamps in micro- and nanoseconds")),
    })
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

const STRICT: CastOptions<'static> =
    CastOptions { safe: false, format_options: arrow_cast::display::FormatOptions::new() };

fn cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    cast_with_options(array, wanted, &STRICT).map_err(|e| not_as_said(&e))
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

fn not_as_said(error: &ArrowError) -> Error {
    Error::corrupt("rows are not as the table says").with_detail(error.to_string())
}
