//! The values of a column by type, with their parsers.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, GenericByteArray,
    PrimitiveArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::Outcome;
use super::hints::{not_a_date, not_a_moment, not_a_number, not_hex};
use super::nested::Nested;
use crate::bad_value::BadValue;
use crate::convert::{self, Conversions};
use crate::datetime;
use crate::number::{self, NumberError};

/// Values so far; NULLs hold a default.
#[derive(Debug)]
pub(super) enum Values {
    Boolean(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    UInt8(Vec<u8>),
    UInt16(Vec<u16>),
    UInt32(Vec<u32>),
    UInt64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    /// Nanoseconds per unit, units of the day.
    Time {
        values: Vec<i64>,
        unit_ns: i64,
    },
    Timestamp {
        values: Vec<i64>,
        units_per_second: i64,
        zoned: bool,
    },
    Text(Bytes),
    Binary(Bytes),
    FixedBinary {
        values: Vec<u8>,
        width: usize,
    },
    Nested(Nested),
}

/// Variable-length values: `ends[i]` is where value `i` ends in `data`.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    data: Vec<u8>,
    ends: Vec<i64>,
}

impl Bytes {
    pub(super) fn append(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.close();
    }

    fn close(&mut self) {
        self.ends.push(self.data.len() as i64);
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.data.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    fn finish<T>(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError>
    where
        T: arrow_array::types::ByteArrayType,
    {
        let data = Buffer::from_vec(std::mem::take(&mut self.data));
        let too_long = |_| ArrowError::OffsetOverflowError(data.len());
        let offsets = std::iter::once(0)
            .chain(self.ends.drain(..))
            .map(|end| {
                use arrow_buffer::ArrowNativeType;
                T::Offset::from_usize(end as usize).ok_or(())
            })
            .collect::<Result<Vec<_>, ()>>()
            .map_err(too_long)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, data, nulls)?))
    }
}

