//! Statistics of file, stripes and row groups are those of the values, for every type; metrics for
//! a table's manifest agree with them.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use stoa_orc::{
    ColumnStatistics, Decoder, FileMetadata, FileSummary, Literal, ReadOptions, TimestampBound,
    ValueStatistics, Writer, WriterOptions,
};
use support::generate;

/// Statistics of the values of `array`, worked out one by one.
fn expected(array: &dyn Array) -> ColumnStatistics {
    // A union itself is never NULL.
    let nulls = array.null_count();
    ColumnStatistics {
        values: Some((array.len() - nulls) as u64),
        has_null: nulls > 0,
        bytes_on_disk: None,
        bounds: bounds(array),
    }
}

fn integers<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array) -> Vec<i64> {
    array.as_primitive::<T>().iter().flatten().map(Into::into).collect()
}

fn integer_bounds(values: &[i64]) -> ValueStatistics {
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    ValueStatistics::Integer {
        min: values.iter().min().copied(),
        max: values.iter().max().copied(),
        sum: i64::try_from(sum).ok(),
    }
}

fn float_bounds(values: &[f64]) -> ValueStatistics {
    let real = || values.iter().copied().filter(|value| !value.is_nan());
    // A zero is written as the wider of the two.
    ValueStatistics::Double {
        min: real().min_by(f64::total_cmp).map(|min| if min == 0.0 { -0.0 } else { min }),
        max: real().max_by(f64::total_cmp).map(|max| if max == 0.0 { 0.0 } else { max }),
        sum: Some(values.iter().sum()),
    }
}

fn bounds(array: &dyn Array) -> ValueStatistics {
    match array.data_type() {
        DataType::Boolean => ValueStatistics::Boolean {
            true_count: Some(array.as_boolean().iter().flatten().filter(|v| *v).count() as u64),
        },
        DataType::Int8 => integer_bounds(&integers::<Int8Type>(array)),
        DataType::Int16 => integer_bounds(&integers::<Int16Type>(array)),
        DataType::Int32 => integer_bounds(&integers::<Int32Type>(array)),
        DataType::Int64 => integer_bounds(&integers::<Int64Type>(array)),
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().iter().flatten().map(f64::from);
            float_bounds(&values.collect::<Vec<_>>())
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().iter().flatten();
            float_bounds(&values.collect::<Vec<_>>())
        }
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>();
            let values = || values.iter().flatten();
            ValueStatistics::Date { min: values().min(), max: values().max() }
        }
        DataType::Utf8 => {
            let values: Vec<&str> = array.as_string::<i32>().iter().flatten().collect();
            let bytes = |text: &&str| text.as_bytes().to_vec();
            let total: usize = values.iter().map(|text| text.len()).sum();
            let is_exact = !values.is_empty();
            ValueStatistics::String {
                lower: values.iter().min().map(bytes),
                upper: values.iter().max().map(bytes),
                lower_is_exact: is_exact,
                upper_is_exact: is_exact,
                total_bytes: is_exact.then_some(total as i64),
            }
        }
        DataType::Binary => {
            let total: usize = array.as_binary::<i32>().iter().flatten().map(<[u8]>::len).sum();
            ValueStatistics::Binary { total_bytes: Some(total as i64) }
        }
        DataType::Decimal128(_, scale) => {
            let values: Vec<i128> =
                array.as_primitive::<Decimal128Type>().iter().flatten().collect();
            let sum = values.iter().try_fold(0_i128, |sum, value| sum.checked_add(*value));
            let sum = sum.filter(|sum| sum.unsigned_abs() < 10_u128.pow(38));
            let with_scale = |value: &i128| (*value, *scale);
            ValueStatistics::Decimal {
                min: values.iter().min().map(with_scale),
                max: values.iter().max().map(with_scale),
                sum: sum.map(|sum| (sum, *scale)),
            }
        }
        DataType::Timestamp(unit, _) => {
            let (values, per_millis, per_nano) = match unit {
                TimeUnit::Microsecond => {
                    (integers::<TimestampMicrosecondType>(array), 1_000, 1_000)
                }
                _ => (integers::<TimestampNanosecondType>(array), 1_000_000, 1),
            };
            let bound = |value: &i64| TimestampBound {
                millis: value.div_euclid(per_millis),
                nanos: (value.rem_euclid(per_millis) * per_nano) as u32,
            };
            ValueStatistics::Timestamp {
                min: values.iter().min().map(bound),
                max: values.iter().max().map(bound),
            }
        }
        DataType::List(_) | DataType::Map(..) => {
            let lengths: Vec<u64> = (0..array.len())
                .filter(|row| array.is_valid(*row))
                .map(|row| match array.data_type() {
                    DataType::Map(..) => array.as_map().value_length(row) as u64,
                    _ => array.as_list::<i32>().value_length(row) as u64,
                })
                .collect();
            ValueStatistics::Collection {
                min_children: lengths.iter().min().copied(),
                max_children: lengths.iter().max().copied(),
                total_children: Some(lengths.iter().sum()),
            }
        }
        _ => ValueStatistics::None,
    }
}

