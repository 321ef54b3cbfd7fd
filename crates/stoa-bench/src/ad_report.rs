//! The table `ad_report`: which rows it has, and what a report over it must answer.
//!
//! Rows are numbered in account order; the rows of an account are spread over the days by the
//! calendar's weights. With *n* rows in the account, weights *C(d)* before day *d*, *T* in total and
//! a phase *p* < *T*, the account's rows before day *d* are ⌊(*n*·*C(d)* + *p*) / *T*⌋: integers only,
//! so every machine makes the same table, and exactly as many rows as asked for.
//!
//! ```text
//! chunk = one month × a run of accounts ─► rows sorted by (account_id, day)
//! ```

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chrono::NaiveDate;

use crate::accounts::Accounts;
use crate::calendar::Calendar;
use crate::rows::{Metrics, RowMaker};

/// What fixes the table: equal specs give equal tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdReportSpec {
    /// Rows in total.
    pub rows: u64,
    /// Accounts in total; small ones may have no row if rows are few. At least 1.
    pub accounts: u32,
    /// Any number.
    pub seed: u64,
}

impl Default for AdReportSpec {
    fn default() -> Self {
        Self { rows: 10_000_000, accounts: 100_000, seed: 20_150_101 }
    }
}

/// The table of a spec. Holds a few megabytes, no rows.
#[derive(Debug)]
pub struct AdReport {
    spec: AdReportSpec,
    accounts: Accounts,
    calendar: Calendar,
    rows: RowMaker,
}

/// A piece of the table that is made at once: one month of a run of accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the month, `0..13`.
    pub month: usize,
    /// Numbers of the accounts.
    pub accounts: Range<u32>,
    /// Rows in the chunk.
    pub rows: u64,
}

/// One line of a report's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailySums {
    /// The day.
    pub day: NaiveDate,
    /// Sum of impressions.
    pub impressions: i64,
    /// Sum of clicks.
    pub clicks: i64,
    /// Sum of cost, in millionths of the currency.
    pub cost: i64,
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let required = |name: &str, data_type| Field::new(name, data_type, false);
    Arc::new(Schema::new(vec![
        required("account_id", DataType::Int64),
        required("day", DataType::Date32),
        required("campaign_id", DataType::Int64),
        required("device", DataType::Utf8),
        required("region", DataType::Utf8),
        required("impressions", DataType::Int64),
        required("clicks", DataType::Int64),
        required("conversions", DataType::Int64),
        required("cost", DataType::Int64),
        required("revenue", DataType::Int64),
        Field::new("video_views", DataType::Int64, true),
    ]))
});

/// A chunk holds at least this many rows unless its month has fewer.
const CHUNK_ROWS: u64 = 1 << 18;

/// The day on which the table begins, and its months.
const FIRST_DAY: NaiveDate = match NaiveDate::from_ymd_opt(2024, 12, 1) {
    Some(day) => day,
    None => NaiveDate::MIN,
};
const MONTHS: u32 = 13;

impl AdReport {
    /// Lays the table out; takes milliseconds.
    pub fn new(spec: AdReportSpec) -> Self {
        let accounts = Accounts::new(spec.rows, spec.accounts.max(1), spec.seed);
        let calendar = Calendar::new(FIRST_DAY, MONTHS);
        let rows = RowMaker::new(spec.seed);
        Self { spec, accounts, calendar, rows }
    }

    /// The columns; all but `video_views` are never NULL.
    pub fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    /// What the table was made from.
    pub fn spec(&self) -> &AdReportSpec {
        &self.spec
    }

    /// First and last day, both inclusive.
    pub fn days(&self) -> (NaiveDate, NaiveDate) {
        (self.calendar.date(0), self.calendar.date(self.calendar.days() - 1))
    }

    /// The whole table in pieces: month after month, accounts ascending in each.
    pub fn chunks(&self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for (month, days) in self.calendar.months().iter().enumerate() {
            let mut chunk = Chunk { month, accounts: 0..0, rows: 0 };
            for account in 0..self.accounts.len() {
                let rows = self.rows_of(account, days);
                chunk.rows += rows.end - rows.start;
                chunk.accounts.end = account + 1;
                if chunk.rows >= CHUNK_ROWS {
                    let next = Chunk { month, accounts: account + 1..account + 1, rows: 0 };
                    chunks.push(std::mem::replace(&mut chunk, next));
                }
            }
            if chunk.rows > 0 {
                chunks.push(chunk);
            }
        }
        chunks
    }

    /// The pieces of [`chunks`](Self::chunks) in parts of whole months, each of at most `rows_max`
    /// rows unless it is one month: what is loaded, and thus sorted, at once.
    pub fn parts(&self, rows_max: u64) -> Vec<Vec<Chunk>> {
        let mut parts: Vec<Vec<Chunk>> = Vec::new();
        let mut rows = 0;
        for month in self.chunks().chunk_by(|a, b| a.month == b.month) {
            let of_month: u64 = month.iter().map(|chunk| chunk.rows).sum();
            match parts.last_mut().filter(|_| rows + of_month <= rows_max) {
                Some(part) => part.extend_from_slice(month),
                None => {
                    parts.push(month.to_vec());
                    rows = 0;
                }
            }
            rows += of_month;
        }
        parts
    }

    /// What the report of account number `account` must answer for days `days` (numbers, end
    /// exclusive): one line for each day that has rows, in order.
    pub fn expected(&self, account: u32, days: Range<u32>) -> Vec<DailySums> {
        let campaigns = self.accounts.campaigns(account);
        let mut lines = Vec::new();
        for day in days {
            let rows = self.rows_of(account, &(day..day + 1));
            if rows.is_empty() {
                continue;
            }
            let mut line =
                DailySums { day: self.calendar.date(day), impressions: 0, clicks: 0, cost: 0 };
            for row in rows {
                let metrics: Metrics = self.rows.metrics(row, campaigns);
                line.impressions += metrics.impressions;
                line.clicks += metrics.clicks;
                line.cost += metrics.cost;
            }
            lines.push(line);
        }
        lines
    }

    /// Row numbers of an account on a range of days.
    pub(crate) fn rows_of(&self, account: u32, days: &Range<u32>) -> Range<u64> {
        let spread = self.spread(account);
        spread.before(days.start)..spread.before(days.end)
    }

    /// How the rows of an account lie over the days.
    pub(crate) fn spread(&self, account: u32) -> Spread<'_> {
        let total = self.calendar.total();
        Spread {
            calendar: &self.calendar,
            start: self.accounts.start(account),
            rows: self.accounts.rows(account),
            phase: self.accounts.phase(account, total),
            total,
        }
    }

    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub(crate) fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    pub(crate) fn rows(&self) -> &RowMaker {
        &self.rows
    }
}

/// The formula of the module's doc, for one account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread<'a> {
    calendar: &'a Calendar,
    start: u64,
    rows: u64,
    phase: u64,
    total: u64,
}

impl Spread<'_> {
    /// Number of the account's first row on `day` or later.
    pub(crate) fn before(&self, day: u32) -> u64 {
        self.start + (self.rows * self.calendar.cumulative(day) + self.phase) / self.total
    }
}
