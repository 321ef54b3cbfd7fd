//! Row groups that count as a whole: answers are those of a plain loop over the rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch,
};
use arrow_schema::{DataType, Field, Schema};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stoa_ingest::FreshRows;
use stoa_table::{SortTerm, Table, TableIdent, TableSpec, Warehouse, WriteOptions};

use super::{reports, sendable};
use crate::memory::Uncounted;
use crate::outcome::{Missing, Outcome};
use crate::report::{Aggregate, Column, Condition, Function, Item, Report, Test};
use crate::warm::columns_of;

const ROWS: i64 = 40_000;
const ACCOUNT: usize = 0;
const DAY: usize = 1;
const CLICKS: usize = 2;
const COST: usize = 3;
const SCORE: usize = 4;

/// A row, as numbers.
type Row = [Option<i128>; 4];

fn row(n: i64) -> Row {
    // Two large accounts of several days, and many small ones.
    let (account, day) = match n {
        0..20_000 => (0, n / 2_500),
        20_000..29_000 => (1, (n - 20_000) / 4_500),
        _ => (2 + (n - 29_000) / 10, n % 10),
    };
    let mixed = n.wrapping_mul(0x9e37_79b9).rem_euclid(1_009);
    let clicks = (n % 7 != 0 && !(5_000..7_500).contains(&n)).then_some(i128::from(mixed - 500));
    let cost = (n % 5 != 0).then(|| i128::from(mixed) * 10_i128.pow(6));
    [Some(account.into()), Some(day.into()), clicks, cost]
}

async fn table(directory: &std::path::Path) -> Table {
    let url = stoa_store::parse_location(directory.join("w").to_str().unwrap()).unwrap();
    let warehouse = Warehouse::open(&url).await.unwrap();
    let schema = Arc::new(Schema::new(vec![
        Field::new("account", DataType::Int64, false),
        Field::new("day", DataType::Date32, false),
        Field::new("clicks", DataType::Int32, true),
        Field::new("cost", DataType::Decimal128(20, 2), true),
        Field::new("score", DataType::Float64, true),
    ]));
    let spec = TableSpec {
        sort_by: vec![SortTerm::ascending("account"), SortTerm::ascending("day")],
        properties: BTreeMap::from([("stoa.orc.row-index-stride".to_owned(), "500".to_owned())]),
        ..TableSpec::new(schema.clone())
    };
    let ident = TableIdent::new("public", "costs");
    let table = warehouse.create_table(&ident, spec).await.unwrap();
    let column = |at: usize| (0..ROWS).map(move |n| row(n)[at]);
    let small = |value: Option<i128>| value.map(|value| value as i32);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(column(ACCOUNT).map(|value| value.map(|v| v as i64)).collect::<Int64Array>()),
        Arc::new(column(DAY).map(small).collect::<Date32Array>()),
        Arc::new(column(CLICKS).map(small).collect::<Int32Array>()),
        Arc::new(
            column(COST).collect::<Decimal128Array>().with_precision_and_scale(20, 2).unwrap(),
        ),
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(|n| n as f64))),
    ];
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(RecordBatch::try_new(schema, columns).unwrap()).await.unwrap();
    writer.commit().await.unwrap().table
}

fn holds(test: &Test, value: Option<i128>) -> bool {
    match (test, value) {
        (Test::IsNull, value) => value.is_none(),
        (Test::IsNotNull, value) => value.is_some(),
        (_, None) => false,
        (Test::Between(low, high), Some(value)) => (*low..=*high).contains(&value),
        (Test::OneOf(values), Some(value)) => values.contains(&value),
        (Test::NotEqual(other), Some(value)) => *other != value,
        _ => unreachable!("{test:?}"),
    }
}

