//! A report as a scan of files: which columns and rows it needs, and its answer from batches.
//!
//! In: a [`Report`] and batches that hold its rows and perhaps others. Out: options for the ORC
//! decoder, and the lines of the answer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use chrono::{Datelike, Days, NaiveDate};
use stoa_error::{Error, Result};
use stoa_orc::{ColumnRef, CompareOp, FileMetadata, Literal, Predicate, Projection, ReadOptions};

use crate::ad_report::DailySums;
use crate::report::Report;

/// The columns a report reads.
pub(crate) const REPORT_COLUMNS: [&str; 5] = ["account_id", "day", "impressions", "clicks", "cost"];

/// First and last day as Arrow's `Date32` holds them.
pub(crate) fn epoch_days(report: &Report) -> RangeInclusive<i32> {
    let number = |day: NaiveDate| day.num_days_from_ce() - NaiveDate::default().num_days_from_ce();
    number(report.first_day)..=number(report.last_day)
}

/// The top-level columns called `names`, as column ids of the file.
///
/// # Errors
/// `NotFound` for a column that the file does not have.
pub(crate) fn columns(file: &FileMetadata, names: &[&str]) -> Result<Vec<u32>> {
    names.iter().map(|name| column(file, name)).collect()
}

fn column(file: &FileMetadata, name: &str) -> Result<u32> {
    let root = file.types.get(0);
    let child = |root: &stoa_orc::OrcType| {
        let at = root.field_names.iter().position(|field| field == name)?;
        root.children.get(at).copied()
    };
    root.and_then(child).ok_or_else(|| Error::not_found(format!("the file has no column {name}")))
}

/// Options of a decoder that reads no more than the report needs.
///
/// # Errors
/// As [`columns`].
pub(crate) fn read_options(file: &FileMetadata, report: &Report) -> Result<ReadOptions> {
    let days = epoch_days(report);
    let compare = |name: &str, op, value| {
        column(file, name).map(|id| Predicate::Compare { column: ColumnRef::Id(id), op, value })
    };
    let predicate = Predicate::And(vec![
        compare("account_id", CompareOp::Eq, Literal::Int(report.account_id))?,
        compare("day", CompareOp::GtEq, Literal::Date(*days.start()))?,
        compare("day", CompareOp::LtEq, Literal::Date(*days.end()))?,
    ]);
    Ok(ReadOptions::default()
        .with_projection(Projection::Columns(columns(file, &REPORT_COLUMNS)?))
        .with_predicate(predicate))
}

/// Sums up the rows of a report.
#[derive(Clone, Debug)]
pub(crate) struct DailyTotals {
    account_id: i64,
    days: RangeInclusive<i32>,
    /// Impressions, clicks and cost by day.
    lines: BTreeMap<i32, [i64; 3]>,
}

impl DailyTotals {
    pub(crate) fn new(report: &Report) -> Self {
        let days = epoch_days(report);
        Self { account_id: report.account_id, days, lines: BTreeMap::new() }
    }

    /// Adds the rows of `batch` that belong to the report; it has all of [`REPORT_COLUMNS`].
    ///
    /// # Errors
    /// `Internal` if a column is missing or of another type than the table's.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let unfit = || Error::internal("a batch does not have the report's columns");
        let int = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int64Type>().map(|column| column.values().as_ref())
        };
        let accounts: &[i64] = int("account_id").ok_or_else(unfit)?;
        let days = batch.column_by_name("day").and_then(|day| day.as_primitive_opt::<Date32Type>());
        let days = days.ok_or_else(unfit)?.values();
        let metrics = ["impressions", "clicks", "cost"].map(int);
        let [Some(impressions), Some(clicks), Some(cost)] = metrics else { return Err(unfit()) };
        let metrics = impressions.iter().zip(clicks).zip(cost);
        for ((account, day), ((impressions, clicks), cost)) in
            accounts.iter().zip(days).zip(metrics)
        {
            if *account == self.account_id && self.days.contains(day) {
                let line = self.lines.entry(*day).or_default();
                for (sum, value) in line.iter_mut().zip([impressions, clicks, cost]) {
                    *sum += value;
                }
            }
        }
        Ok(())
    }

    /// The answer.
    pub(crate) fn finish(self) -> Vec<DailySums> {
        self.lines.into_iter().map(|(day, sums)| line(day, sums)).collect()
    }
}

/// A line of an answer; `day` in days since 1970.
pub(crate) fn line(day: i32, [impressions, clicks, cost]: [i64; 3]) -> DailySums {
    let day = NaiveDate::default() + Days::new(u64::try_from(day).unwrap_or_default());
    DailySums { day, impressions, clicks, cost }
}
