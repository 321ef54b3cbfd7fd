//! Functions on times and intervals that the engine has not, or computes otherwise.
//!
//! Source: PostgreSQL's `timestamp.c`, whose order of computing with floats is kept: last digits depend on it.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, IntervalMonthDayNanoArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{IntervalMonthDayNano, i256};
use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use datafusion::error::{DataFusionError, Result};

use super::call::{failure, unsupported};
use super::declared::{Declared, Row, Type, declared};
use super::numeric::{Decimal, quotient};
use Type::{Boolean, Date, Double, Instant, Integer, Interval, Time, Timestamp};

const SIX: &[Type] = &[Integer, Integer, Integer, Integer, Integer, Double];
const SEVEN: &[Type] = &[Integer, Integer, Integer, Integer, Integer, Integer, Double];

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("age", &[Timestamp, Timestamp], Interval, age),
    declared("age", &[Instant, Instant], Interval, age),
    declared("date_bin", &[Interval, Timestamp, Timestamp], Timestamp, |row| bin(row, false)),
    declared("date_bin", &[Interval, Instant, Instant], Instant, |row| bin(row, true)),
    declared("isfinite", &[Date], Boolean, finite),
    declared("isfinite", &[Timestamp], Boolean, finite),
    declared("isfinite", &[Instant], Boolean, finite),
    declared("isfinite", &[Interval], Boolean, finite),
    declared("justify_days", &[Interval], Interval, |row| intervals(row, justified_days)),
    declared("justify_hours", &[Interval], Interval, |row| intervals(row, justified_hours)),
    declared("justify_interval", &[Interval], Interval, |row| intervals(row, justified)),
    Declared { needed: 0, ..declared("make_interval", SEVEN, Interval, make_interval) },
    declared("make_date", &[Integer, Integer, Integer], Date, make_date),
    declared("make_time", &[Integer, Integer, Double], Time, make_time),
    declared("make_timestamp", SIX, Timestamp, make_timestamp),
    Declared {
        called: "to_timestamp",
        ..declared("instant_of_epoch", &[Double], Instant, of_epoch)
    },
    Declared {
        called: "extract",
        ..declared("julian_of_date", &[Date], Type::Numeric, julian_of_date)
    },
    Declared {
        called: "extract",
        ..declared("julian_of_time", &[Timestamp], Type::Numeric, julian_of_time)
    },
    Declared {
        called: "*",
        ..declared("interval_times", &[Interval, Double], Interval, |row| scaled(row, false))
    },
    Declared {
        called: "/",
        ..declared("interval_over", &[Interval, Double], Interval, |row| scaled(row, true))
    },
];

const DAY_US: i64 = 86_400_000_000;
const DAY_S: f64 = 86_400.0;

fn out_of_range() -> DataFusionError {
    failure("22008", "interval out of range")
}

/// An interval of so many microseconds, which are held as nanoseconds.
pub(super) fn interval(months: i32, days: i32, micros: i64) -> Result<IntervalMonthDayNano> {
    let nanos = micros.checked_mul(1000).ok_or_else(out_of_range)?;
    Ok(IntervalMonthDayNano::new(months, days, nanos))
}

fn intervals(
    row: &Row<'_>,
    of: fn(IntervalMonthDayNano) -> Result<IntervalMonthDayNano>,
) -> Result<ArrayRef> {
    row.each::<_, IntervalMonthDayNanoArray>(|at| row.interval(0, at).map(of).transpose())
}

fn finite(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<bool, BooleanArray>(|at| Ok(row.has(0, at).then_some(true)))
}

/// What a moment is made of, each part signed.
#[derive(Clone, Copy)]
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

fn parts(micros: i64) -> Result<(Parts, NaiveDate)> {
    let at = DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| failure("22008", "timestamp out of range"))?
        .naive_utc();
    let of_day =
        i64::from(at.num_seconds_from_midnight()) * 1_000_000 + i64::from(at.nanosecond()) / 1000;
    let parts = Parts {
        years: at.year().into(),
        months: at.month().into(),
        days: at.day().into(),
        micros: of_day,
    };
    Ok((parts, at.date()))
}

fn age(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<_, IntervalMonthDayNanoArray>(|at| match (row.micros(0, at), row.micros(1, at)) {
        (Some(later), Some(earlier)) => between(later, earlier).map(Some),
        _ => Ok(None),
    })
}

