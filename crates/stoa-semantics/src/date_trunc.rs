//! `date_trunc(unit, time)` by the calendar: weeks, months and what is made of them; days and hours of instants.
//!
//! Shorter units of columns are the engine's: they are whole numbers of microseconds. These here reckon in days or
//! microseconds, so that every timestamp has them, not only those that nanoseconds reach (1677 to 2262).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Days, NaiveDate};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

use super::also::Also;
use super::call::{Operation, column, columns, failure};
use super::time_zone;

/// What a time is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    /// A unit of a second or longer; `None` for shorter ones, and what is none.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "second" | "seconds" => Self::Second,
            "minute" | "minutes" => Self::Minute,
            "hour" | "hours" => Self::Hour,
            "day" | "days" => Self::Day,
            "week" | "weeks" => Self::Week,
            "month" | "months" => Self::Month,
            "quarter" => Self::Quarter,
            "year" | "years" => Self::Year,
            "decade" | "decades" => Self::Decade,
            "century" | "centuries" => Self::Century,
            "millennium" | "millennia" => Self::Millennium,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
            Self::Decade => "decade",
            Self::Century => "century",
            Self::Millennium => "millennium",
        }
    }

    /// Whether it is of the same length everywhere.
    pub(super) fn is_fixed(self) -> bool {
        self.micros().is_some()
    }

    /// Its length; `None` where that is not the same everywhere.
    fn micros(self) -> Option<i64> {
        match self {
            Self::Second => Some(1_000_000),
            Self::Minute => Some(60_000_000),
            Self::Hour => Some(3_600_000_000),
            Self::Day => Some(86_400_000_000),
            _ => None,
        }
    }

    /// The first day of the unit that a day is in.
    fn first_day(self, day: NaiveDate) -> Option<NaiveDate> {
        let (year, month) = (day.year(), day.month());
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::Day => Some(day),
            Self::Week => {
                let since_monday = day.weekday().num_days_from_monday();
                day.checked_sub_days(Days::new(since_monday.into()))
            }
            Self::Month => NaiveDate::from_ymd_opt(year, month, 1),
            Self::Quarter => NaiveDate::from_ymd_opt(year, (month - 1) / 3 * 3 + 1, 1),
            Self::Year => NaiveDate::from_ymd_opt(year, 1, 1),
            Self::Decade => NaiveDate::from_ymd_opt(year.div_euclid(10) * 10, 1, 1),
            // The first one began with the year 1, the one before ended with the year before.
            Self::Century => NaiveDate::from_ymd_opt((year - 1).div_euclid(100) * 100 + 1, 1, 1),
            Self::Millennium => {
                NaiveDate::from_ymd_opt((year - 1).div_euclid(1000) * 1000 + 1, 1, 1)
            }
        }
    }

    fn cut(self, micros: i64) -> Result<i64> {
        if let Some(length) = self.micros() {
            return micros.checked_sub(micros.rem_euclid(length)).ok_or_else(out_of_range);
        }
        let day = DateTime::from_timestamp_micros(micros).map(|at| at.date_naive());
        let first =
            day.and_then(|day| self.first_day(day)).and_then(|day| day.and_hms_opt(0, 0, 0));
        // As long ago as that, a number of microseconds has no room for it.
        let seconds = first.ok_or_else(out_of_range)?.and_utc().timestamp();
        seconds.checked_mul(1_000_000).ok_or_else(out_of_range)
    }
}

fn out_of_range() -> DataFusionError {
    failure("22008", "timestamp out of range")
}

/// The function, for intervals and with a zone.
pub(super) static ALSO: [Also; 1] = [Also {
    name: "date_trunc",
    other_names: &["datetrunc"],
    engine: datafusion::functions::datetime::date_trunc,
    makes: |types| match types {
        [_, DataType::Interval(_)] => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
        [unit, DataType::Date32 | DataType::Timestamp(..), zone]
            if unit.is_string() && zone.is_string() =>
        {
            Some(time_zone::instant())
        }
        _ => None,
    },
}];

/// An instant, cut by the clock of a zone, which is the second operand: its hour may have come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CutInstant(pub(super) Unit);

impl Operation for CutInstant {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(time_zone::instant())
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("date_trunc({},{})", self.0.name(), operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let micros = columns.iter().map(|column| {
            let zone = match column.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
            Ok(micros.as_primitive::<TimestampMicrosecondType>().clone())
        });
        let micros = micros.collect::<Result<Vec<_>>>()?;
        let [instants, locals] = micros.as_slice() else {
            return Err(failure("42883", "an instant and its local time wanted"));
        };
        let cut = instants.iter().zip(locals).map(|pair| match pair {
            (Some(instant), Some(local)) => {
                let rest = local.checked_sub(self.0.cut(local)?).ok_or_else(out_of_range)?;
                instant.checked_sub(rest).map(Some).ok_or_else(out_of_range)
            }
            _ => Ok(None),
        });
        let cut = cut.collect::<Result<TimestampMicrosecondArray>>()?;
        Ok(Arc::new(cut.with_data_type(time_zone::instant())))
    }
}

/// An interval, cut to a unit: parts of it that are smaller are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CutInterval {
    To(Unit),
    Milliseconds,
    Microseconds,
}

impl CutInterval {
    /// # Errors
    /// A unit that intervals do not have (0A000), or that is none (22023).
    pub(super) fn named(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        Ok(match lower.as_str() {
            "week" | "weeks" | "w" => {
                let message = format!("unit \"{lower}\" not supported for type interval");
                return Err(failure("0A000", message));
            }
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Milliseconds,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Self::Microseconds,
            _ => {
                let message = || format!("unit \"{lower}\" not recognized for type interval");
                let unit = Unit::named(&lower).ok_or_else(|| failure("22023", message()))?;
                Self::To(unit)
            }
        })
    }

