//! Text to dates, times and timestamps.

use chrono::format::{Item, Parsed, StrftimeItems};
use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use stoa_error::{Error, Result};

use crate::number;

/// Seconds of a day.
const DAY_S: i64 = 86_400;
const SECOND_NS: i64 = 1_000_000_000;

/// How dates look.
pub(crate) enum Pattern {
    Iso,
    Strftime(Vec<Item<'static>>),
}

impl Pattern {
    /// # Errors
    /// `pattern` is not one of chrono's strftime.
    pub fn new(pattern: Option<&str>, option: &str) -> Result<Self> {
        let Some(pattern) = pattern else {
            return Ok(Self::Iso);
        };
        StrftimeItems::new(pattern).parse_to_owned().map(Self::Strftime).map_err(|e| {
            Error::invalid(format!("load option {option}: \"{pattern}\" is not a date pattern"))
                .with_hint("patterns are made of %Y %m %d %b %H %M %S %.f %z and text between them")
                .with_source(e)
        })
    }

    /// Days since 1970-01-01.
    pub fn date(&self, text: &str) -> Option<i32> {
        match self {
            Self::Iso => iso_date_only(text.as_bytes()),
            Self::Strftime(items) => days(parse(text, items)?.to_naive_date().ok()?),
        }
    }

    pub fn is_iso(&self) -> bool {
        matches!(self, Self::Iso)
    }
}

/// How timestamps look.
pub(crate) enum Moments {
    Iso,
    Strftime(Vec<Item<'static>>),
    /// A number of units since 1970-01-01 00:00:00 UTC; units per second.
    Epoch(i64),
}

/// A point of time as text gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Seconds since 1970-01-01 00:00:00 on the clock that the text reads.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanos: u32,
    /// Seconds that clock is ahead of UTC, where the text says so.
    pub offset_s: Option<i32>,
}

impl Moments {
    pub fn new(pattern: Option<&str>) -> Result<Self> {
        Ok(match pattern {
            Some("epoch_s") => Self::Epoch(1),
            Some("epoch_ms") => Self::Epoch(1_000),
            Some("epoch_us") => Self::Epoch(1_000_000),
            Some("epoch_ns") => Self::Epoch(SECOND_NS),
            pattern => match Pattern::new(pattern, "timestamp_format")? {
                Pattern::Iso => Self::Iso,
                Pattern::Strftime(items) => Self::Strftime(items),
            },
        })
    }

    pub fn parse(&self, text: &str) -> Option<Moment> {
        match self {
            Self::Iso => iso_moment(text.as_bytes()),
            Self::Epoch(units) => epoch(text, *units),
            Self::Strftime(items) => {
                let parsed = parse(text, items)?;
                let offset_s = parsed.offset();
                let at = match parsed.to_naive_datetime_with_offset(offset_s.unwrap_or(0)) {
                    Ok(at) => at,
                    // A pattern without time of day means midnight.
                    Err(_) => parsed.to_naive_date().ok()?.and_hms_opt(0, 0, 0)?,
                };
                let at = at.and_utc();
                Some(Moment {
                    seconds: at.timestamp(),
                    nanos: at.timestamp_subsec_nanos(),
                    offset_s,
                })
            }
        }
    }
}

impl Moment {
    /// Units since the epoch on the text's own clock; finer digits are cut off.
    ///
    /// `None` where the unit cannot hold it.
    pub fn local(self, units_per_second: i64) -> Option<i64> {
        let fraction = i64::from(self.nanos) / (SECOND_NS / units_per_second);
        // In wide numbers, because the first half of the sum may be out of range alone.
        let units = i128::from(self.seconds) * i128::from(units_per_second) + i128::from(fraction);
        i64::try_from(units).ok()
    }

