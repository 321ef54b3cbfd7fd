//! What the writer takes (every Arrow layout of a type, options, wrong input) and what a file of it
//! reads as.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit, UnionFields, UnionMode};
use stoa_orc::{
    ColumnRef, CompareOp, Compression, DictionaryChoice, FIELD_ID_KEY, Literal, Predicate,
    ReadOptions, Writer, WriterOptions,
};

fn batch(column: ArrayRef) -> RecordBatch {
    let field = Field::new("c", column.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap()
}

fn small() -> WriterOptions {
    WriterOptions::default().with_row_index_stride(100).with_stripe_rows(350)
}

fn read_back(column: ArrayRef, options: WriterOptions) -> ArrayRef {
    let file = support::write(&[batch(column)], options);
    support::read(&file, ReadOptions::default()).unwrap().concat().unwrap().column(0).clone()
}

/// Writes `column` whole and sliced; it reads as `expected`.
fn check(column: ArrayRef, expected: ArrayRef) {
    let found = read_back(column.clone(), small());
    assert_eq!(found.as_ref(), expected.as_ref(), "{}", column.data_type());
    let (from, rows) = (column.len() / 3, column.len() / 2);
    let found = read_back(column.slice(from, rows), small());
    assert_eq!(found.as_ref(), expected.slice(from, rows).as_ref(), "{}", column.data_type());
}

fn texts() -> Vec<Option<String>> {
    (0..1000).map(|n| (n % 7 != 3).then(|| format!("a text of number {}", n * n % 83))).collect()
}

#[test]
fn strings_of_every_layout() {
    let texts = texts();
    let expected: ArrayRef = Arc::new(StringArray::from_iter(&texts));
    check(expected.clone(), expected.clone());
    check(Arc::new(LargeStringArray::from_iter(&texts)), expected.clone());
    check(Arc::new(StringViewArray::from_iter(&texts)), expected.clone());
    let dictionary: DictionaryArray<Int16Type> = texts.iter().map(Option::as_deref).collect();
    check(Arc::new(dictionary), expected.clone());

    // A NULL may also be a value of the dictionary.
    let values = StringArray::from(vec![Some("x"), None, Some("y")]);
    let keys =
        Int32Array::from((0..1000).map(|n| (n % 5 != 0).then_some(n % 3)).collect::<Vec<_>>());
    let dictionary = DictionaryArray::new(keys.clone(), Arc::new(values.clone()));
    let text = |key: i32| values.is_valid(key as usize).then(|| values.value(key as usize));
    let plain = StringArray::from_iter(keys.iter().map(|key| key.and_then(text)));
    check(Arc::new(dictionary), Arc::new(plain));

    let none = DictionaryArray::<Int32Type>::new(
        Int32Array::new_null(1000),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    check(Arc::new(none), Arc::new(StringArray::new_null(1000)));
}

#[test]
fn binaries_of_every_layout() {
    let bytes: Vec<Option<Vec<u8>>> =
        (0..1000u32).map(|n| (n % 4 != 1).then(|| n.to_le_bytes()[..3].to_vec())).collect();
    let expected: ArrayRef = Arc::new(BinaryArray::from_iter(bytes.iter().map(Option::as_deref)));
    check(expected.clone(), expected.clone());
    check(
        Arc::new(LargeBinaryArray::from_iter(bytes.iter().map(Option::as_deref))),
        expected.clone(),
    );
    check(
        Arc::new(BinaryViewArray::from_iter(bytes.iter().map(Option::as_deref))),
        expected.clone(),
    );
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.iter().cloned(), 3);
    check(Arc::new(fixed.unwrap()), expected);
}

#[test]
fn decimals_of_every_width() {
    let values = || (0..1000).map(|n| (n % 9 != 0).then_some(n * 7919 - 3_000_000));
    let expected = Decimal128Array::from_iter(values().map(|v| v.map(i128::from)));
    let expected: ArrayRef = Arc::new(expected.with_precision_and_scale(9, 2).unwrap());
    check(expected.clone(), expected.clone());
    let narrow = Decimal32Array::from_iter(values()).with_precision_and_scale(9, 2).unwrap();
    check(Arc::new(narrow), expected.clone());
    let middle = Decimal64Array::from_iter(values().map(|v| v.map(i64::from)));
    check(Arc::new(middle.with_precision_and_scale(9, 2).unwrap()), expected);
}

#[test]
fn timestamps_of_every_unit_and_before_1970() {
    let seconds: Vec<i64> = (0..1000).map(|n| (n - 500) * 86_399).collect();
    let nanos = |per: i64, more: i64| -> ArrayRef {
        let values = seconds.iter().map(|s| s * per + more).map(|v| v * (1_000_000_000 / per));
        Arc::new(TimestampNanosecondArray::from_iter_values(values))
    };
    check(Arc::new(TimestampSecondArray::from(seconds.clone())), nanos(1, 0));
    let millis = seconds.iter().map(|s| s * 1000 + 250);
    check(Arc::new(TimestampMillisecondArray::from_iter_values(millis)), nanos(1000, 250));
    let micros = seconds.iter().map(|s| s * 1_000_000 + 250_001);
    let micros = TimestampMicrosecondArray::from_iter_values(micros);
    check(Arc::new(micros.clone()), nanos(1_000_000, 250_001));
    let instant = micros.with_timezone("Asia/Tokyo");
    let found = read_back(Arc::new(instant), small());
    assert_eq!(
        found.data_type(),
        &DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()))
    );
    let found = found.as_primitive::<TimestampNanosecondType>();
    let expected = nanos(1_000_000, 250_001);
    assert_eq!(found.values(), expected.as_primitive::<TimestampNanosecondType>().values());
}