    fn cut(self, of: IntervalMonthDayNano) -> IntervalMonthDayNano {
        let IntervalMonthDayNano { months, days, nanoseconds } = of;
        let to_months = |unit: i32| IntervalMonthDayNano::new(months / unit * unit, 0, 0);
        let to_nanos =
            |unit: i64| IntervalMonthDayNano::new(months, days, nanoseconds / unit * unit);
        match self {
            Self::To(Unit::Millennium) => to_months(12_000),
            Self::To(Unit::Century) => to_months(1200),
            Self::To(Unit::Decade) => to_months(120),
            Self::To(Unit::Year) => to_months(12),
            Self::To(Unit::Quarter) => to_months(3),
            Self::To(Unit::Month | Unit::Week) => to_months(1),
            Self::To(Unit::Day) => IntervalMonthDayNano::new(months, days, 0),
            Self::To(Unit::Hour) => to_nanos(3_600_000_000_000),
            Self::To(Unit::Minute) => to_nanos(60_000_000_000),
            Self::To(Unit::Second) => to_nanos(1_000_000_000),
            Self::Milliseconds => to_nanos(1_000_000),
            Self::Microseconds => to_nanos(1000),
        }
    }
}

impl Operation for CutInterval {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let intervals = cast(&column(operands, rows)?, &self.result(&[])?)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        Ok(Arc::new(intervals.unary::<_, IntervalMonthDayNanoType>(|of| self.cut(of))))
    }
}

/// A time or an interval, cut to the unit that the first operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CutBy;

impl Operation for CutBy {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, of @ DataType::Timestamp(TimeUnit::Microsecond, _)] => Ok(of.clone()),
            [_, DataType::Interval(_)] => Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            _ => Err(failure("42883", "date_trunc wants a timestamp")),
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [units, values] = columns.as_slice() else {
            return Err(failure("42883", "a unit and a time wanted"));
        };
        let of = self.result(&[units.data_type().clone(), values.data_type().clone()])?;
        let units = cast(units, &DataType::Utf8)?;
        let units = units.as_string::<i32>();
        if let DataType::Interval(_) = of {
            let values = cast(values, &of)?;
            let values = values.as_primitive::<IntervalMonthDayNanoType>();
            let cut = units.iter().zip(values).map(|pair| match pair {
                (Some(unit), Some(value)) => Ok(Some(CutInterval::named(unit)?.cut(value))),
                _ => Ok(None),
            });
            let cut = cut.collect::<Result<IntervalMonthDayNanoArray>>()?;
            return Ok(Arc::new(cut));
        }
        let type_name = match of {
            DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
            _ => "timestamp without time zone",
        };
        let times = values.as_primitive::<TimestampMicrosecondType>();
        let cut = units.iter().zip(times).map(|pair| {
            let (Some(unit), Some(time)) = pair else { return Ok(None) };
            let lower = unit.to_ascii_lowercase();
            match lower.as_str() {
                "microsecond" | "microseconds" => return Ok(Some(time)),
                "millisecond" | "milliseconds" => {
                    return time
                        .checked_sub(time.rem_euclid(1000))
                        .map(Some)
                        .ok_or_else(out_of_range);
                }
                _ => {}
            }
            let not_recognized = || {
                failure("22023", format!("unit \"{lower}\" not recognized for type {type_name}"))
            };
            Unit::named(&lower).ok_or_else(not_recognized)?.cut(time).map(Some)
        });
        let cut = cut.collect::<Result<TimestampMicrosecondArray>>()?;
        Ok(Arc::new(cut.with_data_type(of)))
    }
}

/// A time in microseconds, cut to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CutTime(pub(super) Unit);

impl Operation for CutTime {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [of @ DataType::Timestamp(TimeUnit::Microsecond, _)] => Ok(of.clone()),
            _ => Err(failure("42883", "date_trunc wants a timestamp")),
        }
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("date_trunc({},{})", self.0.name(), operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        let of = self.result(&[column.data_type().clone()])?;
        let times = column.as_primitive::<TimestampMicrosecondType>().iter();
        let cut = times.map(|time| time.map(|time| self.0.cut(time)).transpose());
        let cut = cut.collect::<Result<TimestampMicrosecondArray>>()?;
        Ok(Arc::new(cut.with_data_type(of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_cut_to_the_first_of_their_unit() {
        let check = |unit: &str, day: &str, first: &str| {
            let day: NaiveDate = day.parse().unwrap();
            assert_eq!(Unit::named(unit).unwrap().first_day(day).unwrap().to_string(), first);
        };
        check("week", "2026-03-01", "2026-02-23");
        check("week", "1600-01-02", "1599-12-27");
        check("month", "3000-02-28", "3000-02-01");
        check("quarter", "2026-12-31", "2026-10-01");
        check("year", "0001-05-05", "0001-01-01");
        check("decade", "1999-05-05", "1990-01-01");
        check("century", "2000-12-31", "1901-01-01");
        check("century", "2001-01-01", "2001-01-01");
        check("millennium", "2000-12-31", "1001-01-01");
        check("day", "2000-12-31", "2000-12-31");
        assert_eq!(Unit::named("millisecond"), None);
        assert_eq!(Unit::Hour.cut(-1).unwrap(), -3_600_000_000);
        assert_eq!(Unit::Day.cut(-1).unwrap(), -86_400_000_000);
        // 3000-01-15 00:00:00
        assert_eq!(Unit::Month.cut(32_504_889_600_000_000).unwrap(), 32_503_680_000_000_000);
        assert!(Unit::Year.cut(i64::MIN).is_err());
    }
}
