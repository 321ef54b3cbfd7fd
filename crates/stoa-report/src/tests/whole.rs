//! What is missing is an error, never another answer.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use stoa_error::{Error, ErrorKind};
use stoa_ingest::FreshRows;

use super::{Home, report};
use crate::cache::Key;
use crate::chunk::Chunk;
use crate::report::{Aggregate, Condition, Function, Item, Report, Test};
use crate::reports::{ReportOptions, Reports};

async fn refused(home: &Home, reports: &Reports, report: &Report) -> Error {
    let fresh = FreshRows::none(&home.table);
    let error = reports.run(&home.table, &fresh, report).await.err().unwrap();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Internal, "XX000"), "{error}");
    error
}

#[tokio::test]
async fn a_report_whose_parts_do_not_fit_is_refused() {
    let home = Home::new(1, 2000).await;
    let reports = Reports::new(ReportOptions::default());
    let good = report(&home.table, 10, 20);
    home.ask(&reports, &good).await;
    let width = good.columns.len();
    type Breaks = Box<dyn Fn(&mut Report)>;
    let broken: Vec<(&str, Breaks)> = vec![
        ("no such column", Box::new(move |report| report.conditions[0].column = width)),
        (
            "another kind",
            Box::new(|report| report.conditions[0].test = Test::TextNotEqual("x".into())),
        ),
        (
            "one more condition",
            Box::new(move |report| {
                report.conditions.push(Condition { column: width + 3, test: Test::IsNull });
            }),
        ),
        ("no such group", Box::new(move |report| report.group_by.push(width))),
        ("no such item", Box::new(|report| report.items[0] = Item::Aggregate(9))),
        ("too few items", Box::new(|report| report.items.truncate(2))),
        (
            "no such sum",
            Box::new(move |report| {
                let column = Some(width);
                report.aggregates.push(Aggregate { function: Function::Sum, column });
            }),
        ),
    ];
    for (what, spoil) in broken {
        let mut report = good.clone();
        spoil(&mut report);
        let error = refused(&home, &reports, &report).await;
        assert!(error.to_string().contains("of a report"), "{what}: {error}");
    }
    home.ask(&reports, &good).await;
}

#[tokio::test]
async fn columns_with_rows_missing_are_no_answer() {
    let home = Home::new(1, 2000).await;
    let reports = Reports::new(ReportOptions::default());
    let report = report(&home.table, 10, 20);
    let answer = home.ask(&reports, &report).await;
    let file = reports.numbers.number(home.files[0].clone()).number;
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..999));
    for column in &report.columns {
        let key = Key::Chunk { file, group: 0, field: column.field_id };
        let whole = reports.cache.chunk(key).unwrap();
        reports.cache.put_chunk(key, Arc::new(Chunk::of(&values).unwrap()));
        let error = refused(&home, &reports, &report).await;
        assert!(error.to_string().contains("went missing"), "{error}");
        reports.cache.put_chunk(key, whole);
    }
    assert_eq!(home.ask(&reports, &report).await.batch, answer.batch);
}
