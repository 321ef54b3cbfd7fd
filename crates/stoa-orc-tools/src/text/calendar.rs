//! Days and points in time: `2003-01-01`, `2003-01-01 00:00:00.000000222`.
//!
//! The calendar is the proleptic Gregorian one. A year has four digits at least, and a sign before
//! the year 0.

use super::number::put_int;

const SECONDS_PER_DAY: i64 = 86_400;

/// Appends a day, counted from 1970-01-01.
#[inline]
pub(crate) fn put_date(day: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(day);
    put_year(year, out);
    out.push(b'-');
    put_two(month, out);
    out.push(b'-');
    put_two(day, out);
}

/// Appends a point in time: seconds since 1970-01-01 00:00:00, and nanoseconds of the second.
/// The fraction has one digit at least and no zeros at its end, as in `java.sql.Timestamp`.
#[inline]
pub(crate) fn put_timestamp(seconds: i64, nanos: u32, out: &mut Vec<u8>) {
    put_date(seconds.div_euclid(SECONDS_PER_DAY), out);
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    out.push(b' ');
    put_two(second / 3600, out);
    out.push(b':');
    put_two(second / 60 % 60, out);
    out.push(b':');
    put_two(second % 60, out);
    out.push(b'.');
    put_fraction(nanos, out);
}

fn put_fraction(nanos: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let mut divisor = 100_000_000;
    let mut rest = nanos;
    while rest > 0 || out.len() == start {
        out.push(b'0' + (rest / divisor) as u8);
        rest %= divisor;
        divisor = (divisor / 10).max(1);
    }
}

#[inline]
fn put_year(year: i64, out: &mut Vec<u8>) {
    if (0..=9999).contains(&year) {
        put_two(year / 100, out);
        put_two(year % 100, out);
        return;
    }
    if year < 0 {
        out.push(b'-');
    }
    let digits = year.unsigned_abs();
    let zeros = [1000, 100, 10].into_iter().filter(|limit| digits < *limit).count();
    out.extend(std::iter::repeat_n(b'0', zeros));
    put_int(digits, out);
}

#[inline]
fn put_two(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
}

/// Year, month and day of a day counted from 1970-01-01, with years that begin in March so that a
/// leap day is the last one (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
#[inline]
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(day: i64) -> String {
        let mut out = Vec::new();
        put_date(day, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn timestamp(seconds: i64, nanos: u32) -> String {
        let mut out = Vec::new();
        put_timestamp(seconds, nanos, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn days_have_their_names() {
        for (day, name) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (-719_162, "0001-01-01"),
            (-719_163, "0000-12-31"),
            (-719_529, "-0001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "10000-01-01"),
        ] {
            assert_eq!(date(day), name);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths = |year: i64| {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let (mut year, mut month, mut of_month) = civil(-800_000);
        for day in -799_999..800_000 {
            of_month += 1;
            if of_month > lengths(year)[month as usize - 1] {
                (month, of_month) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            assert_eq!(civil(day), (year, month, of_month), "day {day}");
        }
    }

    #[test]
    fn fractions_end_with_a_digit_that_counts() {
        assert_eq!(timestamp(0, 0), "1970-01-01 00:00:00.0");
        assert_eq!(timestamp(86_399, 1), "1970-01-01 23:59:59.000000001");
        assert_eq!(timestamp(-1, 999_000_000), "1969-12-31 23:59:59.999");
        assert_eq!(timestamp(3_661, 100_000_000), "1970-01-01 01:01:01.1");
        assert_eq!(timestamp(0, 999_999_999), "1970-01-01 00:00:00.999999999");
    }
}
