//! Files read as a schema that is not quite theirs: by id, name or position, with promoted types
//! and columns that they lack.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use stoa_error::ErrorKind;
use stoa_orc::{
    ColumnRef, CompareOp, FIELD_ID_KEY, FieldMatching, Literal, Predicate, Projection, ReadOptions,
    StringOutput, WriterOptions,
};

fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata(HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]))
}

fn field(name: &str, data_type: DataType, id: i32) -> Field {
    with_id(Field::new(name, data_type, true), id)
}

fn plain(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn write(fields: Vec<Field>, columns: Vec<ArrayRef>) -> Bytes {
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let options = WriterOptions::default().with_row_index_stride(2).with_compact_index(false);
    support::write(&[batch], options)
}

fn options(fields: Vec<Field>, matching: FieldMatching) -> ReadOptions {
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    ReadOptions::default().with_projection(Projection::Fields(schema)).with_matching(matching)
}

fn read(file: &Bytes, fields: Vec<Field>, matching: FieldMatching) -> RecordBatch {
    support::read(file, options(fields, matching)).unwrap().concat().unwrap()
}

fn int(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn text(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn fields_are_found_by_id_whatever_their_names() {
    let file = write(
        vec![field("a", DataType::Int32, 1), field("b", DataType::Int32, 2)],
        vec![int(&[1, 2, 3]), int(&[10, 20, 30])],
    );
    // Renamed, in another order, and a new column that takes an old name.
    let wanted = vec![
        field("a", DataType::Int32, 2),
        field("renamed", DataType::Int32, 1),
        field("b", DataType::Int32, 3),
    ];
    let rows = read(&file, wanted.clone(), FieldMatching::Auto);
    assert_eq!(rows.column(0), &int(&[10, 20, 30]));
    assert_eq!(rows.column(1), &int(&[1, 2, 3]));
    assert_eq!(rows.column(2).null_count(), 3);

    let rows = read(&file, wanted.clone(), FieldMatching::Name);
    assert_eq!(rows.column(0), &int(&[1, 2, 3]));
    assert_eq!(rows.column(1).null_count(), 3);
    assert_eq!(rows.column(2), &int(&[10, 20, 30]));

    let rows = read(&file, wanted, FieldMatching::Position);
    assert_eq!(rows.column(0), &int(&[1, 2, 3]));
    assert_eq!(rows.column(1), &int(&[10, 20, 30]));
    assert_eq!(rows.column(2).null_count(), 3);
}

#[test]
fn predicates_follow_the_fields() {
    let file = write(
        vec![field("a", DataType::Int32, 1), field("b", DataType::Int32, 2)],
        vec![int(&[1, 2, 3, 4, 5]), int(&[50, 40, 30, 20, 10])],
    );
    let wanted = || {
        vec![
            field("b", DataType::Int32, 1),
            field("a", DataType::Int32, 2),
            field("c", DataType::Int32, 3),
        ]
    };
    let rows = |id: i32, value: i64, matching| {
        let (column, value) = (ColumnRef::Field(id), Literal::Int(value));
        let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
        let options = options(wanted(), matching).with_predicate(predicate);
        support::read(&file, options.with_align_to_row_groups(true)).unwrap().rows()
    };
    // Two rows in a row group. By id, field 1 is column `a`; by name it is `b`; by position, `a`.
    for (matching, a, b) in
        [(FieldMatching::Auto, 1, 2), (FieldMatching::Name, 2, 1), (FieldMatching::Position, 1, 2)]
    {
        assert_eq!((rows(a, 1, matching), rows(a, 10, matching)), (2, 0), "{matching:?}");
        assert_eq!((rows(b, 10, matching), rows(b, 1, matching)), (1, 0), "{matching:?}");
        // A column that is not there is NULL everywhere.
        assert_eq!(rows(3, 1, matching), 0, "{matching:?}");
    }
    for (predicate, expected) in [
        (Predicate::IsNull(ColumnRef::Field(3)), 5),
        (Predicate::IsNotNull(ColumnRef::Field(3)), 0),
        // Neither wanted nor in the file: nothing is known.
        (Predicate::IsNull(ColumnRef::Field(4)), 5),
        (Predicate::IsNotNull(ColumnRef::Field(4)), 5),
    ] {
        let options = options(wanted(), FieldMatching::Auto).with_predicate(predicate);
        assert_eq!(support::read(&file, options).unwrap().rows(), expected);
    }
}

#[test]
fn columns_without_names_are_found_by_position() {
    let file = write(
        vec![plain("_col0", DataType::Int32), plain("_col1", DataType::Utf8)],
        vec![int(&[1, 2]), text(&["x", "y"])],
    );
    let wanted = || {
        vec![
            field("n", DataType::Int64, 7),
            field("s", DataType::Utf8, 8),
            field("t", DataType::Utf8, 9),
        ]
    };
    let rows = read(&file, wanted(), FieldMatching::Auto);
    assert_eq!(rows.column(0).as_ref(), &Int64Array::from(vec![1, 2]));
    assert_eq!(rows.column(1), &text(&["x", "y"]));
    assert_eq!(rows.column(2).null_count(), 2);
    // Only where all are just numbers.
    let file = write(
        vec![plain("_col0", DataType::Int32), plain("s", DataType::Utf8)],
        vec![int(&[1, 2]), text(&["x", "y"])],
    );
    let rows = read(&file, wanted(), FieldMatching::Auto);
    assert_eq!(rows.column(0).null_count(), 2);
    assert_eq!(rows.column(1), &text(&["x", "y"]));
}

#[test]
fn types_are_promoted() {
    let ints = || Int64Array::from(vec![Some(-100), None, Some(7), Some(127), Some(-128)]);
    let decimals = |precision, scale| {
        let values =
            Decimal128Array::from(vec![Some(-12_345), None, Some(0), Some(99_999), Some(1)]);
        let values = values.with_precision_and_scale(5, 2).unwrap();
        cast(&values, &DataType::Decimal128(precision, scale)).unwrap()
    };
    let integers = [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64];
    let mut cases: Vec<(ArrayRef, ArrayRef)> = Vec::new();
    for (at, from) in integers.iter().enumerate() {
        for to in &integers[at..] {
            cases.push((cast(&ints(), from).unwrap(), cast(&ints(), to).unwrap()));
        }
    }
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![
        Some(0.1),
        None,
        Some(f32::MIN_POSITIVE),
        Some(-0.0),
        Some(1e30),
    ]));
    cases.push((floats.clone(), cast(&floats, &DataType::Float64).unwrap()));
    for (precision, scale) in [(5, 2), (7, 2), (7, 4), (38, 2), (38, 35)] {
        cases.push((decimals(5, 2), decimals(precision, scale)));
    }
    for (from, to) in cases {
        let file = write(vec![field("v", from.data_type().clone(), 1)], vec![from.clone()]);
        let rows = read(&file, vec![field("v", to.data_type().clone(), 1)], FieldMatching::Auto);
        assert_eq!(rows.column(0), &to, "{} as {}", from.data_type(), to.data_type());
    }
}

#[test]
fn what_would_lose_values_is_refused() {
    let decimal = |precision, scale| DataType::Decimal128(precision, scale);
    for (from, to) in [
        (DataType::Int64, DataType::Int32),
        (DataType::Int32, DataType::Int8),
        (DataType::Int32, DataType::Float64),
        (DataType::Float64, DataType::Float32),
        (DataType::Utf8, DataType::Int32),
        (DataType::Int32, DataType::Utf8),
        (DataType::Date32, DataType::Int32),
        (DataType::Boolean, DataType::Int8),
        (decimal(10, 2), decimal(10, 1)),
        (decimal(10, 2), decimal(10, 4)),
        (decimal(10, 2), decimal(9, 2)),
        (DataType::Timestamp(TimeUnit::Microsecond, None), DataType::Date32),
        (
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        ),
    ] {
        let file = write(vec![field("v", from.clone(), 1)], vec![new_null_array(&from, 3)]);
        let options = options(vec![field("v", to.clone(), 1)], FieldMatching::Auto);
        let error = support::read(&file, options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{from} as {to}");
        assert!(error.message().contains("column 1 (v)"), "{error:?}");
    }
}

#[test]
fn predicates_hold_on_promoted_types() {
    let values = vec![1, 200, 30_000, -5, 7];
    let file = write(vec![field("v", DataType::Int32, 1)], vec![int(&values)]);
    let decimals = Decimal128Array::from(vec![150, 250, 350, -50, 0]);
    let decimals = decimals.with_precision_and_scale(9, 2).unwrap();
    let of_decimals =
        write(vec![field("v", decimals.data_type().clone(), 1)], vec![Arc::new(decimals)]);
    let rows = |file: &Bytes, to: DataType, value: Literal| {
        let column = ColumnRef::Field(1);
        let predicate = Predicate::Compare { column, op: CompareOp::Gt, value };
        let options = options(vec![field("v", to, 1)], FieldMatching::Auto);
        let read = support::read(file, options.with_predicate(predicate)).unwrap();
        (read.rows(), read.metrics.row_groups_pruned)
    };
    // Row groups: (1, 200), (30000, -5), (7).
    assert_eq!(rows(&file, DataType::Int64, Literal::Int(200)), (1, 2));
    assert_eq!(rows(&file, DataType::Int64, Literal::Int(1 << 40)).0, 0);
    // (1.50, 2.50), (3.50, -0.50), (0): 3 = 3.0000.
    let to = DataType::Decimal128(20, 4);
    assert_eq!(rows(&of_decimals, to.clone(), Literal::Decimal(30_000, 4)), (1, 2));
    assert_eq!(rows(&of_decimals, to, Literal::Decimal(35_001, 4)).0, 0);
}

#[test]
fn nested_fields_evolve_too() {
    let inner = Fields::from(vec![field("x", DataType::Int32, 3), field("y", DataType::Utf8, 4)]);
    let structs = StructArray::new(
        inner.clone(),
        vec![int(&[1, 2, 3]), text(&["p", "q", "r"])],
        Some(vec![true, false, true].into()),
    );
    let item = Arc::new(field("element", DataType::Int32, 6));
    let mut lists = ListBuilder::new(Int32Builder::new()).with_field(item.clone());
    lists.append_value([Some(1), None]);
    lists.append_null();
    lists.append_value([]);
    let file = write(
        vec![field("s", DataType::Struct(inner), 2), field("l", DataType::List(item), 5)],
        vec![Arc::new(structs), Arc::new(lists.finish())],
    );
    let wide_item = Arc::new(field("element", DataType::Int64, 6));
    let wanted = Fields::from(vec![
        field("new", DataType::Float64, 9),
        field("why", DataType::Utf8, 4),
        field("x", DataType::Int64, 3),
    ]);
    let rows = read(
        &file,
        vec![
            field("list", DataType::List(wide_item.clone()), 5),
            field("struct", DataType::Struct(wanted.clone()), 2),
        ],
        FieldMatching::Auto,
    );
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let (_, offsets, items, nulls) = lists.into_parts();
    assert_eq!(rows.column(0).as_ref(), &ListArray::new(wide_item, offsets, items, nulls));
    let structs = StructArray::new(
        wanted,
        vec![
            new_null_array(&DataType::Float64, 3),
            text(&["p", "q", "r"]),
            Arc::new(Int64Array::from(vec![1, 2, 3])),
        ],
        Some(vec![true, false, true].into()),
    );
    assert_eq!(rows.column(1).as_ref(), &structs);
}

#[test]
fn a_required_field_must_be_there() {
    let file = write(vec![field("a", DataType::Int32, 1)], vec![int(&[1])]);
    let wanted = field("b", DataType::Int32, 2).with_nullable(false);
    let error = support::read(&file, options(vec![wanted], FieldMatching::Auto)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("required column b"), "{error:?}");
}

#[test]
fn a_file_may_have_none_of_the_fields() {
    let file = write(vec![field("a", DataType::Int32, 1)], vec![int(&[1, 2, 3])]);
    let rows = read(&file, vec![field("b", DataType::Utf8, 2)], FieldMatching::Auto);
    assert_eq!((rows.num_rows(), rows.column(0).null_count()), (3, 3));
    let read = support::read(&file, options(Vec::new(), FieldMatching::Auto)).unwrap();
    assert_eq!(read.rows(), 3);
}

#[test]
fn columns_of_the_same_name_are_told_apart_by_position() {
    let file = write(
        vec![plain("a", DataType::Int32), plain("a", DataType::Utf8)],
        vec![int(&[1, 2]), text(&["x", "y"])],
    );
    let rows = support::read(&file, ReadOptions::default()).unwrap().concat().unwrap();
    assert_eq!(rows.column(0), &int(&[1, 2]));
    assert_eq!(rows.column(1), &text(&["x", "y"]));
    let options = ReadOptions::default().with_projection(Projection::Columns(vec![2]));
    let rows = support::read(&file, options).unwrap().concat().unwrap();
    assert_eq!(rows.column(0), &text(&["x", "y"]));
}

#[test]
fn columns_come_in_the_order_asked_for() {
    let file = write(
        vec![plain("a", DataType::Int32), plain("b", DataType::Utf8)],
        vec![int(&[1, 2]), text(&["x", "y"])],
    );
    let columns = |columns: Vec<u32>| {
        let options = ReadOptions::default()
            .with_projection(Projection::Columns(columns))
            .with_strings(StringOutput::Dictionary);
        support::read(&file, options)
    };
    let rows = columns(vec![2, 1]).unwrap().concat().unwrap();
    let names: Vec<_> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["b", "a"]);
    let dictionary: DictionaryArray<Int32Type> = ["x", "y"].into_iter().collect();
    assert_eq!(rows.column(0).as_ref(), &dictionary as &dyn Array);
    let error = columns(vec![3]).err().unwrap();
    assert!(error.message().contains("column 3 is not a top-level column"), "{error:?}");
}