    /// Units since the epoch in UTC; a text without zone is read in `zone`.
    pub fn utc(self, units_per_second: i64, zone: Tz) -> Option<i64> {
        let offset_s = match self.offset_s {
            Some(offset) => i64::from(offset),
            None if zone == Tz::UTC => 0,
            None => {
                let local: NaiveDateTime =
                    chrono::DateTime::from_timestamp(self.seconds, self.nanos)?.naive_utc();
                // Of an hour that comes twice the first one; an hour that a clock change leaves
                // out is none.
                local
                    .signed_duration_since(zone.from_local_datetime(&local).earliest()?.naive_utc())
                    .num_seconds()
            }
        };
        Moment { seconds: self.seconds.checked_sub(offset_s)?, ..self }.local(units_per_second)
    }
}

/// Time of day in nanoseconds from `HH:MM[:SS[.fraction]]`.
pub(crate) fn iso_time(text: &[u8]) -> Option<i64> {
    let (seconds, nanos, rest) = time_of_day(text)?;
    (rest.is_empty()).then_some(seconds * SECOND_NS + i64::from(nanos))
}

fn parse(text: &str, items: &[Item<'static>]) -> Option<Parsed> {
    let mut parsed = Parsed::new();
    chrono::format::parse(&mut parsed, text, items.iter()).ok()?;
    Some(parsed)
}

fn days(date: NaiveDate) -> Option<i32> {
    date.num_days_from_ce().checked_sub(719_163)
}

fn epoch(text: &str, units: i64) -> Option<Moment> {
    let value = number::integer(text.as_bytes()).ok()?;
    let nanos = value.rem_euclid(units) * (SECOND_NS / units);
    Some(Moment { seconds: value.div_euclid(units), nanos: nanos as u32, offset_s: Some(0) })
}

/// A date, or a timestamp whose time of day is midnight.
fn iso_date_only(text: &[u8]) -> Option<i32> {
    let (date, rest) = iso_date(text)?;
    if rest.is_empty() {
        return Some(date);
    }
    let moment = iso_moment(text)?;
    (moment.nanos == 0 && moment.seconds % DAY_S == 0).then_some(date)
}

/// `YYYY-MM-DD`, with an optional sign and more digits for far years.
fn iso_date(text: &[u8]) -> Option<(i32, &[u8])> {
    let (negative, body) = number::sign(text);
    let year_digits = body.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(4..=6).contains(&year_digits) {
        return None;
    }
    let (year, rest) = body.split_at(year_digits);
    let [b'-', m1, m2, b'-', d1, d2, rest @ ..] = rest else {
        return None;
    };
    let year = number::integer(year).ok()? as i32;
    let date = civil_days(if negative { -year } else { year }, two(*m1, *m2)?, two(*d1, *d2)?)?;
    Some((date, rest))
}

/// `date[(T| )time[ ][zone]]`
fn iso_moment(text: &[u8]) -> Option<Moment> {
    let (date, rest) = iso_date(text)?;
    let day = i64::from(date) * DAY_S;
    let [b'T' | b't' | b' ', rest @ ..] = rest else {
        return rest.is_empty().then_some(Moment { seconds: day, nanos: 0, offset_s: None });
    };
    let (seconds, nanos, rest) = time_of_day(rest)?;
    let offset_s = zone_offset(rest)?;
    Some(Moment { seconds: day + seconds, nanos, offset_s })
}

/// `HH:MM[:SS[.fraction]]` as (seconds, nanoseconds, rest); digits beyond nine are cut off.
fn time_of_day(text: &[u8]) -> Option<(i64, u32, &[u8])> {
    let [h1, h2, b':', m1, m2, rest @ ..] = text else {
        return None;
    };
    let mut rest = rest;
    let (hour, minute) = (two(*h1, *h2)?, two(*m1, *m2)?);
    let (mut second, mut nanos) = (0, 0);
    if let [b':', s1, s2, tail @ ..] = rest {
        second = two(*s1, *s2)?;
        rest = tail;
        if let [b'.' | b',', tail @ ..] = rest {
            let digits = tail.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            for at in 0..9 {
                let digit = tail.get(at).filter(|_| at < digits).map_or(0, |b| b - b'0');
                nanos = nanos * 10 + u32::from(digit);
            }
            rest = &tail[digits..];
        }
    }
    let in_range = (hour < 24 && minute < 60 && second < 60)
        || (hour == 24 && minute == 0 && second == 0 && nanos == 0);
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    in_range.then_some((seconds, nanos, rest))
}

/// Nothing, `Z`, `UTC`, `±HH`, `±HHMM` or `±HH:MM[:SS]`, after an optional blank.
fn zone_offset(text: &[u8]) -> Option<Option<i32>> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    if text.is_empty() {
        return Some(None);
    }
    if text.eq_ignore_ascii_case(b"z")
        || text.eq_ignore_ascii_case(b"utc")
        || text.eq_ignore_ascii_case(b"gmt")
    {
        return Some(Some(0));
    }
    let (negative, body) = match text {
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        _ => return None,
    };
    let (hours, minutes, seconds) = match body {
        [h1, h2] => (two(*h1, *h2)?, 0, 0),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (two(*h1, *h2)?, two(*m1, *m2)?, 0),
        [h1, h2, b':', m1, m2, b':', s1, s2] => (two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?),
        _ => return None,
    };
    if hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    let offset = (hours * 3600 + minutes * 60 + seconds) as i32;
    Some(Some(if negative { -offset } else { offset }))
}

fn two(tens: u8, ones: u8) -> Option<u32> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar
/// (H. Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`).
fn civil_days(year: i32, month: u32, day: u32) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if day == 0 || day > length {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month as i32 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i32 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_days_agree_with_chrono() {
        for day in (-1_500_000..1_500_000).step_by(37) {
            let date = NaiveDate::from_num_days_from_ce_opt(day + 719_163).unwrap();
            assert_eq!(civil_days(date.year(), date.month(), date.day()), Some(day));
        }
        assert_eq!(civil_days(2023, 2, 29), None);
        assert_eq!(civil_days(2024, 2, 29), Some(19_782));
        assert_eq!(civil_days(1900, 2, 29), None);
        assert_eq!(civil_days(2024, 13, 1), None);
        assert_eq!(civil_days(2024, 1, 0), None);
    }

    #[test]
    fn iso_timestamps() {
        let check = |text: &str, expected: Option<(i64, u32, Option<i32>)>| {
            let moment = iso_moment(text.as_bytes()).map(|m| (m.seconds, m.nanos, m.offset_s));
            assert_eq!(moment, expected, "{text}");
        };
        check("1970-01-02", Some((86_400, 0, None)));
        check("1970-01-01 00:00", Some((0, 0, None)));
        check("1970-01-01T00:00:01.5Z", Some((1, 500_000_000, Some(0))));
        check("1970-01-01 01:00:00.123456789123+09", Some((3600, 123_456_789, Some(32_400))));
        check("1969-12-31 23:59:59 -0330", Some((-1, 0, Some(-12_600))));
        check("1969-12-31 23:59:59-03:30", Some((-1, 0, Some(-12_600))));
        check("1970-01-01 24:00:00", Some((86_400, 0, None)));
        for bad in [
            "",
            "1970",
            "1970-1-1",
            "1970-01-01 ",
            "1970-01-01 25:00",
            "1970-01-01 00:00:00.",
            "1970-01-01 00:00:00 Europe",
            "1970-01-01 00:60",
            "70-01-01",
            "1970-01-01 24:00:01",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn zones_and_units() {
        let at = iso_moment(b"2024-07-01 12:00:00.1234567").unwrap();
        assert_eq!(at.local(1_000_000), Some(1_719_835_200_123_456));
        assert_eq!(at.utc(1, Tz::UTC), Some(1_719_835_200));
        assert_eq!(at.utc(1, Tz::Asia__Tokyo), Some(1_719_835_200 - 9 * 3600));
        assert_eq!(at.utc(1, Tz::Europe__Berlin), Some(1_719_835_200 - 2 * 3600));
        // Left out by the clock change.
        assert_eq!(iso_moment(b"2024-03-31 02:30:00").unwrap().utc(1, Tz::Europe__Berlin), None);
        assert_eq!(iso_moment(b"9999-01-01").unwrap().local(SECOND_NS), None);
        let before = iso_moment(b"1969-12-31 23:59:59.5").unwrap();
        assert_eq!(before.local(1000), Some(-500));
        assert_eq!(Moments::Epoch(1000).parse("-1").unwrap().local(1_000_000), Some(-1000));
    }

    #[test]
    fn patterns() {
        let date = |pattern: &str, text: &str| {
            Pattern::new(Some(pattern), "date_format").unwrap().date(text)
        };
        assert_eq!(date("%m/%d/%Y", "01/02/2015"), Some(16_437));
        assert_eq!(date("%d.%m.%Y", "02.01.2015"), Some(16_437));
        assert_eq!(date("%m/%d/%Y", "2015-01-02"), None);
        assert_eq!(Pattern::Iso.date("2015-01-02"), Some(16_437));
        assert_eq!(Pattern::Iso.date("2015-01-02T00:00:00"), Some(16_437));
        assert_eq!(Pattern::Iso.date("2015-01-02 00:01"), None);
        assert!(Pattern::new(Some("%!"), "date_format").is_err());
        let moment = |pattern: &str, text: &str| {
            Moments::new(Some(pattern)).unwrap().parse(text).and_then(|m| m.utc(1, Tz::UTC))
        };
        assert_eq!(moment("%d/%m/%Y %H:%M", "02/01/2015 10:30"), Some(16_437 * DAY_S + 37_800));
        assert_eq!(moment("%d/%m/%Y", "02/01/2015"), Some(16_437 * DAY_S));
        assert_eq!(
            moment("%Y%m%dT%H%M%S%z", "20150102T103000+0100"),
            Some(16_437 * DAY_S + 34_200)
        );
    }
}
