//! Functions of dates and times.

use chrono::{Datelike, Months, NaiveDate, Timelike};
use stoa_error::{Error, Result};

use super::java_pattern;
use super::value::{DAY_US, Type, Value, date_of, days_of, micros_of, time_of};
use super::{
    Function, makes_bigint, makes_date, makes_double, makes_int, makes_text, no_function, strict,
    text, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_year", (1, 1), makes_int, |v| part(v, |d| d.year())),
    strict("hive_quarter", (1, 1), makes_int, |v| part(v, |d| (d.month0() / 3 + 1) as i32)),
    strict("hive_month", (1, 1), makes_int, |v| part(v, |d| d.month() as i32)),
    strict("hive_day", (1, 1), makes_int, |v| part(v, |d| d.day() as i32)),
    strict("hive_dayofweek", (1, 1), makes_int, |v| {
        part(v, |d| d.weekday().num_days_from_sunday() as i32 + 1)
    }),
    strict("hive_weekofyear", (1, 1), makes_int, |v| part(v, |d| d.iso_week().week() as i32)),
    strict("hive_hour", (1, 1), makes_int, |v| clock(v, |t| t.hour())),
    strict("hive_minute", (1, 1), makes_int, |v| clock(v, |t| t.minute())),
    strict("hive_second", (1, 1), makes_int, |v| clock(v, |t| t.second())),
    strict("hive_date_add", (2, 2), days_type, |v| add_days(v, 1)),
    strict("hive_date_sub", (2, 2), days_type, |v| add_days(v, -1)),
    strict("hive_datediff", (2, 2), makes_int, |v| {
        Ok(match (v[0].date(), v[1].date()) {
            (Some(a), Some(b)) => Value::Int(a.wrapping_sub(b)),
            _ => Value::Null,
        })
    }),
    strict("hive_last_day", (1, 1), makes_text, |v| with_date(v, |date| shown(last_day(date)))),
    strict("hive_next_day", (2, 2), makes_text, next_day),
    strict("hive_add_months", (2, 3), makes_text, add_months),
    strict("hive_months_between", (2, 3), makes_double, months_between),
    strict("hive_trunc", (1, 2), trunc_type, trunc),
    strict("hive_date_format", (2, 2), makes_text, |v| {
        let Some(micros) = v[0].timestamp() else { return Ok(Value::Null) };
        java_pattern::format(time_of(micros)?, &text(v, 1)?).map(Value::Text)
    }),
    // In the session's zone, which the translation has put in: the seconds are those of a local time.
    strict("hive_from_unixtime", (1, 2), makes_text, |v| {
        let pattern = if v.len() > 1 { text(v, 1)? } else { "yyyy-MM-dd HH:mm:ss".to_owned() };
        let Some(seconds) = whole(v, 0)? else { return Ok(Value::Null) };
        match seconds.checked_mul(1_000_000) {
            Some(micros) => java_pattern::format(time_of(micros)?, &pattern).map(Value::Text),
            None => Ok(Value::Null),
        }
    }),
    strict("hive_unix_timestamp", (1, 2), makes_bigint, unix_timestamp),
    strict("hive_extract", (2, 2), makes_int, extract),
    strict(
        "hive_floor_to",
        (2, 2),
        |t| Ok(if t[1] == Type::Date { Type::Date } else { Type::Timestamp }),
        floor_to,
    ),
    strict("hive_date_of", (1, 1), makes_date, |v| {
        Ok(v[0].date().map_or(Value::Null, Value::Date))
    }),
];

fn part(v: &[Value], of: fn(NaiveDate) -> i32) -> Result<Value> {
    match v[0].date() {
        Some(days) => Ok(Value::Int(of(date_of(days)?))),
        None => Ok(Value::Null),
    }
}

fn clock(v: &[Value], of: fn(chrono::NaiveDateTime) -> u32) -> Result<Value> {
    // Hive also takes the time of a day alone.
    let micros = match (&v[0], v[0].timestamp()) {
        (Value::Text(text), None) => Value::Text(format!("1970-01-01 {}", text.trim())).timestamp(),
        (_, micros) => micros,
    };
    match micros {
        Some(micros) => Ok(Value::Int(of(time_of(micros)?) as i32)),
        None => Ok(Value::Null),
    }
}

fn shown(date: NaiveDate) -> Value {
    Value::Text(date.format("%Y-%m-%d").to_string())
}

fn with_date(v: &[Value], of: impl Fn(NaiveDate) -> Value) -> Result<Value> {
    match v[0].date() {
        Some(days) => Ok(of(date_of(days)?)),
        None => Ok(Value::Null),
    }
}

fn days_type(types: &[Type]) -> Result<Type> {
    match types[1] {
        // Whole literals may still be BIGINT here.
        Type::Int | Type::Bigint | Type::Null => Ok(Type::Date),
        _ => Err(no_function("date_add", types).with_hint("the number of days is an INT; cast it")),
    }
}

