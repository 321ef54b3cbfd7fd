//! Values as Hive writes them: decimals with their scale, dates and timestamps without `T`.

use std::fmt::Write as _;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use stoa_query::{NUMERIC, numeric_text, time_text};

const DAY_S: i64 = 86_400;

/// Appends the value of a row, which is not NULL. Timestamps are shown as if they had no time zone.
pub(crate) fn put(array: &dyn Array, row: usize, out: &mut String) {
    match array.data_type() {
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => out.push_str(array.as_string::<i64>().value(row)),
        DataType::Utf8View => out.push_str(array.as_string_view().value(row)),
        DataType::Date32 => put_date(array.as_primitive::<Date32Type>().value(row).into(), out),
        DataType::Date64 => {
            put_date(array.as_primitive::<Date64Type>().value(row).div_euclid(DAY_S * 1000), out);
        }
        DataType::Timestamp(unit, _) => {
            let (seconds, nanos) = instant(array, *unit, row);
            put_timestamp(seconds, nanos, out);
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            out.push_str(&time_text(array.as_primitive::<Time64MicrosecondType>().value(row)));
        }
        _ => put_other(array, row, out),
    }
}

fn put_other(array: &dyn Array, row: usize, out: &mut String) {
    static OPTIONS: FormatOptions<'static> = FormatOptions::new();
    let from = out.len();
    if let Ok(formatter) = ArrayFormatter::try_new(array, &OPTIONS) {
        // With errors displayed (the default of FormatOptions), formatting does not fail.
        let _ = write!(out, "{}", formatter.value(row));
    }
    if *array.data_type() == NUMERIC {
        let length = numeric_text(&out[from..]).len();
        out.truncate(from + length);
    }
}

/// Seconds since 1970-01-01 and the nanoseconds of the second.
fn instant(array: &dyn Array, unit: TimeUnit, row: usize) -> (i64, i64) {
    let (value, per_second) = match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(row), 1),
        TimeUnit::Millisecond => {
            (array.as_primitive::<TimestampMillisecondType>().value(row), 1000)
        }
        TimeUnit::Microsecond => {
            (array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000)
        }
        TimeUnit::Nanosecond => {
            (array.as_primitive::<TimestampNanosecondType>().value(row), 1_000_000_000)
        }
    };
    (value.div_euclid(per_second), value.rem_euclid(per_second) * (1_000_000_000 / per_second))
}

fn put_timestamp(seconds: i64, nanos: i64, out: &mut String) {
    put_date(seconds.div_euclid(DAY_S), out);
    let of_day = seconds.rem_euclid(DAY_S);
    // Writing to a String cannot fail.
    let _ = write!(out, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    if nanos != 0 {
        let _ = write!(out, ".{nanos:09}");
        let length = out.trim_end_matches('0').len();
        out.truncate(length);
    }
}

/// Appends a day of the Gregorian calendar, given as days since 1970-01-01 (Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms", `civil_from_days`).
fn put_date(days: i64, out: &mut String) {
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + later;
    let sign = if year < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{:04}-{month:02}-{day:02}", year.abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_hives() {
        let date = |days| {
            let mut out = String::new();
            put_date(days, &mut out);
            out
        };
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(-719_528), "0000-01-01");
        assert_eq!(date(2_932_896), "9999-12-31");
        let time = |seconds, nanos| {
            let mut out = String::new();
            put_timestamp(seconds, nanos, &mut out);
            out
        };
        assert_eq!(time(0, 0), "1970-01-01 00:00:00");
        assert_eq!(time(-1, 500_000_000), "1969-12-31 23:59:59.5");
        assert_eq!(time(1_000_000_000, 1_000), "2001-09-09 01:46:40.000001");
    }
}