impl Values {
    pub fn new(data_type: &DataType, rows: usize) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean(BooleanBufferBuilder::new(rows)),
            DataType::Int8 => Self::Int8(Vec::with_capacity(rows)),
            DataType::Int16 => Self::Int16(Vec::with_capacity(rows)),
            DataType::Int32 => Self::Int32(Vec::with_capacity(rows)),
            DataType::Int64 => Self::Int64(Vec::with_capacity(rows)),
            DataType::UInt8 => Self::UInt8(Vec::with_capacity(rows)),
            DataType::UInt16 => Self::UInt16(Vec::with_capacity(rows)),
            DataType::UInt32 => Self::UInt32(Vec::with_capacity(rows)),
            DataType::UInt64 => Self::UInt64(Vec::with_capacity(rows)),
            DataType::Float32 => Self::Float32(Vec::with_capacity(rows)),
            DataType::Float64 => Self::Float64(Vec::with_capacity(rows)),
            DataType::Decimal128(precision, scale) => Self::Decimal {
                values: Vec::with_capacity(rows),
                precision: *precision,
                scale: *scale,
            },
            DataType::Date32 => Self::Date(Vec::with_capacity(rows)),
            DataType::Time32(unit) | DataType::Time64(unit) => Self::Time {
                values: Vec::with_capacity(rows),
                unit_ns: 1_000_000_000 / units_per_second(*unit),
            },
            DataType::Timestamp(unit, zone) => Self::Timestamp {
                values: Vec::with_capacity(rows),
                units_per_second: units_per_second(*unit),
                zoned: zone.is_some(),
            },
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self::Text(Bytes::default())
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Self::Binary(Bytes::default())
            }
            DataType::FixedSizeBinary(width) => Self::FixedBinary {
                values: Vec::with_capacity(rows),
                width: usize::try_from(*width).ok()?,
            },
            other => Self::Nested(Nested::new(other)?),
        })
    }

    /// Parses and appends one value.
    pub fn append(&mut self, text: &[u8], type_name: &str, with: &Conversions) -> Outcome {
        match self {
            Self::Boolean(values) => match with.boolean(text) {
                Some(value) => values.append(value),
                None => return Err(BadValue::not_a(text, type_name)),
            },
            Self::Int8(values) => values.push(whole(text, type_name, with)?),
            Self::Int16(values) => values.push(whole(text, type_name, with)?),
            Self::Int32(values) => values.push(whole(text, type_name, with)?),
            Self::Int64(values) => values.push(whole(text, type_name, with)?),
            Self::UInt8(values) => values.push(whole(text, type_name, with)?),
            Self::UInt16(values) => values.push(whole(text, type_name, with)?),
            Self::UInt32(values) => values.push(whole(text, type_name, with)?),
            Self::UInt64(values) => values.push(whole_u64(text, type_name, with)?),
            Self::Float32(values) => values.push(float32(text, type_name, with)?),
            Self::Float64(values) => values.push(float64(text, type_name, with)?),
            Self::Decimal { values, precision, scale } => {
                let parse = |text: &[u8]| number::decimal(text, *precision, *scale);
                values.push(number(text, type_name, with, parse)?);
            }
            Self::Date(values) => {
                let date = std::str::from_utf8(text).ok().and_then(|text| with.dates.date(text));
                values.push(date.ok_or_else(|| not_a_date(text, type_name, with.dates.is_iso()))?);
            }
            Self::Time { values, unit_ns } => match datetime::iso_time(text) {
                Some(time_ns) => values.push(time_ns / *unit_ns),
                None => return Err(BadValue::not_a(text, type_name)),
            },
            Self::Timestamp { values, units_per_second, zoned } => {
                values.push(timestamp(text, type_name, *units_per_second, *zoned, with)?);
            }
            Self::Text(values) => {
                if std::str::from_utf8(text).is_err() {
                    return Err(BadValue::not_utf8(text));
                }
                values.append(text);
            }
            Self::Binary(values) => {
                if convert::hex(text, &mut values.data).is_none() {
                    values.truncate(values.ends.len());
                    return Err(not_hex(text, type_name));
                }
                values.close();
            }
            Self::FixedBinary { values, width } => {
                let start = values.len();
                let read = match *width {
                    16 => convert::uuid(text, values).or_else(|| convert::hex(text, values)),
                    _ => convert::hex(text, values),
                };
                if read.is_none() || values.len() - start != *width {
                    values.truncate(start);
                    return Err(not_hex(text, type_name));
                }
            }
            Self::Nested(nested) => {
                let json = std::str::from_utf8(text).map_err(|_| BadValue::not_utf8(text))?;
                nested.append(json, type_name, with)?;
            }
        }
        Ok(())
    }

    /// Appends a JSON number, `true`, `false`, or (to text) whatever JSON stands there.
    pub fn append_json_scalar(
        &mut self,
        json: &[u8],
        type_name: &str,
        with: &Conversions,
    ) -> Outcome {
        let is_word = matches!(json.first(), Some(b't' | b'f'));
        match self {
            Self::Text(values) => values.append(json),
            Self::Boolean(values) if is_word => values.append(json == b"true"),
            // A JSON number has JSON's marks, whatever the options say of numbers in text.
            Self::Float32(values) if !is_word => {
                values.push(checked_f32(json, type_name, number::double(json))?);
            }
            Self::Float64(values) if !is_word => {
                values.push(number::double(json).ok_or_else(|| BadValue::not_a(json, type_name))?);
            }
            _ if is_word || matches!(json.first(), Some(b'[' | b'{')) => {
                return Err(BadValue::not_a(json, type_name));
            }
            _ => return self.append(json, type_name, with),
        }
        Ok(())
    }

    /// Appends what stands where there is no value.
    pub fn append_default(&mut self) {
        match self {
            Self::Boolean(values) => values.append(false),
            Self::Int8(values) => values.push(0),
            Self::Int16(values) => values.push(0),
            Self::Int32(values) | Self::Date(values) => values.push(0),
            Self::Int64(values) | Self::Time { values, .. } | Self::Timestamp { values, .. } => {
                values.push(0);
            }
            Self::UInt8(values) => values.push(0),
            Self::UInt16(values) => values.push(0),
            Self::UInt32(values) => values.push(0),
            Self::UInt64(values) => values.push(0),
            Self::Float32(values) => values.push(0.0),
            Self::Float64(values) => values.push(0.0),
            Self::Decimal { values, .. } => values.push(0),
            Self::Text(values) | Self::Binary(values) => values.close(),
            Self::FixedBinary { values, width } => values.resize(values.len() + *width, 0),
            Self::Nested(nested) => nested.append_default(),
        }
    }

    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Boolean(values) => values.truncate(rows.min(values.len())),
            Self::Int8(values) => values.truncate(rows),
            Self::Int16(values) => values.truncate(rows),
            Self::Int32(values) | Self::Date(values) => values.truncate(rows),
            Self::Int64(values) | Self::Time { values, .. } | Self::Timestamp { values, .. } => {
                values.truncate(rows);
            }
            Self::UInt8(values) => values.truncate(rows),
            Self::UInt16(values) => values.truncate(rows),
            Self::UInt32(values) => values.truncate(rows),
            Self::UInt64(values) => values.truncate(rows),
            Self::Float32(values) => values.truncate(rows),
            Self::Float64(values) => values.truncate(rows),
            Self::Decimal { values, .. } => values.truncate(rows),
            Self::Text(values) | Self::Binary(values) => values.truncate(rows),
            Self::FixedBinary { values, width } => values.truncate(rows * *width),
            Self::Nested(nested) => nested.truncate(rows),
        }
    }

    pub fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, ArrowError> {
        let array = match self {
            Self::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Self::Int8(values) => primitive::<Int8Type>(values, nulls),
            Self::Int16(values) => primitive::<Int16Type>(values, nulls),
            Self::Int32(values) => primitive::<Int32Type>(values, nulls),
            Self::Int64(values) => primitive::<Int64Type>(values, nulls),
            Self::UInt8(values) => primitive::<UInt8Type>(values, nulls),
            Self::UInt16(values) => primitive::<UInt16Type>(values, nulls),
            Self::UInt32(values) => primitive::<UInt32Type>(values, nulls),
            Self::UInt64(values) => primitive::<UInt64Type>(values, nulls),
            Self::Float32(values) => primitive::<Float32Type>(values, nulls),
            Self::Float64(values) => primitive::<Float64Type>(values, nulls),
            Self::Decimal { values, precision, scale } => Arc::new(
                PrimitiveArray::<Decimal128Type>::new(take(values).into(), nulls)
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Self::Date(values) => primitive::<Date32Type>(values, nulls),
            Self::Time { values, .. } => time(values, nulls, data_type)?,
            Self::Timestamp { values, .. } => timestamps(values, nulls, data_type)?,
            Self::Text(values) => match data_type {
                DataType::LargeUtf8 => values.finish::<arrow_array::types::LargeUtf8Type>(nulls)?,
                _ => values.finish::<arrow_array::types::Utf8Type>(nulls)?,
            },
            Self::Binary(values) => match data_type {
                DataType::LargeBinary => {
                    values.finish::<arrow_array::types::LargeBinaryType>(nulls)?
                }
                _ => values.finish::<arrow_array::types::BinaryType>(nulls)?,
            },
            Self::FixedBinary { values, width } => Arc::new(FixedSizeBinaryArray::try_new(
                *width as i32,
                Buffer::from_vec(std::mem::take(values)),
                nulls,
            )?),
            Self::Nested(nested) => nested.finish(nulls)?,
        };
        match data_type {
            DataType::Utf8View | DataType::BinaryView => arrow_cast::cast(&array, data_type),
            _ => {
                debug_assert_eq!(array.data_type(), data_type);
                Ok(array)
            }
        }
    }
}