/// The time between two moments in years, months and days.
fn between(one: i64, other: i64) -> Result<IntervalMonthDayNano> {
    let is_negative = one < other;
    let (later, earlier) = if is_negative { (other, one) } else { (one, other) };
    let (to, _) = parts(later)?;
    let (from, first) = parts(earlier)?;
    let mut months = (to.years - from.years) * 12 + to.months - from.months;
    let mut days = to.days - from.days;
    let mut micros = to.micros - from.micros;
    if micros < 0 {
        micros += DAY_US;
        days -= 1;
    }
    if days < 0 {
        days += i64::from(days_of_month(first));
        months -= 1;
    }
    let sign = if is_negative { -1 } else { 1 };
    let narrow = |of: i64| i32::try_from(of * sign).map_err(|_| out_of_range());
    interval(narrow(months)?, narrow(days)?, micros * sign)
}

fn days_of_month(of: NaiveDate) -> u32 {
    let next = match of.month() {
        12 => NaiveDate::from_ymd_opt(of.year() + 1, 1, 1),
        month => NaiveDate::from_ymd_opt(of.year(), month + 1, 1),
    };
    next.and_then(|next| next.pred_opt()).map_or(31, |last| last.day())
}

fn bin(row: &Row<'_>, is_instant: bool) -> Result<ArrayRef> {
    let times = row.each::<i64, TimestampMicrosecondArray>(|at| {
        let (Some(stride), Some(time), Some(origin)) =
            (row.interval(0, at), row.micros(1, at), row.micros(2, at))
        else {
            return Ok(None);
        };
        if stride.months != 0 {
            let message = "timestamps cannot be binned into intervals containing months or years";
            return Err(failure("0A000", message));
        }
        let days = i64::from(stride.days).checked_mul(DAY_US);
        let step = days.and_then(|days| days.checked_add(stride.nanoseconds / 1000));
        let step = step.ok_or_else(|| failure("22008", "interval out of range"))?;
        if step <= 0 {
            return Err(failure("22008", "stride must be greater than zero"));
        }
        let binned = time
            .checked_sub(origin)
            .and_then(|since| since.div_euclid(step).checked_mul(step))
            .and_then(|since| origin.checked_add(since));
        binned.map(Some).ok_or_else(|| failure("22008", "timestamp out of range"))
    })?;
    match is_instant {
        true => Ok(arrow::compute::cast(&times, &Instant.arrow())?),
        false => Ok(times),
    }
}

/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

fn julian(days: i64, micros: i64) -> Result<i256> {
    let number = |of: i64| Decimal::new(i256::from(of), 0);
    let out_of_range = || failure("22008", "timestamp out of range");
    let whole = number(days + JULIAN_1970).as_numeric().ok_or_else(out_of_range)?;
    let part = quotient(number(micros), number(DAY_US))?;
    whole.checked_add(part).ok_or_else(out_of_range)
}

fn julian_of_date(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_numeric(|at| row.date(0, at).map(|days| julian(days, 0)).transpose())
}

fn julian_of_time(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_numeric(|at| {
        let julian = |micros: i64| julian(micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US));
        row.micros(0, at).map(julian).transpose()
    })
}

/// Days of whole 24 hours.
fn justified_hours(of: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut micros = of.nanoseconds / 1000;
    let whole = i32::try_from(micros / DAY_US).map_err(|_| out_of_range())?;
    micros %= DAY_US;
    let mut days = of.days.checked_add(whole).ok_or_else(out_of_range)?;
    if days > 0 && micros < 0 {
        micros += DAY_US;
        days -= 1;
    } else if days < 0 && micros > 0 {
        micros -= DAY_US;
        days += 1;
    }
    interval(of.months, days, micros)
}

/// Months of whole 30 days.
fn justified_days(of: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut days = of.days % 30;
    let mut months = of.months.checked_add(of.days / 30).ok_or_else(out_of_range)?;
    if months > 0 && days < 0 {
        days += 30;
        months -= 1;
    } else if months < 0 && days > 0 {
        days -= 30;
        months += 1;
    }
    Ok(IntervalMonthDayNano::new(months, days, of.nanoseconds))
}

fn justified(of: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut micros = of.nanoseconds / 1000;
    let mut days = i64::from(of.days) + micros / DAY_US;
    micros %= DAY_US;
    let mut months = i64::from(of.months) + days / 30;
    days %= 30;
    if months > 0 && (days < 0 || days == 0 && micros < 0) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || days == 0 && micros > 0) {
        days -= 30;
        months += 1;
    }
    if days > 0 && micros < 0 {
        micros += DAY_US;
        days -= 1;
    } else if days < 0 && micros > 0 {
        micros -= DAY_US;
        days += 1;
    }
    let narrow = |of: i64| i32::try_from(of).map_err(|_| out_of_range());
    interval(narrow(months)?, narrow(days)?, micros)
}

/// Microseconds of seconds that are given as a float.
fn micros_of(seconds: f64) -> Option<i64> {
    let micros = (seconds * 1e6).round_ties_even();
    (micros.abs() < 9e18).then_some(micros as i64)
}

