//! Record batches of any type from the fuzzer's bytes.
//!
//! In: choices. Out: a batch that a file can hold and give back unchanged.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit, UnionFields, UnionMode};

use crate::input::Input;

/// Deepest nesting.
const DEPTH_MAX: usize = 3;

/// A batch of `rows` rows and at most five columns, named `0`, `1`, ….
pub fn batch(input: &mut Input, rows: usize) -> RecordBatch {
    let count = 1 + input.below(5);
    let fields: Fields = (0..count).map(|at| field(&at.to_string(), input, 0)).collect();
    let arrays = fields.iter().map(|field| array(input, field.data_type(), rows)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns fit their types")
}

fn field(name: &str, input: &mut Input, depth: usize) -> Field {
    Field::new(name, data_type(input, depth), true)
}

fn data_type(input: &mut Input, depth: usize) -> DataType {
    let leaves = 17;
    match input.below(if depth < DEPTH_MAX { leaves + 4 } else { leaves }) {
        0 => DataType::Boolean,
        1 => DataType::Int8,
        2 => DataType::Int16,
        3 => DataType::Int32,
        4 => DataType::Int64,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 | 8 => DataType::Utf8,
        9 => DataType::Binary,
        10 => DataType::Date32,
        11 => DataType::Decimal128(38, 10),
        12 => DataType::Decimal128(7, 2),
        13 => DataType::Timestamp(TimeUnit::Microsecond, None),
        14 => DataType::Timestamp(TimeUnit::Nanosecond, None),
        15 => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        16 => DataType::FixedSizeBinary(3),
        17 => DataType::List(Arc::new(field("item", input, depth + 1))),
        18 => {
            let key = field("key", input, DEPTH_MAX).with_nullable(false);
            let entries = Fields::from(vec![key, field("value", input, depth + 1)]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        19 => {
            let count = input.below(4);
            let fields = (0..count).map(|at| field(&at.to_string(), input, depth + 1));
            DataType::Struct(fields.collect())
        }
        _ => {
            let count = 1 + input.below(3);
            let fields =
                (0..count).map(|at| (at as i8, Arc::new(field(&at.to_string(), input, depth + 1))));
            DataType::Union(fields.collect::<UnionFields>(), UnionMode::Dense)
        }
    }
}

/// Numbers as runs, steps and single values.
fn integers(input: &mut Input, rows: usize) -> Vec<i64> {
    let mut values = Vec::with_capacity(rows);
    let mut last = 0i64;
    while values.len() < rows {
        if input.is_empty() {
            values.resize(rows, last);
            break;
        }
        let (kind, count) = (input.below(5), usize::from(input.byte()) + 1);
        let count = count.min(rows - values.len());
        let number = if kind < 3 { input.number() as i64 } else { 0 };
        for _ in 0..count {
            last = match kind {
                0 => number,
                1 => last.wrapping_add(number),
                2 => last.wrapping_sub(number),
                3 => i64::from(input.byte() as i8),
                _ => input.number() as i64,
            };
            values.push(last);
        }
    }
    values
}

fn nulls(input: &mut Input, rows: usize) -> Option<NullBuffer> {
    match input.below(4) {
        0 => None,
        1 => Some(NullBuffer::new_null(rows)),
        _ => {
            let pattern = input.block();
            let bit = |row: usize| {
                let byte = pattern.get(row / 8 % pattern.len().max(1)).copied().unwrap_or(0xfe);
                byte >> (row % 8) & 1 == 1
            };
            Some(NullBuffer::from((0..rows).map(bit).collect::<Vec<_>>()))
        }
    }
}

fn lengths(input: &mut Input, rows: usize, valid: Option<&NullBuffer>) -> OffsetBuffer<i32> {
    let lengths = integers(input, rows).into_iter().enumerate().map(|(row, length)| {
        if valid.is_some_and(|valid| valid.is_null(row)) { 0 } else { length as usize % 4 }
    });
    OffsetBuffer::from_lengths(lengths.collect::<Vec<_>>())
}

/// A value that is not in the second before 1970: the format can't tell those.
fn moment(value: i64, per_second: i64) -> i64 {
    if (-per_second..0).contains(&value) { -per_second } else { value }
}

fn text(value: i64) -> String {
    match value & 7 {
        0 => String::new(),
        1 => "né".repeat((value >> 3) as usize & 63),
        2 => "\u{10ffff}".repeat((value >> 3) as usize & 511),
        3 => ["a", "b", "c", "ß"][(value >> 3) as usize & 3].to_owned(),
        _ => format!("{value:x}"),
    }
}

/// An array of `rows` rows of a type that [`batch`] has.
pub fn array(input: &mut Input, data_type: &DataType, rows: usize) -> ArrayRef {
    let valid = nulls(input, rows);
    let is_null = |row: usize| valid.as_ref().is_some_and(|valid| valid.is_null(row));
    macro_rules! primitive {
        ($array:ty, $convert:expr) => {{
            let values: Vec<_> = integers(input, rows).into_iter().map($convert).collect();
            <$array>::new(ScalarBuffer::from(values), valid)
        }};
    }
    match data_type {
        DataType::Boolean => {
            let values: Vec<bool> = integers(input, rows).iter().map(|v| v & 1 == 1).collect();
            Arc::new(BooleanArray::new(values.into(), valid))
        }
        DataType::Int8 => Arc::new(primitive!(Int8Array, |v| v as i8)),
        DataType::Int16 => Arc::new(primitive!(Int16Array, |v| v as i16)),
        DataType::Int32 => Arc::new(primitive!(Int32Array, |v| v as i32)),
        DataType::Int64 => Arc::new(primitive!(Int64Array, |v| v)),
        DataType::Date32 => Arc::new(primitive!(Date32Array, |v| v as i32)),
        DataType::Float32 => Arc::new(primitive!(Float32Array, |v| f32::from_bits(v as u32))),
        DataType::Float64 => Arc::new(primitive!(Float64Array, |v| f64::from_bits(v as u64))),
        DataType::Decimal128(precision, scale) => {
            let limit = 10i128.pow(u32::from(*precision));
            let factor = 1_000_000_007_000_000_009i128;
            let array = primitive!(Decimal128Array, |v| {
                (if v & 1 == 1 { i128::from(v) * factor } else { i128::from(v) }) % limit
            });
            Arc::new(array.with_precision_and_scale(*precision, *scale).expect("both are in range"))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let array = primitive!(TimestampNanosecondArray, |v| moment(v, 1_000_000_000));
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(_, zone) => {
            let array = primitive!(TimestampMicrosecondArray, |v| moment(v, 1_000_000));
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for (row, value) in integers(input, rows).into_iter().enumerate() {
                builder.append_option((!is_null(row)).then(|| text(value)));
            }
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            for (row, value) in integers(input, rows).into_iter().enumerate() {
                let bytes = &value.to_le_bytes()[..value as usize & 7];
                builder.append_option((!is_null(row)).then_some(bytes));
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let values = integers(input, rows);
            let bytes: Vec<u8> =
                values.iter().flat_map(|v| v.to_le_bytes()[..3].to_vec()).collect();
            Arc::new(FixedSizeBinaryArray::new(*width, bytes.into(), valid))
        }
        DataType::List(item) => {
            let offsets = lengths(input, rows, valid.as_ref());
            let items = array(input, item.data_type(), end(&offsets));
            Arc::new(ListArray::new(item.clone(), offsets, items, valid))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else { unreachable!("a map") };
            let offsets = lengths(input, rows, valid.as_ref());
            let keys = array(input, fields[0].data_type(), end(&offsets));
            let keys = keys.to_data().into_builder().nulls(None).build().expect("it was valid");
            let values = array(input, fields[1].data_type(), end(&offsets));
            let columns = vec![make_array(keys), values];
            let columns = StructArray::new(fields.clone(), columns, None);
            Arc::new(MapArray::new(entries.clone(), offsets, columns, valid, *sorted))
        }
        DataType::Struct(fields) if fields.is_empty() => {
            Arc::new(StructArray::new_empty_fields(rows, valid))
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| array(input, field.data_type(), rows));
            Arc::new(StructArray::new(fields.clone(), columns.collect(), valid))
        }
        DataType::Union(fields, _) => union(input, fields, rows),
        other => unreachable!("{other} is not made"),
    }
}

fn end(offsets: &OffsetBuffer<i32>) -> usize {
    offsets.last().map_or(0, |end| *end as usize)
}

fn union(input: &mut Input, fields: &UnionFields, rows: usize) -> ArrayRef {
    let mut counts = vec![0i32; fields.len()];
    let (mut tags, mut offsets) = (Vec::new(), Vec::new());
    for value in integers(input, rows) {
        let tag = value as usize % counts.len();
        tags.push(tag as i8);
        offsets.push(counts[tag]);
        counts[tag] += 1;
    }
    let children = fields.iter().zip(&counts);
    let children =
        children.map(|((_, field), count)| array(input, field.data_type(), *count as usize));
    let children = children.collect();
    let (tags, offsets) = (ScalarBuffer::from(tags), ScalarBuffer::from(offsets));
    let union = UnionArray::try_new(fields.clone(), tags, Some(offsets), children);
    Arc::new(union.expect("offsets count the values of each child"))
}
