//! The days of the table: thirteen calendar months, each day with a weight.
//!
//! Weights follow the week (weekends are quieter) and grow slowly, as an advertising platform does.

use std::ops::Range;

use chrono::{Datelike, Days, Months, NaiveDate, Weekday};

/// Days are counted from the first one, `0..days()`.
#[derive(Debug)]
pub(crate) struct Calendar {
    first: NaiveDate,
    /// `cumulative[d]` = weight of all days before day `d`; one entry more than days.
    cumulative: Vec<u64>,
    /// Days of each month, as ranges of day numbers.
    months: Vec<Range<u32>>,
}

impl Calendar {
    /// `first` is the first day of a month.
    pub(crate) fn new(first: NaiveDate, months: u32) -> Self {
        let mut ranges = Vec::new();
        let mut start = 0;
        for month in 0..months {
            let end = days_between(first, first + Months::new(month + 1));
            ranges.push(start..end);
            start = end;
        }
        let mut cumulative = vec![0];
        let mut total = 0;
        for day in 0..start {
            total += weight(first + Days::new(u64::from(day)), day);
            cumulative.push(total);
        }
        Self { first, cumulative, months: ranges }
    }

    pub(crate) fn days(&self) -> u32 {
        (self.cumulative.len() - 1) as u32
    }

    pub(crate) fn months(&self) -> &[Range<u32>] {
        &self.months
    }

    /// Weight of all days before `day`; `day` may equal `days()`.
    pub(crate) fn cumulative(&self, day: u32) -> u64 {
        self.cumulative[day as usize]
    }

    pub(crate) fn total(&self) -> u64 {
        self.cumulative(self.days())
    }

    pub(crate) fn date(&self, day: u32) -> NaiveDate {
        self.first + Days::new(u64::from(day))
    }

    /// Days from 1970-01-01 to the first day: what Arrow's `Date32` holds.
    pub(crate) fn first_epoch_day(&self) -> i32 {
        self.first.num_days_from_ce() - NaiveDate::default().num_days_from_ce()
    }
}

fn days_between(from: NaiveDate, to: NaiveDate) -> u32 {
    (to.num_days_from_ce() - from.num_days_from_ce()).max(0) as u32
}

fn weight(date: NaiveDate, day: u32) -> u64 {
    let week = match date.weekday() {
        Weekday::Sat => 80,
        Weekday::Sun => 75,
        _ => 100,
    };
    week * (1000 + u64::from(day)) / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirteen_months_hold_every_day_once() {
        let calendar = Calendar::new(NaiveDate::from_ymd_opt(2024, 12, 1).unwrap(), 13);
        assert_eq!(calendar.days(), 396);
        assert_eq!(calendar.months().len(), 13);
        assert_eq!(calendar.months()[0], 0..31);
        assert_eq!(calendar.months()[12].end, 396);
        assert_eq!(calendar.date(395), NaiveDate::from_ymd_opt(2025, 12, 31).unwrap());
        assert_eq!(calendar.first_epoch_day(), 20058);
    }
}