fn add_days(v: &[Value], sign: i64) -> Result<Value> {
    let (Some(days), Some(more)) = (v[0].date(), whole(v, 1)?) else { return Ok(Value::Null) };
    let sum = sign.checked_mul(more).and_then(|more| more.checked_add(i64::from(days)));
    let sum = sum.ok_or_else(out_of_range)?;
    let days = i32::try_from(sum).map_err(|_| out_of_range())?;
    date_of(days)?;
    Ok(Value::Date(days))
}

fn out_of_range() -> Error {
    Error::invalid("date out of range").with_sqlstate("22008")
}

fn last_day(date: NaiveDate) -> NaiveDate {
    let first = date.with_day(1).unwrap_or(date);
    first.checked_add_months(Months::new(1)).and_then(|next| next.pred_opt()).unwrap_or(date)
}

fn next_day(v: &[Value]) -> Result<Value> {
    let name = text(v, 1)?.to_ascii_uppercase();
    let days = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
    let is_called = |day: &&str| *day == name || day[..3] == name || day[..2] == name;
    let Some(wanted) = days.iter().position(is_called) else { return Ok(Value::Null) };
    with_date(v, |date| {
        let own = date.weekday().num_days_from_monday() as usize;
        let ahead = (wanted + 6 - own) % 7 + 1;
        date.checked_add_days(chrono::Days::new(ahead as u64)).map_or(Value::Null, shown)
    })
}

fn shifted(date: NaiveDate, months: i64) -> Result<NaiveDate> {
    let by = u32::try_from(months.unsigned_abs()).map(Months::new).map_err(|_| out_of_range())?;
    let moved = if months < 0 { date.checked_sub_months(by) } else { date.checked_add_months(by) };
    moved.ok_or_else(out_of_range)
}

/// The last day of a month stays the last day.
fn add_months(v: &[Value]) -> Result<Value> {
    let Some(months) = whole(v, 1)? else { return Ok(Value::Null) };
    let Some(days) = v[0].date() else { return Ok(Value::Null) };
    let date = date_of(days)?;
    let moved = shifted(date, months)?;
    let moved = if date == last_day(date) { last_day(moved) } else { moved };
    if v.len() < 3 {
        return Ok(shown(moved));
    }
    let time = v[0].timestamp().unwrap_or_default().rem_euclid(DAY_US);
    let micros = i64::from(days_of(moved)).saturating_mul(DAY_US).saturating_add(time);
    java_pattern::format(time_of(micros)?, &text(v, 2)?).map(Value::Text)
}

/// A date or timestamp some months later: `+ INTERVAL`. The day is cut to the month's last.
pub(super) fn plus_months_of(of: &Value, months: i64) -> Result<Value> {
    Ok(match of {
        Value::Date(days) => Value::Date(days_of(shifted(date_of(*days)?, months)?)),
        other => match other.timestamp() {
            Some(micros) => {
                let time = time_of(micros)?;
                Value::Timestamp(micros_of(shifted(time.date(), months)?.and_time(time.time())))
            }
            None => Value::Null,
        },
    })
}

/// Whole between the same days of months and between last days; else the rest counts in 31sts.
fn months_between(v: &[Value]) -> Result<Value> {
    let (Some(a), Some(b)) = (v[0].timestamp(), v[1].timestamp()) else { return Ok(Value::Null) };
    let is_rounded = v.get(2).and_then(Value::boolean) != Some(false);
    let (a, b) = (time_of(a)?, time_of(b)?);
    let months = f64::from((a.year() - b.year()) * 12 + a.month() as i32 - b.month() as i32);
    let is_last = |time: &chrono::NaiveDateTime| time.date() == last_day(time.date());
    if a.day() == b.day() || (is_last(&a) && is_last(&b)) {
        return Ok(Value::Double(months));
    }
    let seconds = |time: &chrono::NaiveDateTime| {
        f64::from(time.day() * 86_400 + time.num_seconds_from_midnight())
    };
    let found = months + (seconds(&a) - seconds(&b)) / (31.0 * 86_400.0);
    Ok(Value::Double(if is_rounded { (found * 1e8).round() / 1e8 } else { found }))
}

fn trunc_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::Text | Type::Date | Type::Timestamp | Type::Null if types.len() == 2 => {
            Ok(Type::Text)
        }
        of if of.is_number() => Ok(of.clone()),
        _ => Err(no_function("trunc", types)),
    }
}

