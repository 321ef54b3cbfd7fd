//! Timestamps as text: what HQL and load files write, what SELECT prints.
//!
//! Written: `YYYY-MM-DD[ HH:MM[:SS[.fraction | :nanoseconds]]]`, in the session's time zone, with a
//! blank or a `T`; load files also know plain integers, nanoseconds since 1970 (reference §1.2,
//! §1.4). Printed: the same with nine digits, or the integer.

use std::io::Write;

use chrono::{DateTime, Duration, Local, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use stoa_error::{Error, Result};

/// The time zone of timestamps that are written as dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// The zone of the process (its `TZ`), which is what Hypertable uses.
    #[default]
    Local,
    /// Coordinated universal time.
    Utc,
    /// A zone by its name, such as that of a shell's machine on a server elsewhere.
    Named(Tz),
}

impl Zone {
    /// `utc`, `local`, or the name of a zone: `America/New_York`.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) for other names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "utc" => Ok(Self::Utc),
            "local" => Ok(Self::Local),
            name => name.parse().map(Self::Named).map_err(|_| {
                Error::invalid(format!("zone {name:?} is not known"))
                    .with_hint("it is utc, local, or a name such as America/New_York")
            }),
        }
    }
}

/// How SELECT prints timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampFormat {
    /// `2009-08-11 05:06:17.246062001`
    #[default]
    Default,
    /// Nanoseconds since 1970-01-01 UTC.
    Nanoseconds,
}

impl TimestampFormat {
    /// The format by the name that `--timestamp-format` takes. `usecs` prints nanoseconds too: the
    /// name is historic (reference §1.3).
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) for other names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "default" => Ok(Self::Default),
            "usecs" | "nanos" | "nanoseconds" => Ok(Self::Nanoseconds),
            _ => Err(Error::invalid(format!("unknown timestamp format \"{name}\""))
                .with_hint("known are default, nanoseconds (or nanos) and usecs")),
        }
    }
}

/// Reads a timestamp written as a date; nanoseconds since 1970-01-01 UTC.
///
/// None if `text` is not one, or is outside of what 64 bits of nanoseconds hold (1677–2262).
/// A time that a clock skips in spring counts as one hour later, one that it shows twice in autumn
/// as the first of both.
pub fn parse_timestamp(text: &[u8], zone: Zone) -> Option<i64> {
    let mut rest = Digits(text.trim_ascii());
    let year = rest.number(4)?;
    rest.skip(b"-")?;
    let month = rest.number(2)?;
    rest.skip(b"-")?;
    let day = rest.number(2)?;
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    let (hour, minute, second, nanos) = time_of_day(&mut rest)?;
    if !rest.0.is_empty() {
        return None;
    }
    let time = date.and_hms_opt(hour, minute, second)?;
    to_nanoseconds(time, zone)?.checked_add(i64::from(nanos))
}

/// Reads a timestamp as load files write it: a date, or an integer of nanoseconds.
pub fn parse_load_timestamp(text: &[u8], zone: Zone) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return parse_timestamp(text, zone);
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Hour, minute, second and nanoseconds; what is left out is 0.
fn time_of_day(rest: &mut Digits<'_>) -> Option<(u32, u32, u32, u32)> {
    if rest.0.is_empty() {
        return Some((0, 0, 0, 0));
    }
    rest.skip(b" T")?;
    let hour = rest.number(2)?;
    rest.skip(b":")?;
    let minute = rest.number(2)?;
    if rest.skip(b":").is_none() {
        return Some((hour, minute, 0, 0));
    }
    let second = rest.number(2)?;
    let nanos = match rest.0.first() {
        Some(b'.') => rest.fraction()?,
        Some(b':') => rest.nanoseconds()?,
        _ => 0,
    };
    Some((hour, minute, second, nanos))
}

fn to_nanoseconds(time: NaiveDateTime, zone: Zone) -> Option<i64> {
    match zone {
        Zone::Utc => time.and_utc().timestamp_nanos_opt(),
        Zone::Local => within(&Local, time),
        Zone::Named(zone) => within(&zone, time),
    }
}

fn within(zone: &impl TimeZone, time: NaiveDateTime) -> Option<i64> {
    match zone.from_local_datetime(&time) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.timestamp_nanos_opt(),
        LocalResult::None => {
            let later = time.checked_add_signed(Duration::hours(1))?;
            zone.from_local_datetime(&later).earliest()?.timestamp_nanos_opt()
        }
    }
}

/// What is left of a timestamp's text.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    /// The next one to `max` digits.
    fn number(&mut self, max: usize) -> Option<u32> {
        let count = self.0.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Passes over one of `bytes`.
    fn skip(&mut self, bytes: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        bytes.contains(first).then(|| self.0 = rest)
    }

    /// `.` and a decimal fraction of a second; digits past the ninth do not count.
    fn fraction(&mut self) -> Option<u32> {
        self.0 = &self.0[1..];
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let digit = |i: usize| digits.get(i).map_or(0, |b| u32::from(b - b'0'));
        (count > 0).then(|| (0..9).fold(0, |sum, i| sum * 10 + digit(i)))
    }

    /// `:` and a number of nanoseconds below one second.
    fn nanoseconds(&mut self) -> Option<u32> {
        self.0 = &self.0[1..];
        self.number(9)
    }
}

