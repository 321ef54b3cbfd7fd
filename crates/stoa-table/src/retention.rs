//! Rows that are too old leave the table, whole table partitions at a time.
//!
//! In: the table property `stoa.retention`, such as `13 months`. Out: a delete commit without the
//! partitions in which every row is older than that, by the time column that the table is
//! partitioned by. No data file is read; a partition that is only partly too old stays.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Days, Months, TimeDelta, Utc};
use futures::future::BoxFuture;
use iceberg::spec::PrimitiveType;
use stoa_error::{Error, Result};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};

use crate::rewrite::{RewriteOptions, RewriteOutcome};
use crate::write::CommitOutcome;
use crate::{Table, Transform};

/// The table property that says how long rows are kept.
pub(crate) const RETENTION: &str = "stoa.retention";

/// A stretch of time in the units of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    number: u32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Hours,
    Days,
    Weeks,
    Months,
    Years,
}

impl FromStr for Retention {
    type Err = Error;

    /// `<number> <unit>`, the unit being hour, day, week, month or year, or its plural.
    fn from_str(text: &str) -> Result<Self> {
        let unusable = || {
            Error::invalid(format!("retention {text:?} cannot be used"))
                .with_hint("write it as in '13 months': hours, days, weeks, months or years")
        };
        let (number, unit) = text.trim().split_once(' ').ok_or_else(unusable)?;
        let number: u32 = number.parse().ok().filter(|n| *n > 0).ok_or_else(unusable)?;
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "hour" | "hours" => Unit::Hours,
            "day" | "days" => Unit::Days,
            "week" | "weeks" => Unit::Weeks,
            "month" | "months" => Unit::Months,
            "year" | "years" => Unit::Years,
            _ => return Err(unusable()),
        };
        Ok(Self { number, unit })
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Hours => "hours",
            Unit::Days => "days",
            Unit::Weeks => "weeks",
            Unit::Months => "months",
            Unit::Years => "years",
        };
        write!(f, "{} {unit}", self.number)
    }
}

impl Retention {
    /// The moment that lies this long before `now`; `None` before the beginning of time.
    pub fn before(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let number = self.number;
        match self.unit {
            Unit::Hours => now.checked_sub_signed(TimeDelta::try_hours(number.into())?),
            Unit::Days => now.checked_sub_days(Days::new(number.into())),
            Unit::Weeks => now.checked_sub_days(Days::new(u64::from(number) * 7)),
            Unit::Months => now.checked_sub_months(Months::new(number)),
            Unit::Years => now.checked_sub_months(Months::new(number.checked_mul(12)?)),
        }
    }
}

impl Table {
    /// How long rows are kept; `None` for ever.
    ///
    /// # Errors
    /// `Invalid` where the property cannot be read.
    pub fn retention(&self) -> Result<Option<Retention>> {
        let text = self.property(RETENTION);
        text.map(|text| text.parse().map_err(|e: Error| e.at(self.ident().to_string()))).transpose()
    }

    /// Removes the partitions that the table's retention does not keep; `None` without retention.
    ///
    /// # Errors
    /// `Invalid` where the table has a retention but is not partitioned by time; otherwise as every
    /// commit.
    pub fn apply_retention(&self) -> BoxFuture<'_, Result<Option<CommitOutcome>>> {
        Box::pin(async move {
            let Some(retention) = self.retention()? else { return Ok(None) };
            match retention.before(self.warehouse().env().now_utc()) {
                Some(moment) => self.remove_partitions_before(moment).await.map(Some),
                None => Ok(Some(CommitOutcome::nothing(self.clone()))),
            }
        })
    }

    /// Removes all table partitions in which every row is of a time before `moment`.
    ///
    /// # Errors
    /// As [`Self::apply_retention`].
    pub fn remove_partitions_before(
        &self,
        moment: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<CommitOutcome>> {
        Box::pin(async move {
            let older = older_than(self, moment)?;
            let mut rewrite = self.rewrite(RewriteOptions::default())?;
            rewrite.remove_whole_partitions(older)?;
            rewrite.commit().await.and_then(RewriteOutcome::committed)
        })
    }
}

/// `column < moment` on the time column that the table is partitioned by.
fn older_than(table: &Table, moment: DateTime<Utc>) -> Result<Predicate> {
    let schema = table.metadata().current_schema();
    let bound = |field: &iceberg::spec::PartitionField| {
        let keeps_time = match Transform::from_iceberg(field.transform)? {
            Transform::Identity
            | Transform::Year
            | Transform::Month
            | Transform::Day
            | Transform::Hour => true,
            Transform::Bucket(_) | Transform::Truncate(_) | Transform::Void => false,
        };
        let column = schema.field_by_id(field.source_id).filter(|_| keeps_time)?;
        let value = match column.field_type.as_primitive_type()? {
            PrimitiveType::Date => {
                let days = moment.timestamp().div_euclid(24 * 60 * 60);
                Literal::Date(i32::try_from(days).ok()?)
            }
            PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
                Literal::TimestampMicros(moment.timestamp_micros())
            }
            _ => return None,
        };
        Some((field.source_id, value))
    };
    let found = table.partition_spec().fields().iter().find_map(bound);
    let (source_id, value) = found.ok_or_else(|| {
        Error::invalid(format!("table {} is not partitioned by time", table.ident()))
            .with_hint("partition it by a date or timestamp column, or unset stoa.retention")
    })?;
    Ok(Predicate::Compare { column: ColumnRef::Field(source_id), op: CompareOp::Lt, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_count_in_the_calendar() {
        let now: DateTime<Utc> = "2016-03-31T12:00:00Z".parse().unwrap();
        let check = |text: &str, expected: &str| {
            let retention: Retention = text.parse().unwrap();
            assert_eq!(retention.before(now).unwrap().to_rfc3339(), expected, "{text}");
            assert_eq!(retention.to_string().parse::<Retention>().unwrap(), retention);
        };
        check("13 months", "2015-02-28T12:00:00+00:00");
        check("1 year", "2015-03-31T12:00:00+00:00");
        check(" 2 Weeks ", "2016-03-17T12:00:00+00:00");
        check("36 hours", "2016-03-30T00:00:00+00:00");
        check("1 day", "2016-03-30T12:00:00+00:00");
        for wrong in ["", "months", "13", "13months", "-1 day", "0 days", "1 fortnight", "1.5 days"]
        {
            assert_eq!(wrong.parse::<Retention>().unwrap_err().sqlstate(), "22023", "{wrong}");
        }
        assert_eq!("4294967295 years".parse::<Retention>().unwrap().before(now), None);
    }
}
