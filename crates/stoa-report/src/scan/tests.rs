#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use proptest::prelude::*;
use stoa_rangeio::ReadMetrics;

use super::columns::BatchColumns;
use super::filter::Masks;
use super::*;
use crate::chunk::Chunk;
use crate::report::{Condition, Test};
use crate::reports::ReportOptions;
use crate::rows::{ChunkRows, Selection};
use crate::tests::{Home, rows};
use crate::warm::columns_of;

pub(crate) const ROWS: usize = 60;

fn some<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Vec<Option<T>>> {
    let weights = prop_oneof![Just(0.0), 0.0..0.9, Just(1.0)];
    weights
        .prop_flat_map({
            let value = value.boxed();
            move |nulls: f64| {
                let value = value.clone();
                let one = (0.0..1.0_f64, value).prop_map(move |(at, v)| (at >= nulls).then_some(v));
                prop::collection::vec(one, ROWS)
            }
        })
        .boxed()
}

/// A column of any type that chunks have.
pub(crate) fn column() -> BoxedStrategy<ArrayRef> {
    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }
    let decimals = |digits: u32, scale: i8| {
        let most = 10_i128.pow(digits) - 1;
        let near =
            prop_oneof![-300_i128..300, -most..=most].prop_map(move |v| v.clamp(-most, most));
        some(near).prop_map(move |v| {
            let of = Decimal128Array::from(v);
            array(of.with_precision_and_scale(digits as u8, scale).unwrap())
        })
    };
    prop_oneof![
        some(any::<bool>()).prop_map(|v| array(BooleanArray::from(v))),
        some(any::<i8>()).prop_map(|v| array(Int8Array::from(v))),
        some(any::<i16>()).prop_map(|v| array(Int16Array::from(v))),
        some(prop_oneof![-9_i32..99, any::<i32>()]).prop_map(|v| array(Int32Array::from(v))),
        some(-9_i32..9000).prop_map(|v| array(Date32Array::from(v))),
        some(prop_oneof![-9_i64..99, any::<i64>()]).prop_map(|v| array(Int64Array::from(v))),
        some(0_i64..1 << 34).prop_map(|v| array(Int64Array::from(v))),
        some(any::<i64>()).prop_map(|v| array(TimestampMicrosecondArray::from(v))),
        (1_u32..=38).prop_flat_map(move |digits| decimals(digits, (digits / 2) as i8)),
        some(any::<f32>()).prop_map(|v| array(Float32Array::from(v))),
        some(any::<f64>()).prop_map(|v| array(Float64Array::from(v))),
        some("[a-c]{0,2}").prop_map(|v| array(StringArray::from(v))),
        some("[a-zäöü]{0,9}").prop_map(|v| array(StringArray::from(v))),
    ]
    .boxed()
}

fn test() -> impl Strategy<Value = Test> {
    let number = || prop_oneof![-9_i128..300, any::<i64>().prop_map(i128::from), any::<i128>()];
    let text = || "[a-c]{0,2}".prop_map(String::into_boxed_str);
    let end = move || prop::option::of((text(), any::<bool>()));
    prop_oneof![
        (number(), number()).prop_map(|(low, high)| Test::Between(low, high)),
        number().prop_map(|low| Test::Between(low, i128::MAX)),
        prop::collection::btree_set(number(), 0..4)
            .prop_map(|values| Test::OneOf(values.into_iter().collect())),
        number().prop_map(Test::NotEqual),
        (end(), end()).prop_map(|(low, high)| Test::TextBetween { low, high }),
        prop::collection::btree_set(text(), 0..3)
            .prop_map(|values| Test::TextOneOf(values.into_iter().collect())),
        text().prop_map(Test::TextNotEqual),
        Just(Test::IsNull),
        Just(Test::IsNotNull),
    ]
}

/// A filter over so many columns.
fn filter(columns: usize) -> impl Strategy<Value = ScanFilter> {
    let condition = (0..columns, test())
        .prop_map(|(column, test)| ScanFilter::Test(Condition { column, test }));
    let number = || prop_oneof![-9_i64..99, any::<i64>()];
    let members = prop_oneof![
        prop::collection::vec(-9_i64..99, 0..9),
        prop::collection::vec(number(), 0..9),
    ];
    let member = (0..columns, members)
        .prop_map(|(column, values)| ScanFilter::Member(column, Arc::new(Members::new(&values))));
    let leaf = prop_oneof![4 => condition, 1 => member];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(ScanFilter::All),
            prop::collection::vec(inner, 0..3).prop_map(ScanFilter::Any),
        ]
    })
}

/// The number or text of a row, as conditions see it.
pub(crate) enum Seen<'a> {
    Null,
    Number(i128),
    Text(&'a str),
    Float,
}