/// Prints timestamps; remembers the text of the last second, because neighbours share it.
pub struct TimestampPrinter {
    format: TimestampFormat,
    zone: Zone,
    second: Option<i64>,
    text: Vec<u8>,
}

impl TimestampPrinter {
    /// A printer of this format, in this zone.
    pub fn new(format: TimestampFormat, zone: Zone) -> Self {
        Self { format, zone, second: None, text: Vec::new() }
    }

    /// Appends `timestamp` (nanoseconds since 1970-01-01 UTC) to `out`.
    pub fn print(&mut self, timestamp: i64, out: &mut Vec<u8>) {
        if self.format == TimestampFormat::Nanoseconds {
            push_integer(timestamp, out);
            return;
        }
        let second = timestamp.div_euclid(1_000_000_000);
        if self.second != Some(second) {
            self.text = second_text(second, self.zone);
            self.second = Some(second);
        }
        out.extend_from_slice(&self.text);
        let mut digits = *b".000000000";
        let mut nanos = timestamp.rem_euclid(1_000_000_000) as u32;
        for digit in digits[1..].iter_mut().rev() {
            *digit = b'0' + (nanos % 10) as u8;
            nanos /= 10;
        }
        out.extend_from_slice(&digits);
    }
}

fn second_text(second: i64, zone: Zone) -> Vec<u8> {
    const FORMAT: &str = "%Y-%m-%d %H:%M:%S";
    // Every second of 64 bits of nanoseconds is a date.
    let at: DateTime<Utc> = DateTime::from_timestamp(second, 0).unwrap_or_default();
    let text = match zone {
        Zone::Utc => at.format(FORMAT).to_string(),
        Zone::Local => at.with_timezone(&Local).format(FORMAT).to_string(),
        Zone::Named(zone) => at.with_timezone(&zone).format(FORMAT).to_string(),
    };
    text.into_bytes()
}

/// Appends an integer in decimal digits.
pub(crate) fn push_integer(value: i64, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse_timestamp(text.as_bytes(), Zone::Utc), expected, "{text}");
    }

    #[test]
    fn dates_are_read_in_all_their_forms() {
        let second = 1_234_404_732_000_000_000;
        check("2009-02-12 02:12:12", Some(second));
        check("2009-02-12T02:12:12", Some(second));
        check("2009-02-12 02:12:12.1", Some(second + 100_000_000));
        check("2009-02-12 02:12:12.1000000000", Some(second + 100_000_000));
        check("2009-02-12 02:12:12:2", Some(second + 2));
        check("2009-02-12 02:12", Some(second - 12_000_000_000));
        check("1969-12-31 23:59:59.999999999", Some(-1));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "now",
            "2009-13-01",
            "2009-02-30",
            "2009-02-12 25:00",
            "2009-02-12 02:12:12.",
            "2009-02-12 02:12:12x",
            "9999-01-01",
        ] {
            check(text, None);
        }
        assert_eq!(parse_load_timestamp(b"12345", Zone::Utc), Some(12345));
        assert_eq!(parse_load_timestamp(b"99999999999999999999", Zone::Utc), None);
    }

    #[test]
    fn usecs_prints_nanoseconds() {
        let format = TimestampFormat::from_name("usecs").unwrap();
        let mut out = Vec::new();
        TimestampPrinter::new(format, Zone::Utc).print(-5, &mut out);
        assert_eq!(out, b"-5");
        assert!(TimestampFormat::from_name("secs").is_err());
    }

    #[test]
    fn zones_have_names() {
        let zone = Zone::from_name("America/New_York").unwrap();
        for (text, utc) in [
            ("2026-01-15 00:30:00", "2026-01-15 05:30:00"),
            ("2026-07-15 00:30:00", "2026-07-15 04:30:00"),
            // Skipped in spring, shown twice in autumn.
            ("2026-03-08 02:30:00", "2026-03-08 07:30:00"),
            ("2026-11-01 01:30:00", "2026-11-01 05:30:00"),
        ] {
            let at = parse_timestamp(text.as_bytes(), zone).unwrap();
            assert_eq!(Some(at), parse_timestamp(utc.as_bytes(), Zone::Utc), "{text}");
            let mut out = Vec::new();
            TimestampPrinter::new(TimestampFormat::Default, zone).print(at, &mut out);
            let skipped = text.contains("03-08");
            assert_eq!(out.starts_with(text.as_bytes()), !skipped, "{text}");
        }
        assert_eq!(Zone::from_name("utc").unwrap(), Zone::Utc);
        assert!(Zone::from_name("Mars/Olympus").is_err());
    }

    proptest! {
        #[test]
        fn printed_timestamps_are_read_back(timestamp in any::<i64>()) {
            // The first year of 64 bits begins in the middle of a second.
            let timestamp = timestamp.max(i64::MIN + 1_000_000_000);
            let mut out = Vec::new();
            TimestampPrinter::new(TimestampFormat::Default, Zone::Utc).print(timestamp, &mut out);
            prop_assert_eq!(parse_timestamp(&out, Zone::Utc), Some(timestamp));
        }

        #[test]
        fn any_bytes_are_read_without_panic(text in any::<Vec<u8>>()) {
            let _ = parse_load_timestamp(&text, Zone::Local);
        }
    }
}
