//! The report that users ask for, and who asks when.
//!
//! Accounts are picked in proportion to their rows: large advertisers look at their figures more
//! often. The range is the last 1–31 days before some recent day; half of all reports end on the
//! table's last day or the day before.

use std::ops::Range;
use std::sync::Arc;

use chrono::NaiveDate;

use crate::accounts::Accounts;
use crate::ad_report::{AdReport, DailySums};
use crate::mix::Sequence;

/// One report to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    account: u32,
    days: Range<u32>,
    /// The account's id, `$1` of [`Report::sql`].
    pub account_id: i64,
    /// First day, `$2`.
    pub first_day: NaiveDate,
    /// Last day (inclusive), `$3`.
    pub last_day: NaiveDate,
}

impl Report {
    /// The statement on `table`, with parameters.
    pub fn sql(table: &str) -> String {
        statement(table, "$1", "$2 AND $3")
    }

    /// The statement with literals in place of the parameters.
    pub fn literal_sql(&self, table: &str) -> String {
        let days = format!("DATE '{}' AND DATE '{}'", self.first_day, self.last_day);
        statement(table, &self.account_id.to_string(), &days)
    }

    /// What the answer must be.
    pub fn expected(&self, table: &AdReport) -> Vec<DailySums> {
        table.expected(self.account, self.days.clone())
    }
}

fn statement(table: &str, account: &str, days: &str) -> String {
    format!(
        "SELECT account_id, day, sum(impressions), sum(clicks), sum(cost) FROM {table} \
         WHERE account_id = {account} AND day BETWEEN {days} \
         GROUP BY account_id, day ORDER BY day"
    )
}

/// A repeatable sequence of reports.
#[derive(Clone, Debug)]
pub struct ReportPicker {
    table: Arc<AdReport>,
    sequence: Sequence,
}

impl ReportPicker {
    /// Pickers with different seeds ask for different reports.
    pub fn new(table: Arc<AdReport>, seed: u64) -> Self {
        Self { table, sequence: Sequence::new(seed) }
    }

    /// The next report.
    pub fn pick(&mut self) -> Report {
        let account = self.pick_account();
        let days = match self.sequence.below(10) {
            0..3 => 1,
            3..6 => 7,
            6..8 => 31,
            _ => 1 + self.sequence.below(31) as u32,
        };
        self.recent(account, days)
    }

    /// The next report, over `days` days (at least 1).
    pub fn pick_days(&mut self, days: u32) -> Report {
        let account = self.pick_account();
        self.recent(account, days)
    }

    fn pick_account(&mut self) -> u32 {
        let rows = self.table.spec().rows.max(1);
        self.table.accounts().owner(self.sequence.below(rows))
    }

    /// A report of `length` days that end on a recent one.
    fn recent(&mut self, account: u32, length: u32) -> Report {
        let calendar = self.table.calendar();
        // Exponential with a mean of three days: most look at the newest days.
        let age = (-self.sequence.unit().max(f64::MIN_POSITIVE).ln() * 3.0) as u32;
        let end = calendar.days().saturating_sub(age).max(1);
        let days = end.saturating_sub(length)..end;
        Report {
            account,
            account_id: Accounts::id(account),
            first_day: calendar.date(days.start),
            last_day: calendar.date(days.end - 1),
            days,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdReportSpec;

    #[test]
    fn reports_are_repeatable_recent_and_skewed() {
        let spec = AdReportSpec { rows: 100_000, accounts: 1_000, seed: 3 };
        let table = Arc::new(AdReport::new(spec));
        let picks = |seed| {
            let mut picker = ReportPicker::new(Arc::clone(&table), seed);
            (0..1000).map(|_| picker.pick()).collect::<Vec<_>>()
        };
        assert_eq!(picks(1), picks(1));
        assert_ne!(picks(1), picks(2));
        let reports = picks(1);
        let newest = table.days().1;
        let recent = reports.iter().filter(|r| (newest - r.last_day).num_days() <= 3).count();
        assert!(recent > 600, "{recent}");
        assert!(reports.iter().all(|r| (0..31).contains(&(r.last_day - r.first_day).num_days())));
        let accounts: std::collections::BTreeSet<_> = reports.iter().map(|r| r.account).collect();
        assert!((100..700).contains(&accounts.len()), "{}", accounts.len());
    }
}
