//! `extract(field FROM value)`, `date_part(field, value)`.
//!
//! Seconds and what is counted in them have a fraction; all other fields are whole. All are `numeric`, so that
//! `extract(month FROM day) / 2` has a fraction, too; what `date_part` gives is cast to a double elsewhere.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, column, failure, unsupported};

const DAY_US: i64 = 86_400_000_000;

/// The type of fields without a fraction.
const WHOLE: DataType = DataType::Decimal128(10, 0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Field {
    Century,
    Day,
    Decade,
    Dow,
    Doy,
    Epoch,
    Hour,
    IsoDow,
    IsoYear,
    Microseconds,
    Millennium,
    Milliseconds,
    Minute,
    Month,
    Quarter,
    Second,
    Week,
    Year,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Time,
    TimeOfDay,
    Interval,
    Duration,
}

/// One field of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DatePart {
    field: Field,
    source: Source,
}

const FIELDS: [Field; 18] = [
    Field::Century,
    Field::Day,
    Field::Decade,
    Field::Dow,
    Field::Doy,
    Field::Epoch,
    Field::Hour,
    Field::IsoDow,
    Field::IsoYear,
    Field::Microseconds,
    Field::Millennium,
    Field::Milliseconds,
    Field::Minute,
    Field::Month,
    Field::Quarter,
    Field::Second,
    Field::Week,
    Field::Year,
];

/// All that there are, each with a name of its own, by which plans of other daemons find it.
static NAMES: LazyLock<Vec<(DatePart, String)>> = LazyLock::new(|| {
    let sources = [Source::Time, Source::TimeOfDay, Source::Interval, Source::Duration];
    let all = sources.into_iter().flat_map(|source| FIELDS.map(|field| DatePart { field, source }));
    let named = |part: DatePart| {
        let DatePart { field, source } = part;
        (part, format!("extract_{field:?}_of_{source:?}").to_ascii_lowercase())
    };
    all.map(named).collect()
});

/// The fields of all kinds of times.
pub(super) fn all() -> impl Iterator<Item = DatePart> {
    NAMES.iter().map(|(part, _)| *part)
}

impl DatePart {
    /// `None` where the engine must say that there is no such field, or no such value.
    pub(super) fn named(field: &str, of: &DataType) -> Option<Self> {
        let source = match of {
            DataType::Date32 | DataType::Timestamp(..) => Source::Time,
            DataType::Time32(_) | DataType::Time64(_) => Source::TimeOfDay,
            DataType::Interval(_) => Source::Interval,
            DataType::Duration(_) => Source::Duration,
            _ => return None,
        };
        let field = match field.to_ascii_lowercase().as_str() {
            "century" | "centuries" | "c" | "cent" => Field::Century,
            "day" | "days" | "d" => Field::Day,
            "decade" | "decades" | "dec" | "decs" => Field::Decade,
            "dow" => Field::Dow,
            "doy" => Field::Doy,
            "epoch" => Field::Epoch,
            "hour" | "hours" | "h" | "hr" | "hrs" => Field::Hour,
            "isodow" => Field::IsoDow,
            "isoyear" => Field::IsoYear,
            "microsecond" | "microseconds" | "us" | "usec" => Field::Microseconds,
            "millennium" | "millennia" | "mil" => Field::Millennium,
            "millisecond" | "milliseconds" | "ms" | "msec" => Field::Milliseconds,
            "minute" | "minutes" | "m" | "min" | "mins" => Field::Minute,
            "month" | "months" | "mon" | "mons" => Field::Month,
            "quarter" | "qtr" => Field::Quarter,
            "second" | "seconds" | "s" | "sec" | "secs" => Field::Second,
            "week" | "weeks" | "w" => Field::Week,
            "year" | "years" | "y" | "yr" | "yrs" => Field::Year,
            _ => return None,
        };
        Some(Self { field, source })
    }

    /// Whether it counts from an instant, so that no zone matters.
    pub(super) fn is_epoch(self) -> bool {
        self.field == Field::Epoch
    }

    /// Digits after the point; `None` for whole fields.
    fn scale(self) -> Option<i8> {
        match self.field {
            Field::Epoch | Field::Second => Some(6),
            Field::Milliseconds => Some(3),
            _ => None,
        }
    }