fn make_interval(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<_, IntervalMonthDayNanoArray>(|at| {
        let part = |operand| row.integer(operand, at).unwrap_or(0);
        let months = part(0).checked_mul(12).and_then(|of| of.checked_add(part(1)));
        let days = part(2).checked_mul(7).and_then(|of| of.checked_add(part(3)));
        let micros = micros_of(row.double(6, at).unwrap_or(0.0)).and_then(|of| {
            let minutes = part(4).checked_mul(60)?.checked_add(part(5))?;
            minutes.checked_mul(60_000_000)?.checked_add(of)
        });
        let narrow = |of: Option<i64>| of.and_then(|of| i32::try_from(of).ok());
        match (narrow(months), narrow(days), micros) {
            (Some(months), Some(days), Some(micros)) => interval(months, days, micros).map(Some),
            _ => Err(out_of_range()),
        }
    })
}

/// Microseconds of a day, as `make_time` and `make_timestamp` take hour, minute and second.
fn time_of_day(hour: i64, minute: i64, second: f64) -> Option<i64> {
    let is_time =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    if !is_time {
        return None;
    }
    let micros = (hour * 60 + minute) * 60_000_000 + micros_of(second)?;
    (micros <= DAY_US).then_some(micros)
}

fn make_date(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Date32Array>(|at| {
        let (Some(year), Some(month), Some(day)) =
            (row.integer(0, at), row.integer(1, at), row.integer(2, at))
        else {
            return Ok(None);
        };
        let days = days_of(year, month, day).and_then(|days| i32::try_from(days).ok());
        days.map(Some).ok_or_else(|| {
            failure("22008", format!("date field value out of range: {year}-{month:02}-{day:02}"))
        })
    })
}

fn make_time(row: &Row<'_>) -> Result<ArrayRef> {
    let times = row.each::<i64, Time64MicrosecondArray>(|at| {
        let (Some(hour), Some(minute), Some(second)) =
            (row.integer(0, at), row.integer(1, at), row.double(2, at))
        else {
            return Ok(None);
        };
        let message = || format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        time_of_day(hour, minute, second).map(Some).ok_or_else(|| failure("22008", message()))
    })?;
    Ok(times)
}

fn make_timestamp(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i64, TimestampMicrosecondArray>(|at| {
        let part = |operand| row.integer(operand, at).unwrap_or(0);
        let second = row.double(5, at).unwrap_or(0.0);
        let (year, month, day) = (part(0), part(1), part(2));
        let days = days_of(year, month, day).ok_or_else(|| {
            failure("22008", format!("date field value out of range: {year}-{month:02}-{day:02}"))
        })?;
        let time = time_of_day(part(3), part(4), second).ok_or_else(|| {
            let (hour, minute) = (part(3), part(4));
            let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
            failure("22008", message)
        })?;
        let micros = days.checked_mul(DAY_US).and_then(|micros| micros.checked_add(time));
        micros.map(Some).ok_or_else(|| failure("22008", "timestamp out of range"))
    })
}

/// Seconds since 1970. PostgreSQL rounds what has passed since 2000.
fn of_epoch(row: &Row<'_>) -> Result<ArrayRef> {
    const EPOCH_S: f64 = 946_684_800.0;
    let instants = row.each::<i64, TimestampMicrosecondArray>(|at| {
        let Some(seconds) = row.double(0, at) else { return Ok(None) };
        if seconds.is_nan() {
            return Err(failure("22008", "timestamp cannot be NaN"));
        }
        if seconds.is_infinite() {
            let message = "infinite timestamps are not supported";
            return Err(unsupported(message, "leave them out, or use NULL"));
        }
        let micros = ((seconds - EPOCH_S) * 1e6).round_ties_even();
        let is_in_range = micros.abs() < 9.22e18;
        let micros = (micros as i64).checked_add(EPOCH_S as i64 * 1_000_000);
        let at = micros.filter(|_| is_in_range).and_then(DateTime::from_timestamp_micros);
        let message = || failure("22008", format!("timestamp out of range: \"{seconds}\""));
        at.map(|at| Some(at.timestamp_micros())).ok_or_else(message)
    })?;
    Ok(arrow::compute::cast(&instants, &Instant.arrow())?)
}

/// Days since 1970; negative years are those before Christ, and there is no year 0.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let astronomical = match year {
        0 => return None,
        1.. => year,
        _ => year + 1,
    };
    days_at(astronomical, month, day)
}

