//! Record batches of all types with many patterns of values and NULLs, from a seed.

use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit, UnionFields};

/// A small generator (SplitMix64): tests must not depend on a crate's idea of a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// How values of a column follow each other.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Constant,
    Sorted,
    Few,
    Small,
    Outliers,
    Any,
}

fn pattern(random: &mut Random) -> Pattern {
    match random.below(6) {
        0 => Pattern::Constant,
        1 => Pattern::Sorted,
        2 => Pattern::Few,
        3 => Pattern::Small,
        4 => Pattern::Outliers,
        _ => Pattern::Any,
    }
}

fn integers(random: &mut Random, rows: usize) -> Vec<i64> {
    let pattern = pattern(random);
    let mut at = random.next() as i64 / 4;
    let mut mode = 0;
    (0..rows)
        .map(|row| match pattern {
            Pattern::Constant => 42,
            Pattern::Sorted => {
                at += random.below(9) as i64;
                at
            }
            Pattern::Few => [-1, 0, 7][random.below(3) as usize],
            Pattern::Small => random.below(1000) as i64 - 500,
            Pattern::Outliers => {
                if random.below(50) == 0 {
                    random.next() as i64 >> 20
                } else {
                    random.below(100) as i64
                }
            }
            Pattern::Any => {
                if row % 97 == 0 {
                    mode = random.below(3);
                }
                match mode {
                    0 => random.next() as i64,
                    1 => row as i64 / 11,
                    _ => random.below(5) as i64,
                }
            }
        })
        .collect()
}

fn nulls(random: &mut Random, rows: usize) -> Option<NullBuffer> {
    let kind = random.below(6);
    if kind < 2 {
        return None;
    }
    let valid: Vec<bool> = (0..rows)
        .map(|row| match kind {
            2 => random.below(10) != 0,
            3 => random.below(10) == 0,
            4 => row / 1000 % 3 != 1,
            _ => row % 2 == 0,
        })
        .collect();
    Some(NullBuffer::from(valid))
}

