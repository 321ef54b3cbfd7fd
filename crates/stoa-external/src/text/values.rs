//! Texts into arrays of a column's type.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, MapArray, PrimitiveArray,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, TimeUnit};
use base64::Engine;
use stoa_error::{Error, Place, Result};

use super::fields::split;
use super::{BASE64, Delimited, numbers};

/// The values of a column. `level` is the place, in the format's separators, of the one between items.
pub(super) fn array(
    texts: &[Option<&[u8]>],
    field: &Field,
    format: &Delimited,
    level: usize,
) -> Result<ArrayRef> {
    Ok(match field.data_type() {
        DataType::Utf8 => strings(texts, format.escape),
        DataType::Binary => binaries(texts, format.escape),
        DataType::Boolean => {
            Arc::new(texts.iter().map(|text| boolean((*text)?)).collect::<BooleanArray>())
        }
        DataType::Int8 => {
            numbers_of::<Int8Type>(texts, |text| numbers::whole(text)?.try_into().ok())
        }
        DataType::Int16 => {
            numbers_of::<Int16Type>(texts, |text| numbers::whole(text)?.try_into().ok())
        }
        DataType::Int32 => {
            numbers_of::<Int32Type>(texts, |text| numbers::whole(text)?.try_into().ok())
        }
        DataType::Int64 => numbers_of::<Int64Type>(texts, numbers::whole),
        DataType::Float32 => numbers_of::<Float32Type>(texts, |text| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a FLOAT has fewer digits than its text"
            )]
            Some(numbers::floating(text)? as f32)
        }),
        DataType::Float64 => numbers_of::<Float64Type>(texts, numbers::floating),
        DataType::Date32 => numbers_of::<Date32Type>(texts, numbers::date),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let of = texts.iter().map(|text| numbers::timestamp((*text)?));
            let of: PrimitiveArray<TimestampMicrosecondType> = of.collect();
            Arc::new(of.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let of = texts.iter().map(|text| numbers::decimal((*text)?, *precision, *scale));
            let of: PrimitiveArray<Decimal128Type> = of.collect();
            let of = of.with_precision_and_scale(*precision, *scale);
            Arc::new(of.map_err(|e| Error::internal("a decimal is none").with_source(e))?)
        }
        DataType::List(item) => list(texts, item, format, level)?,
        DataType::Struct(_) => structs(texts, field, format, level)?,
        DataType::Map(..) => map(texts, field, format, level)?,
        other => {
            return Err(Error::unsupported(format!(
                "columns of {other} in files of text are not supported"
            ))
            .at(Place::Field(field.name().clone())));
        }
    })
}

fn numbers_of<T: ArrowPrimitiveType>(
    texts: &[Option<&[u8]>],
    of: impl Fn(&[u8]) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(texts.iter().map(|text| of((*text)?)).collect::<PrimitiveArray<T>>())
}

fn boolean(text: &[u8]) -> Option<bool> {
    match () {
        () if text.eq_ignore_ascii_case(b"true") => Some(true),
        () if text.eq_ignore_ascii_case(b"false") => Some(false),
        () => None,
    }
}

fn strings(texts: &[Option<&[u8]>], escape: Option<u8>) -> ArrayRef {
    let mut all = StringBuilder::with_capacity(texts.len(), texts.len() * 16);
    let mut plain = Vec::new();
    for text in texts {
        match text {
            None => all.append_null(),
            Some(text) => {
                all.append_value(String::from_utf8_lossy(unescaped(text, escape, &mut plain)))
            }
        }
    }
    Arc::new(all.finish())
}

/// Binary values are Base64, and what is none is taken as it is (`LazyBinary`).
fn binaries(texts: &[Option<&[u8]>], escape: Option<u8>) -> ArrayRef {
    let mut all = BinaryBuilder::new();
    let mut plain = Vec::new();
    for text in texts {
        match text.map(|text| unescaped(text, escape, &mut plain)) {
            None => all.append_null(),
            Some(text) => match BASE64.decode(text) {
                Ok(bytes) => all.append_value(bytes),
                Err(_) => all.append_value(text),
            },
        }
    }
    Arc::new(all.finish())
}

/// A text without its escapes; `r` and `n` behind one are line breaks.
fn unescaped<'a>(text: &'a [u8], escape: Option<u8>, plain: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(escape) = escape.filter(|escape| memchr::memchr(*escape, text).is_some()) else {
        return text;
    };
    plain.clear();
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let is_escape = byte == escape && bytes.peek().is_some();
        let byte = match is_escape.then(|| bytes.next()).flatten() {
            None => byte,
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(other) => other,
        };
        plain.push(byte);
    }
    plain
}