fn drawn(columns: &[Column], random: &mut SmallRng) -> Report {
    let conditions = |random: &mut SmallRng| {
        let (column, ends) = match random.random_range(0..6) {
            0..3 => (ACCOUNT, (random.random_range(0..3), random.random_range(0..4))),
            3 => (DAY, (random.random_range(0..8), random.random_range(0..9))),
            4 => (CLICKS, (-500, random.random_range(0..600))),
            _ => (COST, (0, random.random_range(0..2_000_000_000))),
        };
        let test = match random.random_range(0..5) {
            0 | 1 => Test::Between(ends.0, ends.0 + ends.1),
            2 => Test::OneOf((ends.0..=ends.0 + ends.1.min(3)).collect()),
            3 => Test::NotEqual(ends.0),
            _ if random.random_bool(0.5) => Test::IsNotNull,
            _ => Test::IsNull,
        };
        Condition { column, test }
    };
    let conditions = (0..random.random_range(0..3)).map(|_| conditions(random)).collect();
    let group_by = [vec![], vec![DAY], vec![ACCOUNT], vec![ACCOUNT, DAY], vec![DAY, CLICKS]];
    let group_by = group_by[random.random_range(0..5)].clone();
    let functions = [Function::Count, Function::Sum, Function::Min, Function::Max];
    let aggregates = (0..random.random_range(1..4)).map(|_| {
        let function = functions[random.random_range(0..4)];
        let column = [CLICKS, COST, DAY, ACCOUNT][random.random_range(0..4)];
        let is_day = column == DAY && function == Function::Sum;
        match random.random_range(0..5) {
            0 => Aggregate { function: Function::Count, column: None },
            _ => Aggregate { function, column: Some(if is_day { CLICKS } else { column }) },
        }
    });
    let aggregates: Vec<Aggregate> = aggregates.collect();
    let keys = group_by.iter().copied().map(Item::Column);
    let items: Vec<Item> = keys.chain((0..aggregates.len()).map(Item::Aggregate)).collect();
    let type_of = |item: &Item| {
        let of = |column: usize| columns[column].data_type.clone();
        match item {
            Item::Column(column) => of(*column),
            Item::Aggregate(index) => match aggregates[*index] {
                Aggregate { function: Function::Min | Function::Max, column } => {
                    of(column.unwrap())
                }
                Aggregate { function: Function::Sum, column: Some(COST) } => {
                    DataType::Decimal128(38, 2)
                }
                _ => DataType::Int64,
            },
        }
    };
    let fields = items.iter().map(|item| Field::new("", type_of(item), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Report {
        columns: columns.to_vec(),
        conditions,
        grouped: true,
        group_by,
        aggregates,
        items,
        schema,
        order: vec![],
        offset: 0,
        limit: None,
    }
}

/// Keys and aggregates of each group, in their order.
fn expected(report: &Report) -> Vec<Vec<Option<i128>>> {
    let mut groups: BTreeMap<Vec<Option<i128>>, Vec<Row>> = BTreeMap::new();
    if report.group_by.is_empty() {
        groups.insert(vec![], vec![]);
    }
    let all = (0..ROWS).map(row);
    let meets = |row: &Row| {
        report.conditions.iter().all(|condition| holds(&condition.test, row[condition.column]))
    };
    for row in all.filter(meets) {
        let key = report.group_by.iter().map(|column| row[*column]).collect();
        groups.entry(key).or_default().push(row);
    }
    let line = |(key, rows): (Vec<Option<i128>>, Vec<Row>)| {
        let values = report.aggregates.iter().map(|aggregate| {
            let values = || rows.iter().filter_map(|row| row[aggregate.column?]);
            match (aggregate.function, aggregate.column) {
                (_, None) => Some(rows.len() as i128),
                (Function::Count, _) => Some(values().count() as i128),
                (Function::Sum, _) => values().next().map(|_| values().sum()),
                (Function::Min, _) => values().min(),
                (_, _) => values().max(),
            }
        });
        key.into_iter().chain(values).collect()
    };
    groups.into_iter().map(line).collect()
}

fn lines(batch: &RecordBatch) -> Vec<Vec<Option<i128>>> {
    let number = |array: &ArrayRef, row: usize| {
        array.is_valid(row).then(|| match array.data_type() {
            DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
            DataType::Date32 => array.as_primitive::<Date32Type>().value(row).into(),
            _ => array.as_primitive::<Decimal128Type>().value(row),
        })
    };
    let line = |row| batch.columns().iter().map(|array| number(array, row)).collect();
    let mut lines: Vec<Vec<_>> = (0..batch.num_rows()).map(line).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn what_counts_as_a_whole_comes_to_what_its_rows_do() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(directory.path()).await;
    let columns = columns_of(&table);
    let mut random = SmallRng::seed_from_u64(19);
    let mut taken = 0;
    let reports = reports();
    for number in 0..600 {
        let report = drawn(&columns, &mut random);
        let fresh = FreshRows::none(&table);
        let answer = sendable(reports.run(&table, &fresh, &report)).await.unwrap().unwrap();
        assert_eq!(lines(&answer.batch), expected(&report), "{number}: {report:?}");
        // Selected without being read.
        taken += u32::from(answer.work.rows_selected > answer.work.rows_read);
    }
    assert!(taken > 100, "{taken}");
}

/// Everything is in the indexes: nothing of the columns is read.
#[tokio::test]
async fn a_report_on_all_rows_reads_no_column() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(directory.path()).await;
    let columns = columns_of(&table);
    let mut report = drawn(&columns, &mut SmallRng::seed_from_u64(1));
    report.conditions = vec![Condition { column: DAY, test: Test::IsNotNull }];
    report.group_by = vec![];
    let aggregate = |function, column| Aggregate { function, column };
    report.aggregates = vec![
        aggregate(Function::Count, None),
        aggregate(Function::Max, Some(DAY)),
        aggregate(Function::Sum, Some(CLICKS)),
        aggregate(Function::Count, Some(SCORE)),
    ];
    report.items = (0..4).map(Item::Aggregate).collect();
    let types = [DataType::Int64, DataType::Date32, DataType::Int64, DataType::Int64];
    let fields: Vec<Field> = types.map(|of| Field::new("", of, true)).to_vec();
    report.schema = Arc::new(Schema::new(fields));
    let (reports, fresh) = (reports(), FreshRows::none(&table));
    let answer = reports.run(&table, &fresh, &report).await.unwrap().unwrap();
    assert_eq!((answer.work.chunk_misses, answer.work.rows_read), (0, 0));
    assert_eq!(answer.work.rows_selected, ROWS as u64);
    let sum: i128 = (0..ROWS).filter_map(|n| row(n)[CLICKS]).sum();
    let wanted = [Some(ROWS.into()), Some(9), Some(sum), Some(ROWS.into())];
    assert_eq!(lines(&answer.batch), [wanted.to_vec()]);
    // In memory, so that nothing is asked of the files.
    let again =
        reports.run_reading(&table, &fresh, &report, &Uncounted, Missing::Leave).await.unwrap();
    let Outcome::Done(again) = again else { panic!("it is not in memory") };
    assert_eq!(again.batch, answer.batch);
    // The sum of floating-point numbers depends on their order.
    report.aggregates = vec![aggregate(Function::Sum, Some(SCORE))];
    report.items = vec![Item::Aggregate(0)];
    report.schema = Arc::new(Schema::new(vec![Field::new("", DataType::Float64, true)]));
    let answer = reports.run(&table, &fresh, &report).await.unwrap().unwrap();
    assert_eq!(answer.work.rows_read, ROWS as u64);
}