/// Equal, sums of floating-point numbers about so: the order of adding differs.
fn check(place: &str, expected: &ColumnStatistics, mut found: ColumnStatistics) {
    found.bytes_on_disk = None;
    if let (
        ValueStatistics::Double { sum: Some(wanted), .. },
        ValueStatistics::Double { sum: Some(sum), .. },
    ) = (&expected.bounds, &mut found.bounds)
    {
        let is_close = (*wanted - *sum).abs() <= wanted.abs() * 1e-9 + 1e-9;
        assert!(is_close || wanted.is_nan() == sum.is_nan(), "{place}: {wanted} {sum}");
        *sum = *wanted;
    }
    assert_eq!(format!("{expected:?}"), format!("{found:?}"), "{place}");
}

fn write(
    batch: &RecordBatch,
    options: WriterOptions,
) -> (Arc<FileMetadata>, bytes::Bytes, FileSummary) {
    let mut writer = Writer::new(&batch.schema(), options).unwrap();
    for from in (0..batch.num_rows()).step_by(1111) {
        writer.write(&batch.slice(from, 1111.min(batch.num_rows() - from))).unwrap();
    }
    let summary = writer.finish().unwrap();
    let file = writer.take_output();
    assert_eq!(file.len() as u64, summary.file_bytes);
    (Arc::new(support::metadata(&file).unwrap()), file, summary)
}

#[test]
fn statistics_are_those_of_the_values() {
    for seed in 200..212 {
        let batch = generate::batch(seed, 6000);
        let options = WriterOptions::default().with_row_index_stride(700).with_stripe_rows(2500);
        let (metadata, file, _) = write(&batch, options);
        let mut decoder = Decoder::new(metadata.clone(), ReadOptions::default()).unwrap();
        support::drain(&file, &mut decoder).unwrap();
        let columns = &metadata.types.types()[0].children;
        for (id, (column, field)) in
            columns.iter().zip(batch.columns().iter().zip(batch.schema().fields()))
        {
            let place = format!("seed {seed}, {}", field.name());
            let found = metadata.file_statistics(*id).unwrap();
            check(&place, &expected(column), found);
            for (number, stripe) in metadata.stripes.iter().enumerate() {
                let part = column.slice(stripe.first_row as usize, stripe.rows as usize);
                let found = metadata.stripe_statistics(number).unwrap();
                let place = format!("{place}, stripe {number}");
                check(&place, &expected(&part), found[*id as usize].clone());

                let known = decoder.stripe_metadata(number).unwrap();
                let index = known.row_index(*id).unwrap();
                assert_eq!(index.len(), part.len().div_ceil(700), "{place}");
                for group in 0..index.len() {
                    let from = group * 700;
                    let rows = part.slice(from, 700.min(part.len() - from));
                    let found = index.statistics(group).unwrap();
                    check(&format!("{place}, group {group}"), &expected(&rows), found);
                }
            }
        }
    }
}

fn one(column: ArrayRef) -> (Arc<FileMetadata>, FileSummary) {
    let batch = RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
    let (metadata, _, summary) = write(&batch, WriterOptions::default());
    (metadata, summary)
}

#[test]
fn nan_makes_the_sum_nan_and_leaves_the_bounds() {
    let values = Float64Array::from(vec![Some(2.0), None, Some(f64::NAN), Some(-1.0)]);
    let (metadata, summary) = one(Arc::new(values));
    let ValueStatistics::Double { min, max, sum } = metadata.file_statistics(1).unwrap().bounds
    else {
        panic!("doubles have double statistics")
    };
    assert_eq!((min, max), (Some(-1.0), Some(2.0)));
    assert!(sum.unwrap().is_nan());
    let column = &summary.columns[1];
    assert_eq!((column.values, column.nulls, column.nan_count), (4, 1, Some(1)));
    assert_eq!(
        (&column.min, &column.max),
        (&Some(Literal::Float(-1.0)), &Some(Literal::Float(2.0)))
    );

    let (metadata, summary) = one(Arc::new(Float32Array::from(vec![f32::NAN; 3])));
    let statistics = metadata.file_statistics(1).unwrap();
    assert!(matches!(statistics.bounds, ValueStatistics::Double { min: None, max: None, .. }));
    assert_eq!((&summary.columns[1].min, summary.columns[1].nan_count), (&None, Some(3)));
}

