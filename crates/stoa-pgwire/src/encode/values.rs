//! The values of a column, one variant per physical layout, written as text or binary.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::arrow::compute::cast;
use stoa_error::{Error, Result};
use stoa_query::NUMERIC;
use stoa_sql::intervals::IntervalStyle;

use super::Style;
use super::json::{MapValues, StructValues, UnionValues};
use super::list::{DictionaryValues, ListValues};
use crate::types::calendar::{DAY_US, PG_EPOCH_DAYS, put_date, put_time};
use crate::types::numeric::{Decimal, put_f32, put_f64, put_i64, put_u64};
use crate::types::zone::{Zone, put_offset};
use crate::types::{PgType, calendar, field_type, is_oid_field};

/// The values of a column, without its NULLs.
#[derive(Debug)]
pub(crate) enum Values {
    Null,
    Bool(BooleanArray),
    Int8(ScalarBuffer<i8>),
    Int16(ScalarBuffer<i16>),
    Int32(ScalarBuffer<i32>),
    Int64(ScalarBuffer<i64>),
    UInt8(ScalarBuffer<u8>),
    UInt16(ScalarBuffer<u16>),
    UInt32(ScalarBuffer<u32>),
    UInt64(ScalarBuffer<u64>),
    /// OIDs held as signed integers.
    Oid(ScalarBuffer<i32>),
    Float32(ScalarBuffer<f32>),
    Float64(ScalarBuffer<f64>),
    Decimal128(ScalarBuffer<i128>, i8),
    Decimal256(PrimitiveArray<Decimal256Type>, i8),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    BytesView(BinaryViewArray),
    FixedBytes(FixedSizeBinaryArray),
    Uuid(FixedSizeBinaryArray),
    Date(ScalarBuffer<i32>),
    Time(ScalarBuffer<i64>),
    Timestamp(Micros),
    Timestamptz(Micros, Zone),
    Interval(Intervals, IntervalStyle),
    Dictionary(Box<DictionaryValues>),
    List(Box<ListValues>),
    Struct(Box<StructValues>),
    Map(Box<MapValues>),
    Union(Box<UnionValues>),
}

/// Instants or spans in any unit, read as microseconds; finer parts are cut off downwards, as the
/// protocol has microseconds only.
#[derive(Debug)]
pub(crate) struct Micros {
    values: ScalarBuffer<i64>,
    multiply: i64,
    divide: i64,
}

impl Micros {
    fn new(values: ScalarBuffer<i64>, unit: TimeUnit) -> Self {
        let (multiply, divide) = match unit {
            TimeUnit::Second => (1_000_000, 1),
            TimeUnit::Millisecond => (1000, 1),
            TimeUnit::Microsecond => (1, 1),
            TimeUnit::Nanosecond => (1, 1000),
        };
        Self { values, multiply, divide }
    }

    #[inline]
    fn get(&self, row: usize) -> i64 {
        self.values[row].saturating_mul(self.multiply).div_euclid(self.divide)
    }
}