/// Which rows have a value; nothing is stored until the first NULL.
#[derive(Debug)]
pub(super) struct NullMask {
    len: usize,
    valid: Option<BooleanBufferBuilder>,
    rows: usize,
}

impl NullMask {
    pub fn new(rows: usize) -> Self {
        Self { len: 0, valid: None, rows }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn append(&mut self, is_valid: bool) {
        if let Some(valid) = &mut self.valid {
            valid.append(is_valid);
        } else if !is_valid {
            let mut valid = BooleanBufferBuilder::new(self.rows.max(self.len + 1));
            valid.append_n(self.len, true);
            valid.append(false);
            self.valid = Some(valid);
        }
        self.len += 1;
    }

    pub fn truncate(&mut self, rows: usize) {
        self.len = self.len.min(rows);
        if let Some(valid) = &mut self.valid {
            valid.truncate(self.len);
        }
    }

    pub fn finish(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        let nulls = NullBuffer::new(self.valid.take()?.finish());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let capacity = values.len();
    std::mem::replace(values, Vec::with_capacity(capacity))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(take(values).into(), nulls))
}

fn time(
    values: &mut Vec<i64>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef, ArrowError> {
    // Milliseconds of a day fit 32 bits.
    let narrow = |values: &mut Vec<i64>| values.drain(..).map(|v| v as i32).collect::<Vec<_>>();
    Ok(match data_type {
        DataType::Time32(TimeUnit::Second) => {
            primitive::<Time32SecondType>(&mut narrow(values), nulls)
        }
        DataType::Time32(_) => primitive::<Time32MillisecondType>(&mut narrow(values), nulls),
        DataType::Time64(TimeUnit::Nanosecond) => primitive::<Time64NanosecondType>(values, nulls),
        _ => primitive::<Time64MicrosecondType>(values, nulls),
    })
}

fn timestamps(
    values: &mut Vec<i64>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let DataType::Timestamp(unit, zone) = data_type else {
        return Err(ArrowError::SchemaError(format!("{data_type} is not a timestamp")));
    };
    let (values, zone) = (take(values).into(), zone.clone());
    Ok(match unit {
        TimeUnit::Second => Arc::new(
            PrimitiveArray::<TimestampSecondType>::new(values, nulls).with_timezone_opt(zone),
        ),
        TimeUnit::Millisecond => Arc::new(
            PrimitiveArray::<TimestampMillisecondType>::new(values, nulls).with_timezone_opt(zone),
        ),
        TimeUnit::Microsecond => Arc::new(
            PrimitiveArray::<TimestampMicrosecondType>::new(values, nulls).with_timezone_opt(zone),
        ),
        TimeUnit::Nanosecond => Arc::new(
            PrimitiveArray::<TimestampNanosecondType>::new(values, nulls).with_timezone_opt(zone),
        ),
    })
}

fn units_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// A number through `parse`, in plain form first, then without the marks of the options.
fn number<T>(
    text: &[u8],
    type_name: &str,
    with: &Conversions,
    parse: impl Fn(&[u8]) -> Result<T, NumberError>,
) -> Result<T, Box<BadValue>> {
    // With a decimal point other than ".", "1.137" must not be taken for a plain number.
    let plain = with.plain_number(text).ok_or_else(|| not_a_number(text, type_name))?;
    parse(&plain).map_err(|e| match e {
        NumberError::OutOfRange => BadValue::out_of_range(text, type_name),
        NumberError::NotANumber => not_a_number(text, type_name),
    })
}

fn whole<T: TryFrom<i64>>(
    text: &[u8],
    type_name: &str,
    with: &Conversions,
) -> Result<T, Box<BadValue>> {
    number(text, type_name, with, |text| {
        T::try_from(number::integer(text)?).map_err(|_| NumberError::OutOfRange)
    })
}

fn whole_u64(text: &[u8], type_name: &str, with: &Conversions) -> Result<u64, Box<BadValue>> {
    number(text, type_name, with, |text| {
        let (negative, digits) = number::sign(text);
        let value = number::unsigned(digits)?;
        if negative && value > 0 {
            return Err(NumberError::OutOfRange);
        }
        u64::try_from(value).map_err(|_| NumberError::OutOfRange)
    })
}

fn float64(text: &[u8], type_name: &str, with: &Conversions) -> Result<f64, Box<BadValue>> {
    let value =
        number(text, type_name, with, |t| number::double(t).ok_or(NumberError::NotANumber))?;
    if value.is_infinite() && text.iter().any(u8::is_ascii_digit) {
        return Err(BadValue::out_of_range(text, type_name));
    }
    Ok(value)
}

fn float32(text: &[u8], type_name: &str, with: &Conversions) -> Result<f32, Box<BadValue>> {
    let value = float64(text, type_name, with)?;
    checked_f32(text, type_name, Some(value))
}

fn checked_f32(text: &[u8], type_name: &str, value: Option<f64>) -> Result<f32, Box<BadValue>> {
    let value = value.ok_or_else(|| BadValue::not_a(text, type_name))?;
    let narrow = value as f32;
    // As in PostgreSQL, what would become infinity or 0 does not fit.
    if narrow.is_infinite() && value.is_finite() || narrow == 0.0 && value != 0.0 {
        return Err(BadValue::out_of_range(text, type_name));
    }
    Ok(narrow)
}

fn timestamp(
    text: &[u8],
    type_name: &str,
    units_per_second: i64,
    zoned: bool,
    with: &Conversions,
) -> Result<i64, Box<BadValue>> {
    let moment = std::str::from_utf8(text)
        .ok()
        .and_then(|text| with.timestamps.parse(text))
        .ok_or_else(|| {
            let iso = matches!(with.timestamps, datetime::Moments::Iso);
            not_a_moment(text, type_name, iso)
        })?;
    let units = if zoned {
        moment.utc(units_per_second, with.time_zone)
    } else if moment.offset_s.unwrap_or(0) != 0 {
        return Err(BadValue::not_a(text, "timestamp without time zone").hint(
            "the column has no time zone, the value has one; use a column of type timestamptz",
        ));
    } else {
        moment.local(units_per_second)
    };
    units.ok_or_else(|| BadValue::out_of_range(text, type_name))
}