/// Days since 1970 of a date whose year 0 is 1 BC.
pub(super) fn days_at(year: i64, month: i64, day: i64) -> Option<i64> {
    let date = NaiveDate::from_ymd_opt(
        i32::try_from(year).ok()?,
        u32::try_from(month).ok()?,
        u32::try_from(day).ok()?,
    )?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

/// To the sixth digit, as PostgreSQL rounds what is left over of days and months.
fn rounded(of: f64) -> f64 {
    (of * 1e6).round_ties_even() / 1e6
}

fn scaled(row: &Row<'_>, is_divided: bool) -> Result<ArrayRef> {
    let results = (0..row.rows).map(|at| match (row.interval(0, at), row.double(1, at)) {
        (Some(_), Some(0.0)) if is_divided => Err(failure("22012", "division by zero")),
        (Some(span), Some(factor)) => times(span, |part| match is_divided {
            true => part / factor,
            false => part * factor,
        })
        .map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(results.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

/// An interval each of whose parts is scaled; what is left over of months becomes days, of days hours.
pub(super) fn times(
    span: IntervalMonthDayNano,
    scale: impl Fn(f64) -> f64,
) -> Result<IntervalMonthDayNano> {
    let narrow = |of: f64| match of.abs() < 2_147_483_648.0 {
        true => Ok(of as i32),
        false => Err(out_of_range()),
    };
    let (all_months, all_days) = (scale(span.months.into()), scale(span.days.into()));
    let (months, mut days) = (narrow(all_months)?, narrow(all_days)?);
    let of_months = rounded((all_months - f64::from(months)) * 30.0);
    let seconds = all_days - f64::from(days) + of_months - of_months.trunc();
    let mut seconds = rounded(seconds * DAY_S);
    let mut more_days = 0;
    if seconds.abs() >= DAY_S {
        more_days = (seconds / DAY_S) as i32;
        seconds -= f64::from(more_days) * DAY_S;
    }
    for part in [more_days, of_months as i32] {
        days = days.checked_add(part).ok_or_else(out_of_range)?;
    }
    let micros = (scale((span.nanoseconds / 1000) as f64) + seconds * 1e6).round_ties_even();
    if micros.is_nan() || micros.abs() >= 9.2e18 {
        return Err(out_of_range());
    }
    interval(months, days, micros as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(months: i32, days: i32, seconds: f64) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(months, days, (seconds * 1e9) as i64)
    }

    #[test]
    fn intervals_are_multiplied_as_in_postgresql() {
        for (span, factor, expected) in [
            (of(1, 0, 0.0), 0.5, of(0, 15, 0.0)),
            (of(0, 1, 0.0), 1.5, of(0, 1, 43_200.0)),
            (of(1, 1, 0.0), 1.7, of(1, 22, 60_480.0)),
            (of(-1, 0, 0.0), 0.33, of(0, -9, -77_760.0)),
            (of(0, 0, 3600.0), 3.5, of(0, 0, 12_600.0)),
        ] {
            assert_eq!(times(span, |part| part * factor).unwrap(), expected);
        }
        assert_eq!(times(of(1, 0, 0.0), |part| part / 7.0).unwrap(), of(0, 4, 24_685.689_6));
        for factor in [1e300, f64::NAN, f64::INFINITY] {
            assert!(times(of(0, 1, 0.0), |part| part * factor).is_err(), "{factor}");
        }
    }

    #[test]
    fn ages_are_those_of_postgresql() {
        let at = |text: &str| {
            let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
            time.and_utc().timestamp_micros()
        };
        for (one, other, expected) in [
            ("2001-04-10 00:00", "1957-06-13 00:00", of(43 * 12 + 9, 27, 0.0)),
            ("2024-03-01 00:00", "2024-01-31 00:00", of(1, 1, 0.0)),
            ("2024-01-31 10:00", "2024-03-01 09:00", of(-1, 0, -82_800.0)),
        ] {
            assert_eq!(between(at(one), at(other)).unwrap(), expected, "{one} {other}");
        }
        assert!(between(i64::MAX, i64::MIN).is_err());
    }

    #[test]
    fn intervals_are_justified() {
        assert_eq!(justified_days(of(0, -35, 0.0)).unwrap(), of(-1, -5, 0.0));
        assert_eq!(justified_days(of(1, -35, 0.0)).unwrap(), of(0, -5, 0.0));
        assert_eq!(justified_hours(of(0, 0, -49.0 * 3600.0)).unwrap(), of(0, -2, -3600.0));
        assert_eq!(justified(of(1, 0, -3600.0)).unwrap(), of(0, 29, 82_800.0));
        assert_eq!(justified(of(0, 40, 108_000.0)).unwrap(), of(1, 11, 21_600.0));
        let most = IntervalMonthDayNano::new(i32::MAX, i32::MAX, i64::MAX);
        assert!(justified(most).is_err() && justified_days(most).is_err());
    }
}