    /// The field of a value, in units of its last digit.
    fn of(self, parts: Parts) -> Result<i64> {
        let Parts { months, days, micros } = parts;
        let year = months.div_euclid(12);
        let within_minute = micros % 60_000_000;
        let is_time = self.source == Source::Time;
        Ok(match self.field {
            Field::Microseconds | Field::Milliseconds | Field::Second => within_minute,
            Field::Minute => micros / 60_000_000 % 60,
            Field::Hour => micros / 3_600_000_000,
            Field::Epoch if is_time => days
                .checked_mul(DAY_US)
                .and_then(|of| of.checked_add(micros))
                .ok_or_else(|| failure("22008", "timestamp out of range"))?,
            Field::Epoch => {
                // A year has 365.25 days, a month 30.
                let (years, months) = (months / 12, months % 12);
                let quarter_days = years * 1461 + (months * 30 + days) * 4;
                let micros_of_days = quarter_days.checked_mul(DAY_US / 4);
                let all = micros_of_days.and_then(|of| of.checked_add(micros));
                all.ok_or_else(|| failure("22008", "interval out of range"))?
            }
            Field::Day if is_time => date_of(days)?.day().into(),
            Field::Day => days,
            Field::Month if is_time => months.rem_euclid(12) + 1,
            Field::Month => months % 12,
            Field::Quarter if is_time => months.rem_euclid(12) / 3 + 1,
            Field::Quarter => months % 12 / 3 + 1,
            Field::Year if is_time => {
                if year > 0 {
                    year
                } else {
                    year - 1
                }
            }
            Field::Year => months / 12,
            Field::Decade if is_time => year.div_euclid(10),
            Field::Decade => months / 120,
            Field::Century if is_time => {
                if year > 0 {
                    (year + 99) / 100
                } else {
                    -((99 - (year - 1)) / 100)
                }
            }
            Field::Century => months / 1200,
            Field::Millennium if is_time => {
                if year > 0 {
                    (year + 999) / 1000
                } else {
                    -((999 - (year - 1)) / 1000)
                }
            }
            Field::Millennium => months / 12_000,
            Field::Dow => date_of(days)?.weekday().num_days_from_sunday().into(),
            Field::IsoDow => date_of(days)?.weekday().number_from_monday().into(),
            Field::Doy => date_of(days)?.ordinal().into(),
            Field::Week => date_of(days)?.iso_week().week().into(),
            Field::IsoYear => date_of(days)?.iso_week().year().into(),
        })
    }

    fn check(self) -> Result<()> {
        let needs_day = matches!(
            self.field,
            Field::Dow | Field::IsoDow | Field::Doy | Field::Week | Field::IsoYear
        );
        let needs_date = !matches!(
            self.field,
            Field::Hour
                | Field::Minute
                | Field::Second
                | Field::Milliseconds
                | Field::Microseconds
                | Field::Epoch
        );
        match self.source {
            Source::Interval | Source::Duration if needs_day => Err(unsupported(
                "this field of an interval is not supported by extract",
                "take it of a timestamp",
            )),
            Source::TimeOfDay if needs_date => Err(unsupported(
                "this field of a time of day is not supported by extract",
                "take it of a timestamp",
            )),
            _ => Ok(()),
        }
    }
}

/// Months, days and microseconds of an interval; of a time months from year 0, days from 1970 and
/// microseconds of the day.
#[derive(Clone, Copy)]
struct Parts {
    months: i64,
    days: i64,
    micros: i64,
}

fn date_of(days: i64) -> Result<chrono::NaiveDate> {
    DateTime::from_timestamp(days.saturating_mul(86_400), 0)
        .map(|at| at.date_naive())
        .ok_or_else(|| failure("22008", "timestamp out of range"))
}

impl Operation for DatePart {
    fn name(&self) -> &str {
        NAMES.iter().find(|(part, _)| part == self).map_or("extract", |(_, name)| name)
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        self.check()?;
        Ok(match self.scale() {
            Some(scale) => DataType::Decimal128(20, scale),
            None => WHOLE,
        })
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("extract({:?} FROM {})", self.field, operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let parts = self.parts(column)?;
        let values = parts.into_iter().map(|parts| parts.map(|parts| self.of(parts?)).transpose());
        let of = self.result(&[])?;
        let mut result = Decimal128Builder::with_capacity(rows).with_data_type(of);
        for value in values {
            result.append_option(value?.map(i128::from));
        }
        Ok(Arc::new(result.finish()))
    }
}

impl DatePart {
    fn parts(&self, column: &ArrayRef) -> Result<Vec<Option<Result<Parts>>>> {
        Ok(match self.source {
            Source::Time => {
                let zone = match column.data_type() {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    _ => None,
                };
                let times = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
                let times = times.as_primitive::<TimestampMicrosecondType>().iter();
                times.map(|time| time.map(of_time)).collect()
            }
            Source::TimeOfDay => {
                let times = cast(column, &DataType::Time64(TimeUnit::Microsecond))?;
                let times = cast(&times, &DataType::Int64)?;
                let times = times.as_primitive::<Int64Type>().iter();
                let of = |micros| Ok(Parts { months: 0, days: 0, micros });
                times.map(|time| time.map(of)).collect()
            }
            Source::Interval => {
                let intervals = cast(column, &DataType::Interval(IntervalUnit::MonthDayNano))?;
                let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
                let of = |of: IntervalMonthDayNano| {
                    let (months, days) = (of.months.into(), of.days.into());
                    Ok(Parts { months, days, micros: of.nanoseconds / 1000 })
                };
                intervals.iter().map(|interval| interval.map(of)).collect()
            }
            Source::Duration => {
                let micros = cast(column, &DataType::Duration(TimeUnit::Microsecond))?;
                let micros = cast(&micros, &DataType::Int64)?;
                let of = |of: i64| Ok(Parts { months: 0, days: of / DAY_US, micros: of % DAY_US });
                micros.as_primitive::<Int64Type>().iter().map(|time| time.map(of)).collect()
            }
        })
    }
}

fn of_time(micros: i64) -> Result<Parts> {
    let (days, micros) = (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US));
    let date = date_of(days)?;
    Ok(Parts { months: i64::from(date.year()) * 12 + i64::from(date.month0()), days, micros })
}