pub(crate) fn seen(array: &ArrayRef, row: usize) -> Seen<'_> {
    use arrow_array::types::*;
    if array.is_null(row) {
        return Seen::Null;
    }
    Seen::Number(match array.data_type() {
        DataType::Boolean => i128::from(array.as_boolean().value(row)),
        DataType::Int8 => i128::from(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => i128::from(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => i128::from(array.as_primitive::<Int32Type>().value(row)),
        DataType::Date32 => i128::from(array.as_primitive::<Date32Type>().value(row)),
        DataType::Int64 => i128::from(array.as_primitive::<Int64Type>().value(row)),
        DataType::Timestamp(..) => {
            i128::from(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value(row),
        DataType::Utf8 => return Seen::Text(array.as_string::<i32>().value(row)),
        _ => return Seen::Float,
    })
}

/// Whether a row meets a test; `None` where the test is of another kind than the column, and nothing is said of it.
fn meets(test: &Test, value: &Seen<'_>, data_type: &DataType) -> Option<bool> {
    let is_text = *data_type == DataType::Utf8;
    let of_texts =
        matches!(test, Test::TextBetween { .. } | Test::TextOneOf(_) | Test::TextNotEqual(_));
    match (test, value) {
        (Test::IsNull, value) => Some(matches!(value, Seen::Null)),
        (Test::IsNotNull, value) => Some(!matches!(value, Seen::Null)),
        _ if data_type.is_floating() || of_texts != is_text => None,
        (_, Seen::Null) => Some(false),
        (test, Seen::Number(value)) => Some(match test {
            Test::Between(low, high) => low <= value && value <= high,
            Test::OneOf(values) => values.contains(value),
            Test::NotEqual(other) => value != other,
            _ => return None,
        }),
        (test, Seen::Text(value)) => Some(match test {
            Test::TextBetween { low, high } => {
                let low = low
                    .as_ref()
                    .is_none_or(|(low, within)| **low < **value || (*within && **low == **value));
                let high = high.as_ref().is_none_or(|(high, within)| {
                    **value < **high || (*within && **high == **value)
                });
                low && high
            }
            Test::TextOneOf(values) => values.iter().any(|one| **one == **value),
            Test::TextNotEqual(other) => **other != **value,
            _ => return None,
        }),
        (_, Seen::Float) => None,
    }
}

/// Whether a filter holds; `None` where it depends on what is not said.
fn holds(filter: &ScanFilter, columns: &[ArrayRef], row: usize) -> Option<bool> {
    match filter {
        ScanFilter::Test(Condition { column, test }) => {
            let array = &columns[*column];
            meets(test, &seen(array, row), array.data_type())
        }
        ScanFilter::Member(column, members) => match seen(&columns[*column], row) {
            Seen::Null => match columns[*column].data_type() {
                DataType::Utf8 | DataType::Float32 | DataType::Float64 => None,
                _ => Some(false),
            },
            Seen::Number(value) => Some(i64::try_from(value).is_ok_and(|value| members.has(value))),
            Seen::Text(_) | Seen::Float => None,
        },
        ScanFilter::All(parts) => {
            parts.iter().try_fold(true, |all, part| Some(all && holds(part, columns, row)?))
        }
        ScanFilter::Any(parts) => {
            parts.iter().try_fold(false, |any, part| Some(any || holds(part, columns, row)?))
        }
    }
}

pub(crate) fn batch_of(columns: &[ArrayRef]) -> RecordBatch {
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(at, column)| Field::new(format!("c{at}"), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.to_vec()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The rows are those for which the filter holds, and their values are arrow's, however chunks keep them.
    #[test]
    fn rows_and_values_are_those_of_the_arrays(
        columns in prop::collection::vec(column(), 1..4),
        filter in filter(3),
        batch_rows in 1_usize..90,
        are_compact in any::<bool>(),
    ) {
        let whole = batch_of(&columns);
        let chunks: Vec<Arc<Chunk>> = columns.iter().map(|column| {
            let chunk = Chunk::of(column).unwrap();
            Arc::new(if are_compact { chunk.compact() } else { chunk })
        }).collect();
        prop_assume!(filter.columns().iter().all(|column| *column < columns.len()));
        let mut selection = Selection::default();
        let mut masks = Masks::default();
        filter.select(&|column| chunks.get(column), ROWS, &mut masks, &mut selection);
        let kept: Vec<u32> = selection.rows().iter().map(|row| row as u32).collect();
        prop_assert!(kept.is_sorted_by(|a, b| a < b));
        for row in 0..ROWS {
            if let Some(holds) = holds(&filter, &columns, row) {
                prop_assert_eq!(kept.contains(&(row as u32)), holds, "row {}", row);
            }
        }
        let mut batch = BatchColumns::new(whole.schema(), batch_rows).unwrap();
        let mut batches = vec![];
        let mut given = 0;
        while given < kept.len() {
            let rows = match selection.is_list {
                true => ChunkRows::List(&selection.list[given..]),
                false => ChunkRows::Range(given..ROWS),
            };
            given += batch.add(&chunks, &rows).unwrap();
            if batch.is_full() || given == kept.len() {
                prop_assert!(batch.rows() <= batch_rows);
                batches.push(batch.take().unwrap());
            }
        }
        let found = concat_batches(&whole.schema(), &batches).unwrap();
        let expected = take_record_batch(&whole, &UInt32Array::from(kept)).unwrap();
        for (found, expected) in found.columns().iter().zip(expected.columns()) {
            // NaN is not equal to itself.
            prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"));
            prop_assert_eq!(found.null_count(), expected.null_count());
        }
    }
}

proptest! {
    #[test]
    fn members_are_those_that_were_given(
        near in prop::collection::vec(-300_i64..300, 0..40),
        far in prop::collection::vec(any::<i64>(), 0..3),
        other in any::<i64>(),
    ) {
        let values: Vec<i64> = near.iter().chain(&far).copied().collect();
        let members = Members::new(&values);
        for value in (-310..310).chain(far).chain([other, i64::MIN, i64::MAX]) {
            prop_assert_eq!(members.has(value), values.contains(&value), "{}", value);
        }
    }
}

fn scan_of(home: &Home, names: &[&str], filter: ScanFilter) -> Arc<ChunkScan> {
    let schema = home.table.schema();
    let all = columns_of(&home.table);
    let columns = names.iter().map(|name| {
        let position = schema.index_of(name).unwrap();
        all.iter().find(|column| column.position == position).unwrap().clone()
    });
    let wanted: Vec<_> = names.iter().map(|name| schema.index_of(name).unwrap()).collect();
    Arc::new(ChunkScan {
        table: home.table.clone(),
        columns: columns.collect(),
        schema: Arc::new(schema.project(&wanted).unwrap()),
        filter,
        batch_rows: 700,
        judges: Vec::new(),
        keeps: true,
    })
}

async fn all_rows(reports: &Arc<Reports>, scan: &Arc<ChunkScan>, home: &Home) -> RecordBatch {
    let metrics = Arc::new(ReadMetrics::default());
    let mut batches = Vec::new();
    for file in &home.files {
        for part in 0..2 {
            let open = reports.scan_file(scan, file, (part, 2), &metrics).await;
            let mut rows = open.unwrap().unwrap();
            while let Some(batch) = crate::tests::sendable(rows.next()).await.unwrap() {
                assert!(batch.num_rows() <= scan.batch_rows);
                batches.push(batch);
            }
        }
    }
    concat_batches(&scan.schema, &batches).unwrap()
}

fn expected(home: &Home, names: &[&str], keep: impl Fn(i64, i32) -> bool) -> RecordBatch {
    let parts = (0..).zip(&home.files).map(|(part, file)| {
        let all = rows(part, file.rows as i64, i64::from(part));
        let account = all.column(1).as_primitive::<Int64Type>().clone();
        let kept = (0..all.num_rows()).filter(|row| keep(account.value(*row), part));
        let kept = UInt32Array::from_iter_values(kept.map(|row| row as u32));
        let wanted: Vec<_> =
            names.iter().map(|name| all.schema().index_of(name).unwrap()).collect();
        take_record_batch(&all, &kept).unwrap().project(&wanted).unwrap()
    });
    let parts: Vec<_> = parts.collect();
    concat_batches(&parts[0].schema(), &parts).unwrap()
}

fn account_in(low: i128, high: i128) -> ScanFilter {
    ScanFilter::Test(Condition { column: 0, test: Test::Between(low, high) })
}

#[tokio::test]
async fn a_scan_gives_the_rows_of_the_files_and_reads_them_once() {
    let home = Home::new(3, 5_500).await;
    let reports = Arc::new(crate::tests::reports());
    let names = ["account", "region", "clicks", "part"];
    let filters = [
        (ScanFilter::All(Vec::new()), 0_i64..10_000),
        (account_in(0, 1_000_000), 0..10_000),
        (account_in(90, 410), 90..411),
        (account_in(123, 123), 123..124),
        (account_in(-5, -1), 0..0),
    ];
    for (filter, accounts) in filters {
        let scan = scan_of(&home, &names, filter);
        for _ in 0..2 {
            let found = all_rows(&reports, &scan, &home).await;
            let expected = expected(&home, &names, |account, _| accounts.contains(&account));
            assert_eq!(found.columns(), expected.columns(), "{:?}", scan.filter);
        }
    }
    // All is in memory now.
    let metrics = Arc::new(ReadMetrics::default());
    let scan = scan_of(&home, &names, ScanFilter::All(Vec::new()));
    let mut rows =
        reports.scan_file(&scan, &home.files[0], (0, 1), &metrics).await.unwrap().unwrap();
    while rows.next().await.unwrap().is_some() {}
    let work = rows.take_work();
    assert_eq!((work.chunk_hits, work.chunk_misses, metrics.counts().requests), (6 * 4, 0, 0));
}

#[tokio::test]
async fn what_passes_is_not_kept() {
    let home = Home::new(3, 5_500).await;
    let reports = Arc::new(crate::tests::reports());
    let names = ["region", "account", "clicks", "part"];
    let account = Condition { column: 1, test: Test::Between(90, 4_100) };
    let scan = scan_of(&home, &names, ScanFilter::Test(account));
    let passing = Arc::new(ChunkScan { keeps: false, ..scan.as_ref().clone() });
    let expected = expected(&home, &names, |account, _| (90..=4_100).contains(&account));
    for _ in 0..2 {
        let found = all_rows(&reports, &passing, &home).await;
        assert_eq!(found.columns(), expected.columns());
        let cache = reports.cache_status();
        assert_eq!((cache.chunk_hits, cache.chunk_misses), (0, 0));
    }
    let kept = all_rows(&reports, &scan, &home).await;
    assert_eq!(kept.columns(), expected.columns());
    // What is there is used.
    let metrics = Arc::new(ReadMetrics::default());
    let open = reports.scan_file(&passing, &home.files[0], (0, 1), &metrics).await;
    let mut rows = open.unwrap().unwrap();
    while rows.next().await.unwrap().is_some() {}
    assert_eq!(metrics.counts().requests, 0);

    assert!(reports.passes(&scan, &home.files));
    let small = ReportOptions { cache_bytes_max: 0, ..ReportOptions::default() };
    assert!(!Reports::new(small).passes(&scan, &home.files), "as if there were no chunks");
    assert!(!reports.passes(&scan, &[]));
    let mut far = home.files[0].as_ref().clone();
    far.location = "s3://bucket/table/file.orc".to_owned();
    assert!(!reports.passes(&scan, &[Arc::new(far)]), "round trips");
}

#[tokio::test]
async fn row_groups_that_cannot_match_are_not_read() {
    let home = Home::new(1, 5_500).await;
    let reports = Arc::new(crate::tests::reports());
    let scan = scan_of(&home, &["account", "clicks"], account_in(250, 260));
    let metrics = Arc::new(ReadMetrics::default());
    let mut rows =
        reports.scan_file(&scan, &home.files[0], (0, 1), &metrics).await.unwrap().unwrap();
    while rows.next().await.unwrap().is_some() {}
    let work = rows.take_work();
    assert_eq!((work.row_groups_total, work.row_groups_read), (6, 1));
    assert_eq!((work.rows_read, work.rows_selected, work.chunk_misses), (1_000, 110, 2));
}

#[tokio::test]
async fn answers_are_right_without_any_room() {
    let home = Home::new(2, 3_000).await;
    let options = ReportOptions { cache_bytes_max: 0, ..ReportOptions::default() };
    let reports = Arc::new(Reports::new(options));
    let scan = scan_of(&home, &["account", "region"], account_in(17, 222));
    for _ in 0..2 {
        let found = all_rows(&reports, &scan, &home).await;
        let expected = expected(&home, &["account", "region"], |n, _| (17..=222).contains(&n));
        assert_eq!(found.columns(), expected.columns());
    }
    assert_eq!(reports.cache_status().bytes, 0);
    for statement in 0..2 {
        assert!(!reports.admits(&scan, &home.files, statement), "there is no room");
    }
}

#[tokio::test]
async fn columns_are_kept_from_the_second_scan_on() {
    let home = Home::new(2, 3_000).await;
    let reports = Arc::new(crate::tests::reports());
    let scan = |names: &[&str]| scan_of(&home, names, ScanFilter::All(Vec::new()));
    let admits = |names: &[&str], statement| reports.admits(&scan(names), &home.files, statement);
    assert!(!admits(&["account", "clicks"], 1));
    assert!(!admits(&["account", "clicks"], 1), "the same statement again");
    assert!(admits(&["clicks"], 2));
    assert!(admits(&["clicks"], 1), "another one has scanned it meanwhile");
    assert!(!admits(&["clicks", "region"], 3));
    assert!(!admits(&["clicks", "region"], 3));
    assert!(admits(&["clicks", "region"], 4));
    let small = ReportOptions { cache_bytes_max: 50_000, ..ReportOptions::default() };
    let small = Reports::new(small);
    for statement in 0..3 {
        let wanted = scan(&["clicks", "region"]);
        assert!(!small.admits(&wanted, &home.files, statement), "too large to be kept");
    }
    reports.clear();
    assert!(!admits(&["clicks"], 5));
}
