//! Reports that are answered on parts of a table each, and put together: what one daemon would answer.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use bytes::BytesMut;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stoa_ingest::FreshRows;

use super::{Home, report, reports, sendable};
use crate::decimal::NUMERIC_SCALE;
use crate::memory::Uncounted;
use crate::outcome::Answer;
use crate::report::{Aggregate, Condition, Function, Item, Order, Report, Test};
use crate::reports::{ReportOptions, Reports};
use crate::warm::columns_of;
use crate::{PARTS, PartSet};

/// A report of these functions over clicks, by region, account, both or neither.
fn drawn(home: &Home, random: &mut SmallRng) -> Report {
    let low = random.random_range(0..4000);
    let high = low + random.random_range(0..3000);
    let mut drawn = report(&home.table, low, high);
    if random.random_bool(0.2) {
        let test = Test::TextOneOf(vec!["eu".into()]);
        drawn.conditions.push(Condition { column: 1, test });
    }
    let functions = [Function::Count, Function::Sum, Function::Min, Function::Max, Function::Mean];
    drawn.group_by = match random.random_range(0..4) {
        0 => vec![],
        1 => vec![1],
        2 => vec![0],
        _ => vec![1, 0],
    };
    drawn.aggregates = (0..random.random_range(1..4))
        .map(|_| Aggregate { function: functions[random.random_range(0..5)], column: Some(2) })
        .collect();
    drawn.aggregates.push(Aggregate { function: Function::Min, column: Some(1) });
    let keys = drawn.group_by.iter().copied().map(Item::Column);
    drawn.items = keys.chain((0..drawn.aggregates.len()).map(Item::Aggregate)).collect();
    let type_of = |item: &Item| match item {
        Item::Column(column) => drawn.columns[*column].data_type.clone(),
        Item::Aggregate(index) => match drawn.aggregates[*index] {
            Aggregate { function: Function::Mean, .. } => DataType::Decimal256(76, NUMERIC_SCALE),
            Aggregate { column: Some(1), .. } => DataType::Utf8,
            _ => DataType::Int64,
        },
    };
    let fields = drawn.items.iter().map(|item| Field::new("", type_of(item), true));
    drawn.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    // All keys, so that the order says it all.
    let by = drawn.items.iter().copied();
    let order = |by| Order { by, descending: random.random_bool(0.5), nulls_first: true };
    drawn.order = by.rev().map(order).collect();
    if random.random_bool(0.5) {
        (drawn.offset, drawn.limit) = (random.random_range(0..3), Some(random.random_range(0..9)));
    }
    drawn
}

async fn on_parts(home: &Home, daemon: &Reports, asked: &Report, parts: &PartSet) -> Answer {
    let account = columns_of(&home.table)[1].field_id;
    let fresh = FreshRows::none(&home.table);
    let run = daemon.run_parts(&home.table, &fresh, asked, (account, parts), &Uncounted);
    let answer = sendable(run).await.unwrap().unwrap();
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes).unwrap();
    Answer::decode(bytes.freeze(), &asked.schema).unwrap()
}

#[tokio::test]
async fn answers_on_parts_are_put_together_to_that_on_all() {
    // Row groups end in the middle of accounts, and elsewhere in each file.
    let home = Home::spread(&[7, 230, 13], 50_000).await;
    let (whole, daemons) = (reports(), [reports(), reports(), reports()]);
    let mut random = SmallRng::seed_from_u64(16);
    let account = columns_of(&home.table)[1].field_id;
    let mut rows = 0;
    for number in 0..200 {
        let asked = drawn(&home, &mut random);
        // Those of which the report is said to be, and no other, have a daemon.
        let all = whole.parts(&home.table, &asked, account).await.unwrap().unwrap();
        let mut parts = [PartSet::default(); 3];
        all.iter().for_each(|part| parts[random.random_range(0..3)].insert(part));
        let partial = asked.partial().unwrap();
        let mut answers = Vec::new();
        for (daemon, parts) in daemons.iter().zip(&parts) {
            answers.push(on_parts(&home, daemon, &partial, parts).await);
        }
        let found = whole.combine(&asked, &answers, &Uncounted).await.unwrap().unwrap();
        let expected = home.ask(&whole, &asked).await;
        assert_eq!(found.batch, expected.batch, "report {number}: {asked:?}");
        let work = (found.work.rows_read, found.work.rows_selected, found.work.row_groups_read);
        let of_one = expected.work;
        assert_eq!(work, (of_one.rows_read, of_one.rows_selected, of_one.row_groups_read));
        rows += found.batch.num_rows();
    }
    assert!(rows > 1000, "{rows}");
}

#[tokio::test]
async fn what_cannot_be_put_together_is_not_parted() {
    let home = Home::new(1, 2000).await;
    let good = report(&home.table, 0, 100);
    assert!(good.partial().is_some());
    assert!(Report { grouped: false, ..good.clone() }.partial().is_none(), "rows");
    let mut floats = good.clone();
    floats.columns[2].data_type = DataType::Float64;
    assert!(floats.partial().is_none(), "their sum depends on the order");

    let (one, partial) = (reports(), good.partial().unwrap());
    let account = columns_of(&home.table)[1].field_id;
    let fresh = FreshRows::none(&home.table);
    let mut all = PartSet::default();
    (0..PARTS + 7).for_each(|part| all.insert(part));
    assert!(all.contains(PARTS - 1) && !all.contains(PARTS));
    assert_eq!(PartSet::of_words(all.words()), all);
    let clicks = account + 2;
    let run = one.run_parts(&home.table, &fresh, &partial, (clicks, &all), &Uncounted);
    assert!(run.await.unwrap().is_none(), "no condition on the first sort column");

    let answer = on_parts(&home, &one, &partial, &all).await;
    let none = on_parts(&home, &one, &partial, &PartSet::default()).await;
    assert_eq!(none.batch.num_rows(), 0);
    let few = Reports::new(ReportOptions { answer_rows_max: 2, ..ReportOptions::default() });
    let combined = few.combine(&good, std::slice::from_ref(&answer), &Uncounted).await.unwrap();
    assert!(combined.is_none(), "too many groups");
    let other = Report { group_by: vec![1, 0], ..good.clone() };
    let error = one.combine(&other, &[answer], &Uncounted).await.unwrap_err();
    assert!(error.to_string().contains("answered as another"), "{error}");
}