/// An array of `rows` rows of a type.
pub fn array(random: &mut Random, data_type: &DataType, rows: usize) -> ArrayRef {
    let valid = nulls(random, rows);
    let ints = |random: &mut Random| integers(random, rows);
    macro_rules! primitive {
        ($array:ty, $native:ty) => {{
            let values: Vec<$native> = ints(random).into_iter().map(|v| v as $native).collect();
            Arc::new(<$array>::new(ScalarBuffer::from(values), valid)) as ArrayRef
        }};
    }
    match data_type {
        DataType::Boolean => {
            let values: Vec<bool> = ints(random).into_iter().map(|v| v % 3 == 0).collect();
            Arc::new(BooleanArray::new(values.into(), valid))
        }
        DataType::Int8 => primitive!(Int8Array, i8),
        DataType::Int16 => primitive!(Int16Array, i16),
        DataType::Int32 => primitive!(Int32Array, i32),
        DataType::Int64 => primitive!(Int64Array, i64),
        DataType::Date32 => primitive!(Date32Array, i32),
        DataType::Float32 => primitive!(Float32Array, f32),
        DataType::Float64 => primitive!(Float64Array, f64),
        DataType::Decimal128(precision, scale) => {
            let limit = 10i128.pow(u32::from(*precision)) - 1;
            let wide = random.below(2) == 0;
            let values: Vec<i128> = ints(random)
                .into_iter()
                .map(|v| (i128::from(v) * if wide { 1_000_000_007 } else { 1 }) % limit)
                .collect();
            let array = Decimal128Array::new(ScalarBuffer::from(values), valid);
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Timestamp(unit, zone) => {
            // From 1700 to 2240.
            let values: Vec<i64> =
                ints(random).into_iter().map(|v| v % 8_500_000_000_000_000_000).collect();
            match unit {
                TimeUnit::Microsecond => {
                    let values: Vec<i64> = values.iter().map(|v| v.div_euclid(1000)).collect();
                    let array = TimestampMicrosecondArray::new(ScalarBuffer::from(values), valid);
                    Arc::new(array.with_timezone_opt(zone.clone()))
                }
                _ => {
                    let array = TimestampNanosecondArray::new(ScalarBuffer::from(values), valid);
                    Arc::new(array.with_timezone_opt(zone.clone()))
                }
            }
        }
        DataType::Utf8 => {
            let long = random.below(4) == 0;
            let values = ints(random);
            let mut builder = StringBuilder::new();
            for (row, value) in values.iter().enumerate() {
                if valid.as_ref().is_some_and(|v| v.is_null(row)) {
                    builder.append_null();
                } else if long {
                    builder.append_value("né".repeat((*value as u64 % 40) as usize));
                } else {
                    builder.append_value(format!("{:x}", value % 5000));
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let values = ints(random);
            let mut builder = BinaryBuilder::new();
            for (row, value) in values.iter().enumerate() {
                if valid.as_ref().is_some_and(|v| v.is_null(row)) {
                    builder.append_null();
                } else {
                    builder.append_value(&value.to_le_bytes()[..(*value as u64 % 9) as usize]);
                }
            }
            Arc::new(builder.finish())
        }
        DataType::List(field) => {
            let offsets = offsets(random, rows, valid.as_ref());
            let items = array(random, field.data_type(), *offsets.last().unwrap() as usize);
            Arc::new(ListArray::new(field.clone(), offsets, items, valid))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { unreachable!() };
            let offsets = offsets(random, rows, valid.as_ref());
            let total = *offsets.last().unwrap() as usize;
            let keys = array(random, fields[0].data_type(), total);
            let keys =
                arrow_array::make_array(keys.to_data().into_builder().nulls(None).build().unwrap());
            let values = array(random, fields[1].data_type(), total);
            let columns = StructArray::new(fields.clone(), vec![keys, values], None);
            Arc::new(MapArray::new(entries.clone(), offsets, columns, valid, false))
        }
        DataType::Struct(fields) => {
            let arrays = fields.iter().map(|f| array(random, f.data_type(), rows)).collect();
            Arc::new(StructArray::new(fields.clone(), arrays, valid))
        }
        DataType::Union(fields, _) => {
            let mut counts = vec![0i32; fields.len()];
            let (mut tags, mut offsets) = (Vec::new(), Vec::new());
            for _ in 0..rows {
                let tag = random.below(fields.len() as u64) as usize;
                tags.push(tag as i8);
                offsets.push(counts[tag]);
                counts[tag] += 1;
            }
            let children = fields
                .iter()
                .zip(&counts)
                .map(|((_, field), count)| array(random, field.data_type(), *count as usize))
                .collect();
            let union = UnionArray::try_new(
                fields.clone(),
                ScalarBuffer::from(tags),
                Some(ScalarBuffer::from(offsets)),
                children,
            );
            Arc::new(union.unwrap())
        }
        other => panic!("{other}"),
    }
}

fn offsets(random: &mut Random, rows: usize, valid: Option<&NullBuffer>) -> OffsetBuffer<i32> {
    let most = [1, 3, 6][random.below(3) as usize];
    let lengths = (0..rows).map(|row| {
        if valid.is_some_and(|v| v.is_null(row)) { 0 } else { random.below(most) as usize }
    });
    OffsetBuffer::from_lengths(lengths.collect::<Vec<_>>())
}

/// A schema with every type, nested ones included.
pub fn schema() -> Schema {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
    let map = |value: DataType| {
        let entries = Fields::from(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", value, true),
        ]);
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
    };
    let union: UnionFields =
        [(0i8, Arc::new(field("0", DataType::Int32))), (1i8, Arc::new(field("1", DataType::Utf8)))]
            .into_iter()
            .collect();
    let inner = Fields::from(vec![
        field("a", DataType::Int64),
        field("b", list(DataType::Utf8)),
        field("c", DataType::Struct(Fields::from(vec![field("d", DataType::Float64)]))),
    ]);
    Schema::new(vec![
        field("boolean", DataType::Boolean),
        field("byte", DataType::Int8),
        field("short", DataType::Int16),
        field("int", DataType::Int32),
        field("long", DataType::Int64),
        field("float", DataType::Float32),
        field("double", DataType::Float64),
        field("string", DataType::Utf8),
        field("binary", DataType::Binary),
        field("date", DataType::Date32),
        field("decimal", DataType::Decimal128(38, 5)),
        field("small_decimal", DataType::Decimal128(9, 2)),
        field("timestamp", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        field("instant", DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()))),
        field("list", list(DataType::Int32)),
        field("map", map(DataType::Int64)),
        field("struct", DataType::Struct(inner.clone())),
        field("deep", list(DataType::Struct(inner))),
        field("union", DataType::Union(union, arrow_schema::UnionMode::Dense)),
        field("lists", list(list(DataType::Boolean))),
    ])
}

/// A batch of every type.
pub fn batch(seed: u64, rows: usize) -> RecordBatch {
    let mut random = Random(seed);
    let schema = schema();
    let arrays =
        schema.fields().iter().map(|f| array(&mut random, f.data_type(), rows)).collect::<Vec<_>>();
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}
