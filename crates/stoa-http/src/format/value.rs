//! Values as JSON, without losing digits.
//!
//! - 64-bit integers beyond ±(2⁵³ − 1) become strings, because readers that keep numbers as
//!   doubles (JavaScript) would round them; smaller ones stay numbers.
//! - Decimals are always strings, so that trailing zeros and digits survive.
//! - `NaN`, `Infinity` and `-Infinity` are strings, because JSON has no such numbers and NULL means
//!   something else.
//! - Binary is a string of hexadecimal digits; dates, times and timestamps are ISO 8601 strings.

use std::fmt::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int64Type, Time64MicrosecondType,
    UInt64Type,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions};
use arrow_schema::{ArrowError, DataType, FieldRef, TimeUnit};
use stoa_query::{NUMERIC, numeric_text, time_text};

pub(super) use arrow_json::writer::{NullableEncoder, make_encoder};

const SAFE_MAX: i64 = (1 << 53) - 1;

/// Options under which [`make_encoder`] writes values as this module says.
pub(super) fn options() -> EncoderOptions {
    EncoderOptions::default()
        .with_explicit_nulls(true)
        .with_encoder_factory(std::sync::Arc::new(ExactValues))
}

/// Appends the value at `row`, or `null`.
pub(super) fn append(encoder: &mut NullableEncoder<'_>, row: usize, out: &mut Vec<u8>) {
    if encoder.is_null(row) {
        out.extend_from_slice(b"null");
    } else {
        encoder.encode(row, out);
    }
}

/// Appends `text` as a JSON string.
pub(super) fn append_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[derive(Debug)]
struct ExactValues;

impl EncoderFactory for ExactValues {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Int64 => Box::new(Signed(array.as_primitive::<Int64Type>())),
            DataType::UInt64 => Box::new(Unsigned(array.as_primitive::<UInt64Type>())),
            DataType::Float16 => Box::new(Float(array.as_primitive::<Float16Type>(), f32::from)),
            DataType::Float32 => Box::new(Float(array.as_primitive::<Float32Type>(), |v| v)),
            DataType::Float64 => Box::new(Double(array.as_primitive::<Float64Type>())),
            DataType::Time64(TimeUnit::Microsecond) => Box::new(Time(array.as_primitive())),
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Union(..) => Box::new(Quoted::new(array)?),
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.logical_nulls())))
    }
}

struct Signed<'a>(&'a PrimitiveArray<Int64Type>);

impl Encoder for Signed<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        append_number(value, (-SAFE_MAX..=SAFE_MAX).contains(&value), out);
    }
}

struct Unsigned<'a>(&'a PrimitiveArray<UInt64Type>);

impl Encoder for Unsigned<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        append_number(value, value <= SAFE_MAX as u64, out);
    }
}

fn append_number(value: impl serde::Serialize, safe: bool, out: &mut Vec<u8>) {
    if !safe {
        out.push(b'"');
    }
    // Writing a number to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, &value);
    if !safe {
        out.push(b'"');
    }
}

struct Double<'a>(&'a PrimitiveArray<Float64Type>);

impl Encoder for Double<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        if value.is_finite() {
            append_number(value, true, out);
        } else {
            append_string(not_finite(value), out);
        }
    }
}

struct Float<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>, fn(T::Native) -> f32);

impl<T: ArrowPrimitiveType> Encoder for Float<'_, T> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = (self.1)(self.0.value(row));
        if value.is_finite() {
            append_number(value, true, out);
        } else {
            append_string(not_finite(f64::from(value)), out);
        }
    }
}

struct Time<'a>(&'a PrimitiveArray<Time64MicrosecondType>);

impl Encoder for Time<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        append_string(&time_text(self.0.value(row)), out);
    }
}

fn not_finite(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "NaN",
        v if v > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

/// A value's text as a string.
struct Quoted<'a> {
    formatter: ArrayFormatter<'a>,
    text: String,
    /// Whether zeros at the end are left out, as the type has no scale of its own.
    is_trimmed: bool,
}

impl<'a> Quoted<'a> {
    fn new(array: &'a dyn Array) -> Result<Self, ArrowError> {
        static OPTIONS: FormatOptions<'static> = FormatOptions::new();
        let formatter = ArrayFormatter::try_new(array, &OPTIONS)?;
        Ok(Self { formatter, text: String::new(), is_trimmed: *array.data_type() == NUMERIC })
    }
}

impl Encoder for Quoted<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        self.text.clear();
        // With errors displayed (the default of FormatOptions), formatting does not fail.
        let _ = write!(self.text, "{}", self.formatter.value(row));
        let text = match self.is_trimmed {
            true => numeric_text(&self.text),
            false => &self.text,
        };
        append_string(text, out);
    }
}