/// Points around the last second before 1970, where readers round seconds in two ways.
#[test]
fn fractions_before_1970_are_kept() {
    let fractions = [
        1,
        10,
        100,
        1_000,
        999_000,
        999_999,
        1_000_000,
        1_000_001,
        1_000_100,
        500_000_000,
        500_000_001,
        998_999_999,
        999_000_000,
        999_000_001,
        999_999_000,
        999_999_999,
    ];
    let nanos: Vec<i64> = (-3..3)
        .flat_map(|second| fractions.map(|fraction| second * 1_000_000_000 + fraction))
        .chain((-2_000_000_000..0).step_by(7_777_777))
        .collect();
    let expected: ArrayRef = Arc::new(TimestampNanosecondArray::from(nanos.clone()));
    check(expected.clone(), expected);
    let micros = TimestampMicrosecondArray::from_iter_values((-2_000_003..2_000_003).step_by(991));
    let as_nanos = micros.values().iter().map(|micros| micros * 1000);
    let expected: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(as_nanos));
    check(Arc::new(micros), expected);
    let instants = TimestampNanosecondArray::from(nanos).with_timezone("+00:00");
    check(Arc::new(instants.clone()), Arc::new(instants));
    // One value repeated, and steps through the second: runs of all kinds.
    let same: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-500_000_000; 1000]));
    check(same.clone(), same);
    let steps: Vec<i64> = (0..1000).map(|n| -999_000_000 + n * 998_999).collect();
    let steps: ArrayRef = Arc::new(TimestampNanosecondArray::from(steps));
    check(steps.clone(), steps);
}

#[test]
fn lists_of_every_layout() {
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let values: Vec<Option<Vec<Option<i32>>>> = (0..1000)
        .map(|n| (n % 6 != 2).then(|| (0..n % 4).map(|at| (at != 2).then_some(n + at)).collect()))
        .collect();
    let expected: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values.clone()));
    check(expected.clone(), expected.clone());
    let large = LargeListArray::from_iter_primitive::<Int32Type, _, _>(values);
    check(Arc::new(large), expected.clone());
    let list = expected.as_list::<i32>();
    let view = ListViewArray::from(list.clone());
    check(Arc::new(view), expected.clone());

    // Items of NULL lists are not written.
    let items = Int32Array::from_iter_values(0..2000);
    let nulls = NullBuffer::from_iter((0..1000).map(|n| n % 3 != 1));
    let offsets = OffsetBuffer::from_lengths((0..1000).map(|_| 2));
    let full = ListArray::new(item.clone(), offsets, Arc::new(items.clone()), Some(nulls.clone()));
    let rows = (0..1000).map(|n| (n % 3 != 1).then(|| vec![Some(2 * n), Some(2 * n + 1)]));
    let plain: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
    check(Arc::new(full), plain.clone());
    let fixed = FixedSizeListArray::new(item, 2, Arc::new(items), Some(nulls));
    check(Arc::new(fixed), plain);
}

#[test]
fn children_of_null_structs_are_not_written() {
    let child = Int32Array::from_iter_values(0..1000);
    let nulls = NullBuffer::from_iter((0..1000).map(|n| n % 3 != 1));
    let fields = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
    let masked = Int32Array::new(child.values().clone(), Some(nulls.clone()));
    let given = StructArray::new(fields.clone(), vec![Arc::new(child)], Some(nulls.clone()));
    let plain = StructArray::new(fields, vec![Arc::new(masked)], Some(nulls));
    let found = read_back(Arc::new(given), small());
    let found = found.as_struct();
    assert_eq!(found.nulls(), plain.nulls());
    let column = |array: &StructArray| array.column(0).as_primitive::<Int32Type>().clone();
    assert_eq!(column(found), column(&plain));
}