impl Values {
    /// Reads an array of the field's type; gives its NULLs too.
    pub(crate) fn new(
        field: &Field,
        array: &ArrayRef,
        style: Style,
    ) -> Result<(Self, Option<NullBuffer>)> {
        let nulls = array.nulls().cloned();
        let values = match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(array.as_boolean().clone()),
            DataType::Int8 => Self::Int8(buffer::<Int8Type>(array)),
            DataType::Int16 => Self::Int16(buffer::<Int16Type>(array)),
            DataType::Int32 if is_oid_field(field) => Self::Oid(buffer::<Int32Type>(array)),
            DataType::Int32 => Self::Int32(buffer::<Int32Type>(array)),
            DataType::Int64 => Self::Int64(buffer::<Int64Type>(array)),
            DataType::UInt8 => Self::UInt8(buffer::<UInt8Type>(array)),
            DataType::UInt16 => Self::UInt16(buffer::<UInt16Type>(array)),
            DataType::UInt32 if is_oid_field(field) => {
                return Self::after_cast(field, array, &DataType::Int32, style);
            }
            DataType::UInt32 => Self::UInt32(buffer::<UInt32Type>(array)),
            DataType::UInt64 => Self::UInt64(buffer::<UInt64Type>(array)),
            DataType::Float32 => Self::Float32(buffer::<Float32Type>(array)),
            DataType::Float64 => Self::Float64(buffer::<Float64Type>(array)),
            DataType::Float16 => {
                return Self::after_cast(field, array, &DataType::Float32, style);
            }
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                let wide = DataType::Decimal128(*precision, *scale);
                return Self::after_cast(field, array, &wide, style);
            }
            DataType::Decimal128(_, scale) => {
                Self::Decimal128(buffer::<Decimal128Type>(array), *scale)
            }
            DataType::Decimal256(_, scale) => {
                Self::Decimal256(array.as_primitive().clone(), *scale)
            }
            DataType::Utf8 => Self::Text(array.as_string().clone()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string().clone()),
            DataType::Utf8View => Self::TextView(array.as_string_view().clone()),
            DataType::Binary => Self::Bytes(array.as_binary().clone()),
            DataType::LargeBinary => Self::LargeBytes(array.as_binary().clone()),
            DataType::BinaryView => Self::BytesView(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) if field_type(field) == PgType::Uuid => {
                Self::Uuid(array.as_fixed_size_binary().clone())
            }
            DataType::FixedSizeBinary(_) => Self::FixedBytes(array.as_fixed_size_binary().clone()),
            DataType::Date32 => Self::Date(buffer::<Date32Type>(array)),
            DataType::Date64 => return Self::after_cast(field, array, &DataType::Date32, style),
            DataType::Time64(TimeUnit::Microsecond) => {
                Self::Time(buffer::<Time64MicrosecondType>(array))
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let micros = DataType::Time64(TimeUnit::Microsecond);
                return Self::after_cast(field, array, &micros, style);
            }
            DataType::Timestamp(unit, zone) => {
                let micros = Micros::new(timestamps(array, *unit), *unit);
                match zone {
                    None => Self::Timestamp(micros),
                    Some(_) => Self::Timestamptz(micros, style.zone),
                }
            }
            DataType::Duration(unit) => {
                let durations = Micros::new(durations(array, *unit), *unit);
                Self::Interval(Intervals::Duration(durations), style.intervals)
            }
            DataType::Interval(unit) => {
                let intervals = match unit {
                    IntervalUnit::YearMonth => {
                        Intervals::YearMonth(buffer::<IntervalYearMonthType>(array))
                    }
                    IntervalUnit::DayTime => Intervals::DayTime(array.as_primitive().clone()),
                    IntervalUnit::MonthDayNano => {
                        Intervals::MonthDayNano(array.as_primitive().clone())
                    }
                };
                Self::Interval(intervals, style.intervals)
            }
            DataType::Dictionary(..) => {
                Self::Dictionary(Box::new(DictionaryValues::new(field, array, style)?))
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                Self::List(Box::new(ListValues::new(field, array, style)?))
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                let list = DataType::LargeList(item.clone());
                return Self::after_cast(field, array, &list, style);
            }
            DataType::RunEndEncoded(_, values) => {
                let plain = values.data_type().clone();
                return Self::after_cast(field, array, &plain, style);
            }
            DataType::Struct(_) => Self::Struct(Box::new(StructValues::new(array, style)?)),
            DataType::Map(..) => Self::Map(Box::new(MapValues::new(array, style)?)),
            DataType::Union(..) => Self::Union(Box::new(UnionValues::new(array, style)?)),
        };
        Ok((values, nulls))
    }

    fn after_cast(
        field: &Field,
        array: &ArrayRef,
        to: &DataType,
        style: Style,
    ) -> Result<(Self, Option<NullBuffer>)> {
        let array = cast(array, to).map_err(|source| {
            Error::internal(format!("column {:?} cannot be sent as {to}", field.name()))
                .with_source(source)
        })?;
        Self::new(field, &array, style)
    }

    /// NULLs that are not in the column's own null buffer.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Dictionary(dictionary) => dictionary.is_null(row),
            Self::Union(union) => union.is_null(row),
            _ => false,
        }
    }

    /// Appends the text form of a row that is not NULL.
    pub(crate) fn put_text(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Bool(a) => out.push(if a.value(row) { b't' } else { b'f' }),
            Self::Int8(a) => put_i64(out, a[row].into()),
            Self::Int16(a) => put_i64(out, a[row].into()),
            Self::Int32(a) => put_i64(out, a[row].into()),
            Self::Int64(a) => put_i64(out, a[row]),
            Self::UInt8(a) => put_u64(out, a[row].into()),
            Self::UInt16(a) => put_u64(out, a[row].into()),
            Self::UInt32(a) => put_u64(out, a[row].into()),
            Self::UInt64(a) => put_u64(out, a[row]),
            Self::Oid(a) => put_u64(out, (a[row] as u32).into()),
            Self::Float32(a) => put_f32(out, a[row]),
            Self::Float64(a) => put_f64(out, a[row]),
            Self::Decimal128(a, scale) => put_decimal_text(out, a[row], *scale),
            Self::Decimal256(a, scale) => wide_decimal(a, row, *scale).put_text(out),
            Self::Text(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::LargeText(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::TextView(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::Bytes(a) => put_hex(out, a.value(row)),
            Self::LargeBytes(a) => put_hex(out, a.value(row)),
            Self::BytesView(a) => put_hex(out, a.value(row)),
            Self::FixedBytes(a) => put_hex(out, a.value(row)),
            Self::Uuid(a) => put_uuid_text(out, a.value(row)),
            Self::Date(a) => {
                if put_date(out, a[row].into()) {
                    out.extend_from_slice(b" BC");
                }
            }
            Self::Time(a) => put_time(out, a[row].clamp(0, DAY_US)),
            Self::Timestamp(a) => calendar::put_timestamp(out, a.get(row), b""),
            Self::Timestamptz(a, zone) => put_instant(out, a.get(row), *zone),
            Self::Dictionary(d) => d.put_text(row, out),
            Self::List(list) => list.put_text(row, out),
            Self::Struct(value) => value.put_text(row, out),
            Self::Map(_) | Self::Union(_) => self.put_json(row, out),
            Self::Interval(intervals, style) => {
                let mut text = String::new();
                style.write(intervals.get(row), &mut text);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Appends the binary form of a row that is not NULL.
    pub(crate) fn put_binary(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Bool(a) => out.push(a.value(row).into()),
            Self::Int8(a) => out.extend_from_slice(&i16::from(a[row]).to_be_bytes()),
            Self::Int16(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::Int32(a) | Self::Oid(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::Int64(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::UInt8(a) => out.extend_from_slice(&i16::from(a[row]).to_be_bytes()),
            Self::UInt16(a) => out.extend_from_slice(&i32::from(a[row]).to_be_bytes()),
            Self::UInt32(a) => out.extend_from_slice(&i64::from(a[row]).to_be_bytes()),
            Self::UInt64(a) => Decimal::from_i128(a[row].into(), 0).put_binary(out),
            Self::Float32(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::Float64(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::Decimal128(a, scale) => {
                Decimal::from_i128(a[row], (*scale).into()).put_binary(out);
            }
            Self::Decimal256(a, scale) => wide_decimal(a, row, *scale).put_binary(out),
            Self::Bytes(a) => out.extend_from_slice(a.value(row)),
            Self::LargeBytes(a) => out.extend_from_slice(a.value(row)),
            Self::BytesView(a) => out.extend_from_slice(a.value(row)),
            Self::FixedBytes(a) | Self::Uuid(a) => out.extend_from_slice(a.value(row)),
            Self::Date(a) => {
                let days = a[row].saturating_sub(PG_EPOCH_DAYS as i32);
                out.extend_from_slice(&days.to_be_bytes());
            }
            Self::Time(a) => out.extend_from_slice(&a[row].to_be_bytes()),
            Self::Timestamp(a) | Self::Timestamptz(a, _) => {
                let micros = a.get(row).saturating_sub(PG_EPOCH_DAYS * DAY_US);
                out.extend_from_slice(&micros.to_be_bytes());
            }
            Self::Dictionary(d) => d.put_binary(row, out),
            Self::List(list) => list.put_binary(row, out),
            Self::Interval(intervals, _) => {
                let (months, days, micros) = intervals.get(row);
                out.extend_from_slice(&micros.to_be_bytes());
                out.extend_from_slice(&days.to_be_bytes());
                out.extend_from_slice(&months.to_be_bytes());
            }
            // The binary form of text and JSON is the text.
            Self::Null
            | Self::Text(_)
            | Self::LargeText(_)
            | Self::TextView(_)
            | Self::Map(_)
            | Self::Union(_) => self.put_text(row, out),
            Self::Struct(value) => value.put_binary(row, out),
        }
    }
}

/// Intervals of the engine's types.
#[derive(Debug)]
pub(crate) enum Intervals {
    Duration(Micros),
    YearMonth(ScalarBuffer<i32>),
    DayTime(PrimitiveArray<IntervalDayTimeType>),
    MonthDayNano(PrimitiveArray<IntervalMonthDayNanoType>),
}

impl Intervals {
    /// Months, days and microseconds.
    fn get(&self, row: usize) -> (i32, i32, i64) {
        match self {
            // As PostgreSQL writes the difference of two timestamps.
            Self::Duration(a) => (0, (a.get(row) / DAY_US) as i32, a.get(row) % DAY_US),
            Self::YearMonth(a) => (a[row], 0, 0),
            Self::DayTime(a) => {
                let value = a.value(row);
                (0, value.days, i64::from(value.milliseconds) * 1000)
            }
            Self::MonthDayNano(a) => {
                let value = a.value(row);
                (value.months, value.days, value.nanoseconds.div_euclid(1000))
            }
        }
    }
}

fn buffer<T: ArrowPrimitiveType>(array: &ArrayRef) -> ScalarBuffer<T::Native> {
    array.as_primitive::<T>().values().clone()
}

fn timestamps(array: &ArrayRef, unit: TimeUnit) -> ScalarBuffer<i64> {
    match unit {
        TimeUnit::Second => buffer::<TimestampSecondType>(array),
        TimeUnit::Millisecond => buffer::<TimestampMillisecondType>(array),
        TimeUnit::Microsecond => buffer::<TimestampMicrosecondType>(array),
        TimeUnit::Nanosecond => buffer::<TimestampNanosecondType>(array),
    }
}

fn durations(array: &ArrayRef, unit: TimeUnit) -> ScalarBuffer<i64> {
    match unit {
        TimeUnit::Second => buffer::<DurationSecondType>(array),
        TimeUnit::Millisecond => buffer::<DurationMillisecondType>(array),
        TimeUnit::Microsecond => buffer::<DurationMicrosecondType>(array),
        TimeUnit::Nanosecond => buffer::<DurationNanosecondType>(array),
    }
}

fn wide_decimal(array: &PrimitiveArray<Decimal256Type>, row: usize, scale: i8) -> Decimal {
    let decimal = Decimal::from_integer_text(&array.value(row).to_string(), scale.into());
    match *array.data_type() == NUMERIC {
        true => decimal.trimmed(),
        false => decimal,
    }
}

/// Decimals that fit 64 bits, which nearly all do, are written without allocating.
fn put_decimal_text(out: &mut Vec<u8>, value: i128, scale: i8) {
    let (Ok(magnitude), Ok(scale)) = (u64::try_from(value.unsigned_abs()), u32::try_from(scale))
    else {
        return Decimal::from_i128(value, scale.into()).put_text(out);
    };
    let Some(unit) = 10_u64.checked_pow(scale) else {
        return Decimal::from_i128(value, scale as i32).put_text(out);
    };
    if value < 0 {
        out.push(b'-');
    }
    put_u64(out, magnitude / unit);
    if scale > 0 {
        out.push(b'.');
        let mut fraction = magnitude % unit;
        let start = out.len();
        out.resize(start + scale as usize, b'0');
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
    }
}

fn put_instant(out: &mut Vec<u8>, micros: i64, zone: Zone) {
    let offset = zone.offset_at(micros);
    let mut suffix = Vec::new();
    put_offset(&mut suffix, offset);
    let local = micros.saturating_add(i64::from(offset) * 1_000_000);
    calendar::put_timestamp(out, local, &suffix);
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn put_hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"\\x");
    put_hex_digits(out, bytes);
}

fn put_uuid_text(out: &mut Vec<u8>, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        put_hex_digits(out, std::slice::from_ref(byte));
    }
}