#[test]
fn sums_that_overflow_are_left_out() {
    let (metadata, _) = one(Arc::new(Int64Array::from(vec![i64::MAX, 1])));
    let bounds = metadata.file_statistics(1).unwrap().bounds;
    let expected = ValueStatistics::Integer { min: Some(1), max: Some(i64::MAX), sum: None };
    assert_eq!(bounds, expected);
}

#[test]
fn metrics_tell_a_manifest_what_it_wants() {
    let (_, summary) = one(Arc::new(StringArray::from(vec![Some("b"), None, Some("a")])));
    let column = &summary.columns[1];
    assert_eq!(column.min, Some(Literal::String("a".to_owned())));
    assert_eq!(column.max, Some(Literal::String("b".to_owned())));
    assert_eq!((column.column, column.values, column.nulls), (1, 3, 1));
    assert!(column.bytes > 0 && column.field_id.is_none() && column.nan_count.is_none());
    assert_eq!((summary.rows, summary.stripe_offsets.as_slice()), (3, [3].as_slice()));

    let (_, summary) = one(Arc::new(StringArray::from(vec!["é".repeat(600)])));
    let (min, max) = (&summary.columns[1].min, &summary.columns[1].max);
    assert_eq!(*min, Some(Literal::String("é".repeat(512))));
    assert_eq!(*max, Some(Literal::String("é".repeat(511) + "ê")));

    let nanos = TimestampNanosecondArray::from(vec![-1_500_000_001, 1_000_000_001]);
    let (_, summary) = one(Arc::new(nanos));
    let (min, max) = (&summary.columns[1].min, &summary.columns[1].max);
    assert_eq!(*min, Some(Literal::TimestampMicros(-1_500_001)));
    assert_eq!(*max, Some(Literal::TimestampMicros(1_000_001)));

    let decimals = Decimal128Array::from(vec![150, -20]).with_precision_and_scale(10, 2).unwrap();
    let (_, summary) = one(Arc::new(decimals));
    let (min, max) = (&summary.columns[1].min, &summary.columns[1].max);
    assert_eq!((min, max), (&Some(Literal::Decimal(-20, 2)), &Some(Literal::Decimal(150, 2))));

    let (_, summary) = one(Arc::new(BooleanArray::from(vec![true, true])));
    assert_eq!(summary.columns[1].min, Some(Literal::Boolean(true)));
    let (_, summary) = one(Arc::new(Int32Array::from(vec![None, None::<i32>])));
    assert_eq!((&summary.columns[1].min, summary.columns[1].nulls), (&None, 2));
}

/// A field of a struct is NULL where the struct is: tables count it so.
#[test]
fn a_null_parent_makes_null_fields() {
    let leaf = |name: &str| Field::new(name, DataType::Int32, true);
    let inner = Fields::from(vec![leaf("x")]);
    let items: ArrayRef = {
        let offsets = OffsetBuffer::new(vec![0, 2, 2, 2, 3, 3].into());
        let values = Int32Array::from(vec![Some(1), None, Some(3)]);
        Arc::new(ListArray::new(Arc::new(leaf("item")), offsets, Arc::new(values), None))
    };
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4), Some(5)]));
    let inner_valid = NullBuffer::from(vec![true, true, true, false, true]);
    let nested: ArrayRef = Arc::new(StructArray::new(inner.clone(), vec![x], Some(inner_valid)));
    let f: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5]));
    let fields = Fields::from(vec![
        leaf("f"),
        Field::new("nested", DataType::Struct(inner), true),
        Field::new("list", items.data_type().clone(), true),
    ]);
    // Row 0 is NULL as a whole; "nested" is NULL in row 3, its "x" in row 2.
    let valid = NullBuffer::from(vec![false, true, true, true, true]);
    let (metadata, summary) =
        one(Arc::new(StructArray::new(fields, vec![f, nested, items], Some(valid))));
    let counts: Vec<_> = summary.columns.iter().map(|c| (c.values, c.nulls)).collect();
    // root, c, c.f, c.nested, c.nested.x, c.list, its items (those of rows that are there)
    assert_eq!(counts, [(5, 0), (5, 1), (5, 1), (5, 2), (5, 3), (5, 1), (1, 0)]);
    // Spark skips a file for `s.f IS NULL` by these.
    let has_null = (0..7).map(|column| metadata.file_statistics(column).unwrap().has_null);
    assert_eq!(has_null.collect::<Vec<_>>(), [false, true, true, true, true, true, false]);
}
