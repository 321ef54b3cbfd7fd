//! Pruning against a plain evaluation: a file with a matching row is never left out.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use common::{Home, ident};
use proptest::prelude::*;
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{PartitionTerm, TableSpec, Transform, WriteOptions};

/// One row; the columns are, by field id: 1 Int, 2 Long, 3 Double, 4 Date, 5 Timestamp, 6 String,
/// 7 Decimal(10, 2), 8 Boolean.
type Row = [Option<Literal>; 8];

fn schema() -> SchemaRef {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("i", DataType::Int32),
        field("l", DataType::Int64),
        field("f", DataType::Float64),
        field("d", DataType::Date32),
        field("t", DataType::Timestamp(TimeUnit::Microsecond, None)),
        field("s", DataType::Utf8),
        field("n", DataType::Decimal128(10, 2)),
        field("b", DataType::Boolean),
    ]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let column = |index: usize| rows.iter().map(move |row| row[index].clone());
    let int = |value: Option<Literal>| match value {
        Some(Literal::Int(value)) => Some(value),
        _ => None,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter(column(0).map(|v| int(v).map(|v| v as i32)))),
        Arc::new(Int64Array::from_iter(column(1).map(int))),
        Arc::new(Float64Array::from_iter(column(2).map(|v| match v {
            Some(Literal::Float(v)) => Some(v),
            _ => None,
        }))),
        Arc::new(Date32Array::from_iter(column(3).map(|v| match v {
            Some(Literal::Date(v)) => Some(v),
            _ => None,
        }))),
        Arc::new(TimestampMicrosecondArray::from_iter(column(4).map(|v| match v {
            Some(Literal::TimestampMicros(v)) => Some(v),
            _ => None,
        }))),
        Arc::new(StringArray::from_iter(column(5).map(|v| match v {
            Some(Literal::String(v)) => Some(v),
            _ => None,
        }))),
        Arc::new(
            Decimal128Array::from_iter(column(6).map(|v| match v {
                Some(Literal::Decimal(v, _)) => Some(v),
                _ => None,
            }))
            .with_precision_and_scale(10, 2)
            .unwrap(),
        ),
        Arc::new(BooleanArray::from_iter(column(7).map(|v| match v {
            Some(Literal::Boolean(v)) => Some(v),
            _ => None,
        }))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// A value of column `field`; small ranges make equal values and neighbours likely.
fn value(field: i32) -> BoxedStrategy<Literal> {
    const DAY: i64 = 86_400_000_000;
    match field {
        1 | 2 => (-20i64..20).prop_map(Literal::Int).boxed(),
        3 => prop_oneof![
            6 => (-4i32..4).prop_map(|v| Literal::Float(f64::from(v) / 2.0)),
            1 => Just(Literal::Float(f64::NAN)),
            1 => Just(Literal::Float(-0.0)),
            1 => Just(Literal::Float(f64::INFINITY)),
        ]
        .boxed(),
        4 => (-70i32..70).prop_map(Literal::Date).boxed(),
        5 => (-40i64..40, prop_oneof![Just(0i64), Just(1), Just(DAY - 1), Just(DAY / 2)])
            .prop_map(|(day, rest)| Literal::TimestampMicros(day * DAY + rest))
            .boxed(),
        6 => prop_oneof![
            "[ab]{0,3}",
            "[ab]{15,18}",
            Just("\u{d7ff}".repeat(17)),
            Just(format!("a{}", "\u{10ffff}".repeat(20))),
            Just("\u{10ffff}".repeat(18)),
        ]
        .prop_map(Literal::String)
        .boxed(),
        7 => (-300i128..300).prop_map(|v| Literal::Decimal(v, 2)).boxed(),
        _ => any::<bool>().prop_map(Literal::Boolean).boxed(),
    }
}

fn row() -> impl Strategy<Value = Row> {
    let nullable = |field: i32| proptest::option::weighted(0.8, value(field));
    [
        nullable(1),
        nullable(2),
        nullable(3),
        nullable(4),
        nullable(5),
        nullable(6),
        nullable(7),
        nullable(8),
    ]
}

fn operator() -> impl Strategy<Value = CompareOp> {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    prop_oneof![Just(Eq), Just(NotEq), Just(Lt), Just(LtEq), Just(Gt), Just(GtEq)]
}

fn leaf() -> impl Strategy<Value = Predicate> {
    (1i32..=8).prop_flat_map(|field| {
        let column = ColumnRef::Field(field);
        prop_oneof![
            6 => (operator(), value(field))
                .prop_map(move |(op, value)| Predicate::Compare { column, op, value }),
            2 => proptest::collection::vec(value(field), 0..4)
                .prop_map(move |values| Predicate::In { column, values }),
            1 => Just(Predicate::IsNull(column)),
            1 => Just(Predicate::IsNotNull(column)),
        ]
    })
}

fn predicate() -> impl Strategy<Value = Predicate> {
    leaf().prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
            proptest::collection::vec(inner, 0..3).prop_map(Predicate::Or),
        ]
    })
}

fn term() -> impl Strategy<Value = PartitionTerm> {
    let time =
        || prop_oneof![Just(Transform::Year), Just(Transform::Month), Just(Transform::Day)].boxed();
    prop_oneof![
        (prop_oneof![Just("i"), Just("l"), Just("s"), Just("n"), Just("d"), Just("t")], 1u32..6)
            .prop_map(|(column, buckets)| PartitionTerm::new(column, Transform::Bucket(buckets))),
        (prop_oneof![Just("i"), Just("l"), Just("s"), Just("n")], 1u32..9)
            .prop_map(|(column, width)| PartitionTerm::new(column, Transform::Truncate(width))),
        (prop_oneof![Just("d"), Just("t")], time())
            .prop_map(|(column, transform)| PartitionTerm::new(column, transform)),
        Just(PartitionTerm::new("t", Transform::Hour)),
        prop_oneof![Just("i"), Just("s"), Just("b"), Just("d"), Just("f"), Just("n")]
            .prop_map(|column| PartitionTerm::new(column, Transform::Identity)),
    ]
}