#[test]
fn sparse_unions_with_any_type_ids() {
    let fields: UnionFields = [
        (5i8, Arc::new(Field::new("number", DataType::Int64, true))),
        (2i8, Arc::new(Field::new("text", DataType::Utf8, true))),
    ]
    .into_iter()
    .collect();
    let ids: ScalarBuffer<i8> = (0..1000).map(|n| if n % 3 == 0 { 5 } else { 2 }).collect();
    let numbers = Int64Array::from_iter_values(0..1000);
    let texts = StringArray::from_iter_values((0..1000).map(|n| n.to_string()));
    let union = UnionArray::try_new(fields, ids, None, vec![Arc::new(numbers), Arc::new(texts)]);
    let union = union.unwrap();
    assert!(matches!(union.data_type(), DataType::Union(_, UnionMode::Sparse)));
    let found = read_back(Arc::new(union), small());
    let found = found.as_union();
    for row in 0..1000 {
        let value = found.value(row);
        match row % 3 {
            0 => assert_eq!(value.as_primitive::<Int64Type>().value(0), row as i64),
            _ => assert_eq!(value.as_string::<i32>().value(0), row.to_string()),
        }
    }
}

#[test]
fn batches_may_change_their_layout_but_not_their_type() {
    let texts = texts();
    let view = batch(Arc::new(StringViewArray::from_iter(&texts)));
    let plain = batch(Arc::new(StringArray::from_iter(&texts)));
    let file = support::write(&[view.clone(), plain], small());
    assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 2000);

    let mut writer = Writer::new(&view.schema(), small()).unwrap();
    let error = writer.write(&batch(Arc::new(Int32Array::from(vec![1])))).unwrap_err();
    assert!(error.message().contains("other column types"), "{error:?}");
}

#[test]
fn a_file_without_rows_is_a_file() {
    let empty = batch(Arc::new(Int32Array::from(Vec::<i32>::new())));
    for batches in [vec![empty.clone(), empty.clone()], vec![empty.clone()]] {
        let file = support::write(&batches, WriterOptions::default());
        let metadata = support::metadata(&file).unwrap();
        assert_eq!((metadata.rows, metadata.stripes.len()), (0, 0));
        assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 0);
    }
}

#[test]
fn stripes_end_by_rows_and_by_bytes() {
    let numbers = |n: i64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64);
    let column = Int64Array::from_iter_values((0..20_000).map(numbers));
    let rows = |options: WriterOptions| {
        let file = support::write(&[batch(Arc::new(column.clone()))], options);
        let metadata = support::metadata(&file).unwrap();
        metadata.stripes.iter().map(|stripe| stripe.rows).collect::<Vec<_>>()
    };
    let options = WriterOptions::default;
    assert_eq!(rows(options()), [20_000]);
    assert_eq!(rows(options().with_stripe_rows(8000)), [8000, 8000, 4000]);
    assert_eq!(rows(options().with_stripe_rows(15_000)), [15_000, 5000]);
    assert_eq!(rows(options().with_stripe_rows(8000).with_row_index_stride(0)), [8000, 8000, 4000]);
    let by_bytes = options().with_stripe_bytes(40_000).with_row_index_stride(1000);
    assert_eq!(rows(by_bytes), [5000; 4]);
}

#[test]
fn memory_is_that_of_a_stripe() {
    let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let options = WriterOptions::default().with_stripe_bytes(1 << 20);
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("t", DataType::Utf8, true),
    ]);
    let mut writer = Writer::new(&schema, options).unwrap();
    let (mut file, mut most) = (Vec::new(), 0);
    for from in (0..600_000u64).step_by(6000) {
        let rows = from..from + 6000;
        let numbers = Int64Array::from_iter_values(rows.clone().map(|n| random(n) as i64));
        let texts =
            StringArray::from_iter_values(rows.map(|n| format!("{:x}", random(n) % 50_000)));
        let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts)];
        writer.write(&RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap()).unwrap();
        file.extend_from_slice(&writer.take_output());
        most = most.max(writer.memory_bytes());
    }
    let summary = writer.finish().unwrap();
    assert!(summary.stripe_offsets.len() >= 5, "{}", summary.stripe_offsets.len());
    assert!(most < 6 << 20, "{most} bytes held");
}