/// The first day of the month, quarter or year; a number without its digits from a place on.
fn trunc(v: &[Value]) -> Result<Value> {
    if !matches!(v[0], Value::Text(_) | Value::Date(_) | Value::Timestamp(_)) {
        return trunc_number(v);
    }
    let unit = text(v, 1)?.to_ascii_uppercase();
    with_date(v, |date| {
        let month = match unit.as_str() {
            "MONTH" | "MON" | "MM" => date.month(),
            "QUARTER" | "Q" => date.month0() / 3 * 3 + 1,
            "YEAR" | "YYYY" | "YY" => 1,
            _ => return Value::Null,
        };
        NaiveDate::from_ymd_opt(date.year(), month, 1).map_or(Value::Null, shown)
    })
}

fn trunc_number(v: &[Value]) -> Result<Value> {
    let places = if v.len() > 1 { whole(v, 1)?.unwrap_or_default() } else { 0 };
    let places = i32::try_from(places.clamp(-40, 40)).unwrap_or_default();
    let cut = |value: i128, places: i32| match places {
        0.. => value,
        _ => match 10_i128.checked_pow(places.unsigned_abs()) {
            Some(power) => value / power * power,
            None => 0,
        },
    };
    Ok(match &v[0] {
        Value::Int(x) => i32::try_from(cut(i128::from(*x), places)).map_or(Value::Null, Value::Int),
        Value::Bigint(x) => {
            i64::try_from(cut(i128::from(*x), places)).map_or(Value::Null, Value::Bigint)
        }
        Value::Decimal(x, scale) => Value::Decimal(cut(*x, places - i32::from(*scale)), *scale),
        other => match other.double() {
            Some(x) if x.is_finite() => {
                let shown = format!("{x}");
                let scale = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
                let unscaled: i128 = shown.replace('.', "").parse().unwrap_or_default();
                let scale = i32::try_from(scale).unwrap_or_default();
                let kept = cut(unscaled, places - scale);
                Value::Double(format!("{kept}e{}", -scale).parse().unwrap_or(x))
            }
            Some(x) => Value::Double(x),
            None => Value::Null,
        },
    })
}

fn unix_timestamp(v: &[Value]) -> Result<Value> {
    let micros = match (&v[0], v.len()) {
        (Value::Text(of), 2) => java_pattern::parse(of, &text(v, 1)?)?.map(micros_of),
        (Value::Text(of), _) => java_pattern::parse(of, "yyyy-MM-dd HH:mm:ss")?.map(micros_of),
        (other, _) => other.timestamp(),
    };
    Ok(micros.map_or(Value::Null, |micros| Value::Bigint(micros.div_euclid(1_000_000))))
}

fn extract(v: &[Value]) -> Result<Value> {
    let of = &v[1..];
    match text(v, 0)?.as_str() {
        "year" => part(of, |d| d.year()),
        "quarter" => part(of, |d| (d.month0() / 3 + 1) as i32),
        "month" => part(of, |d| d.month() as i32),
        "week" => part(of, |d| d.iso_week().week() as i32),
        "day" => part(of, |d| d.day() as i32),
        "dow" | "dayofweek" => part(of, |d| d.weekday().num_days_from_sunday() as i32 + 1),
        "hour" => clock(of, |t| t.hour()),
        "minute" => clock(of, |t| t.minute()),
        "second" => clock(of, |t| t.second()),
        other => Err(Error::unsupported(format!("EXTRACT({other} FROM …) is not supported"))
            .with_hint("use year, quarter, month, week, day, dayofweek, hour, minute or second")),
    }
}

/// `floor(time TO unit)`.
fn floor_to(v: &[Value]) -> Result<Value> {
    let Some(micros) = v[1].timestamp() else { return Ok(Value::Null) };
    let time = time_of(micros)?;
    let date = time.date();
    let day = |month: u32, day: u32| {
        NaiveDate::from_ymd_opt(date.year(), month, day).and_then(|d| d.and_hms_opt(0, 0, 0))
    };
    let floor = match text(v, 0)?.as_str() {
        "year" => day(1, 1),
        "quarter" => day(date.month0() / 3 * 3 + 1, 1),
        "month" => day(date.month(), 1),
        "week" => {
            let back = chrono::Days::new(u64::from(date.weekday().num_days_from_monday()));
            date.checked_sub_days(back).and_then(|d| d.and_hms_opt(0, 0, 0))
        }
        "day" => date.and_hms_opt(0, 0, 0),
        "hour" => date.and_hms_opt(time.hour(), 0, 0),
        "minute" => date.and_hms_opt(time.hour(), time.minute(), 0),
        "second" => date.and_hms_opt(time.hour(), time.minute(), time.second()),
        other => {
            return Err(Error::unsupported(format!("FLOOR(… TO {other}) is not supported"))
                .with_hint("use year to second"));
        }
    };
    Ok(match floor {
        Some(time) if matches!(v[1], Value::Date(_)) => Value::Date(days_of(time.date())),
        Some(time) => Value::Timestamp(micros_of(time)),
        None => Value::Null,
    })
}