/// Whether `row` matches, by SQL's rules on Arrow: NULL matches no comparison, floats are in total
/// order (or, as some engines have it, with equal zeros; then both must be allowed).
fn matches(predicate: &Predicate, row: &Row) -> bool {
    let get = |column: &ColumnRef| match column {
        ColumnRef::Field(field) => row[usize::try_from(*field).unwrap() - 1].as_ref(),
        ColumnRef::Id(_) => None,
    };
    let compare = |column: &ColumnRef, op: CompareOp, value: &Literal| {
        let Some(own) = get(column) else { return false };
        let order = match (own, value) {
            (Literal::Int(a), Literal::Int(b)) => a.cmp(b),
            (Literal::Float(a), Literal::Float(b)) => a.total_cmp(b),
            (Literal::Date(a), Literal::Date(b)) => a.cmp(b),
            (Literal::TimestampMicros(a), Literal::TimestampMicros(b)) => a.cmp(b),
            (Literal::String(a), Literal::String(b)) => a.cmp(b),
            (Literal::Decimal(a, _), Literal::Decimal(b, _)) => a.cmp(b),
            (Literal::Boolean(a), Literal::Boolean(b)) => a.cmp(b),
            other => panic!("{other:?}"),
        };
        let ieee_equal = matches!((own, value), (Literal::Float(a), Literal::Float(b)) if a == b);
        match op {
            CompareOp::Eq => order.is_eq() || ieee_equal,
            CompareOp::NotEq => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::LtEq => order.is_le() || ieee_equal,
            CompareOp::Gt => order.is_gt(),
            CompareOp::GtEq => order.is_ge() || ieee_equal,
        }
    };
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| matches(part, row)),
        Predicate::Or(parts) => parts.iter().any(|part| matches(part, row)),
        Predicate::Compare { column, op, value } => compare(column, *op, value),
        Predicate::In { column, values } => {
            values.iter().any(|value| compare(column, CompareOp::Eq, value))
        }
        Predicate::IsNull(column) => get(column).is_none(),
        Predicate::IsNotNull(column) => get(column).is_some(),
    }
}

/// Writes each group of rows in a commit of its own and checks every predicate: the rows in the
/// files that survive are at least the rows that match. Every row is in a file of its partition,
/// so a file is identified by commit and partition; here it is enough to count per commit.
fn check(terms: Vec<PartitionTerm>, groups: Vec<Vec<Row>>, predicates: Vec<Predicate>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let home = Home::new().await;
        let spec = TableSpec { partition_by: terms.clone(), ..TableSpec::new(schema()) };
        // A partitioning that cannot be (the same term twice) is not what is tested here.
        let Ok(mut table) = home.warehouse.create_table(&ident("t"), spec).await else { return };
        // One row per file, so that a file that is left out is a row that is lost.
        let mut files: Vec<(String, Row)> = Vec::new();
        for group in &groups {
            let mut writers = Vec::new();
            for row in group {
                let mut writer = table.writer(WriteOptions::default()).unwrap();
                writer.write(batch(std::slice::from_ref(row))).await.unwrap();
                writers.push(writer);
            }
            for (writer, row) in writers.into_iter().zip(group) {
                table = writer.commit().await.unwrap().table;
                let plan = table.plan_scan(&Predicate::always()).await.unwrap();
                let known: Vec<_> = files.iter().map(|(location, _)| location.clone()).collect();
                let new = plan.files.iter().find(|f| !known.contains(&f.location)).unwrap();
                files.push((new.location.clone(), row.clone()));
            }
        }
        // And everything once more in one commit: several rows in a file, wider bounds.
        let all: Vec<Row> = groups.iter().flatten().cloned().collect();
        let mut writer = table.writer(WriteOptions::default()).unwrap();
        writer.write(batch(&all)).await.unwrap();
        let table = writer.commit().await.unwrap().table;
        for predicate in &predicates {
            let plan = table.plan_scan(predicate).await.unwrap();
            let kept: Vec<_> = plan.files.iter().map(|file| file.location.as_str()).collect();
            let single: u64 = plan
                .files
                .iter()
                .filter(|file| files.iter().all(|(location, _)| *location != file.location))
                .map(|file| file.rows)
                .sum();
            let mut matching = 0;
            for (location, row) in &files {
                if matches(predicate, row) {
                    matching += 1;
                    assert!(
                        kept.contains(&location.as_str()),
                        "{terms:?}: {predicate:?} lost {row:?}"
                    );
                }
            }
            assert!(single >= matching, "{terms:?}: {predicate:?} lost rows of the shared files");
            let pruned = plan.files_pruned_by_partition + plan.files_pruned_by_statistics;
            assert_eq!(plan.files_total, plan.files.len() + pruned);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_with_a_matching_row_is_never_left_out(
        terms in proptest::collection::vec(term(), 0..3),
        groups in proptest::collection::vec(proptest::collection::vec(row(), 1..4), 1..3),
        predicates in proptest::collection::vec(predicate(), 30),
    ) {
        check(terms, groups, predicates);
    }
}