#[test]
fn metadata_attributes_and_codecs_are_in_the_file() {
    let id = |id: &str| HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_owned())]);
    let field = Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), false);
    let schema = Arc::new(Schema::new(vec![field.with_metadata(id("7"))]));
    let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1, 2]));
    let batch = RecordBatch::try_new(schema, vec![column]).unwrap();
    for (compression, name) in [
        (Compression::None, "NONE"),
        (Compression::Zlib { level: 9 }, "ZLIB"),
        (Compression::Snappy, "SNAPPY"),
        (Compression::Lz4, "LZ4"),
        (Compression::Zstd { level: 19 }, "ZSTD"),
    ] {
        let options = WriterOptions::default()
            .with_compression(compression)
            .with_user_metadata("who", "me")
            .with_bloom_column("at");
        let file = support::write(std::slice::from_ref(&batch), options);
        let metadata = support::metadata(&file).unwrap();
        assert_eq!(metadata.compression.name(), name);
        assert_eq!(metadata.user_metadata["who"], "me");
        assert_eq!(metadata.types.field_id(1), Some(7));
        let attributes = &metadata.types.types()[1].attributes;
        assert_eq!(attributes["iceberg.required"], "true");
        assert_eq!(attributes["iceberg.timestamp-unit"], "MICROS");
        let read = support::read(&file, ReadOptions::default()).unwrap().concat().unwrap();
        assert_eq!(read.column(0), batch.column(0));
    }
}

#[test]
fn bloom_filters_prune_row_groups_without_the_value() {
    let texts =
        StringArray::from_iter_values((0..10_000).map(|n| format!("{:05}", n * 7919 % 10_000)));
    let numbers = Int64Array::from_iter_values((0..10_000).map(|n| n * 7919 % 10_000 * 2));
    let days = Date32Array::from_iter_values((0..10_000).map(|n| n * 7919 % 10_000 * 2));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("t", Arc::new(texts)), ("n", Arc::new(numbers)), ("d", Arc::new(days))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let cases = [
        (1, Literal::String("01234".to_owned()), Literal::String("01234x".to_owned())),
        (2, Literal::Int(2468), Literal::Int(2469)),
        (3, Literal::Date(2468), Literal::Date(2469)),
    ];
    for dictionary in [DictionaryChoice::Always, DictionaryChoice::Never] {
        let mut options =
            WriterOptions::default().with_row_index_stride(1000).with_dictionary(dictionary);
        for path in ["t", "n", "d"] {
            options = options.with_bloom_column(path);
        }
        let file = support::write(std::slice::from_ref(&batch), options);
        for (column, there, absent) in cases.clone() {
            let pruned = |value: Literal| {
                let predicate =
                    Predicate::Compare { column: ColumnRef::Id(column), op: CompareOp::Eq, value };
                let options = ReadOptions::default().with_predicate(predicate);
                let read = support::read(&file, options).unwrap();
                (read.metrics.row_groups_pruned, read.rows())
            };
            let (groups, rows) = pruned(there);
            assert!(groups >= 8 && rows >= 1, "{column}: {groups} groups, {rows} rows");
            let (groups, _) = pruned(absent);
            assert!(groups >= 9, "{column}: {groups} groups pruned for a value that is not there");
        }
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("b", DataType::Boolean, true),
    ]);
    let options = WriterOptions::default;
    for (options, part) in [
        (options().with_compression_block_bytes(1 << 23), "compression block"),
        (options().with_compression_block_bytes(0), "compression block"),
        (options().with_compression(Compression::Zlib { level: 10 }), "zlib level 10"),
        (options().with_compression(Compression::Zstd { level: 23 }), "zstd level 23"),
        (options().with_bloom_column("x"), "bloom column x"),
        (options().with_bloom_column("b"), "bloom column b"),
        (options().with_bloom_column("n").with_bloom_fpp(1.0), "false positive rate"),
        (options().with_bloom_column("n").with_row_index_stride(0), "row index"),
    ] {
        let error = Writer::new(&schema, options).err().unwrap();
        assert!(error.message().contains(part), "{error:?}");
    }
    let unknown = Schema::new(vec![Field::new("n", DataType::UInt64, true)]);
    assert!(Writer::new(&unknown, options()).is_err());
}

#[test]
fn a_finished_writer_takes_no_more() {
    let batch = batch(Arc::new(Int32Array::from(vec![1])));
    let mut writer = Writer::new(&batch.schema(), WriterOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    assert!(writer.write(&batch).is_err());
    assert!(writer.finish().is_err());
}

#[test]
fn a_dictionary_is_given_up_where_values_become_unique() {
    let text = |n: u64| match n {
        0..1200 => format!("same {}", n % 3),
        _ => format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    };
    let column = StringArray::from_iter_values((0..20_000).map(text));
    let found =
        read_back(Arc::new(column.clone()), WriterOptions::default().with_row_index_stride(500));
    assert_eq!(found.as_string::<i32>(), &column);
    let mut nulls = StringBuilder::new();
    nulls.append_nulls(3000);
    nulls.append_value("one");
    check(Arc::new(nulls.finish()), {
        let mut again = StringBuilder::new();
        again.append_nulls(3000);
        again.append_value("one");
        Arc::new(again.finish())
    });
}