fn too_deep(field: &Field) -> Error {
    Error::unsupported("types that are nested so deep have no separators in files of text")
        .at(Place::Field(field.name().clone()))
}

/// `parts` but those that stand for NULL.
fn or_null<'a>(part: &'a [u8], format: &Delimited) -> Option<&'a [u8]> {
    Some(part).filter(|part| *part != format.null)
}

fn list(
    texts: &[Option<&[u8]>],
    item: &Arc<Field>,
    format: &Delimited,
    level: usize,
) -> Result<ArrayRef> {
    let separator = *format.separators.get(level).ok_or_else(|| too_deep(item))?;
    let (mut items, mut lengths, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for text in texts {
        parts.clear();
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            split(text, separator, format.escape, usize::MAX, &mut parts);
        }
        lengths.push(parts.len());
        items.extend(parts.iter().map(|part| or_null(part, format)));
    }
    let values = array(&items, item, format, level + 1)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = texts.iter().map(Option::is_some).collect::<Vec<_>>().into();
    let list = ListArray::try_new(Arc::clone(item), offsets, values, Some(nulls));
    Ok(Arc::new(list.map_err(|e| not_made(item, e))?))
}

fn not_made(field: &Field, error: arrow_schema::ArrowError) -> Error {
    Error::invalid("a value in a file of text cannot be one of this column")
        .at(Place::Field(field.name().clone()))
        .with_source(error)
}

fn structs(
    texts: &[Option<&[u8]>],
    field: &Field,
    format: &Delimited,
    level: usize,
) -> Result<ArrayRef> {
    let DataType::Struct(fields) = field.data_type() else { return Err(too_deep(field)) };
    let separator = *format.separators.get(level).ok_or_else(|| too_deep(field))?;
    let mut columns: Vec<Vec<Option<&[u8]>>> = vec![Vec::with_capacity(texts.len()); fields.len()];
    let mut parts = Vec::new();
    for text in texts {
        parts.clear();
        if let Some(text) = text {
            split(text, separator, format.escape, fields.len(), &mut parts);
        }
        for (at, column) in columns.iter_mut().enumerate() {
            column.push(parts.get(at).and_then(|part| or_null(part, format)));
        }
    }
    let arrays = columns.iter().zip(fields);
    let arrays = arrays.map(|(texts, field)| array(texts, field, format, level + 1));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let nulls = texts.iter().map(Option::is_some).collect::<Vec<_>>().into();
    let made = StructArray::try_new_with_length(fields.clone(), arrays, Some(nulls), texts.len());
    Ok(Arc::new(made.map_err(|e| not_made(field, e))?))
}

/// Keys that come again, and those that are NULL, are left out, as in `LazyMap`.
fn map(
    texts: &[Option<&[u8]>],
    field: &Field,
    format: &Delimited,
    level: usize,
) -> Result<ArrayRef> {
    let DataType::Map(entries, sorted) = field.data_type() else { return Err(too_deep(field)) };
    let DataType::Struct(pair) = entries.data_type() else { return Err(too_deep(field)) };
    let [key_field, value_field] = pair.as_ref() else { return Err(too_deep(field)) };
    let between = *format.separators.get(level).ok_or_else(|| too_deep(field))?;
    let within = *format.separators.get(level + 1).ok_or_else(|| too_deep(field))?;
    let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let (mut parts, mut both, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for text in texts {
        parts.clear();
        seen.clear();
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            split(text, between, format.escape, usize::MAX, &mut parts);
        }
        let before = keys.len();
        for part in &parts {
            split(part, within, format.escape, 2, &mut both);
            let Some(key) = both.first().and_then(|key| or_null(key, format)) else { continue };
            if seen.insert(key) {
                keys.push(Some(key));
                values.push(both.get(1).and_then(|value| or_null(value, format)));
            }
        }
        lengths.push(keys.len() - before);
    }
    let key_array = array(&keys, key_field, format, level + 2)?;
    let value_array = array(&values, value_field, format, level + 2)?;
    let pairs = StructArray::try_new(pair.clone(), vec![key_array, value_array], None);
    let pairs = pairs.map_err(|e| not_made(field, e))?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = texts.iter().map(Option::is_some).collect::<Vec<_>>().into();
    let made = MapArray::try_new(Arc::clone(entries), offsets, pairs, Some(nulls), *sorted);
    let made = made.map_err(|e| not_made(field, e))?;
    debug_assert_eq!(made.len(), texts.len());
    Ok(Arc::new(made))
}
